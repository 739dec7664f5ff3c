/*
 * Packed weights of experts: `experts` slabs one after the other. Each is a whole matrix of n
 * packed rows of k elements.
 *
 *   dequant_grouped_matmul: y[i][j] = sum over p < k of x[i][p] * decode(slab e, row j)[p]
 *   dequant_moe_weights:    y[e][p][j] = decode(slab e, row j)[p], the layout for grouped_matmul
 *
 * e is the expert that idx[i] names. If row i names none, its result is zeros. The kernels are
 * those of dequant_matmul and dequant_gather. A product with plain rows (E = 1) uses those of
 * grouped_matmul. If the format has a grid, it is the last operand, a constant of the graph.
 *
 * Limits: k is whole blocks; the bytes are a whole number of slabs, at least one.
 */
#include "args/matmul.h"
#include "args/packed.h"
#include "constants/matmul.h"
#include "constants/packed.h"
#include "op/packed/dequant.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/packed/quant_format.h"

#include <math.h>
#include <string.h>

static bool is_plain(uint32_t type)
{
    return quant_format_find(type)->block_elements == 1;
}

/* Checks packed operand `index` and counts its slabs. The node has `operands` operands besides a
 * grid. */
static rlxvk_status count_slabs(const rlxvk_graph *g, const node *n, uint32_t index,
                                uint32_t operands, expert_attributes *a)
{
    const quant_format *format;
    uint64_t bytes = shape_numel(input_shape(g, n, index)), slab = 0;
    rlxvk_status status;
    TRY(dequant_check_format(n, a->format, operands));
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

static void experts_describe(const node *n, text *out)
{
    const expert_attributes *a = n->attributes;
    const quant_format *format = quant_format_find(a->format);
    text_append(out, " format=%s k=%lld n=%lld experts=%lld", format ? format->name : "?",
                (long long)a->k, (long long)a->n, (long long)a->experts);
    experts_describe_part(a->part, out);
}

static rlxvk_status experts_check_content(const node *n, uint32_t operand, const void *data,
                                          uint64_t count)
{
    bool packed = node_row(n)->family->storage.raw_inputs >> operand & 1;
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
    rlxvk_tensor inputs[] = {x, w, idx, dequant_grid(g, a.format)};
    return op_build(g, OP_dequant_grouped_matmul, inputs, 4, &a);
}

static rlxvk_status dequant_grouped_matmul_infer(const rlxvk_graph *g, node *n, void *attributes)
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
    TRY(count_slabs(g, n, 1, 3, a));
    uint64_t rows = shape_product(x, 0, x->rank - 1);
    TRY(experts_check_index(g, n, 2, rows));
    n->shape = RLXVK_SHAPE((int64_t)rows, a->n);
    n->dtype = RLXVK_F32;
error:
    return status;
}

/* Operands: x, w, indices, y. Views of bytes start at words, so they start at whole elements. */
static rlxvk_status lower_plain(lowering *l, uint32_t id, operand operands[4])
{
    static const uint32_t storages[] = {
        [QUANT_F32] = MATMUL_WORDS, [QUANT_F16] = MATMUL_F16, [QUANT_BF16] = MATMUL_BF16};
    const expert_attributes *a = graph_node(l->graph, id)->attributes;
    uint32_t element = quant_format_find(a->format)->block_bytes;
    struct matmul_args args = {.m = (uint32_t)graph_node(l->graph, id)->shape.dims[0],
                               .n = (uint32_t)a->n,
                               .k = (uint32_t)a->k,
                               .a_offset = operands[0].offset,
                               .b_offset = operands[1].offset / element,
                               .y_offset = operands[3].offset,
                               .batch_count = (uint32_t)a->experts};
    dispatch d = {.node = id};
    SET_CONSTANTS(&d, {MATMUL_TRANSPOSE_B, true}, {MATMUL_A_STORAGE, MATMUL_WORDS},
                  {MATMUL_B_STORAGE, storages[a->format]});
    return grouped_matmul_emit(l, &d, &args, operands);
}

static rlxvk_status lower_packed(lowering *l, uint32_t id, operand operands[5])
{
    const expert_attributes *a = graph_node(l->graph, id)->attributes;
    struct dequant_product_args args = {.m = (uint32_t)graph_node(l->graph, id)->shape.dims[0],
                                        .n = (uint32_t)a->n,
                                        .units = (uint32_t)(a->k / DEQUANT_UNIT_ELEMENTS),
                                        .experts = (uint32_t)a->experts,
                                        .row_bytes = row_bytes(a),
                                        .last_word = dequant_last_word(&operands[0]),
                                        .w_offset = operands[0].offset,
                                        .x_offset = operands[1].offset,
                                        .y_offset = operands[2].offset,
                                        .index_offset = operands[3].offset,
                                        .ends = {(uint32_t)a->n, (uint32_t)a->n}};
    const dequant_tile_class *tile = dequant_tile(l, args.m / (args.experts + 1));
    expert_blocks blocks = {tile->rows, 0};
    dispatch d = {.node = id};
    rlxvk_status status;
    const experts_class *class = experts_choose(l, args.m, true);
    d.variant = class->row.name;
    dequant_set_format(&d, a->format, &operands[0]);
    if (!class->sorted)
        return dequant_lower_matvec(l, &d, &args, operands, NULL);
    TRY(experts_sort(l, id, args.m, args.experts, tile->rows, &operands[3], &blocks));
    TRY(dequant_lower_tiled(l, &d, &args, operands, tile, blocks.count));
error:
    return status;
}

static rlxvk_status dequant_grouped_matmul_lower(lowering *l, uint32_t id)
{
    const expert_attributes *a = graph_node(l->graph, id)->attributes;
    operand x = lower_input(l, id, 0), w = lower_input(l, id, 1), index = lower_input(l, id, 2);
    operand y = lower_write(l, id), grid = dequant_grid_operand(l, id, 3, &w);
    if (is_plain(a->format))
        return lower_plain(l, id, (operand[]){x, w, index, y});
    return lower_packed(l, id, (operand[]){w, x, y, index, grid});
}

/* Computes column j of expert e for every row that names it. Bound: u (4 + 2 sqrt k) sum |x|
 * (|scale term| + |min term|), u = 2^-24. */
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

/* Decodes every row of every slab in turn and passes it to `use`, followed by its magnitudes. */
static rlxvk_status each_row(const host_call *c, const uint8_t *packed,
                             void (*use)(const host_call *, uint64_t, uint64_t, const float *))
{
    const expert_attributes *a = c->node->attributes;
    uint64_t k = (uint64_t)a->k;
    rlxvk_status status = RLXVK_OK;
    float *row = memory_zeroed(2 * k + 1, sizeof *row);
    if (!row)
        return status_fail_memory("decoded row");
    for (uint64_t r = 0; r < (uint64_t)(a->experts * a->n); r++) {
        TRY(dequant_decode_row(a->format, packed + r * row_bytes(a), k, row));
        use(c, r / (uint64_t)a->n, r % (uint64_t)a->n, row);
    }
error:
    memory_free(row);
    return status;
}

static rlxvk_status dequant_grouped_matmul_host(const host_call *c)
{
    return each_row(c, c->inputs[1].bytes, grouped_column);
}

/* The gradient of x only: dy times the experts' decoded weights. */
static rlxvk_status dequant_grouped_matmul_vjp(gradient_call *c)
{
    const expert_attributes *a = c->n.attributes;
    rlxvk_tensor w = rlxvk_dequant_moe_weights(c->graph, gradient_operand(c, 1),
                                               (rlxvk_quant_format)a->format, a->k, a->n);
    rlxvk_tensor dx = rlxvk_grouped_matmul(c->graph, c->dy, w, gradient_operand(c, 2), true);
    gradient_give(c, 0, rlxvk_reshape(c->graph, dx, gradient_shape(c, 0)));
    return RLXVK_OK;
}

static index_limits dequant_grouped_matmul_indices(const rlxvk_graph *g, const node *n)
{
    (void)g;
    const expert_attributes *a = n->attributes;
    return experts_indices(a->experts, a->part);
}

const op_family dequant_grouped_matmul_family = {
    .name = "dequant_grouped_matmul",
    .attribute_size = sizeof(expert_attributes),
    .infer = dequant_grouped_matmul_infer,
    .storage = {.raw_inputs = 10},
    .execution = {.indexed_inputs = 2,
                  .lower = dequant_grouped_matmul_lower,
                  .host = dequant_grouped_matmul_host},
    .rows = {.bucket = experts_bucket},
    .derivative = {.vjp = dequant_grouped_matmul_vjp},
    .checks = {.indices = dequant_grouped_matmul_indices, .check_content = experts_check_content},
    .describe = experts_describe,
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
    rlxvk_tensor inputs[] = {w, dequant_grid(g, a.format)};
    return op_build(g, OP_dequant_moe_weights, inputs, 2, &a);
}

static rlxvk_status dequant_moe_weights_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    expert_attributes *a = attributes;
    n->dtype = RLXVK_F32;
    rlxvk_status status = count_slabs(g, n, 0, 1, a);
    n->shape = RLXVK_SHAPE(a->experts, a->k, a->n);
    return status;
}

static rlxvk_status dequant_moe_weights_lower(lowering *l, uint32_t id)
{
    const expert_attributes *a = graph_node(l->graph, id)->attributes;
    operand w = lower_input(l, id, 0);
    operand operands[] = {w, w, lower_write(l, id), dequant_grid_operand(l, id, 1, &w)};
    uint32_t units = (uint32_t)(a->k / (is_plain(a->format) ? 1 : DEQUANT_UNIT_ELEMENTS));
    struct dequant_gather_args args = {.count = (uint32_t)(a->experts * a->n) * units,
                                       .rows = (uint32_t)a->n,
                                       .units = units,
                                       .row_bytes = row_bytes(a),
                                       .last_word = dequant_last_word(&w),
                                       .w_offset = w.offset,
                                       .y_offset = operands[2].offset};
    dispatch d = {.node = id};
    dequant_set_format(&d, a->format, &w);
    dequant_set_gather(l, &d, DEQUANT_TRANSPOSED, MATMUL_WORDS);
    lower_groups(l, &d, groups_for(args.count, d.constants[LOCAL_SIZE]));
    return lower_emit(l, &d, &args, sizeof args, operands, kernel_table[d.kernel].binding_count);
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

static rlxvk_status dequant_moe_weights_host(const host_call *c)
{
    return each_row(c, c->inputs[0].bytes, weights_row);
}

static uint64_t dequant_moe_weights_bucket(bucket_call *c)
{
    return bucket_refuse(c, "its packed weights depend on the rows");
}

const op_family dequant_moe_weights_family = {
    .name = "dequant_moe_weights",
    .attribute_size = sizeof(expert_attributes),
    .infer = dequant_moe_weights_infer,
    .storage = {.raw_inputs = 3},
    .execution = {.lower = dequant_moe_weights_lower, .host = dequant_moe_weights_host},
    .rows = {.bucket = dequant_moe_weights_bucket},
    .checks = {.check_content = experts_check_content},
    .describe = experts_describe,
};
