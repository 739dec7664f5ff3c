/* Shared by the products with packed weights, if scales lie in the blocks and if they lie beside
 * them: checks of operands, sizes of kernels, and the host's sums. */
#include "args/packed.h"
#include "constants/packed.h"
#include "op/matmul/matmul.h"
#include "op/packed/dequant.h"
#include "op/packed/quant_format.h"

#include <math.h>

rlxvk_status dequant_check_packed(const rlxvk_graph *g, const node *n, uint32_t index)
{
    rlxvk_dtype dtype = input_dtype(g, n, index);
    if (dtype == RLXVK_U8 && op_node_storage(g, n->inputs[index]) == STORAGE_RAW)
        return RLXVK_OK;
    return op_fail(n, RLXVK_E_DTYPE,
                   "packed operand %u is a %s tensor; it must be a U8 input, param or constant",
                   index, dtype == RLXVK_U8 ? "computed U8" : rlxvk_dtype_name(dtype));
}

rlxvk_status dequant_check_float(const rlxvk_graph *g, const node *n, uint32_t index)
{
    return op_require_dtype(g, n, index, RLXVK_F32, "insert a cast");
}

uint32_t dequant_alignment(uint32_t addresses)
{
    return addresses & (~addresses + 1);
}

uint32_t dequant_last_word(const operand *packed)
{
    return packed->size ? (uint32_t)((packed->size - 1) / 4) : 0;
}

uint32_t dequant_tile_height(uint32_t rows)
{
    return rows <= 16 ? 1 : rows <= 32 ? 2 : 4;
}

#define KERNELS_OF_CODES(name) KERNEL_##name, KERNEL_##name##_SMALL, KERNEL_##name##_LARGE
#define KERNELS(name)                                                                              \
    {                                                                                              \
        KERNELS_OF_CODES(name), KERNEL_##name##_GRID                                               \
    }
static const uint16_t kernels[][4] = {
    [DEQUANT_OF_MATVEC] = KERNELS(DEQUANT_MATVEC),
    [DEQUANT_OF_MATVEC_INTEGER] = {KERNEL_DEQUANT_MATVEC_INTEGER}, /* only for group common */
    [DEQUANT_OF_MATMUL] = KERNELS(DEQUANT_MATMUL),
    [DEQUANT_OF_MATRIX_F16] = KERNELS(DEQUANT_MATRIX_F16),
    [DEQUANT_OF_MATRIX_BF16] = KERNELS(DEQUANT_MATRIX_BF16),
    [DEQUANT_OF_FRAGMENT] = {KERNEL_DEQUANT_FRAGMENT_F16}, /* likewise */
    [DEQUANT_OF_PANEL_F16] = {KERNELS_OF_CODES(DEQUANT_PANEL_F16)},
    [DEQUANT_OF_PANEL_BF16] = {KERNELS_OF_CODES(DEQUANT_PANEL_BF16)},
    [DEQUANT_OF_GATHER] = KERNELS(DEQUANT_GATHER),
};

void dequant_set_format(dispatch *d, uint32_t type, const operand *packed)
{
    const quant_format *format = quant_format_find(type);
    uint32_t alignment = dequant_alignment(format->block_bytes | packed->offset | 16);
    SET_CONSTANTS(d, {DEQUANT_FORMAT, type}, {DEQUANT_ALIGNMENT, alignment},
                  {DEQUANT_BLOCK_BYTES, format->block_bytes},
                  {DEQUANT_BLOCK_UNITS, format->block_elements / DEQUANT_UNIT_ELEMENTS},
                  {DEQUANT_DISTANCE, quant_format_find(type)->distance},
                  {DEQUANT_AFFINE, format->affine});
}

void dequant_set_kernel(const lowering *l, dispatch *d, enum dequant_kernel kernel)
{
    d->kernel = kernels[kernel][quant_format_find(d->constants[DEQUANT_FORMAT])->group];
    SET_CONSTANTS(d, {PACKED_HALF_SUBNORMALS, l->profile->half_subnormals});
}

operand dequant_grid_operand(const lowering *l, uint32_t id, uint32_t index, const operand *packed)
{
    return graph_node(l->graph, id)->input_count > index ? lower_input(l, id, index) : *packed;
}

static double largest_of(const float *values, uint64_t count)
{
    double largest = 0;
    for (uint64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)values[i]));
    return largest;
}

double dequant_cut_bound(rlxvk_precision precision, uint64_t rows, uint64_t k, double x, double w)
{
    return dequant_cuts(precision, rows) && isfinite(x * w) ? 0x1p-22 * (double)k * x * w : 0;
}

static double precision_bound(rlxvk_precision precision, uint64_t rows, uint64_t k, double weight,
                              double x, double w)
{
    return matmul_precision_bound(precision, (double)k, weight, x, w) +
           dequant_cut_bound(precision, rows, k, x, w);
}

void dequant_product_column(const host_call *c, const float *row, const float *magnitude,
                            uint64_t k, uint64_t column, uint64_t columns)
{
    uint64_t rows = columns ? shape_numel(&c->node->shape) / columns : 0;
    double unit = 0x1p-24 * (4 + 2 * sqrt((double)k));
    for (uint64_t r = 0; r < rows; r++) {
        const float *x = c->inputs[0].words + r * k;
        double sum = 0, weight = 0;
        for (uint64_t p = 0; p < k; p++) {
            sum += (double)x[p] * row[p];
            weight += fabs((double)x[p]) * magnitude[p];
        }
        c->out[r * columns + column] = sum;
        if (c->bound)
            c->bound[r * columns + column] = unit * weight;
        if (c->bound && c->precision != RLXVK_PRECISION_F32)
            c->bound[r * columns + column] += precision_bound(c->precision, rows, k, weight,
                                                              largest_of(x, k), largest_of(row, k));
    }
}

rlxvk_status dequant_decode_row(uint32_t type, const uint8_t *packed, uint64_t k, float *out)
{
    rlxvk_status status;
    TRY(quant_decode_row(type, packed, k, out));
    TRY(quant_decode_row_magnitude(type, packed, k, out + k));
    for (uint64_t p = 0; type == QUANT_MXFP4 && p < k; p++) /* no other has such codes */
        if (isnan(out[p]))
            out[p] = out[k + p] = 0;
error:
    return status;
}
