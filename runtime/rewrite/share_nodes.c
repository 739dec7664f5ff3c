/*
 * Common subexpressions: if a node computes the same as an earlier one, it becomes that one. Two
 * nodes are the same if op, dtype, shape, operands, attributes and (for constants) content are
 * equal, bit by bit. Operands are compared in the new list, so one pass shares whole chains.
 *
 * These nodes are not shared:
 *   - inputs and params
 *   - nodes that write in place, or whose memory is written, as for values that loops carry
 *   - nodes whose operands are written between the two
 *   - custom ops, because the caller's code may have side effects
 *   - outputs with different names
 * Random numbers depend only on attributes and operands, so equal nodes draw the same numbers.
 */
#include "rewrite/pass.h"

#include <string.h>

/* Facts about the old nodes, and a hash table of those visited so far (open addressing; NODE_NONE:
 * free). */
typedef struct shares {
    bool *outputs;
    bool *written; /* some node writes its memory */
    uint32_t *table;
    size_t places; /* a power of two */
} shares;

/* ---- Which nodes can be shared ---- */

static bool can_share(const shares *s, const node *n, uint32_t id)
{
    bool callers = n->op == OP_custom || n->op == OP_custom_function;
    return !graph_is_named(n) && !callers && !node_writes(n) && !s->written[id];
}

/* ---- Equality ---- */

static bool same_name(const node *a, const node *b)
{
    return a->name && b->name ? strcmp(a->name, b->name) == 0 : a->name == b->name;
}

static bool reads_written(const shares *s, const node *n)
{
    for (uint32_t i = 0; i < n->input_count; i++)
        if (s->written[n->inputs[i]])
            return true;
    return false;
}

/* Whether old node `id` computes the same as the earlier node `first`. */
static bool is_same(const pass *p, uint32_t first, uint32_t id)
{
    const shares *s = p->context;
    const node *a = &p->nodes[first], *b = &p->nodes[id];
    if (a->op != b->op || a->dtype != b->dtype || a->input_count != b->input_count ||
        a->attribute_size != b->attribute_size || a->data_size != b->data_size ||
        !shape_equal(&a->shape, &b->shape))
        return false;
    for (uint32_t i = 0; i < a->input_count; i++)
        if (p->map[a->inputs[i]] != p->map[b->inputs[i]])
            return false;
    if ((a->attribute_size && memcmp(a->attributes, b->attributes, a->attribute_size) != 0) ||
        (a->data_size && memcmp(a->data, b->data, a->data_size) != 0))
        return false;
    return (!s->outputs[id] || same_name(a, b)) &&
           (!reads_written(s, b) || !rewrite_writes_between(p, first, id));
}

/* Leaves out attributes, and all but the start of a constant, because they may be long. is_same
 * compares them. */
static size_t hash_of(const pass *p, const node *n)
{
    uint64_t hash = n->op, start = 0;
    memcpy(&start, n->data ? n->data : &start, MIN(n->data_size, sizeof start));
    const uint64_t words[] = {n->dtype, shape_numel(&n->shape), start};
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15u;
    for (uint32_t i = 0; i < n->input_count; i++)
        hash = (hash ^ p->map[n->inputs[i]]) * 0x9e3779b97f4a7c15u;
    return (size_t)(hash >> 32);
}

/* ---- The pass ---- */

static uint32_t share_node(pass *p, uint32_t id)
{
    const shares *s = p->context;
    const node *n = &p->nodes[id];
    if (!can_share(s, n, id))
        return NODE_NONE;
    size_t place = hash_of(p, n) & (s->places - 1);
    while (s->table[place] != NODE_NONE && !is_same(p, s->table[place], id))
        place = (place + 1) & (s->places - 1);
    if (s->table[place] != NODE_NONE)
        return p->map[s->table[place]];
    s->table[place] = id;
    return NODE_NONE;
}

rlxvk_status share_nodes(rlxvk_graph *g, const rewrite_options *options)
{
    size_t count = g->nodes.count + 1, places = 2;
    while (places < 2 * count)
        places *= 2;
    uint32_t *table = memory_allocate(places * sizeof *table);
    bool *outputs = memory_zeroed(count, sizeof *outputs), *written = rewrite_find_written(g);
    shares s = {outputs, written, table, places};
    rlxvk_status status;
    (void)options;
    TRY(table && outputs && written ? RLXVK_OK : status_fail_memory("shared nodes"));
    for (size_t i = 0; i < g->outputs.count; i++)
        s.outputs[g->outputs.items[i]] = true;
    for (size_t i = 0; i < places; i++)
        s.table[i] = NODE_NONE;
    TRY(rewrite_run_pass(g, share_node, &s));
error:
    memory_free(table);
    memory_free(outputs);
    memory_free(written);
    return status;
}
