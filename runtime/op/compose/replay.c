/*
 * Long loops. Nodes of a body that depend only on params, constants and broadcast values are
 * inlined before the loop begins. The others stand between loop_begin and loop_end. Carries change
 * after the whole body, so that every node of it reads the values of its own step.
 *
 * A while also carries `active`. Once the condition has failed, it keeps the values as they are, as
 * unrolling does. So the remaining steps change nothing.
 */
#include "op/compose/replay.h"
#include "graph/symbol.h"
#include "op/compose/inlining.h"
#include "op/compose/loop.h"
#include "op/random/random.h"
#include "op/view.h"

#include <string.h>

void rlxvk_graph_set_unroll_limit(rlxvk_graph *graph, uint64_t nodes)
{
    if (graph_ready(graph, "graph_set_unroll_limit"))
        graph->unroll_nodes = nodes;
}

static rlxvk_tensor scalar_constant(rlxvk_graph *g, float value)
{
    return rlxvk_constant(g, RLXVK_F32, RLXVK_SCALAR, &value, sizeof value);
}

rlxvk_tensor replay_truth(rlxvk_graph *g, rlxvk_tensor t)
{
    static const int32_t axes[RLXVK_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    rlxvk_shape s = rlxvk_tensor_shape(g, t);
    rlxvk_tensor p = rlxvk_cast(g, rlxvk_ne(g, t, scalar_constant(g, 0)), RLXVK_F32);
    if (dim_elements(g, &s) == 1)
        return rlxvk_reshape(g, p, RLXVK_SCALAR);
    /* min with 1, because an empty reduction counts as true */
    return rlxvk_min(g, rlxvk_reduce_min(g, p, axes, s.rank, false), scalar_constant(g, 1));
}

/* ---- Conditions ---- */

/* The first op that keeps a body from being replayed; NULL if there is none. It writes a leaf,
 * which a view from before the loop would see, or it has flags, which must be checked after every
 * step. */
static const char *find_unsuited(const rlxvk_graph *body)
{
    const char *row = NULL;
    for (uint32_t id = 0; id < body->nodes.count && !row; id++) {
        const node *n = graph_node(body, id);
        if (node_has_effect(body, n) || node_row(n)->family->checks.flags)
            row = node_row(n)->name;
    }
    return row;
}

bool replay_suits(rlxvk_graph *g, const char *what, uint64_t rounds, uint64_t nodes,
                  const rlxvk_graph *const bodies[2], const rlxvk_tensor *values, size_t count,
                  size_t fixed)
{
    uint64_t total, limit = g->unroll_nodes ? g->unroll_nodes : REPLAY_UNROLL_NODES;
    bool suits = rounds > 1 && (!size_multiply(rounds, nodes, &total) || total > limit);
    char why[96] = "";
    text t = {why, sizeof why, 0};
    for (int b = 0; b < 2 && bodies[b] && suits; b++) {
        const char *row = find_unsuited(bodies[b]);
        if (row)
            text_append(&t, "; a body with %s is not replayed", row);
    }
    for (size_t i = 0; i < count && suits; i++)
        if ((i == 0 || i > fixed) && !*why && op_node_storage(g, values[i].id - 1) == STORAGE_RAW)
            text_append(&t, "; value %zu is bytes, which is not replayed: cast it to F32", i);
    suits = suits && !*why;
    return inlining_rounds_fit(g, what, suits ? 1 : rounds, nodes, why) && suits;
}

/* ---- One body ---- */

typedef struct replay {
    inlining in;
    bool *varies; /* per node of the body */
    bool random;  /* whether it has random ops */
} replay;

/* Marks the nodes that differ from step to step, given which inputs do. The carries of an inner
 * loop differ, too, because that loop starts again in each step. */
static void mark_varying(const rlxvk_graph *body, const bool *varying, replay *r)
{
    for (uint32_t id = 0; id < body->nodes.count; id++) {
        const node *n = graph_node(body, id);
        bool state = random_is_state(n);
        r->random |= state;
        r->varies[id] =
            state || n->op == OP_loop_carry || (n->op == OP_input && !state && *varying++);
        for (uint32_t i = 0; i < n->input_count; i++)
            r->varies[id] |= r->varies[n->inputs[i]];
    }
}

/* Inlines the nodes that are the same in every step. `inputs` must outlive `r`. */
static bool replay_create(replay *r, rlxvk_graph *g, const rlxvk_graph *body, const char *what,
                          const rlxvk_tensor *inputs, const bool *varying, uint64_t instance)
{
    *r = (replay){.varies = memory_zeroed(body->nodes.count + 1, sizeof *r->varies)};
    if (!r->varies)
        graph_fail(g, status_fail_memory(what));
    if (g->status != RLXVK_OK || !inlining_create(&r->in, g, body, what))
        return false;
    mark_varying(body, varying, r);
    r->in.inputs = inputs;
    r->in.varies = r->varies;
    r->in.instance = instance;
    r->in.part = INLINING_FIXED;
    return inlining_nodes(&r->in);
}

/* Inlines the other nodes at the end of the list. */
static bool replay_body(replay *r, rlxvk_tensor state, rlxvk_tensor *outputs)
{
    r->in.part = INLINING_VARYING;
    r->in.state = state;
    return inlining_nodes(&r->in) && inlining_outputs(&r->in, outputs);
}

static void replay_destroy(replay *r)
{
    memory_free(r->varies);
    memory_free(r->in.map);
}

/* ---- The loop's own nodes ---- */

static rlxvk_tensor carry(rlxvk_graph *g, rlxvk_tensor initial, int64_t rows)
{
    return op_build(g, OP_loop_carry, &initial, 1, &(loop_attributes){.rows = rows});
}

/* The state of random ops. Each step advances it by `stride` instances. */
static rlxvk_tensor step_state(rlxvk_graph *g, rlxvk_tensor clock, uint64_t stride)
{
    return op_build(g, OP_loop_random, (rlxvk_tensor[]){random_state(g), clock}, 2,
                    &(loop_attributes){.stride = stride});
}

/* Carries are words. If a body returns raw bytes unchanged, they are widened. */
static rlxvk_tensor as_words(rlxvk_graph *g, rlxvk_tensor t)
{
    bool raw = g->status == RLXVK_OK && op_node_storage(g, t.id - 1) == STORAGE_RAW;
    return raw ? rlxvk_cast(g, rlxvk_cast(g, t, RLXVK_F32), rlxvk_tensor_dtype(g, t)) : t;
}

static rlxvk_tensor update(rlxvk_graph *g, rlxvk_tensor target, rlxvk_tensor value)
{
    return op_build(g, OP_loop_update, (rlxvk_tensor[]){target, value}, 2, &(loop_attributes){0});
}

static rlxvk_tensor result_of(rlxvk_graph *g, rlxvk_tensor target, rlxvk_tensor end)
{
    return op_build(g, OP_loop_result, (rlxvk_tensor[]){target, end}, 2, &(loop_attributes){0});
}

/* Counts the instances and random ops that the steps after the first would have used. `random` is
 * the number of random ops before the first step. */
static void count_steps(rlxvk_graph *g, uint64_t steps, uint64_t stride, uint64_t random)
{
    g->instances += (steps - 1) * stride;
    g->replayed += (steps - 1) * (random_ops(g) - random);
}

/* ---- scan ---- */

/* The body's inputs at a step: the carry, the broadcast values, a row of each sequence. */
static void take_step(rlxvk_graph *g, rlxvk_tensor clock, size_t fixed, size_t count, int64_t steps,
                      rlxvk_tensor *now)
{
    for (size_t i = fixed; i < count; i++)
        now[i] = op_build(g, OP_loop_slice, (rlxvk_tensor[]){now[i], clock}, 2,
                          &(loop_attributes){.steps = steps});
}

/* `now` has the values, and then those of one step. */
static rlxvk_tensor build_scan(rlxvk_graph *g, replay *r, const rlxvk_scan_options *o,
                               rlxvk_tensor *now, size_t count)
{
    size_t fixed = 1 + o->broadcast_count;
    uint64_t stride = 1 + r->in.body->instances, random = random_ops(g);
    loop_attributes a = {.steps = o->length,
                         .counted = o->save_trajectory || count > fixed || r->random};
    rlxvk_tensor held[3], state = RLXVK_NONE, next, done[3] = {RLXVK_NONE};
    if (o->save_trajectory)
        a.rows = o->checkpoints ? o->checkpoints : o->length;
    held[0] = now[0] = carry(g, now[0], 0);
    held[1] = a.rows ? carry(g, held[0], a.rows) : RLXVK_NONE;
    rlxvk_tensor clock = op_build(g, OP_loop_begin, held, 1 + (a.rows != 0), &(loop_attributes){0});
    take_step(g, clock, fixed, count, o->length, now);
    if (r->random)
        state = step_state(g, clock, stride);
    if (!replay_body(r, state, &next) ||
        !inlining_same_kind(g, next, held[0], "scan: body result and carry"))
        return RLXVK_NONE;
    count_steps(g, (uint64_t)o->length, stride, random);
    next = as_words(g, next);
    done[0] = clock;
    done[1] = update(g, held[0], next);
    if (a.rows)
        done[2] = op_build(g, OP_loop_update, (rlxvk_tensor[]){held[1], next, clock}, 3,
                           &(loop_attributes){.steps = a.steps, .rows = a.rows});
    rlxvk_tensor end = op_build(g, OP_loop_end, done, 2 + (a.rows != 0), &a);
    return result_of(g, held[a.rows != 0], end);
}

rlxvk_tensor replay_scan(rlxvk_graph *g, const rlxvk_graph *body, const rlxvk_tensor *values,
                         size_t count, const rlxvk_scan_options *o)
{
    replay r = {0};
    rlxvk_tensor result = RLXVK_NONE, *now = memory_zeroed(count, sizeof *now);
    bool *varying = memory_zeroed(count, sizeof *varying);
    if (!now || !varying) {
        graph_fail(g, status_fail_memory("scan"));
    } else {
        memcpy(now, values, count * sizeof *now);
        for (size_t i = 0; i < count; i++)
            varying[i] = i == 0 || i > o->broadcast_count;
        if (replay_create(&r, g, body, "scan: body", now, varying, g->instances + 1))
            result = build_scan(g, &r, o, now, count);
    }
    replay_destroy(&r);
    memory_free(now);
    memory_free(varying);
    return result;
}

/* ---- while ---- */

typedef struct while_loop {
    rlxvk_graph *g;
    size_t count;
    rlxvk_tensor *now, *next, *updates; /* of sizes count, count, count + 2 */
    bool *carried;                      /* per value; the body returns the others unchanged */
    replay test, work;
} while_loop;

static void find_carried(const rlxvk_graph *body, bool *carried)
{
    size_t k = 0;
    for (uint32_t id = 0; id < body->nodes.count; id++) {
        const node *n = graph_node(body, id);
        if (n->op != OP_input || random_is_state(n))
            continue;
        carried[k] = body->outputs.items[k] != id;
        k++;
    }
}

static void build_while(while_loop *w, uint32_t rounds, rlxvk_tensor *values)
{
    rlxvk_graph *g = w->g;
    rlxvk_tensor state = RLXVK_NONE, goes_on, active = carry(g, scalar_constant(g, 1), 0);
    uint64_t stride = 2 + w->test.in.body->instances + w->work.in.body->instances;
    uint64_t random = random_ops(g);
    loop_attributes a = {.steps = rounds, .stops = 1, .counted = w->test.random || w->work.random};
    size_t held = 0;
    w->next[held++] = active;
    for (size_t k = 0; k < w->count; k++)
        if (w->carried[k])
            w->next[held++] = w->now[k] = carry(g, values[k], 0);
    rlxvk_tensor clock = op_build(g, OP_loop_begin, w->next, held, &(loop_attributes){0});
    if (a.counted)
        state = step_state(g, clock, stride);
    if (!replay_body(&w->test, state, &goes_on))
        return;
    rlxvk_tensor still = rlxvk_mul(g, active, replay_truth(g, goes_on));
    w->work.in.gate = still;
    if (!replay_body(&w->work, state, w->next))
        return;
    count_steps(g, rounds, stride, random);
    for (size_t k = 0; k < w->count; k++)
        if (w->carried[k] && inlining_same_kind(g, w->next[k], w->now[k], "while: body"))
            w->next[k] = rlxvk_where(g, still, w->next[k], w->now[k]);
    size_t done = 0;
    w->updates[done++] = clock;
    w->updates[done++] = update(g, active, still);
    for (size_t k = 0; k < w->count && g->status == RLXVK_OK; k++)
        if (w->carried[k])
            w->updates[done++] = update(g, w->now[k], w->next[k]);
    rlxvk_tensor end = op_build(g, OP_loop_end, w->updates, done, &a);
    for (size_t k = 0; k < w->count; k++)
        if (w->carried[k])
            values[k] = result_of(g, w->now[k], end);
}

void replay_while(rlxvk_graph *g, const rlxvk_graph *condition, const rlxvk_graph *body,
                  uint32_t rounds, rlxvk_tensor *values, size_t count)
{
    while_loop w = {.g = g, .count = count, .carried = memory_zeroed(count, sizeof *w.carried)};
    w.now = memory_zeroed(3 * count + 3, sizeof *w.now);
    if (!w.now || !w.carried) {
        graph_fail(g, status_fail_memory("while"));
    } else {
        w.next = w.now + count;
        w.updates = w.next + count + 1;
        memcpy(w.now, values, count * sizeof *values);
        find_carried(body, w.carried);
        uint64_t first = g->instances + 1, second = first + 1 + condition->instances;
        if (replay_create(&w.test, g, condition, "while: condition", w.now, w.carried, first) &&
            replay_create(&w.work, g, body, "while: body", w.now, w.carried, second))
            build_while(&w, rounds, values);
    }
    replay_destroy(&w.test);
    replay_destroy(&w.work);
    memory_free(w.now);
    memory_free(w.carried);
}
