/* What the ops on packed weights share: checks, the constants of their kernels, grids, the host
 * product. */
#ifndef RLXVK_DEQUANT_H
#define RLXVK_DEQUANT_H

#include "args/packed.h"
#include "op/matmul/matmul.h"
#include "op/packed/dequant_select.h"

typedef struct dequant_attributes {
    uint32_t format; /* GGUF tensor type */
    int64_t k;
} dequant_attributes;

#define DEQUANT_UNIT_ELEMENTS 32

/* ---- Checks of infer ---- */

/* The format has kernels, and the node, besides its `operands`, a grid where the format needs one.
 */
rlxvk_status dequant_check_format(const node *n, uint32_t type, uint32_t operands);
rlxvk_status dequant_check_packed(const rlxvk_graph *g, const node *n, uint32_t index);
rlxvk_status dequant_check_float(const rlxvk_graph *g, const node *n, uint32_t index);
/* Rows of k elements in the packed operand. With k = 0 the bytes cannot tell: its leading dims do.
 */
rlxvk_status dequant_count_rows(const rlxvk_graph *g, const node *n, uint32_t index,
                                const dequant_attributes *a, uint64_t *out_rows);

/* ---- Lowering ---- */

/* The largest power of two that divides every one of the values or-ed together. */
uint32_t dequant_alignment(uint32_t addresses);
uint32_t dequant_power_of_two(uint32_t value); /* the least that is not below the value */
uint32_t dequant_last_word(const operand *packed);
/* The constants of dequant.glsl, of every kernel that includes it. */
void dequant_set_format(dispatch *d, uint32_t type, const operand *packed);
/* Chooses the kernel of the format's group, after dequant_set_format. That of the grids has one
 * operand more. */
enum dequant_kernel {
    DEQUANT_OF_MATVEC,
    DEQUANT_OF_MATVEC_INTEGER, /* only where a row of dequant_select.h says integers */
    DEQUANT_OF_MATMUL,
    DEQUANT_OF_MATRIX_F16,
    DEQUANT_OF_MATRIX_BF16,
    DEQUANT_OF_FRAGMENT,
    DEQUANT_OF_PANEL_F16,
    DEQUANT_OF_PANEL_BF16,
    DEQUANT_OF_GATHER
};
void dequant_set_kernel(const lowering *l, dispatch *d, enum dequant_kernel kernel);
/* Operand `index` of the node, its last; the packed one again where the format has no grid. */
operand dequant_grid_operand(const lowering *l, uint32_t id, uint32_t index, const operand *packed);
/* The two kernels of products, after dequant_set_format. Operands: w, x, y, the indices or the plan
 * of experts (without experts w again), the grid. `parts`: of a projection of one row, or NULL. The
 * tiled one: `blocks` of a tile's rows. */
rlxvk_status dequant_lower_matvec(lowering *l, dispatch *d, const struct dequant_product_args *args,
                                  const operand operands[5], const projection_parts *parts);
rlxvk_status dequant_lower_tiled(lowering *l, dispatch *d, const struct dequant_product_args *args,
                                 const operand operands[5], const dequant_tile_class *c,
                                 uint64_t blocks);
/* Whether the kernels of dequant_matrix and dequant_panel know the format. */
bool dequant_on_matrices(uint32_t format);
/* Whether dequant_lower_matrix can do the product, in the lowering's precision. */
bool dequant_on_units(const lowering *l, const matmul_shape *shape, uint32_t format);
/* The product on matrix units, unpacked on the way into shared memory; in dequant_matrix.c. */
rlxvk_status dequant_lower_matrix(lowering *l, uint32_t id, const matmul_request *r,
                                  const struct dequant_product_args *args,
                                  const operand operands[5]);
/* The same with weights in registers: whether it can, and the product; in dequant_fragment.c. */
bool dequant_in_fragments(const lowering *l, const matmul_shape *shape, uint32_t format);
rlxvk_status dequant_lower_fragment(lowering *l, uint32_t id, const matmul_request *r,
                                    const struct dequant_product_args *args,
                                    const operand operands[5]);
/* The same for many rows of x; in dequant_panel.c. */
bool dequant_in_panels(const lowering *l, const matmul_shape *shape, uint32_t format);
rlxvk_status dequant_lower_panel(lowering *l, uint32_t id, const matmul_request *r,
                                 const struct dequant_product_args *args,
                                 const operand operands[5]);
/* What the arguments of these three have of the product's: members of an initializer. */
#define DEQUANT_WEIGHTS(p)                                                                         \
    .m = (p)->m, .n = (p)->n, .units = (p)->units, .row_bytes = (p)->row_bytes,                    \
    .last_word = (p)->last_word, .w_offset = (p)->w_offset
/* The ends of y's parts, or of partial sums, which have none: who joins them divides y. */
static inline void dequant_set_ends(const struct dequant_product_args *p, uint64_t splits,
                                    uint32_t out[2])
{
    for (int i = 0; i < 2; i++)
        out[i] = splits > 1 ? p->n : p->ends[i];
}
/* Rows of a matrix of the units, of which a lane holds a part. */
uint32_t dequant_lane_rows(matrix_shape unit, const device_profile *profile);
/* The arguments of a dequant_matmul with the attributes, whose operands these are. */
struct dequant_product_args dequant_product_arguments(const rlxvk_shape *x, uint64_t columns,
                                                      const dequant_attributes *a,
                                                      const operand operands[5]);
/* The tiles for so many rows, of an expert where there are experts. */
const dequant_tile_class *dequant_tile(const lowering *l, uint64_t rows);
uint32_t dequant_tile_height(uint32_t rows);
/* A dequant_matmul of F32, F16 or BF16 rows; in dequant_scaled.c. */
rlxvk_status dequant_lower_plain(lowering *l, uint32_t id);

void dequant_describe(const node *n, text *out);
/* check_content of the ops with dequant_attributes. Their grid, the other raw operand, is a
 * constant and never looked at. */
rlxvk_status dequant_check_content(const node *n, uint32_t operand, const void *data,
                                   uint64_t count);

/* The constant that holds the format's grid; RLXVK_NONE where it has none. */
rlxvk_tensor dequant_grid(rlxvk_graph *g, uint32_t type);

/* Whether a product of so many rows by packed weights that are no experts' may cut x to 23 bits
 * (dequant_matvec_integer.comp). */
static inline bool dequant_cuts(rlxvk_precision precision, uint64_t rows)
{
    return rows == 1 && (precision == RLXVK_PRECISION_F16 || precision == RLXVK_PRECISION_BF16);
}
/* What that may add to the error of k products, of these largest magnitudes of x and the weights.
 */
double dequant_cut_bound(rlxvk_precision precision, uint64_t rows, uint64_t k, double x, double w);

/* One row decoded for a product: k weights, then their magnitudes, |scale term| + |min term|; a
 * weight whose scale is the code of NaN is 0. */
rlxvk_status dequant_decode_row(uint32_t type, const uint8_t *packed, uint64_t k, float *out);
/* Column `column` of the product with operand 0, from k decoded weights. The bound of an output is
 * 2^-24 (4 + 2 sqrt k) * sum |x| (|scale term| + |min term|), and what the precision adds. */
void dequant_product_column(const host_call *c, const float *row, const float *magnitude,
                            uint64_t k, uint64_t column, uint64_t columns);

#endif
