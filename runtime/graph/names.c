/*
 * Finds inputs and params by name. It is a hash table of node ids with open addressing, at most
 * half full. If two nodes have one name, the first is found; a verified graph has no such nodes.
 */
#include "graph/graph.h"

#include <string.h>

#define FEWEST_PLACES 16

/* Constants are leaves with data; nodes with operands are not leaves. */
bool graph_is_named(const node *n)
{
    return n->input_count == 0 && n->name && !n->data;
}

static size_t hash_name(uint16_t op, const char *name)
{
    uint64_t hash = base_hash(BASE_HASH_START ^ op, name, strlen(name));
    return (size_t)(hash ^ hash >> 32);
}

/* The place where the id with this name is, or would be. */
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

/* Builds a new table and then replaces the old one, so that the index stays as it was if memory
 * runs out. Because the size doubles, all rebuilds together cost less than the insertions. */
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
    return id < g->nodes.count ? id : NODE_NONE; /* nodes of a failed graph may have been removed */
}
