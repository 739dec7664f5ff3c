/*
 * Packed expert weights: `experts` slabs back to back, each a whole matrix of n packed rows of k.
 *
 *   dequant_grouped_matmul: y[i][j] = sum over p < k of x[i][p] * decode(slab e, row j)[p], e the
 *     expert that idx[i] names; a row that names none is zeros
 *   dequant_moe_weights: y[e][p][j] = decode(slab e, row j)[p], what grouped_matmul wants
 *
 * Limits: k is whole blocks, the bytes a whole number of slabs, at least one.
 */
#include "op/dequant.h"
#include "op/experts.h"
#include "op/families.h"
#include "op/quant_format.h"

#include <math.h>
#include <string.h>

enum { CPU_WORKGROUP = 16, LOW_TILE = 16, HIGH_TILE = 32 };

/* The formats that the kernels of this file decode. */
static const uint32_t formats[] = {DEQUANT_Q8_0, DEQUANT_Q4_K, DEQUANT_Q6_K};

static rlxvk_status check_format(const node *n, uint32_t type)
{
    const quant_format *format = quant_format_find(type);
    for (size_t i = 0; i < ARRAY_COUNT(formats) && format; i++)
        if (formats[i] == type)
            return RLXVK_OK;
    return op_fail(n, RLXVK_E_UNSUPPORTED,
                   "no kernel for format %u (%s); there are Q8_0 (8), "
                   "Q4_K (12), Q6_K (14)",
                   type, format ? format->name : "unknown");
}

/* Checks the packed operand and counts its slabs. */
static rlxvk_status count_slabs(const rlxvk_graph *g, const node *n, uint32_t index,
                                expert_attributes *a)
{
    const quant_format *format;
    uint64_t bytes = shape_numel(input_shape(g, n, index)), slab = 0;
    rlxvk_status status;
    TRY(check_format(n, a->format));
    TRY(dequant_check_packed(g, n, index));
    format = quant_format_find(a->format);
    if (a->k < 0 || a->k > INT32_MAX || a->n < 0 || a->n > INT32_MAX)
        return op_fail(n, RLXVK_E_ATTR, "k %lld, n %lld; both are 0 .. 2^31 - 1", (long long)a->k,
                       (long long)a->n);
    if (a->k % format->block_elements != 0)
        return op_fail(n, RLXVK_E_SHAPE, "rows of %lld elements; a block of %s has %u",
                       (long long)a->k, format->name, format->block_elements);
    bool fits = size_multiply(quant_row_bytes(a->format, (uint64_t)a->k), (uint64_t)a->n, &slab);
    if (!fits || slab == 0 || bytes % slab != 0 || bytes == 0)
        return op_fail(n, RLXVK_E_LENGTH,
                       "packed operand %u has %llu bytes; a slab of %lld rows of %lld %s elements "
                       "takes %llu, and there must be a whole number of them",
                       index, (unsigned long long)bytes, (long long)a->n, (long long)a->k,
                       format->name, (unsigned long long)slab);
    a->experts = (int64_t)(bytes / slab);
error:
    return status;
}

static uint32_t row_bytes(const expert_attributes *a)
{
    return (uint32_t)quant_row_bytes(a->format, (uint64_t)a->k);
}

static void describe(const node *n, text *out)
{
    const expert_attributes *a = n->attributes;
    const quant_format *format = quant_format_find(a->format);
    text_append(out, " format=%s k=%lld n=%lld experts=%lld", format ? format->name : "?",
                (long long)a->k, (long long)a->n, (long long)a->experts);
}

static rlxvk_status check_content(const node *n, uint32_t operand, const void *data, uint64_t count)
{
    bool packed = node_row(n)->family->raw_inputs >> operand & 1;
    uint32_t format = ((const expert_attributes *)n->attributes)->format;
    return packed ? quant_check_blocks(format, data, count) : RLXVK_OK;
}

/* ---- dequant_grouped_matmul ---- */

rlxvk_tensor rlxvk_dequant_grouped_matmul(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                                          rlxvk_tensor idx, rlxvk_quant_format format, int64_t n)
{
    expert_attributes a;
    memset(&a, 0, sizeof a);
    a.format = (uint32_t)format;
    a.n = n;
    return op_build(g, OP_dequant_grouped_matmul, (rlxvk_tensor[]){x, w, idx}, 3, &a);
}

static rlxvk_status grouped_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    expert_attributes *a = attributes;
    const rlxvk_shape *x = input_shape(g, n, 0);
    char buffer[SHAPE_TEXT];
    rlxvk_status status;
    if (input_dtype(g, n, 0) != RLXVK_F32)
        return op_fail(n, RLXVK_E_DTYPE, "x is %s; takes F32, insert a cast",
                       rlxvk_dtype_name(input_dtype(g, n, 0)));
    if (x->rank < 2)
        return op_fail(n, RLXVK_E_SHAPE, "x %s; it needs rank 2 or more", shape_text(x, buffer));
    a->k = x->dims[x->rank - 1];
    TRY(count_slabs(g, n, 1, a));
    uint64_t rows = shape_product(x, 0, x->rank - 1);
    TRY(experts_check_index(g, n, 2, rows));
    n->shape = RLXVK_SHAPE((int64_t)rows, a->n);
    n->dtype = RLXVK_F32;
error:
    return status;
}

/* As dequant.c: on a CPU teams of one, elsewhere neighbours that share a row. */
static rlxvk_status lower_direct(lowering *l, dispatch *d, struct dequant_grouped_args *args,
                                 const operand operands[4])
{
    bool cpu = l->profile->kind == RLXVK_DEVICE_CPU;
    bool light = d->constants[4] == 1; /* units a block */
    uint32_t team = 1;
    while (!cpu && team < 64 && team < args->units)
        team *= 2;
    d->kernel = KERNEL_DEQUANT_GROUPED_MATVEC;
    d->constants[0] = cpu ? CPU_WORKGROUP : MIN(l->profile->workgroup_size, 128);
    d->constants[8] = team;
    d->constants[9] = cpu || light ? 4 : 2;
    args->index_offset = operands[3].offset;
    lower_groups(l, d,
                 args->m * divide_up(args->n, (uint64_t)d->constants[0] / team * d->constants[9]));
    return lower_emit(l, d, args, sizeof *args, operands, 4);
}

static rlxvk_status lower_sorted(lowering *l, dispatch *d, struct dequant_grouped_args *args,
                                 operand operands[4])
{
    uint32_t tile = args->m / (args->experts + 1) >= LOW_TILE ? HIGH_TILE : LOW_TILE;
    operand plan;
    rlxvk_status status;
    TRY(experts_sort(l, d->node, &operands[3], args->m, args->experts, tile, &plan));
    operands[3] = plan;
    d->kernel = KERNEL_DEQUANT_GROUPED;
    d->constants[0] = DEQUANT_MATMUL_THREADS;
    d->constants[8] = tile / 16;
    lower_groups(l, d,
                 experts_blocks(args->m, args->experts, tile) *
                     divide_up(args->n, DEQUANT_MATMUL_COLUMNS));
    TRY(lower_emit(l, d, args, sizeof *args, operands, 4));
error:
    return status;
}

static rlxvk_status grouped_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const expert_attributes *a = n->attributes;
    operand operands[] = {lower_input(l, id, 1), lower_input(l, id, 0), lower_write(l, id),
                          lower_input(l, id, 2)};
    struct dequant_grouped_args args = {.m = (uint32_t)n->shape.dims[0],
                                        .n = (uint32_t)a->n,
                                        .units = (uint32_t)(a->k / DEQUANT_UNIT_ELEMENTS),
                                        .experts = (uint32_t)a->experts,
                                        .row_bytes = row_bytes(a),
                                        .last_word = dequant_last_word(&operands[0]),
                                        .w_offset = operands[0].offset,
                                        .x_offset = operands[1].offset,
                                        .y_offset = operands[2].offset};
    dispatch d = {.node = id};
    dequant_set_format(&d, a->format, &operands[0]);
    d.constants[7] = args.x_offset % 4 == 0;
    return experts_sorted(l, args.m) ? lower_sorted(l, &d, &args, operands)
                                     : lower_direct(l, &d, &args, operands);
}

/* Column j of expert e, for every row that names it. Bound: u (4 + 2 sqrt k) sum |x| (|scale term|
 * + |min term|), u = 2^-24. */
static void grouped_column(const host_call *c, uint64_t expert, uint64_t j, const float *w)
{
    const expert_attributes *a = c->node->attributes;
    uint64_t k = (uint64_t)a->k, n = (uint64_t)a->n, rows = (uint64_t)c->node->shape.dims[0];
    for (uint64_t i = 0; i < rows; i++) {
        double sum = 0, weight = 0;
        if (experts_host_index(c->inputs[2].words[i], (uint64_t)a->experts) != expert)
            continue;
        for (uint64_t p = 0; p < k; p++) {
            double x = c->inputs[0].words[i * k + p];
            sum += x * w[p];
            weight += fabs(x) * w[k + p];
        }
        c->out[i * n + j] = sum;
        if (c->bound)
            c->bound[i * n + j] = 0x1p-24 * (4 + 2 * sqrt((double)k)) * weight;
    }
}

/* Decodes every row of every slab in turn, with its magnitudes behind, for `use`. */
static rlxvk_status each_row(const host_call *c, const uint8_t *packed,
                             void (*use)(const host_call *, uint64_t, uint64_t, const float *))
{
    const expert_attributes *a = c->node->attributes;
    uint64_t k = (uint64_t)a->k;
    rlxvk_status status = RLXVK_OK;
    float *row = memory_zeroed(2 * k + 1, sizeof *row);
    if (!row)
        return fail_memory("decoded row");
    for (uint64_t r = 0; r < (uint64_t)(a->experts * a->n); r++) {
        TRY(quant_decode_row(a->format, packed + r * row_bytes(a), k, row));
        TRY(quant_decode_row_magnitude(a->format, packed + r * row_bytes(a), k, row + k));
        use(c, r / (uint64_t)a->n, r % (uint64_t)a->n, row);
    }
error:
    memory_free(row);
    return status;
}

static rlxvk_status grouped_host(const host_call *c)
{
    return each_row(c, c->inputs[1].bytes, grouped_column);
}

static uint64_t index_limit(const rlxvk_graph *g, const node *n, uint32_t *out_operand)
{
    (void)g;
    *out_operand = 2;
    return (uint64_t)((const expert_attributes *)n->attributes)->experts;
}

const op_family dequant_grouped_matmul_family = {
    .name = "dequant_grouped_matmul",
    .attribute_size = sizeof(expert_attributes),
    .raw_inputs = 2,
    .infer = grouped_infer,
    .lower = grouped_lower,
    .host = grouped_host,
    .index_limit = index_limit,
    .check_content = check_content,
    .describe = describe,
};

/* ---- dequant_moe_weights ---- */

rlxvk_tensor rlxvk_dequant_moe_weights(rlxvk_graph *g, rlxvk_tensor w, rlxvk_quant_format format,
                                       int64_t k, int64_t n)
{
    expert_attributes a;
    memset(&a, 0, sizeof a);
    a.format = (uint32_t)format;
    a.k = k;
    a.n = n;
    return op_build(g, OP_dequant_moe_weights, &w, 1, &a);
}

static rlxvk_status weights_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    expert_attributes *a = attributes;
    n->dtype = RLXVK_F32;
    rlxvk_status status = count_slabs(g, n, 0, a);
    n->shape = RLXVK_SHAPE(a->experts, a->k, a->n);
    return status;
}

static rlxvk_status weights_lower(lowering *l, uint32_t id)
{
    const expert_attributes *a = graph_node(l->graph, id)->attributes;
    operand operands[] = {lower_input(l, id, 0), lower_write(l, id)};
    struct dequant_moe_weights_args args = {.count = (uint32_t)(a->experts * a->n *
                                                                (a->k / DEQUANT_UNIT_ELEMENTS)),
                                            .n = (uint32_t)a->n,
                                            .units = (uint32_t)(a->k / DEQUANT_UNIT_ELEMENTS),
                                            .row_bytes = row_bytes(a),
                                            .last_word = dequant_last_word(&operands[0]),
                                            .w_offset = operands[0].offset,
                                            .y_offset = operands[1].offset};
    dispatch d = {.kernel = KERNEL_DEQUANT_MOE_WEIGHTS, .node = id};
    dequant_set_format(&d, a->format, &operands[0]);
    d.constants[0] = MIN(l->profile->workgroup_size, 128);
    lower_groups(l, &d, groups_for(args.count, d.constants[0]));
    return lower_emit(l, &d, &args, sizeof args, operands, 2);
}

/* Bound: 2^-23 (|scale term| + |min term|). */
static void weights_row(const host_call *c, uint64_t expert, uint64_t j, const float *w)
{
    const expert_attributes *a = c->node->attributes;
    uint64_t k = (uint64_t)a->k;
    for (uint64_t p = 0; p < k; p++) {
        uint64_t at = (expert * k + p) * (uint64_t)a->n + j;
        c->out[at] = w[p];
        if (c->bound)
            c->bound[at] = 0x1p-23 * w[k + p];
    }
}

static rlxvk_status weights_host(const host_call *c)
{
    return each_row(c, c->inputs[0].bytes, weights_row);
}

const op_family dequant_moe_weights_family = {
    .name = "dequant_moe_weights",
    .attribute_size = sizeof(expert_attributes),
    .raw_inputs = 1,
    .infer = weights_infer,
    .lower = weights_lower,
    .host = weights_host,
    .check_content = check_content,
    .describe = describe,
};
