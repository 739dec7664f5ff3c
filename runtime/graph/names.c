/*
 * Inputs and params by name: a hash table of node ids, open addressing, at most half full. Of two
 * nodes of one name, which a checked graph has not, the first is found.
 */
#include "graph/graph.h"

#include <string.h>

#define FEWEST_PLACES 16

/* Constants have data; what else has operands is no leaf. */
bool graph_is_named(const node *n)
{
    return n->input_count == 0 && n->name && !n->data;
}

static size_t hash_name(uint16_t op, const char *name)
{
    uint64_t hash = base_hash(BASE_HASH_START ^ op, name, strlen(name));
    return (size_t)(hash ^ hash >> 32);
}

/* Where the id of this name stands, or would. */
static uint32_t *place_of(const rlxvk_graph *g, uint16_t op, const char *name)
{
    size_t mask = g->names.capacity - 1, at = hash_name(op, name) & mask;
    for (; g->names.ids[at] != NODE_NONE; at = (at + 1) & mask) {
        const node *n = graph_node(g, g->names.ids[at]);
        if (n->op == op && strcmp(n->name, name) == 0)
            break;
    }
    return &g->names.ids[at];
}

static void add_name(rlxvk_graph *g, uint32_t id)
{
    const node *n = graph_node(g, id);
    uint32_t *place = place_of(g, n->op, n->name);
    g->names.count += *place == NODE_NONE;
    *place = MIN(*place, id);
}

/* Built anew and exchanged for the old, so that running out of memory leaves the index as it was;
 * doubling keeps the cost of all rebuilds below that of as many insertions. */
rlxvk_status graph_index_names(rlxvk_graph *g)
{
    size_t count = 0, capacity = FEWEST_PLACES;
    for (uint32_t id = 0; id < g->nodes.count; id++)
        count += graph_is_named(graph_node(g, id));
    while (capacity < 4 * count)
        capacity *= 2;
    uint32_t *ids = memory_allocate(capacity * sizeof *ids);
    if (!ids)
        return status_fail_memory("names");
    for (size_t i = 0; i < capacity; i++)
        ids[i] = NODE_NONE;
    memory_free(g->names.ids);
    g->names = (name_index){ids, 0, capacity};
    for (uint32_t id = 0; id < g->nodes.count; id++)
        if (graph_is_named(graph_node(g, id)))
            add_name(g, id);
    return RLXVK_OK;
}

rlxvk_status graph_note_name(rlxvk_graph *g, uint32_t id)
{
    if (!graph_is_named(graph_node(g, id)))
        return RLXVK_OK;
    if (2 * (g->names.count + 1) > g->names.capacity)
        return graph_index_names(g);
    add_name(g, id);
    return RLXVK_OK;
}

uint32_t graph_find(const rlxvk_graph *g, uint16_t op, const char *name)
{
    uint32_t id = g->names.capacity ? *place_of(g, op, name) : NODE_NONE;
    return id < g->nodes.count ? id : NODE_NONE; /* a failed graph may have been cut back */
}
