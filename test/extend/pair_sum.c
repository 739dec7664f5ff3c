/* The op family that extend.sh adds: y[.., j] = x[.., 2 j] + x[.., 2 j + 1], rounded once. The last
 * axis must be even. */
#include "args/rows.h"
#include "op/families.h"

rlxvk_tensor rlxvk_pair_sum(rlxvk_graph *g, rlxvk_tensor x)
{
    return op_build(g, OP_pair_sum, &x, 1, NULL);
}

static rlxvk_status pair_sum_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const rlxvk_shape *x = input_shape(g, n, 0);
    char buffer[SHAPE_TEXT];
    (void)attributes;
    if (x->rank < 1 || x->dims[x->rank - 1] % 2)
        return op_fail(n, RLXVK_E_SHAPE, "x %s; the last dim must be even", shape_text(x, buffer));
    n->shape = *x;
    n->shape.dims[x->rank - 1] /= 2;
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    return RLXVK_OK;
}

static rlxvk_status pair_sum_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    operand operands[] = {lower_input(l, id, 0), lower_write(l, id)};
    struct pair_sum_args args = {(uint32_t)shape_numel(&n->shape), operands[0].offset,
                                 operands[1].offset};
    dispatch d = {.kernel = KERNEL_PAIR_SUM};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size});
    lower_groups(l, &d, groups_for(args.numel, d.constants[LOCAL_SIZE]));
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status pair_sum_host(const host_call *call)
{
    uint64_t numel = shape_numel(&call->node->shape);
    for (uint64_t i = 0; i < numel; i++)
        call->out[i] = (double)call->inputs[0].words[2 * i] + call->inputs[0].words[2 * i + 1];
    return RLXVK_OK;
}

const op_family pair_sum_family = {
    .name = "pair_sum",
    .infer = pair_sum_infer,
    .execution = {.lower = pair_sum_lower, .host = pair_sum_host},
};
