/*
 * qmatmul: the product of 8-bit matrices (integer_product.h), x [.., M, K] and w [K, N]. If y is
 * small, long sums are also split to keep a GPU busy.
 */
#include "args/packed.h"
#include "constants/packed.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/packed/integer_product.h"

typedef struct qmatmul_attributes {
    rlxvk_requantize requantize;
} qmatmul_attributes;

enum {
    QMATMUL_SIDE = 8, /* of the square workgroup */
    QMATMUL_COLUMNS = 32,
    QMATMUL_MOST_ROWS = 4,   /* rows that an invocation sums, at most */
    QMATMUL_BUSY = 256,      /* workgroups that a GPU should have */
    QMATMUL_SHORTEST = 1024, /* terms of a split */
};

rlxvk_tensor rlxvk_qmatmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                           const rlxvk_requantize *options)
{
    rlxvk_tensor inputs[] = {x, w, bias};
    qmatmul_attributes attributes = {.requantize = options ? *options : (rlxvk_requantize){0}};
    return op_build(g, OP_qmatmul, inputs, ARRAY_COUNT(inputs), &attributes);
}

static rlxvk_status qmatmul_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_status status;
    char x_text[SHAPE_TEXT], w_text[SHAPE_TEXT];
    const rlxvk_shape *x = input_shape(g, n, 0), *w = input_shape(g, n, 1);
    TRY(integer_check_operands(g, n, &((qmatmul_attributes *)attributes)->requantize));
    if (x->rank < 2 || w->rank != 2 || x->dims[x->rank - 1] != w->dims[0])
        return op_fail(n, RLXVK_E_SHAPE, "x %s, w %s; takes [..,M,K] and [K,N]",
                       shape_text(x, x_text), shape_text(w, w_text));
    TRY(integer_check_bias(g, n, w->dims[1]));
    n->shape = *x;
    n->shape.dims[x->rank - 1] = w->dims[1];
    n->dtype = RLXVK_I8;
error:
    return status;
}

/* How many terms one split sums. There are enough splits to keep a GPU busy, but each must be long
 * enough to be worth its sum. */
static uint64_t qmatmul_slice(const lowering *l, uint64_t tiles, uint64_t k)
{
    uint64_t wanted = profile_is_software(l->profile) ? 1 : divide_up(QMATMUL_BUSY, tiles);
    uint64_t slice = MAX(divide_up(k, wanted), QMATMUL_SHORTEST);
    return MIN(divide_up(slice, QMATMUL_COLUMNS) * QMATMUL_COLUMNS, INTEGER_SLICE);
}

static struct qmatmul_args qmatmul_arguments(const rlxvk_graph *g, const node *n,
                                             const operand o[4])
{
    const rlxvk_requantize *r = &((const qmatmul_attributes *)n->attributes)->requantize;
    const rlxvk_shape *w = input_shape(g, n, 1);
    return (struct qmatmul_args){.m = (uint32_t)shape_product(&n->shape, 0, n->shape.rank - 1),
                                 .n = (uint32_t)w->dims[1],
                                 .k = (uint32_t)w->dims[0],
                                 .x_offset = o[0].offset,
                                 .w_offset = o[1].offset,
                                 .bias_offset = o[2].offset,
                                 .x_zero_point = r->x_zero_point,
                                 .w_zero_point = r->w_zero_point,
                                 .out_zero_point = r->out_zero_point,
                                 .multiplier = r->multiplier};
}

static rlxvk_status qmatmul_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    operand o[4];
    integer_operands(l, id, o);
    struct qmatmul_args args = qmatmul_arguments(l->graph, n, o);
    uint32_t rows = args.m <= QMATMUL_SIDE ? 1 : QMATMUL_MOST_ROWS;
    uint64_t tiles =
        divide_up(args.m, (uint64_t)QMATMUL_SIDE * rows) * divide_up(args.n, QMATMUL_COLUMNS);
    args.k_slice = (uint32_t)qmatmul_slice(l, tiles, args.k);
    struct integer_sum_args sum = {.count = args.m * args.n,
                                   .splits = (uint32_t)divide_up(MAX(args.k, 1), args.k_slice),
                                   .cells = 1,
                                   .channels = args.n,
                                   .bias_offset = args.bias_offset,
                                   .y_offset = o[3].offset,
                                   .out_zero_point = args.out_zero_point,
                                   .multiplier = args.multiplier};
    args.y_offset = sum.splits > 1 ? 0 : o[3].offset;
    dispatch d = {.kernel = KERNEL_QMATMUL, .node = id};
    SET_CONSTANTS(&d, {LOCAL_SIZE, QMATMUL_SIDE * QMATMUL_SIDE},
                  {QMATMUL_X_STORAGE, integer_storage(&o[0])},
                  {QMATMUL_W_STORAGE, integer_storage(&o[1])},
                  {QMATMUL_HAS_BIAS, n->input_count > 2}, {QMATMUL_ROWS, rows});
    lower_groups(l, &d, tiles * sum.splits);
    return integer_emit(l, &d, &args, sizeof args, o, &sum);
}

static rlxvk_status qmatmul_host(const host_call *c)
{
    const rlxvk_requantize *r = &((const qmatmul_attributes *)c->node->attributes)->requantize;
    const rlxvk_shape *w = &c->inputs[1].node->shape;
    uint64_t depth = (uint64_t)w->dims[0], columns = (uint64_t)w->dims[1];
    uint64_t numel = shape_numel(&c->node->shape);
    for (uint64_t i = 0; i < numel; i++) {
        int64_t sum = integer_host_bias(c, i % columns);
        for (uint64_t k = 0; k < depth; k++)
            sum += integer_host_product(c, r, i / columns * depth + k, k * columns + i % columns);
        c->out[i] = integer_host_requantize(r, sum);
    }
    return RLXVK_OK;
}

/* The product before rounding, saturation and zero point. Its gradients stand in for those of x and
 * w (straight-through). The bias has no gradient, because it is integers. */
static rlxvk_tensor qmatmul_expand(rlxvk_graph *g, const node *n)
{
    const rlxvk_requantize *r = &((const qmatmul_attributes *)n->attributes)->requantize;
    rlxvk_tensor x = integer_centered(g, n->inputs[0], r->x_zero_point);
    rlxvk_tensor w = integer_centered(g, n->inputs[1], r->w_zero_point);
    return rlxvk_mul(g, rlxvk_matmul(g, x, w), gradient_scalar(g, r->multiplier));
}

static void qmatmul_describe(const node *n, text *out)
{
    integer_describe(&((const qmatmul_attributes *)n->attributes)->requantize, out);
}

const op_family qmatmul_family = {
    .name = "qmatmul",
    .attribute_size = sizeof(qmatmul_attributes),
    .infer = qmatmul_infer,
    .storage = {.raw_inputs = 3},
    .execution = {.lower = qmatmul_lower, .host = qmatmul_host},
    .rows = {.bucket = bucket_vectors},
    .derivative = {.expand = qmatmul_expand, .straight_through = true},
    .describe = qmatmul_describe,
};
