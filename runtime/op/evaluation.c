/*
 * See evaluation.h. A view is computed by its family's host function like any other op, and every
 * node has its own memory. So the evaluator shares no code with the planner about which values may
 * overlap, and can serve as its reference.
 *
 * Host functions compute in double, from operands that were rounded to f32 as they are held. A
 * node's bound covers only that node. Errors of its operands are covered by their own bounds.
 */
#include "op/evaluation.h"
#include "op/random_state.h"
#include "op/view.h"

#include <math.h>
#include <string.h>

static uint64_t element_words(const node *n)
{
    return shape_numel(&n->shape) * (n->dtype == RLXVK_C64 ? 2 : 1);
}

/* At least one element, so that an empty tensor has memory, too. No spare elements otherwise, so
 * that sanitizers see accesses behind the end. */
static rlxvk_status prepare(evaluation *v, uint32_t id)
{
    const node *n = graph_node(v->graph, id);
    bool raw = op_node_storage(v->graph, id) == STORAGE_RAW;
    uint64_t count = element_words(n);
    if (raw)
        v->bytes[id] = memory_zeroed(MAX(count, 1), 1);
    else
        v->words[id] = memory_zeroed(MAX(count, 1), sizeof(float));
    if (n->input_count) {
        uint64_t results = op_host_length(v->graph, n);
        v->exact[id] = memory_zeroed(MAX(results, 1), sizeof(double));
        v->bounds[id] = memory_zeroed(MAX(results, 1), sizeof(double));
    }
    bool missing = n->input_count && (!v->exact[id] || !v->bounds[id]);
    if ((raw ? !v->bytes[id] : !v->words[id]) || missing)
        return status_fail_memory("evaluation");
    if (random_is_state(n))
        random_state_write(&rng_defaults, v->words[id]);
    if (n->op == OP_constant && raw && count)
        memcpy(v->bytes[id], n->data, count);
    else if (n->op == OP_constant && count)
        dtype_widen((rlxvk_dtype)n->dtype, n->data, shape_numel(&n->shape), v->words[id]);
    return RLXVK_OK;
}

rlxvk_status evaluation_create(const rlxvk_graph *g, evaluation *out)
{
    size_t count = g->nodes.count + 1;
    evaluation v = {g, memory_zeroed(count, sizeof *v.words), memory_zeroed(count, sizeof *v.bytes),
                    memory_zeroed(count, sizeof *v.exact), memory_zeroed(count, sizeof *v.bounds)};
    rlxvk_status status = RLXVK_OK;
    if (!v.words || !v.bytes || !v.exact || !v.bounds)
        status = status_fail_memory("evaluation");
    for (uint32_t id = 0; id < g->nodes.count && status == RLXVK_OK; id++)
        status = prepare(&v, id);
    if (status == RLXVK_OK)
        *out = v;
    else
        evaluation_destroy(&v);
    return status;
}

static void free_all(void **items, size_t count)
{
    for (size_t i = 0; items && i < count; i++)
        memory_free(items[i]);
    memory_free(items);
}

void evaluation_destroy(evaluation *v)
{
    size_t count = v->graph ? v->graph->nodes.count : 0;
    free_all((void **)v->words, count);
    free_all((void **)v->bytes, count);
    free_all((void **)v->exact, count);
    free_all((void **)v->bounds, count);
    *v = (evaluation){0};
}

rlxvk_status evaluation_set(evaluation *v, uint32_t id, const void *content)
{
    const node *n = graph_node(v->graph, id);
    uint64_t count = element_words(n);
    if (count && v->bytes[id])
        memcpy(v->bytes[id], content, count);
    else if (count)
        memcpy(v->words[id], content, count * sizeof(float));
    /* Rounds as an upload does, because a param declared F16 or BF16 is stored in that type. */
    if (n->op == OP_param && !v->bytes[id])
        dtype_round((rlxvk_dtype)n->dtype, v->words[id], count);
    return RLXVK_OK;
}

/* The element as its readers see it. */
static float held(const evaluation *v, double exact, double bound)
{
    return isinf(bound) && isfinite(exact) ? v->open_as : (float)exact;
}

/* Rounds the exact result to f32. */
static void settle(evaluation *v, uint32_t id)
{
    uint64_t count = element_words(graph_node(v->graph, id));
    for (uint64_t i = 0; i < count; i++) {
        double exact = v->exact[id][i];
        if (v->bytes[id])
            v->bytes[id][i] = (uint8_t)(int)exact;
        else
            v->words[id][i] = held(v, exact, v->bounds[id][i]);
    }
}

/* Copies the new contents of operands that were written in place. Later nodes read them; a leaf
 * that is an output shows them, with value and bound. */
static rlxvk_status update_operands(evaluation *v, uint32_t id)
{
    const node *n = graph_node(v->graph, id);
    bool is_view = view_is(v->graph, n, NULL);
    const double *exact = v->exact[id] + (is_view ? 0 : element_words(n));
    const double *bounds = v->bounds[id] + (exact - v->exact[id]);
    uint32_t writes = node_writes(n);
    for (uint32_t i = 0; i < n->input_count && writes >> i; i++) {
        uint32_t k = n->inputs[i];
        uint64_t count = element_words(graph_node(v->graph, k));
        if (!(writes >> i & 1))
            continue;
        if (!v->exact[k] && !(v->exact[k] = memory_zeroed(MAX(count, 1), sizeof(double))))
            return status_fail_memory("evaluation");
        if (!v->bounds[k] && !(v->bounds[k] = memory_zeroed(MAX(count, 1), sizeof(double))))
            return status_fail_memory("evaluation");
        for (uint64_t e = 0; e < count; e++) {
            v->words[k][e] = held(v, exact[e], bounds[e]);
            v->exact[k][e] = exact[e];
            v->bounds[k][e] = bounds[e];
        }
        exact += count;
        bounds += count;
    }
    return RLXVK_OK;
}

rlxvk_status evaluation_call(const rlxvk_graph *g, const host_call *call, double *bounds)
{
    const op_row *row = node_row(call->node);
    uint64_t results = op_host_length(g, call->node);
    rlxvk_status status;
    memset(call->out, 0, results * sizeof *call->out); /* of an earlier run */
    for (uint64_t i = 0; i < results; i++)
        bounds[i] = -1;
    TRY(row->family->execution.host(call));
    for (uint64_t i = 0; i < results; i++)
        if (bounds[i] < 0)
            bounds[i] = row->atol + (isfinite(call->out[i]) ? row->rtol * fabs(call->out[i]) : 0);
error:
    return status;
}

rlxvk_status evaluation_node(evaluation *v, uint32_t id)
{
    const node *n = graph_node(v->graph, id);
    host_tensor few[8], *inputs = few;
    uint64_t results = op_host_length(v->graph, n);
    rlxvk_status status = RLXVK_OK;
    if (n->input_count == 0 || results == 0) /* host functions may loop over empty results */
        return RLXVK_OK;
    if (n->input_count > ARRAY_COUNT(few))
        inputs = memory_zeroed(n->input_count, sizeof *inputs);
    if (!inputs)
        return status_fail_memory("evaluation operands");
    for (uint32_t i = 0; i < n->input_count; i++) {
        uint32_t k = n->inputs[i];
        inputs[i] = (host_tensor){graph_node(v->graph, k), (uint8_t)op_node_storage(v->graph, k),
                                  v->words[k], v->bytes[k]};
    }
    host_call call = {n, inputs, v->exact[id], v->values_only ? NULL : v->bounds[id], v->precision};
    status = evaluation_call(v->graph, &call, v->bounds[id]);
    if (status == RLXVK_OK) {
        settle(v, id);
        status = update_operands(v, id);
    }
    if (inputs != few)
        memory_free(inputs);
    return status;
}

/* The node that closes the loop opened by `begin`. */
static uint32_t closing_node(const rlxvk_graph *g, uint32_t begin)
{
    op_loop loop;
    uint32_t id = begin + 1;
    while (!node_closes_loop(graph_node(g, id), &loop) || graph_node(g, id)->inputs[0] != begin)
        id++;
    return id;
}

static rlxvk_status evaluate_range(evaluation *v, uint32_t first, uint32_t end);

/* Evaluates the nodes behind `begin`, up to the node that closes the loop, as often as that says.
 */
static rlxvk_status evaluate_loop(evaluation *v, uint32_t begin, uint32_t *out_end)
{
    uint32_t end = closing_node(v->graph, begin);
    const node *n = graph_node(v->graph, end);
    rlxvk_status status = RLXVK_OK;
    op_loop loop = {0};
    (void)node_closes_loop(n, &loop);
    for (uint64_t i = 0; i < loop.times && status == RLXVK_OK; i++) {
        status = evaluate_range(v, begin + 1, end + 1);
        if (loop.stop != NODE_NONE && v->words[n->inputs[loop.stop]][0] == 0)
            break;
    }
    *out_end = end;
    return status;
}

/* Operands are always computed before, because nodes are in execution order. */
static rlxvk_status evaluate_range(evaluation *v, uint32_t first, uint32_t end)
{
    rlxvk_status status = RLXVK_OK;
    for (uint32_t id = first; id < end && status == RLXVK_OK; id++) {
        status = evaluation_node(v, id);
        if (status == RLXVK_OK && node_row(graph_node(v->graph, id))->family->loop.opens)
            status = evaluate_loop(v, id, &id);
    }
    return status;
}

rlxvk_status evaluation_run(evaluation *v)
{
    return evaluate_range(v, 0, (uint32_t)v->graph->nodes.count);
}

/* ---- Comparing ---- */

static double flush(double value)
{
    return fabs(value) < FLT_MIN ? 0 : value;
}

/* An infinite bound may also come from infinite terms. The reference is then infinite or NaN, and
 * the result must be so, too. */
bool evaluation_is_open(double reference, double bound)
{
    return isinf(bound) && isfinite(reference);
}

double evaluation_error(float got, double reference, double bound)
{
    const double rounds_to_infinity = 0x1.ffffffp127;
    double value = flush(got), wanted = flush(bound > 0 ? reference : (float)reference);
    if (evaluation_is_open(reference, bound))
        return 0;
    if (isinf(bound)) /* 0 * infinity if a term counts as 0; or infinities that cancel */
        return isfinite(value) ? INFINITY : 0;
    if (isnan(value) || isnan(wanted))
        return isnan(value) && isnan(wanted) ? 0 : INFINITY;
    if (isinf(value))
        return signbit(value) == signbit(wanted) &&
                       (isinf(wanted) || fabs(wanted) + bound >= rounds_to_infinity)
                   ? 0
                   : INFINITY;
    double error = fabs(value - wanted);
    if (bound > 0) /* next to the smallest normal number, flushing must not enlarge the error */
        error = fmin(error, fabs(got - reference));
    return error == 0 ? 0 : bound > 0 ? error / bound : INFINITY;
}
