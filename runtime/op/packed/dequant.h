/* Shared by the ops on packed weights: checks, kernel constants, grids, and the product on the
 * host. */
#ifndef RLXVK_DEQUANT_H
#define RLXVK_DEQUANT_H

#include "args/packed.h"
#include "op/matmul/experts.h"
#include "op/matmul/matmul.h"
#include "op/packed/dequant_choice.h"

typedef struct dequant_attributes {
    uint32_t format; /* GGUF tensor type */
    int64_t k;
} dequant_attributes;

typedef struct expert_attributes { /* dequant_grouped_matmul, dequant_moe_weights */
    uint32_t format;               /* GGUF tensor type */
    int64_t k, n, experts;
    experts_part part; /* only dequant_grouped_matmul */
} expert_attributes;

#define DEQUANT_UNIT_ELEMENTS 32
#define DEQUANT_RUN           16 /* elements; a unit is two runs (glsl/packed/units.glsl) */

/* ---- Checks of infer ---- */

/* Fails if the format has no kernels, or if the node does not have `operands` operands, plus a grid
 * if the format needs one. */
rlxvk_status dequant_check_format(const node *n, uint32_t type, uint32_t operands);
rlxvk_status dequant_check_packed(const rlxvk_graph *g, const node *n, uint32_t index);
rlxvk_status dequant_check_float(const rlxvk_graph *g, const node *n, uint32_t index);
/* Counts the rows of k elements in the packed operand. If k is 0, the bytes do not determine the
 * count, so the leading dims do. */
rlxvk_status dequant_count_rows(const rlxvk_graph *g, const node *n, uint32_t index,
                                const dequant_attributes *a, uint64_t *out_rows);

/* ---- Lowering ---- */

/* The largest power of two that divides all of some values; `addresses` is their bitwise or. */
uint32_t dequant_alignment(uint32_t addresses);
uint32_t dequant_last_word(const operand *packed);
/* Sets the constants of dequant.glsl, which every kernel that includes it has. */
void dequant_set_format(dispatch *d, uint32_t type, const operand *packed);
/* Chooses the kernel for the format's group. Call dequant_set_format first. The kernel for formats
 * with a grid has one more operand. */
enum dequant_kernel {
    DEQUANT_OF_MATVEC,
    DEQUANT_OF_MATVEC_INTEGER, /* only if the row of dequant_choice.h has integers */
    DEQUANT_OF_MATMUL,
    DEQUANT_OF_MATRIX_F16,
    DEQUANT_OF_MATRIX_BF16,
    DEQUANT_OF_FRAGMENT,
    DEQUANT_OF_PANEL_F16,
    DEQUANT_OF_PANEL_BF16,
    DEQUANT_OF_GATHER
};
void dequant_set_kernel(const lowering *l, dispatch *d, enum dequant_kernel kernel);
/* Sets the kernel, workgroup and constants of dequant_gather. Call dequant_set_format first. With
 * DEQUANT_BLOCKS, the blocks are those of the precision's matrix units. */
void dequant_set_gather(const lowering *l, dispatch *d, uint32_t order, uint32_t storage);
/* The grid, which is operand `index` of the node, its last. If the format has no grid, the packed
 * operand stands in for it. */
operand dequant_grid_operand(const lowering *l, uint32_t id, uint32_t index, const operand *packed);
/* Emit the two kernels of products. Call dequant_set_format first. Operands: w, x, y, the indices
 * or the plan of experts, the grid. Without experts, w stands in for the indices. `parts` are those
 * of a projection of one row, or NULL. The tiled kernel computes `blocks` blocks of a tile's
 * rows. */
rlxvk_status dequant_lower_matvec(lowering *l, dispatch *d, const struct dequant_product_args *args,
                                  const operand operands[5], const projection_parts *parts);
rlxvk_status dequant_lower_tiled(lowering *l, dispatch *d, const struct dequant_product_args *args,
                                 const operand operands[5], const dequant_tile_class *c,
                                 uint64_t blocks);
/* Do the kernels of dequant_matrix and dequant_panel support the format? */
bool dequant_on_matrices(uint32_t format);
/* Can dequant_lower_matrix do the product in the lowering's precision? */
bool dequant_on_units(const lowering *l, const matmul_shape *shape, uint32_t format);
/* Emits the product on matrix units; weights are decoded on the way into shared memory. In
 * dequant_matrix.c. */
rlxvk_status dequant_lower_matrix(lowering *l, uint32_t id, const matmul_request *r,
                                  const struct dequant_product_args *args,
                                  const operand operands[5]);
/* The same with weights in registers: can it do the product, and the product itself. In
 * dequant_fragment.c. */
bool dequant_in_fragments(const lowering *l, const matmul_shape *shape, uint32_t format);
rlxvk_status dequant_lower_fragment(lowering *l, uint32_t id, const matmul_request *r,
                                    const struct dequant_product_args *args,
                                    const operand operands[5]);
/* The same for many rows of x. In dequant_panel.c. */
bool dequant_in_panels(const lowering *l, const matmul_shape *shape, uint32_t format);
rlxvk_status dequant_lower_panel(lowering *l, uint32_t id, const matmul_request *r,
                                 const struct dequant_product_args *args,
                                 const operand operands[5]);
/* The part of the product's arguments that these three take over, as members of an initializer. */
#define DEQUANT_WEIGHTS(p)                                                                         \
    .m = (p)->m, .n = (p)->n, .units = (p)->units, .row_bytes = (p)->row_bytes,                    \
    .last_word = (p)->last_word, .w_offset = (p)->w_offset
/* The ends of y's column parts. If K is split, the partial sums are whole, because the kernel that
 * joins them divides y. */
static inline void dequant_set_ends(const struct dequant_product_args *p, uint64_t splits,
                                    uint32_t out[2])
{
    for (int i = 0; i < 2; i++)
        out[i] = splits > 1 ? p->n : p->ends[i];
}
/* Over how many rows of a unit's matrix a lane's elements spread. */
uint32_t dequant_lane_rows(matrix_shape unit, const device_profile *profile);
/* The arguments of a dequant_matmul with these attributes and operands. */
struct dequant_product_args dequant_product_arguments(const rlxvk_shape *x, uint64_t columns,
                                                      const dequant_attributes *a,
                                                      const operand operands[5]);
/* The tiles for so many rows of x. With experts, it is the number of rows for each expert. */
const dequant_tile_class *dequant_tile(const lowering *l, uint64_t rows);
uint32_t dequant_tile_height(uint32_t rows);
/* Lowers a dequant_matmul of F32, F16 or BF16 rows. In dequant_scaled.c. */
rlxvk_status dequant_lower_plain(lowering *l, uint32_t id);

void dequant_describe(const node *n, text *out);
/* The check_content of ops with dequant_attributes. It never sees the grid, their other raw
 * operand, because that is a constant. */
rlxvk_status dequant_check_content(const node *n, uint32_t operand, const void *data,
                                   uint64_t count);

/* The constant that holds the format's grid. If the format has none, RLXVK_NONE. */
rlxvk_tensor dequant_grid(rlxvk_graph *g, uint32_t type);

/* May a product of so many rows with packed weights cut x to 23 bits (dequant_matvec_integer.comp)?
 * Do not ask for weights of experts. */
static inline bool dequant_cuts(rlxvk_precision precision, uint64_t rows)
{
    return rows == 1 && (precision == RLXVK_PRECISION_F16 || precision == RLXVK_PRECISION_BF16);
}
/* How much the cut may add to the error of k products. x and w are the largest magnitudes of x and
 * of the weights. */
double dequant_cut_bound(rlxvk_precision precision, uint64_t rows, uint64_t k, double x, double w);

/* Decodes one row for a product: k weights, then their magnitudes, |scale term| + |min term|. If a
 * weight's scale is the code of NaN, the weight is 0. */
rlxvk_status dequant_decode_row(uint32_t type, const uint8_t *packed, uint64_t k, float *out);
/* Computes column `column` of the product with operand 0 from k decoded weights, on the host. The
 * bound of an output is 2^-24 (4 + 2 sqrt k) * sum |x| (|scale term| + |min term|), plus the error
 * that the precision adds. */
void dequant_product_column(const host_call *c, const float *row, const float *magnitude,
                            uint64_t k, uint64_t column, uint64_t columns);

#endif
