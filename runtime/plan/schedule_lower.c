/*
 * Lowers a rewritten graph into steps. A node (or a pair) becomes one step for each dispatch, or
 * one host step. Leaves, views and empty results have no steps.
 *
 * Nodes are lowered in their order, which respects all dependencies. The dispatches of one node
 * stay together, in the order in which its family emitted them.
 */
#include "plan/schedule.h"
#include "base/atomic.h"

#include <string.h>

static _Atomic uint64_t lowered_count;

uint64_t schedule_lowered_count(void)
{
    return atomic_read_alone(&lowered_count);
}

/* An empty result needs no work, and kernels may assume at least one element. */
static bool is_empty(const rlxvk_graph *g, uint32_t id)
{
    return shape_numel(&graph_node(g, id)->shape) == 0;
}

/* Whether a node has no steps. That is so for a leaf, and for a view or an empty result that writes
 * no operand. */
static bool is_silent(const schedule *s, uint32_t id)
{
    const node *n = graph_node(s->graph, id);
    const value *v = &s->values.items[id];
    if (n->input_count == 0 || (is_empty(s->graph, id) && !node_writes(n)))
        return true;
    return v->root != id && !v->in_concat && !node_writes(n);
}

/* Whether the caller forces a node to the host. */
static bool is_hosted(const schedule_options *options, const rlxvk_graph *g, uint32_t id)
{
    return options->on_host && options->on_host[graph_node(g, id)->op];
}

static bool runs_on_host(const schedule_options *options, const rlxvk_graph *g, uint32_t id)
{
    const node *n = graph_node(g, id);
    const op_family *family = node_row(n)->family;
    return is_hosted(options, g, id) || !family->execution.lower ||
           (family->execution.has_kernel && !family->execution.has_kernel(n));
}

/* Whether a node becomes steps at its own place; *pair is the node that is lowered with it. A pair
 * is lowered together, at the place of its first node (the lower id). If one of the two is forced
 * to the host, they are not a pair. */
static bool makes_steps(const schedule *s, const schedule_options *options,
                        const uint32_t *partners, uint32_t id, uint32_t *pair)
{
    uint32_t partner = partners[id];
    if (partner != NODE_NONE &&
        (is_hosted(options, s->graph, id) || is_hosted(options, s->graph, partner)))
        partner = NODE_NONE;
    *pair = partner;
    return !is_silent(s, id) && (partner == NODE_NONE || id < partner);
}

/* ---- Nodes that cannot run: one error names them all ---- */

static bool may_not_use_host(const node *n)
{
    (void)n;
    return true;
}

#define NODES_NAMED 512 /* bytes for their labels in an error */

static rlxvk_status require_none(const schedule *s, const schedule_options *options,
                                 const uint32_t *partners, bool (*is_blocked)(const node *),
                                 const char *why)
{
    char names[NODES_NAMED] = "", label[NODE_LABEL];
    text t = {names, sizeof names, 0};
    size_t count = 0, named = 0;
    uint32_t pair;
    for (uint32_t id = 0; id < s->graph->nodes.count; id++) {
        if (!makes_steps(s, options, partners, id, &pair) || !runs_on_host(options, s->graph, id) ||
            !is_blocked(graph_node(s->graph, id)))
            continue;
        op_node_label(s->graph, id, label);
        count++;
        if (named + 1 != count || t.length + strlen(label) + sizeof ", " > sizeof names)
            continue;
        text_append(&t, "%s%s", named++ ? ", " : "", label);
    }
    if (count == 0)
        return RLXVK_OK;
    if (named < count)
        return status_fail(RLXVK_E_UNSUPPORTED, "%zu nodes %s: %s and %zu more", count, why, names,
                           count - named);
    return status_fail(RLXVK_E_UNSUPPORTED, "%zu node%s %s: %s", count, count > 1 ? "s" : "", why,
                       names);
}

static rlxvk_status check_hosts(const schedule *s, const schedule_options *options,
                                const uint32_t *partners)
{
    rlxvk_status status;
    TRY(require_none(s, options, partners, node_lacks_host,
                     "cannot run, without kernel and without host function"));
    if (options->forbid_host)
        TRY(require_none(s, options, partners, may_not_use_host,
                         "would run on the host, which forbid_host rules out"));
error:
    return status;
}

static rlxvk_status lower_node(lowering *l, schedule *s, const schedule_options *options,
                               uint32_t id, uint32_t pair)
{
    const node *n = graph_node(s->graph, id);
    const op_family *family = node_row(n)->family;
    uint32_t first = (uint32_t)l->dispatches.count;
    rlxvk_status status = RLXVK_OK;
    l->choice = (variant_choice){0}; /* a node's choice says nothing about the next node */
    l->prepares = false;
    if (runs_on_host(options, s->graph, id))
        return VECTOR_PUSH(&s->steps, (step){.node = id, .host = true})
                   ? RLXVK_OK
                   : status_fail_memory("steps");
    atomic_add_alone(&lowered_count, 1);
    if (pair != NODE_NONE)
        status = node_row(graph_node(s->graph, pair))->family->execution.lower_pair(l, id, pair);
    else
        status = family->execution.lower(l, id);
    if (status != RLXVK_OK)
        TRY(status_fail_within(status, "node %u (%s)", id, node_row(n)->name));
    for (uint32_t i = first; i < l->dispatches.count; i++) {
        l->dispatches.items[i].node = id;
        if (!VECTOR_PUSH(&s->steps, (step){.node = id, .dispatch = i}))
            return status_fail_memory("steps");
    }
error:
    return status;
}

/* For each open loop, the step with which it begins. */
typedef VECTOR(schedule_loop) open_loops;

static rlxvk_status note_loop(schedule *s, open_loops *open, uint32_t id)
{
    const node *n = graph_node(s->graph, id);
    uint32_t steps = (uint32_t)s->steps.count;
    op_loop loop;
    if (node_row(n)->family->loop.opens && !VECTOR_PUSH(open, (schedule_loop){.first = steps}))
        return status_fail_memory("loops");
    if (!node_closes_loop(n, &loop))
        return RLXVK_OK;
    schedule_loop l = open->items[--open->count];
    l.count = steps - l.first;
    l.times = loop.times;
    l.stop = loop.stop == NODE_NONE ? NODE_NONE : n->inputs[loop.stop];
    if (l.count && !VECTOR_PUSH(&s->loops, l))
        return status_fail_memory("loops");
    return RLXVK_OK;
}

static rlxvk_status lower_all(lowering *l, schedule *s, const schedule_options *options)
{
    const rlxvk_graph *g = s->graph;
    open_loops open = {0};
    uint32_t *partners = pair_partners(options->pairs, options->pair_count, g->nodes.count);
    rlxvk_status status =
        partners ? check_hosts(s, options, partners) : status_fail_memory("pairs");
    for (uint32_t id = 0; id < g->nodes.count && status == RLXVK_OK; id++) {
        uint32_t pair;
        if (makes_steps(s, options, partners, id, &pair))
            status = lower_node(l, s, options, id, pair);
        if (status == RLXVK_OK)
            status = note_loop(s, &open, id);
    }
    VECTOR_FREE(&open);
    memory_free(partners);
    return status;
}

/* How many bytes are left for layouts of lowerings, after the nodes that rewrites marked to be
 * prepared (prepare.c). Views of those take no bytes of their own. Constants are not counted
 * because they are weights. */
static uint64_t bytes_for_layouts(const schedule *s, uint64_t most)
{
    for (uint32_t id = 0; id < s->graph->nodes.count; id++)
        if (graph_node(s->graph, id)->prepare && graph_node(s->graph, id)->input_count &&
            s->values.items[id].root == id)
            most -= MIN(most, schedule_value_bytes(s, id));
    return most;
}

rlxvk_status schedule_create(const rlxvk_graph *g, const schedule_options *options, schedule *out)
{
    schedule s = {.graph = g};
    lowering l = {.graph = g,
                  .profile = options->profile,
                  .precision = options->precision,
                  .matrix_in_lanes = options->matrix_in_lanes,
                  .variants = options->variants,
                  .tuning = options->tuning};
    rlxvk_status status;
    TRY(value_map_create(g,
                         &(value_options){.keep_all = options->keep_all,
                                          .strided = options->strided,
                                          .on_host = options->on_host},
                         &s.values));
    l.values = &s.values;
    l.prepared_bytes = bytes_for_layouts(&s, options->prepared_bytes);
    TRY(lower_all(&l, &s, options));
error:
    /* The schedule takes over what the lowering owns, so that it is destroyed with the schedule
     * after a failure. */
    s.dispatches.items = l.dispatches.items;
    s.dispatches.count = l.dispatches.count;
    s.dispatches.capacity = l.dispatches.capacity;
    s.operands = l.operands;
    s.temporaries.items = l.temporaries.items;
    s.temporaries.count = l.temporaries.count;
    s.temporaries.capacity = l.temporaries.capacity;
    s.queries.items = l.queries.items;
    s.queries.count = l.queries.count;
    s.queries.capacity = l.queries.capacity;
    if (status == RLXVK_OK)
        status = prepare_schedule(&s, options->prepared_bytes);
    if (status == RLXVK_OK && options->reorder)
        status = reorder_schedule(&s);
    if (status != RLXVK_OK)
        schedule_destroy(&s);
    else
        *out = s;
    return status;
}
