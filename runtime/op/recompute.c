/* See recompute.h. */
#include "op/recompute.h"
#include "op/view.h"

#include <rlxvk_train.h>

#include <stdlib.h>

/* ---- Marks ---- */

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

void rlxvk_checkpoint(rlxvk_graph *g, rlxvk_tensor t)
{
    if (!graph_ready(g, "checkpoint") ||
        graph_fail(g, graph_take(g, t, "checkpoint", "tensor", 0)) != RLXVK_OK)
        return;
    if (VECTOR_PUSH(&g->checkpoints, t.id - 1))
        qsort(g->checkpoints.items, g->checkpoints.count, sizeof(uint32_t), by_number);
    else
        graph_fail(g, status_fail_memory("checkpoints"));
}

/* ---- Kept nodes ---- */

/* Keeps nodes that must not be computed twice: leaves, and nodes that write. */
static void sort_node(recompute *r, uint32_t id)
{
    const rlxvk_graph *g = r->graph;
    const node *n = graph_node(g, id);
    bool fixed = n->op != OP_input && !node_writes(n), all_kept = true;
    for (uint32_t i = 0; i < n->input_count; i++) {
        fixed = fixed && r->fixed[n->inputs[i]];
        all_kept = all_kept && r->kept[n->inputs[i]];
    }
    for (uint32_t i = 0; i < n->input_count && node_writes(n) >> i; i++)
        r->kept[n->inputs[i]] |= node_writes(n) >> i & 1; /* carries of a loop */
    r->fixed[id] = fixed;
    r->kept[id] |= fixed || n->input_count == 0 || node_writes(n) ||
                   (all_kept && view_is(g, n, NULL)); /* views cost nothing */
}

rlxvk_status recompute_create(rlxvk_graph *g, recompute *out)
{
    *out = (recompute){.graph = g, .first = (uint32_t)g->nodes.count};
    if (g->checkpoints.count == 0)
        return RLXVK_OK;
    uint32_t count = g->checkpoints.items[g->checkpoints.count - 1] + 1;
    out->kept = memory_zeroed(2 * (size_t)count, sizeof *out->kept);
    out->copies = memory_allocate(count * sizeof *out->copies);
    if (!out->kept || !out->copies)
        return status_fail_memory("checkpoints");
    out->fixed = out->kept + count;
    out->count = count;
    for (size_t i = 0; i < g->checkpoints.count; i++)
        out->kept[g->checkpoints.items[i]] = true;
    for (uint32_t id = 0; id < count; id++) {
        out->copies[id] = NODE_NONE;
        sort_node(out, id);
    }
    return RLXVK_OK;
}

void recompute_destroy(recompute *r)
{
    memory_free(r->kept);
    memory_free(r->copies);
    VECTOR_FREE(&r->originals);
    VECTOR_FREE(&r->pending);
}

/* ---- Copies ---- */

uint32_t recompute_original(const recompute *r, uint32_t id)
{
    return id < r->first || id - r->first >= r->originals.count ? id
                                                                : r->originals.items[id - r->first];
}

static bool note_copy(recompute *r, uint32_t id, uint32_t copy)
{
    for (uint32_t none; (none = r->first + (uint32_t)r->originals.count) <= copy;)
        if (!VECTOR_PUSH(&r->originals, none))
            return false;
    r->originals.items[copy - r->first] = id;
    r->copies[id] = copy;
    return true;
}

/* The node that a copy reads instead of node `id`; NODE_NONE: it is not made yet. */
static uint32_t stand_in(const recompute *r, uint32_t id)
{
    return id < r->count && !r->fixed[id] ? r->copies[id] : id;
}

/* Call it once every operand of the node has its stand-in. */
static uint32_t copy_node(recompute *r, uint32_t id)
{
    rlxvk_graph *g = r->graph;
    node copy = *graph_node(g, id);
    uint32_t *inputs = memory_allocate(copy.input_count * sizeof *inputs);
    if (!inputs) {
        graph_fail(g, status_fail_memory("recomputed node"));
        return NODE_NONE;
    }
    for (uint32_t i = 0; i < copy.input_count; i++)
        inputs[i] = stand_in(r, copy.inputs[i]);
    copy.inputs = inputs;
    uint32_t made = graph_append(g, &copy);
    memory_free(inputs);
    if (made != NODE_NONE && !view_is(g, graph_node(g, made), NULL))
        g->recomputed_bytes += shape_numel(&copy.shape) * (copy.dtype == RLXVK_C64 ? 8 : 4);
    return made;
}

/* A view of a kept node that waits for `gate`, so that everything computed from it waits, too. */
static uint32_t wait_for(recompute *r, uint32_t id, uint32_t gate)
{
    rlxvk_tensor t = rlxvk_after(r->graph, tensor_of(r->graph, id), tensor_of(r->graph, gate));
    return t.id ? t.id - 1 : NODE_NONE;
}

/* Makes the stand-in of the last pending node. If an operand has none yet, that becomes pending
 * instead. */
static bool go_on(recompute *r, uint32_t gate)
{
    uint32_t id = r->pending.items[r->pending.count - 1];
    size_t before = r->pending.count;
    if (stand_in(r, id) != NODE_NONE) {
        r->pending.count--;
        return true;
    }
    const node *n = graph_node(r->graph, id);
    for (uint32_t i = 0; i < n->input_count && !r->kept[id]; i++)
        if (stand_in(r, n->inputs[i]) == NODE_NONE && !VECTOR_PUSH(&r->pending, n->inputs[i]))
            return false;
    if (r->pending.count > before)
        return true;
    r->pending.count--;
    uint32_t made = r->kept[id] ? wait_for(r, id, gate) : copy_node(r, id);
    return made == NODE_NONE || note_copy(r, id, made);
}

uint32_t recompute_value(recompute *r, uint32_t id, uint32_t gate)
{
    rlxvk_graph *g = r->graph;
    if (id >= r->count || r->kept[id])
        return id;
    r->pending.count = 0;
    bool held = VECTOR_PUSH(&r->pending, id);
    while (held && r->pending.count && g->status == RLXVK_OK)
        held = go_on(r, gate);
    if (!held)
        graph_fail(g, status_fail_memory("recomputed nodes"));
    return g->status == RLXVK_OK ? r->copies[id] : NODE_NONE;
}
