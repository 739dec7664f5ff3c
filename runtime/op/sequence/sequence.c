/* Carried states of the sequence models; see sequence.h. */
#include "graph/symbol.h"
#include "op/sequence/sequence.h"
#include "op/movement/layout.h"

#include <math.h>

#define STATE_OPERAND 5

rlxvk_tensor sequence_packed_result(rlxvk_graph *g, rlxvk_tensor packed, int64_t first,
                                    rlxvk_shape shape)
{
    rlxvk_tensor part = rlxvk_narrow(g, packed, 0, first, dim_elements(g, &shape));
    return rlxvk_reshape(g, part, shape);
}

void sequence_bound(const host_call *call, uint64_t first, uint64_t count)
{
    double largest = 1;
    for (uint64_t i = first; i < first + count; i++)
        if (isfinite(call->out[i]))
            largest = fmax(largest, fabs(call->out[i]));
    for (uint64_t i = first; call->bound && i < first + count; i++)
        if (call->bound[i] < 0)
            call->bound[i] = 1e-4 * largest;
}

/* ---- One carried state ---- */

rlxvk_status sequence_infer_carry(const rlxvk_graph *g, node *n, const carry_attributes *a,
                                  rlxvk_shape result, rlxvk_shape state)
{
    rlxvk_status status = RLXVK_OK;
    if (a->carry != (n->input_count > STATE_OPERAND))
        return op_fail(n, RLXVK_E_ARITY, "%u operands; the state is operand %d", n->input_count,
                       STATE_OPERAND);
    if (a->in_place && !a->carry)
        return op_fail(n, RLXVK_E_ATTR, "in_place needs an initial state to write over");
    if (a->carry)
        TRY(op_require_shape(g, n, STATE_OPERAND, "state", state));
    if (a->in_place)
        TRY(op_require_writable(g, n, STATE_OPERAND));
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    n->shape = result;
    if (a->carry && !a->in_place)
        n->shape = RLXVK_SHAPE((int64_t)(shape_numel(&result) + shape_numel(&state)));
error:
    return status;
}

uint32_t sequence_carry_writes(const node *n)
{
    const carry_attributes *a = n->attributes;
    return a->in_place ? 1u << STATE_OPERAND : 0;
}

void sequence_describe_carry(const node *n, text *out)
{
    const carry_attributes *a = n->attributes;
    if (a->carry)
        text_append(out, a->in_place ? " carry=1 in_place=1" : " carry=1");
}

uint64_t sequence_bucket_carry(bucket_call *c, uint32_t used, uint32_t like)
{
    if (((const carry_attributes *)c->node->attributes)->carry)
        return bucket_refuse(c, "its final state is made of all rows");
    return bucket_rows(c, used, like);
}

/* The initial and the final state. If the node carries none, `other` stands in for them. */
static operand lower_before(const lowering *l, uint32_t id, operand other)
{
    const carry_attributes *a = graph_node(l->graph, id)->attributes;
    return a->carry ? lower_input(l, id, STATE_OPERAND) : other;
}

static operand lower_after(const lowering *l, uint32_t id, uint64_t result, operand other)
{
    const node *n = graph_node(l->graph, id);
    const carry_attributes *a = n->attributes;
    if (a->in_place)
        return lower_update(l, n->inputs[STATE_OPERAND]);
    if (!a->carry)
        return other;
    operand packed = lower_write(l, id);
    lower_narrow(l, &packed, result, shape_numel(input_shape(l->graph, n, STATE_OPERAND)));
    return packed;
}

void sequence_lower_operands(lowering *l, uint32_t id, uint64_t result, operand operands[8])
{
    for (uint32_t i = 0; i < STATE_OPERAND; i++)
        operands[i] = lower_input(l, id, i);
    operands[5] = lower_write(l, id);
    lower_narrow(l, &operands[5], 0, result);
    operands[6] = lower_before(l, id, operands[0]);
    operands[7] = lower_after(l, id, result, operands[5]);
}

rlxvk_status sequence_lower_copy(lowering *l, uint32_t id, uint64_t result)
{
    operand none = {0}, before = lower_before(l, id, none);
    rlxvk_shape shape =
        RLXVK_SHAPE((int64_t)shape_numel(input_shape(l->graph, graph_node(l->graph, id), 5)));
    strided_copy copy = layout_dense_copy(&shape);
    copy.source[0] = 1;
    return layout_emit_copy(l, &copy, before, lower_after(l, id, result, none));
}

rlxvk_shape sequence_result(const rlxvk_shape *first, const rlxvk_shape *width)
{
    rlxvk_shape result = *first;
    if (result.rank && width->rank)
        result.dims[result.rank - 1] = width->dims[width->rank - 1];
    return result;
}

rlxvk_tensor sequence_build_carry(rlxvk_graph *g, op_kind op, const rlxvk_tensor operands[6],
                                  carry_attributes *a, rlxvk_tensor *out_state)
{
    a->carry = operands[STATE_OPERAND].id != 0;
    if (out_state)
        *out_state = RLXVK_NONE;
    rlxvk_tensor packed = op_build(g, op, operands, STATE_OPERAND + 1, a);
    if (!packed.id || !a->carry || a->in_place)
        return packed;
    rlxvk_shape first = rlxvk_tensor_shape(g, operands[0]);
    rlxvk_shape width = rlxvk_tensor_shape(g, operands[a->width_operand]);
    rlxvk_shape state = rlxvk_tensor_shape(g, operands[STATE_OPERAND]);
    rlxvk_shape result = sequence_result(&first, &width);
    if (out_state)
        *out_state = sequence_packed_result(g, packed, dim_elements(g, &result), state);
    return sequence_packed_result(g, packed, 0, result);
}

uint32_t sequence_lanes(uint64_t size, uint32_t keep, uint32_t most)
{
    return power_of_two_from(divide_up(size, keep), most);
}

rlxvk_status
sequence_host_states(const host_call *call, uint64_t count, uint64_t size, uint64_t columns,
                     rlxvk_status (*walk)(const host_call *call, uint64_t index, double *state))
{
    const carry_attributes *a = call->node->attributes;
    const rlxvk_shape *width = &call->inputs[a->width_operand].node->shape;
    const rlxvk_shape shape = sequence_result(&call->inputs[0].node->shape, width);
    uint64_t result = shape_numel(&shape);
    double *state = memory_zeroed(size, sizeof *state);
    rlxvk_status status = RLXVK_OK;
    if (!state)
        TRY(status_fail_memory("state on the host"));
    for (uint64_t index = 0; index < count; index++) {
        uint64_t first = index / columns * columns * size + index % columns;
        for (uint64_t i = 0; i < size; i++)
            state[i] = a->carry ? call->inputs[STATE_OPERAND].words[first + i * columns] : 0;
        TRY(walk(call, index, state));
        for (uint64_t i = 0; a->carry && i < size; i++)
            call->out[result + first + i * columns] = state[i];
    }
    sequence_bound(call, 0, result);
    if (a->carry)
        sequence_bound(call, result, count * size);
error:
    memory_free(state);
    return status;
}
