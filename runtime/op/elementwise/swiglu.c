/* SwiGLU: x [.., 2N] -> [.., N]. Each row has two halves, and y = up * silu(gate). `up` is the
 * first half unless gate_first is set. */
#include "args/elementwise.h"
#include "constants/elementwise.h"
#include "op/activation.h"
#include "op/bucket.h"
#include "op/elementwise/elementwise.h"
#include "op/families.h"

rlxvk_tensor rlxvk_fused_swiglu(rlxvk_graph *g, rlxvk_tensor x, bool gate_first)
{
    swiglu_attributes a = {gate_first};
    return op_build(g, OP_fused_swiglu, &x, 1, &a);
}

static rlxvk_status swiglu_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const rlxvk_shape *x = input_shape(g, n, 0);
    char buffer[SHAPE_TEXT];
    (void)attributes;
    if (x->rank < 1 || x->dims[x->rank - 1] % 2)
        return op_fail(n, RLXVK_E_SHAPE, "x %s; the last dim must be even, two halves",
                       shape_text(x, buffer));
    n->shape = *x;
    n->shape.dims[x->rank - 1] /= 2;
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    return RLXVK_OK;
}

static rlxvk_status swiglu_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const swiglu_attributes *a = n->attributes;
    operand operands[] = {lower_input(l, id, 0), lower_write(l, id)};
    uint32_t columns = (uint32_t)n->shape.dims[n->shape.rank - 1], x = operands[0].offset;
    struct swiglu_args arguments = {.numel = (uint32_t)shape_numel(&n->shape),
                                    .columns = columns,
                                    .x_row = 2 * columns,
                                    .up_offset = x + (a->gate_first ? columns : 0),
                                    .gate_offset = x + (a->gate_first ? 0 : columns),
                                    .y_offset = operands[1].offset};
    dispatch d = {.kernel = KERNEL_SWIGLU, .node = id};
    bool quads = (columns | x | operands[1].offset) % 4 == 0;
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {SWIGLU_QUADS, quads});
    lower_groups_in_order(l, &d, arguments.numel,
                          (uint64_t)l->profile->workgroup_size * (quads ? 4 : 1));
    return lower_emit(l, &d, &arguments, sizeof arguments, operands, ARRAY_COUNT(operands));
}

static rlxvk_status swiglu_host(const host_call *call)
{
    const swiglu_attributes *a = call->node->attributes;
    const rlxvk_shape *s = &call->node->shape;
    uint64_t columns = (uint64_t)s->dims[s->rank - 1], numel = shape_numel(s);
    for (uint64_t i = 0; i < numel; i++) {
        const float *x = call->inputs[0].words + i / columns * columns * 2 + i % columns;
        double up = a->gate_first ? x[columns] : x[0];
        double gate = a->gate_first ? x[0] : x[columns];
        call->out[i] = up * activation_host(UNARY_SILU, gate);
    }
    return RLXVK_OK;
}

static rlxvk_tensor swiglu_expand(rlxvk_graph *g, const node *n)
{
    bool gate_first = ((const swiglu_attributes *)n->attributes)->gate_first;
    rlxvk_tensor x = tensor_of(g, n->inputs[0]);
    int32_t axis = (int32_t)n->shape.rank - 1;
    int64_t half = n->shape.dims[axis];
    rlxvk_tensor first = rlxvk_narrow(g, x, axis, 0, half);
    rlxvk_tensor second = rlxvk_narrow(g, x, axis, half, half);
    return rlxvk_mul(g, gate_first ? second : first, rlxvk_silu(g, gate_first ? first : second));
}

static void swiglu_describe(const node *n, text *out)
{
    const swiglu_attributes *a = n->attributes;
    text_append(out, " gate_first=%d", a->gate_first);
}

const op_family swiglu_family = {
    .name = "swiglu",
    .attribute_size = sizeof(swiglu_attributes),
    .infer = swiglu_infer,
    .execution = {.lower = swiglu_lower, .host = swiglu_host},
    .rows = {.bucket = bucket_vectors},
    .derivative = {.expand = swiglu_expand},
    .describe = swiglu_describe,
};
