/* Backward ops of scans; see sequence_backward.h. */
#include "graph/symbol.h"
#include "op/sequence/sequence_backward.h"
#include "args/sequence.h"
#include "args/sequence_backward.h"
#include "constants/sequence.h"
#include "op/matmul/matmul.h"
#include "op/movement/layout.h"
#include "op/sequence/sequence.h"

/* ---- Building ---- */

rlxvk_tensor sequence_build_backward(rlxvk_graph *g, op_kind op, const rlxvk_tensor operands[8],
                                     backward_attributes *a,
                                     rlxvk_tensor *const out[SEQUENCE_OPERANDS])
{
    a->carry = operands[5].id != 0;
    a->final = operands[7].id != 0;
    for (size_t i = 0; i < SEQUENCE_OPERANDS; i++)
        if (out[i])
            *out[i] = RLXVK_NONE;
    rlxvk_tensor given[8], first = RLXVK_NONE;
    size_t count = 0;
    int64_t at = 0;
    for (size_t i = 0; i < 8; i++) /* omit missing operands, so that no other takes their place */
        if (operands[i].id || (i != 5 && i != 7))
            given[count++] = operands[i];
    rlxvk_tensor packed = op_build(g, op, given, count, a);
    for (uint32_t i = 0; packed.id && i < SEQUENCE_OPERANDS + (uint32_t)a->carry; i++) {
        rlxvk_shape shape = rlxvk_tensor_shape(g, operands[i]);
        if (i == 0)
            first = sequence_packed_result(g, packed, at, shape);
        else if (out[i - 1])
            *out[i - 1] = sequence_packed_result(g, packed, at, shape);
        at = dim_make(g, DIM_SUM, at, dim_elements(g, &shape));
    }
    return first;
}

/* ---- Infer ---- */

rlxvk_status sequence_check_backward(const node *n, const backward_attributes *a)
{
    uint32_t wanted = SEQUENCE_OPERANDS + 1 + a->carry + a->final;
    if (n->input_count != wanted)
        return op_fail(n, RLXVK_E_ARITY, "%u operands; needs %u: the forward op's, then dy%s",
                       n->input_count, wanted, a->final ? ", then dstate" : "");
    if (a->final && !a->carry)
        return op_fail(n, RLXVK_E_ARITY,
                       "a gradient of the final state, but no initial state: without one there is "
                       "no final one; give zeros");
    return RLXVK_OK;
}

uint64_t sequence_result_first(const rlxvk_graph *g, const node *n, uint32_t i)
{
    const backward_attributes *a = n->attributes;
    uint64_t first = 0;
    for (uint32_t k = 0; k < MIN(i, SEQUENCE_OPERANDS + (uint32_t)a->carry); k++)
        first += shape_numel(input_shape(g, n, k));
    return first;
}

rlxvk_status sequence_infer_backward(const rlxvk_graph *g, node *n, const backward_attributes *a,
                                     rlxvk_shape result, rlxvk_shape state)
{
    uint64_t numel = 0;
    rlxvk_status status = RLXVK_OK;
    if (a->carry)
        TRY(op_require_shape(g, n, sequence_state_operand(), "state", state));
    TRY(op_require_shape(g, n, sequence_dy_operand(a), "dy", result));
    if (a->final)
        TRY(op_require_shape(g, n, sequence_final_operand(a), "dstate", state));
    for (uint32_t i = 0; i < SEQUENCE_OPERANDS + (uint32_t)a->carry; i++)
        numel += shape_numel(input_shape(g, n, i));
    if (numel > INT32_MAX)
        return op_fail(n, RLXVK_E_TOO_LARGE,
                       "gradients of %llu elements in all, at most %d; split the batch",
                       (unsigned long long)numel, INT32_MAX);
    n->shape = RLXVK_SHAPE((int64_t)numel);
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

/* ---- Gradients of the forward ops ---- */

rlxvk_status sequence_carry_vjp(gradient_call *c, op_kind backward, backward_attributes *attributes)
{
    const carry_attributes *a = c->n.attributes;
    rlxvk_tensor operands[8] = {0}, d[SEQUENCE_OPERANDS + 1] = {0};
    rlxvk_tensor *out[] = {&d[1], &d[2], &d[3], &d[4], &d[5]};
    if (a->in_place)
        return op_fail(&c->n, RLXVK_E_UNSUPPORTED,
                       "its gradient needs the initial state, which it writes the final one over; "
                       "carry the state as a result (in_place false)");
    for (uint32_t i = 0; i < c->n.input_count; i++)
        operands[i] = gradient_operand(c, i);
    operands[6] = c->dy;
    if (a->carry) {
        rlxvk_shape first = gradient_shape(c, 0), width = gradient_shape(c, a->width_operand);
        rlxvk_shape result = sequence_result(&first, &width);
        rlxvk_shape state = gradient_shape(c, SEQUENCE_OPERANDS);
        operands[6] = sequence_packed_result(c->graph, c->dy, 0, result);
        operands[7] = sequence_packed_result(c->graph, c->dy, (int64_t)shape_numel(&result), state);
    }
    d[0] = sequence_build_backward(c->graph, backward, operands, attributes, out);
    for (uint32_t i = 0; i < c->n.input_count; i++)
        gradient_give(c, i, d[i]);
    return RLXVK_OK;
}

void sequence_describe_backward(const node *n, text *out)
{
    const backward_attributes *a = n->attributes;
    if (a->carry)
        text_append(out, a->final ? " carry=1 final=1" : " carry=1");
}

uint64_t sequence_bucket_backward(bucket_call *c)
{
    return bucket_refuse(c, "its gradients go back from the last row");
}

/* ---- Lowering ---- */

rlxvk_status sequence_lower_idle(lowering *l, uint32_t id)
{
    static const float zero = 0;
    const node *n = graph_node(l->graph, id);
    const backward_attributes *a = n->attributes;
    uint64_t zeros = sequence_result_first(l->graph, n, SEQUENCE_OPERANDS + !a->final);
    uint64_t all = shape_numel(&n->shape);
    operand source, y = lower_write(l, id);
    rlxvk_status status;
    if (zeros) {
        rlxvk_shape shape = RLXVK_SHAPE((int64_t)zeros);
        strided_copy copy = layout_dense_copy(&shape);
        TRY(lower_constant(l, &zero, sizeof zero, &source));
        lower_narrow(l, &y, 0, zeros);
        TRY(layout_emit_copy(l, &copy, source, y));
    }
    if (all > zeros) {
        rlxvk_shape shape = RLXVK_SHAPE((int64_t)(all - zeros));
        strided_copy copy = layout_dense_copy(&shape);
        copy.source[0] = 1;
        y = lower_write(l, id);
        lower_narrow(l, &y, zeros, all - zeros);
        TRY(layout_emit_copy(l, &copy, lower_input(l, id, sequence_final_operand(a)), y));
    }
    status = RLXVK_OK;
error:
    return status;
}

rlxvk_status sequence_emit_sum(lowering *l, uint32_t id, operand work, uint64_t at, uint64_t parts,
                               uint64_t first, uint64_t count)
{
    operand y = lower_write(l, id);
    lower_narrow(l, &y, first, count);
    lower_narrow(l, &work, at, parts * count);
    return matmul_emit_plain_sum(l, id, work, parts, count, y);
}

rlxvk_status sequence_emit_ends(lowering *l, uint32_t id, const sequence_ends *ends, operand work)
{
    const node *n = graph_node(l->graph, id);
    const backward_attributes *a = n->attributes;
    operand none = lower_input(l, id, 0); /* it is not read */
    const operand operands[] = {a->carry ? lower_input(l, id, sequence_state_operand()) : none,
                                a->final ? lower_input(l, id, sequence_final_operand(a)) : none,
                                work};
    struct state_scan_join_args args = {.states = (uint32_t)ends->states,
                                        .segments = (uint32_t)ends->segments,
                                        .before_offset = operands[0].offset,
                                        .after_offset = operands[1].offset,
                                        .start_at = ends->start_at,
                                        .end_at = ends->end_at,
                                        .decay_at = ends->decay_at};
    dispatch d = {.kernel = KERNEL_STATE_SCAN_JOIN, .node = id};
    SET_CONSTANTS(&d, {LOCAL_SIZE, STATE_SCAN_THREADS}, {STATE_SCAN_JOIN_BEFORE, a->carry},
                  {STATE_SCAN_JOIN_AFTER, a->final});
    lower_groups(l, &d, groups_for(ends->states, STATE_SCAN_THREADS));
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

uint32_t sequence_take_words(const lowering *l, uint64_t *words, uint64_t count)
{
    uint64_t unit = l->profile->slot_alignment / sizeof(float);
    uint64_t at = divide_up(*words, unit) * unit;
    *words = at + count;
    return (uint32_t)at;
}

rlxvk_status sequence_lower_work(lowering *l, uint32_t id, uint64_t words, operand *out)
{
    if (words > UINT32_MAX)
        return op_fail(graph_node(l->graph, id), RLXVK_E_TOO_LARGE,
                       "needs %llu words to work in, at most 2^32 - 1; split the batch",
                       (unsigned long long)words);
    rlxvk_status status = lower_temporary(l, sizeof(float) * words, out);
    out->access = ACCESS_READ | ACCESS_WRITE;
    return status;
}

uint32_t sequence_chunk(uint64_t steps)
{
    uint64_t chunk = 1;
    while (chunk * chunk < steps)
        chunk++;
    return (uint32_t)chunk;
}
