/*
 * Gathers rows of packed weight matrices.
 *
 *   y[i][p] = decode(table row index[i])[p]; zeros if the index is NaN or not a row
 *
 * One invocation decodes a unit of 32 elements, or one element if the rows are plain.
 *
 * Limits: k is whole blocks; the packed bytes fit 31 bits.
 */
#include "args/matmul.h"
#include "args/packed.h"
#include "constants/packed.h"
#include "op/bucket.h"
#include "op/packed/dequant.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/packed/quant_format.h"

#include <math.h>

rlxvk_tensor rlxvk_dequant_gather(rlxvk_graph *g, rlxvk_tensor table, rlxvk_tensor indices,
                                  rlxvk_quant_format format, int64_t k)
{
    dequant_attributes a = {.format = (uint32_t)format, .k = k};
    rlxvk_tensor inputs[] = {table, indices, dequant_grid(g, a.format)};
    return op_build(g, OP_dequant_gather, inputs, 3, &a);
}

static rlxvk_status dequant_gather_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_status status;
    dequant_attributes *a = attributes;
    const rlxvk_shape *indices = input_shape(g, n, 1);
    uint64_t rows;
    TRY(dequant_check_format(n, a->format, 2));
    TRY(dequant_check_packed(g, n, 0));
    if (a->k < 0 || a->k > INT32_MAX)
        return op_fail(n, RLXVK_E_ATTR, "k is %lld; a row has 0 .. 2^31 - 1 elements",
                       (long long)a->k);
    TRY(dequant_count_rows(g, n, 0, a, &rows));
    if (indices->rank == RLXVK_MAX_RANK)
        return op_fail(n, RLXVK_E_SHAPE, "indices of rank %u; the result would have one axis more",
                       indices->rank);
    n->shape = *indices;
    n->shape.dims[n->shape.rank++] = a->k;
    n->dtype = RLXVK_F32;
error:
    return status;
}

static rlxvk_status dequant_gather_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const dequant_attributes *a = n->attributes;
    operand w = lower_input(l, id, 0);
    operand operands[] = {w, lower_input(l, id, 1), lower_write(l, id),
                          dequant_grid_operand(l, id, 2, &w)};
    bool plain = quant_format_find(a->format)->block_elements == 1;
    uint32_t unit = plain ? 1 : DEQUANT_UNIT_ELEMENTS;
    uint64_t row_bytes = quant_row_bytes(a->format, (uint64_t)a->k);
    struct dequant_gather_args args = {
        .count = (uint32_t)(shape_numel(&n->shape) / unit),
        .rows = (uint32_t)(shape_numel(input_shape(l->graph, n, 0)) / row_bytes),
        .units = (uint32_t)(a->k / unit),
        .row_bytes = (uint32_t)row_bytes,
        .last_word = dequant_last_word(&operands[0]),
        .w_offset = operands[0].offset,
        .index_offset = operands[1].offset,
        .y_offset = operands[2].offset,
    };
    dispatch d = {.node = id};
    dequant_set_format(&d, a->format, &operands[0]);
    dequant_set_gather(l, &d, DEQUANT_INDEXED, MATMUL_WORDS);
    lower_groups_in_order(l, &d, args.count, d.constants[LOCAL_SIZE]);
    return lower_emit(l, &d, &args, sizeof args, operands, kernel_table[d.kernel].binding_count);
}

/* Copies a decoded row out, with the bound 2^-23 * (|scale term| + |min term|). */
static rlxvk_status gather_row(const host_call *c, uint64_t item, const uint8_t *packed,
                               float *scratch)
{
    rlxvk_status status;
    const dequant_attributes *a = c->node->attributes;
    uint64_t k = (uint64_t)a->k;
    TRY(quant_decode_row(a->format, packed, k, scratch));
    TRY(quant_decode_row_magnitude(a->format, packed, k, scratch + k));
    for (uint64_t p = 0; p < k; p++) {
        c->out[item * k + p] = scratch[p];
        if (c->bound)
            c->bound[item * k + p] = 0x1p-23 * scratch[k + p];
    }
error:
    return status;
}

static rlxvk_status dequant_gather_host(const host_call *c)
{
    rlxvk_status status = RLXVK_OK;
    const dequant_attributes *a = c->node->attributes;
    uint64_t row_bytes = quant_row_bytes(a->format, (uint64_t)a->k);
    uint64_t count = shape_numel(&c->inputs[1].node->shape);
    uint64_t rows = row_bytes ? shape_numel(&c->inputs[0].node->shape) / row_bytes : 0;
    float *scratch = memory_zeroed(2 * (uint64_t)a->k + 1, sizeof *scratch);
    if (!scratch)
        return status_fail_memory("decoded row");
    for (uint64_t i = 0; i < count; i++) {
        double index = floor((double)c->inputs[1].words[i] + 0.5);
        if (index >= 0 && index < (double)rows)
            TRY(gather_row(c, i, c->inputs[0].bytes + (uint64_t)index * row_bytes, scratch));
    }
error:
    memory_free(scratch);
    return status;
}

static uint64_t dequant_gather_bucket(bucket_call *c)
{
    return bucket_others(c, 2) ? bucket_refuse(c, "it takes rows from where its indices say")
                               : bucket_at(c, bucket_place(c, 1), bucket_place(c, 1).axis);
}

static index_limits dequant_gather_indices(const rlxvk_graph *g, const node *n)
{
    const dequant_attributes *a = n->attributes;
    uint64_t row_bytes = quant_row_bytes(a->format, (uint64_t)a->k);
    uint64_t rows = row_bytes ? shape_numel(input_shape(g, n, 0)) / row_bytes : 0;
    return index_limits_of(1, (int64_t)rows);
}

const op_family dequant_gather_family = {
    .name = "dequant_gather",
    .attribute_size = sizeof(dequant_attributes),
    .infer = dequant_gather_infer,
    .storage = {.raw_inputs = 5},
    .execution = {.indexed_inputs = 1, .lower = dequant_gather_lower, .host = dequant_gather_host},
    .rows = {.bucket = dequant_gather_bucket},
    .checks = {.indices = dequant_gather_indices, .check_content = dequant_check_content},
    .describe = dequant_describe,
};
