/*
 * Unrolls a loop at the end of the list of nodes. Gradients need this, because they need a node for
 * every step. The nodes between loop_begin and loop_end are copied once for each step. Slices
 * become rows, and carries become the values of the step before. Random ops read the state itself,
 * with shifted keys. Loops inside the body are copied as loops.
 */
#include "op/compose/inlining.h"
#include "op/compose/loop.h"
#include "op/random/random.h"

#include <string.h>

typedef struct unrolling {
    rlxvk_graph *g;
    uint32_t begin, end;
    loop_attributes loop;
    uint64_t stride;
    uint32_t *map, *next; /* per node up to `end`; for carries `next` is the next step's value */
    VECTOR(rlxvk_tensor) rows;
} unrolling;

static rlxvk_shape with_rows(const rlxvk_shape *s, int64_t rows)
{
    rlxvk_shape result = {.rank = s->rank + 1, .dims = {rows}};
    memcpy(result.dims + 1, s->dims, s->rank * sizeof *s->dims);
    return result;
}

static rlxvk_tensor mapped(const unrolling *u, uint32_t id)
{
    return tensor_of(u->g, u->map[id]);
}

static uint32_t slice(const unrolling *u, const node *n, int64_t t)
{
    rlxvk_tensor row = rlxvk_narrow(u->g, mapped(u, n->inputs[0]), 0, t, 1);
    return rlxvk_reshape(u->g, row, n->shape).id - 1;
}

static void take_update(unrolling *u, const node *n, int64_t t)
{
    uint32_t value = u->map[n->inputs[1]];
    if (n->input_count == 2) {
        u->next[n->inputs[0]] = value;
    } else if (loop_saves(u->loop.steps, u->loop.rows, t)) {
        rlxvk_shape shape = with_rows(&graph_node(u->g, value)->shape, 1);
        rlxvk_tensor row = rlxvk_reshape(u->g, tensor_of(u->g, value), shape);
        if (!VECTOR_PUSH(&u->rows, row))
            graph_fail(u->g, status_fail_memory("unrolled rows"));
    }
}

static uint32_t copy_node(const unrolling *u, const node *n, int64_t t)
{
    uint64_t attributes[64];
    uint32_t made = NODE_NONE, *inputs = memory_zeroed(n->input_count + 1, sizeof *inputs);
    if (!inputs || n->attribute_size > sizeof attributes) {
        graph_fail(u->g, status_fail_memory("unrolled node"));
    } else {
        if (n->attributes)
            memcpy(attributes, n->attributes, n->attribute_size);
        for (uint32_t i = 0; i < n->input_count; i++)
            inputs[i] = u->map[n->inputs[i]];
        inlining_shift_stream(n, (uint64_t)t * u->stride, attributes);
        made = op_append(u->g, (op_kind)n->op, inputs, n->input_count,
                         n->attributes ? attributes : NULL, n->name);
    }
    memory_free(inputs);
    return made;
}

/* Whether operand `i` is the clock of this loop, not of an inner one. */
static bool is_ours(const unrolling *u, const node *n, uint32_t i)
{
    return i < n->input_count && n->inputs[i] == u->begin;
}

static void unroll_node(unrolling *u, uint32_t id, int64_t t)
{
    const node n = *graph_node(u->g, id); /* a copy, because the list grows */
    if (n.input_count == 0)
        return;
    if (n.op == OP_loop_slice && is_ours(u, &n, 1))
        u->map[id] = slice(u, &n, t);
    else if (n.op == OP_loop_random && is_ours(u, &n, 1))
        u->map[id] = u->map[n.inputs[0]];
    else if (n.op == OP_loop_update && n.inputs[0] < u->begin)
        take_update(u, &n, t);
    else
        u->map[id] = copy_node(u, &n, t);
}

/* Sets the carries to their initial values. */
static void begin_carries(unrolling *u)
{
    const node *begin = graph_node(u->g, u->begin);
    for (uint32_t id = 0; id <= u->end; id++)
        u->map[id] = u->next[id] = id;
    for (uint32_t i = 0; i < begin->input_count; i++) {
        uint32_t id = begin->inputs[i];
        u->map[id] = u->next[id] = graph_node(u->g, id)->inputs[0];
    }
    for (uint32_t id = u->begin + 1; id < u->end; id++)
        if (graph_node(u->g, id)->op == OP_loop_random && is_ours(u, graph_node(u->g, id), 1))
            u->stride = loop_of(graph_node(u->g, id))->stride;
}

static void unroll_steps(unrolling *u)
{
    const node *begin = graph_node(u->g, u->begin);
    const uint32_t *carries = begin->inputs, count = begin->input_count;
    begin_carries(u);
    for (int64_t t = 0; t < u->loop.steps && u->g->status == RLXVK_OK; t++) {
        for (uint32_t id = u->begin + 1; id < u->end && u->g->status == RLXVK_OK; id++)
            unroll_node(u, id, t);
        for (uint32_t i = 0; i < count; i++)
            u->map[carries[i]] = u->next[carries[i]];
    }
}

static bool fits(rlxvk_graph *g, const unrolling *u)
{
    uint64_t total, nodes = u->end - u->begin;
    if (size_multiply((uint64_t)u->loop.steps, nodes, &total) &&
        total <= INLINING_MOST_NODES - g->inlined) {
        g->inlined += total;
        return true;
    }
    graph_fail(g, status_fail(RLXVK_E_UNSUPPORTED,
                              "grad: through a loop (node %u) of %lld steps of %llu nodes; it is "
                              "unrolled for that, to at most %u nodes; make it a few shorter scans "
                              "with rlxvk_checkpoint on the carries between them, or take the "
                              "gradient of its last steps alone",
                              u->end, (long long)u->loop.steps, (unsigned long long)nodes,
                              INLINING_MOST_NODES));
    return false;
}

rlxvk_tensor loop_unroll(rlxvk_graph *g, const node *result)
{
    uint32_t target = result->inputs[0], end = result->inputs[1];
    bool trajectory = loop_of(graph_node(g, target))->rows != 0;
    unrolling u = {.g = g,
                   .begin = graph_node(g, end)->inputs[0],
                   .end = end,
                   .loop = *loop_of(graph_node(g, end))};
    rlxvk_tensor made = RLXVK_NONE;
    if (!fits(g, &u))
        return RLXVK_NONE;
    u.map = memory_allocate(2 * ((size_t)end + 1) * sizeof *u.map);
    if (u.map) {
        u.next = u.map + end + 1;
        unroll_steps(&u);
    } else {
        graph_fail(g, status_fail_memory("unrolled loop"));
    }
    if (g->status == RLXVK_OK)
        made = trajectory ? rlxvk_concat(g, u.rows.items, u.rows.count, 0) : mapped(&u, target);
    memory_free(u.map);
    VECTOR_FREE(&u.rows);
    return made;
}
