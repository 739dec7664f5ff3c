/*
 * Control flow. Both branches of an if, the rounds of a short while and the steps of a short scan
 * become ordinary nodes of the graph. The op `where` selects the result of an if, so NaN in the
 * branch that is not taken never leaks. Long loops have their body in the graph once (replay.h).
 */
#include "op/compose/composite.h"
#include "op/compose/inlining.h"
#include "op/compose/loop.h"
#include "op/compose/replay.h"

#include <string.h>

/* False if the graph is not ready, or if the results have no memory. */
static bool results_given(rlxvk_graph *g, const rlxvk_tensor *results, size_t count,
                          const char *call, const char *argument)
{
    return graph_ready(g, call) &&
           graph_fail(g, status_require_items(results, count, call, argument)) == RLXVK_OK;
}

/* Clears the results after a failure. This comes last, because results may be stored over operands.
 */
static void settle_results(const rlxvk_graph *g, rlxvk_tensor *results, size_t count)
{
    if (results && count && (!g || g->status != RLXVK_OK))
        memset(results, 0, count * sizeof *results);
}

/* ---- if, call ---- */

void rlxvk_call(rlxvk_graph *g, const rlxvk_graph *body, const rlxvk_tensor *inputs, size_t count,
                rlxvk_tensor *out_results, size_t result_count)
{
    if (results_given(g, out_results, result_count, "call", "out_results") &&
        inlining_body_fits(g, body, "call", count, result_count))
        (void)inlining_call(g, body, "call", inputs, count, out_results);
    settle_results(g, out_results, result_count);
}

rlxvk_tensor rlxvk_if(rlxvk_graph *g, rlxvk_tensor predicate, const rlxvk_graph *then_body,
                      const rlxvk_graph *else_body, const rlxvk_tensor *captures, size_t count)
{
    rlxvk_tensor a, b;
    rlxvk_shape both;
    char left[SHAPE_TEXT], right[SHAPE_TEXT];
    if (!inlining_body_fits(g, then_body, "if: then", count, 1) ||
        !inlining_body_fits(g, else_body, "if: else", count, 1) ||
        !inlining_writes_nothing(g, then_body, "if: then") ||
        !inlining_writes_nothing(g, else_body, "if: else") ||
        !inlining_tensors_given(g, captures, count, "if") ||
        !inlining_tensors_given(g, &predicate, 1, "if") ||
        !inlining_rounds_fit(g, "if", 1, then_body->nodes.count + else_body->nodes.count, "") ||
        !inlining_branch(g, then_body, "if: then", predicate, false, captures, &a) ||
        !inlining_branch(g, else_body, "if: else", predicate, true, captures, &b) ||
        !inlining_same_kind(g, a, b, "if: the branches differ"))
        return RLXVK_NONE;
    rlxvk_shape p = rlxvk_tensor_shape(g, predicate), out = rlxvk_tensor_shape(g, a);
    if (!shape_broadcast(&p, &out, &both) || !shape_equal(&both, &out)) {
        composite_fail(g, "if", RLXVK_E_SHAPE,
                       "predicate %s does not broadcast to the result %s; its dims are 1 "
                       "or the result's",
                       shape_text(&p, left), shape_text(&out, right));
        return RLXVK_NONE;
    }
    return rlxvk_where(g, predicate, a, b);
}

/* ---- while ---- */

static bool while_fits(rlxvk_graph *g, const rlxvk_graph *condition, const rlxvk_graph *body,
                       const rlxvk_tensor *carried, size_t count)
{
    if (count == 0)
        composite_fail(g, "while", RLXVK_E_ARITY, "nothing is carried; needs one value at least");
    return inlining_body_fits(g, condition, "while: condition", count, 1) &&
           inlining_body_fits(g, body, "while: body", count, count) &&
           inlining_tensors_given(g, carried, count, "while") &&
           inlining_writes_nothing(g, condition, "while: condition") &&
           inlining_writes_nothing(g, body, "while: body");
}

/* `values` has the initial values and gets the final ones. */
static void unroll_while(rlxvk_graph *g, const rlxvk_graph *condition, const rlxvk_graph *body,
                         uint32_t rounds, rlxvk_tensor *values, size_t count)
{
    inlining test = {0}, work = {0};
    rlxvk_tensor active = RLXVK_NONE, goes_on, *next = memory_zeroed(count, sizeof *next);
    if (!next)
        graph_fail(g, status_fail_memory("while"));
    else if (inlining_create(&test, g, condition, "while: condition"))
        (void)inlining_create(&work, g, body, "while: body");
    for (uint32_t i = 0; i < rounds && g->status == RLXVK_OK; i++) {
        if (!inlining_round(&test, values, &goes_on))
            break;
        rlxvk_tensor p = replay_truth(g, goes_on);
        work.gate = active = active.id ? rlxvk_mul(g, active, p) : p;
        if (!inlining_round(&work, values, next))
            break;
        for (size_t k = 0; k < count && inlining_same_kind(g, next[k], values[k], "while: body");
             k++)
            values[k] = rlxvk_where(g, active, next[k], values[k]);
    }
    memory_free(next);
    memory_free(test.map);
    memory_free(work.map);
}

void rlxvk_while(rlxvk_graph *g, const rlxvk_graph *condition, const rlxvk_graph *body,
                 uint32_t max_iterations, const rlxvk_tensor *carried, size_t count,
                 rlxvk_tensor *out_values)
{
    if (results_given(g, out_values, count, "while", "out_values") &&
        while_fits(g, condition, body, carried, count)) {
        uint64_t nodes = condition->nodes.count + body->nodes.count + count + 5;
        const rlxvk_graph *const bodies[] = {condition, body};
        bool replays = replay_suits(g, "while", max_iterations, nodes, bodies, carried, count, 0);
        memmove(out_values, carried, count * sizeof *carried);
        if (g->status == RLXVK_OK)
            (replays ? replay_while : unroll_while)(g, condition, body, max_iterations, out_values,
                                                    count);
    }
    settle_results(g, out_values, count);
}

/* ---- scan ---- */

/* Row t of [L, ...] without its leading axis. */
static rlxvk_tensor row_of(rlxvk_graph *g, rlxvk_tensor x, int64_t t)
{
    rlxvk_shape s = rlxvk_tensor_shape(g, x), row = {.rank = s.rank - 1};
    for (uint32_t i = 1; i < s.rank; i++)
        row.dims[i - 1] = s.dims[i];
    return rlxvk_reshape(g, rlxvk_narrow(g, x, 0, t, 1), row);
}

/* The shape [rows, dims of x]. The rank of x is below the largest. */
static rlxvk_shape rows_like(const rlxvk_graph *g, rlxvk_tensor x, int64_t rows)
{
    rlxvk_shape s = rlxvk_tensor_shape(g, x), result = {.rank = s.rank + 1, .dims = {rows}};
    memcpy(result.dims + 1, s.dims, s.rank * sizeof *s.dims);
    return result;
}

static bool scan_fits(rlxvk_graph *g, const rlxvk_graph *body, const rlxvk_scan_options *o,
                      const rlxvk_tensor *values, size_t count)
{
    size_t constants = 1 + o->broadcast_count;
    if (!inlining_body_fits(g, body, "scan: body", count, 1) ||
        !inlining_tensors_given(g, values, count, "scan") ||
        !composite_number(g, "scan", "length", o->length))
        return false;
    if (o->length < 0 || o->broadcast_count >= count || o->checkpoints > o->length ||
        o->checkpoints < 0 || (o->checkpoints && !o->save_trajectory))
        composite_fail(g, "scan", RLXVK_E_ATTR,
                       "length %lld, %zu broadcast of %zu values, %lld checkpoints; 0 <= "
                       "checkpoints <= length, checkpoints only of a saved trajectory, and the "
                       "first value is the carry",
                       (long long)o->length, o->broadcast_count, count, (long long)o->checkpoints);
    else if (o->save_trajectory && rlxvk_tensor_shape(g, values[0]).rank == RLXVK_MAX_RANK)
        composite_fail(g, "scan", RLXVK_E_SHAPE,
                       "a trajectory has one axis more than its carry, of rank %d; "
                       "ranks end at %d",
                       RLXVK_MAX_RANK, RLXVK_MAX_RANK);
    for (size_t i = constants; i < count && g->status == RLXVK_OK; i++) {
        rlxvk_shape s = rlxvk_tensor_shape(g, values[i]);
        if (s.rank && !composite_number(g, "scan", "a sequence's first dim", s.dims[0]))
            break;
        if (s.rank == 0 || s.dims[0] != o->length)
            composite_fail(g, "scan", RLXVK_E_SHAPE,
                           "sequence %zu has %lld steps, not %lld; its first dim is the length",
                           i - constants, s.rank ? (long long)s.dims[0] : 0LL,
                           (long long)o->length);
    }
    return g->status == RLXVK_OK;
}

static rlxvk_tensor empty_trajectory(rlxvk_graph *g, rlxvk_tensor carry)
{
    return rlxvk_constant(g, rlxvk_tensor_dtype(g, carry), rows_like(g, carry, 0), "", 0);
}

static rlxvk_tensor unroll_scan(rlxvk_graph *g, const rlxvk_graph *body, const rlxvk_tensor *values,
                                size_t count, const rlxvk_scan_options *options)
{
    const rlxvk_scan_options o = *options;
    size_t saved = 0, constants = 1 + o.broadcast_count;
    int64_t kept = o.checkpoints ? o.checkpoints : o.length;
    rlxvk_tensor carry = values[0], result = RLXVK_NONE, *now = memory_zeroed(count, sizeof *now);
    rlxvk_tensor *rows = memory_zeroed((size_t)o.length + 1, sizeof *rows);
    inlining in;
    if (!inlining_create(&in, g, body, "scan: body") || !now || !rows)
        graph_fail(g, status_fail_memory("scan"));
    for (int64_t t = 0; t < o.length && g->status == RLXVK_OK; t++) {
        rlxvk_tensor next;
        memcpy(now, values, constants * sizeof *now);
        now[0] = carry;
        for (size_t i = constants; i < count; i++)
            now[i] = row_of(g, values[i], t);
        if (!inlining_round(&in, now, &next) ||
            !inlining_same_kind(g, next, carry, "scan: body result and carry"))
            break;
        carry = next;
        if (o.save_trajectory && loop_saves(o.length, kept, t))
            rows[saved++] = rlxvk_reshape(g, carry, rows_like(g, carry, 1));
    }
    if (g->status == RLXVK_OK)
        result = !o.save_trajectory ? carry
                 : saved            ? rlxvk_concat(g, rows, saved, 0)
                                    : empty_trajectory(g, carry);
    memory_free(now);
    memory_free(rows);
    memory_free(in.map);
    return result;
}

rlxvk_tensor rlxvk_scan(rlxvk_graph *g, const rlxvk_graph *body, const rlxvk_tensor *values,
                        size_t count, const rlxvk_scan_options *options)
{
    rlxvk_scan_options o;
    if (!op_take(g, "scan", SIZED(rlxvk_scan_options), options, &o))
        return RLXVK_NONE;
    if (!scan_fits(g, body, &o, values, count))
        return RLXVK_NONE;
    uint64_t nodes = body->nodes.count + 2 * count + 2;
    const rlxvk_graph *const bodies[2] = {body};
    bool replays = replay_suits(g, "scan", (uint64_t)o.length, nodes, bodies, values, count,
                                o.broadcast_count);
    if (g->status != RLXVK_OK)
        return RLXVK_NONE;
    return (replays ? replay_scan : unroll_scan)(g, body, values, count, &o);
}
