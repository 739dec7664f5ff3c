/*
 * Mixture of experts with f32 or half weights: y[i] = x[i] w[e], if idx[i] names expert e.
 *
 * x is [M, K] (leading axes flattened). w is [E, K, N], or [E, N, K] if transpose_w is set. idx has
 * M numbers. The rows keep their order. If a row names no expert, its result is zeros.
 */
#include "args/elementwise.h"
#include "args/matmul.h"
#include "constants/matmul.h"
#include "op/matmul/experts.h"
#include "op/families.h"
#include "op/gradient.h"

#include <rlxvk_train.h>

#include <math.h>
#include <string.h>

enum { LOW_TILE = 32, HIGH_TILE = 64, TILED_THREADS = 128, TILED_COLUMNS = 64 };

rlxvk_tensor rlxvk_grouped_matmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor idx,
                                  bool transpose_w)
{
    grouped_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.product.transpose_b = transpose_w;
    return op_build(g, OP_grouped_matmul, (rlxvk_tensor[]){x, w, idx}, 3, &attributes);
}

static rlxvk_status grouped_matmul_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const matmul_attributes *a = &((const grouped_attributes *)attributes)->product;
    const rlxvk_shape *x = input_shape(g, n, 0), *w = input_shape(g, n, 1);
    char x_text[SHAPE_TEXT], w_text[SHAPE_TEXT];
    rlxvk_status status;
    if (x->rank < 2 || w->rank != 3)
        return op_fail(n, RLXVK_E_SHAPE, "x %s, w %s; x has rank 2 or more, w is [E, K, N]",
                       shape_text(x, x_text), shape_text(w, w_text));
    int64_t k = x->dims[x->rank - 1];
    if (k != w->dims[a->transpose_b ? 2 : 1])
        return op_fail(n, RLXVK_E_SHAPE, "K is %lld in x %s and %lld in w %s%s", (long long)k,
                       shape_text(x, x_text), (long long)w->dims[a->transpose_b ? 2 : 1],
                       shape_text(w, w_text), a->transpose_b ? " (transposed)" : "");
    uint64_t rows = shape_product(x, 0, x->rank - 1);
    TRY(experts_check_index(g, n, 2, rows));
    n->shape = RLXVK_SHAPE((int64_t)rows, w->dims[a->transpose_b ? 1 : 2]);
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

static uint32_t storage_code(const lowering *l, const operand *o)
{
    if (o->storage != STORAGE_HALF)
        return MATMUL_WORDS;
    return graph_node(l->graph, o->value)->dtype == RLXVK_F16 ? MATMUL_F16 : MATMUL_BF16;
}

/* `split`: lanes also run along K. */
static rlxvk_status lower_direct(lowering *l, dispatch *d, struct matmul_args *args,
                                 const operand operands[4], bool split)
{
    uint32_t lanes = !split ? 16 : d->constants[MATMUL_TRANSPOSE_B] ? 4 : 32;
    d->kernel = KERNEL_GROUPED_MATVEC;
    SET_CONSTANTS(d, {LOCAL_SIZE, split ? 128 : 16}, {MATMUL_REG_M, 1},
                  {GROUPED_MATVEC_LANES_N, lanes});
    args->bias_offset = operands[2].offset;
    uint64_t across = divide_up(args->n, (uint64_t)4 * lanes);
    lower_groups(l, d, args->m * across);
    d->order = (group_order){.run = (uint32_t)across, .parts = args->m, .lot = 1};
    return lower_emit(l, d, args, sizeof *args, operands, 4);
}

static rlxvk_status lower_sorted(lowering *l, dispatch *d, struct matmul_args *args,
                                 operand operands[4])
{
    expert_blocks blocks = {LOW_TILE, 0};
    rlxvk_status status;
    TRY(experts_sort(l, d->node, args->m, args->batch_count, HIGH_TILE, &operands[2], &blocks));
    d->kernel = KERNEL_GROUPED_MATMUL;
    SET_CONSTANTS(d, {LOCAL_SIZE, TILED_THREADS}, {MATMUL_REG_M, blocks.rows / 8});
    lower_groups(l, d, blocks.count * divide_up(args->n, TILED_COLUMNS));
    TRY(lower_emit(l, d, args, sizeof *args, operands, 4));
error:
    return status;
}

rlxvk_status grouped_matmul_emit(lowering *l, dispatch *d, struct matmul_args *args,
                                 operand operands[4])
{
    const experts_class *class = experts_choose(l, args->m, false);
    uint32_t b_run = d->constants[MATMUL_TRANSPOSE_B] ? args->k : args->n;
    uint32_t vectors = ((args->a_offset | args->k) % 4 == 0 ? MATMUL_VECTOR_A : 0u) |
                       ((args->b_offset | b_run) % 4 == 0 ? MATMUL_VECTOR_B : 0u) |
                       ((args->y_offset | args->n) % 4 == 0 ? MATMUL_VECTOR_Y : 0u);
    SET_CONSTANTS(d, {MATMUL_TRANSPOSE_A, false}, {MATMUL_VECTORS, vectors},
                  {MATMUL_BIAS, MATMUL_NO_BIAS}, {MATMUL_ACTIVATION, UNARY_NONE},
                  {MATMUL_REG_N, 1});
    d->variant = class->row.name;
    return class->sorted ? lower_sorted(l, d, args, operands)
                         : lower_direct(l, d, args, operands, class->split);
}

static rlxvk_status grouped_matmul_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const rlxvk_shape *x = input_shape(l->graph, n, 0), *w = input_shape(l->graph, n, 1);
    operand operands[] = {lower_input(l, id, 0), lower_input(l, id, 1), lower_input(l, id, 2),
                          lower_write(l, id)};
    struct matmul_args args = {.m = (uint32_t)n->shape.dims[0],
                               .n = (uint32_t)n->shape.dims[1],
                               .k = (uint32_t)x->dims[x->rank - 1],
                               .a_offset = operands[0].offset,
                               .b_offset = operands[1].offset,
                               .y_offset = operands[3].offset,
                               .batch_count = (uint32_t)w->dims[0]};
    dispatch d = {.node = id};
    const grouped_attributes *a = n->attributes;
    SET_CONSTANTS(&d, {MATMUL_TRANSPOSE_B, a->product.transpose_b},
                  {MATMUL_A_STORAGE, storage_code(l, &operands[0])},
                  {MATMUL_B_STORAGE, storage_code(l, &operands[1])});
    return grouped_matmul_emit(l, &d, &args, operands);
}

/* Bound: 1e-7 + u (8 + 4 sqrt K) sum |x w|, u = 2^-24. */
static rlxvk_status grouped_matmul_host(const host_call *c)
{
    const matmul_attributes *a = &((const grouped_attributes *)c->node->attributes)->product;
    uint64_t rows = (uint64_t)c->node->shape.dims[0], columns = (uint64_t)c->node->shape.dims[1];
    uint64_t experts = (uint64_t)c->inputs[1].node->shape.dims[0];
    uint64_t k = (uint64_t)c->inputs[1].node->shape.dims[a->transpose_b ? 2 : 1];
    for (uint64_t at = 0; at < rows * columns; at++) {
        uint64_t i = at / columns, j = at % columns;
        uint64_t expert = experts_host_index(c->inputs[2].words[i], experts);
        double sum = 0, magnitude = 0;
        for (uint64_t p = 0; p < k && expert < experts; p++) {
            uint64_t within = a->transpose_b ? j * k + p : p * columns + j;
            double term = (double)c->inputs[0].words[i * k + p] *
                          (double)c->inputs[1].words[expert * k * columns + within];
            sum += term;
            magnitude += fabs(term);
        }
        c->out[at] = sum;
        if (c->bound)
            c->bound[at] =
                expert < experts ? 1e-7 + 0x1p-24 * (8 + 4 * sqrt((double)k)) * magnitude : 0;
    }
    return RLXVK_OK;
}

static rlxvk_status grouped_matmul_vjp(gradient_call *c)
{
    bool transposed = ((const grouped_attributes *)c->n.attributes)->product.transpose_b;
    rlxvk_tensor idx = gradient_operand(c, 2);
    if (gradient_wanted(c, 0)) {
        rlxvk_tensor dx =
            rlxvk_grouped_matmul(c->graph, c->dy, gradient_operand(c, 1), idx, !transposed);
        gradient_give(c, 0, rlxvk_reshape(c->graph, dx, gradient_shape(c, 0)));
    }
    if (gradient_wanted(c, 1))
        gradient_give(c, 1,
                      rlxvk_grouped_matmul_backward_weight(c->graph, gradient_operand(c, 0), c->dy,
                                                           idx, gradient_shape(c, 1).dims[0],
                                                           transposed));
    return RLXVK_OK;
}

static index_limits grouped_matmul_indices(const rlxvk_graph *g, const node *n)
{
    return experts_indices(input_shape(g, n, 1)->dims[0],
                           ((const grouped_attributes *)n->attributes)->part);
}

static void grouped_matmul_describe(const node *n, text *out)
{
    const grouped_attributes *a = n->attributes;
    if (a->product.transpose_b)
        text_append(out, " transpose_w");
    experts_describe_part(a->part, out);
}

const op_family grouped_matmul_family = {
    .name = "grouped_matmul",
    .attribute_size = sizeof(grouped_attributes),
    .infer = grouped_matmul_infer,
    .storage = {.half_inputs = 3},
    .execution = {.indexed_inputs = 2, .lower = grouped_matmul_lower, .host = grouped_matmul_host},
    .rows = {.bucket = experts_bucket},
    .derivative = {.vjp = grouped_matmul_vjp},
    .checks = {.indices = grouped_matmul_indices},
    .describe = grouped_matmul_describe,
};
