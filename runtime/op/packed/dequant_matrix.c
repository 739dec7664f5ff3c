/*
 * Products with packed weights on the device's matrix units. x is packed to 16 bits (matrix_pack),
 * with K in the order of the weights' units. The product decodes the weights on the way into shared
 * memory (dequant_matrix.glsl). If K is split, matmul_sum joins the parts.
 */
#include "args/packed.h"
#include "constants/packed.h"
#include "op/packed/dequant.h"
#include "op/matmul/matrix_unit_product.h"
#include "op/packed/quant_format.h"

#define MATRIX_FORMAT(type, NAME)                                                                  \
    _Static_assert(QUANT_##NAME == (type), #NAME " has another number in format.def");
#include "args/matrix_format.def"

/* Formats that the kernels support. A newer format may be missing. */
static const bool known[QUANT_TYPES] = {
#define MATRIX_FORMAT(type, NAME) [type] = true,
#include "args/matrix_format.def"
};

bool dequant_on_matrices(uint32_t format)
{
    return known[format];
}

bool dequant_on_units(const lowering *l, const matmul_shape *shape, uint32_t format)
{
    return dequant_on_matrices(format) && shape->m > 0 && shape->n > 0 && shape->k > 0 &&
           matrix_unit_packed_choose(shape, l->precision, l->profile, VARIANT_NONE);
}

static void set_constants(const lowering *l, const matrix_class *c, dispatch *d)
{
    matrix_shape unit = matrix_unit(l->precision, l->profile);
    SET_CONSTANTS(d, {LOCAL_SIZE, matrix_unit_threads(c, l->profile)},
                  {DEQUANT_MATRIX_AHEAD, c->ahead}, {DEQUANT_MATRIX_BAND, MATMUL_BAND},
                  {DEQUANT_MATRIX_TILE_M, c->tile_m}, {DEQUANT_MATRIX_TILE_N, c->tile_n},
                  {DEQUANT_MATRIX_TILE_K, c->tile_k}, {DEQUANT_MATRIX_PART_M, c->part_m},
                  {DEQUANT_MATRIX_PART_N, c->part_n}, {DEQUANT_MATRIX_UNIT_M, unit.m},
                  {DEQUANT_MATRIX_UNIT_N, unit.n}, {DEQUANT_MATRIX_UNIT_K, unit.k});
    if (l->precision == RLXVK_PRECISION_F16)
        SET_CONSTANTS(d, {DEQUANT_MATRIX_F16_HALF_ROUNDING, l->profile->half_rounding});
}

static const matrix_class *choose(lowering *l, uint32_t format, const matmul_shape *s)
{
    char tag[VARIANT_TAG] = "";
    text_append(&(text){tag, sizeof tag, 0}, "%s_%s", rlxvk_precision_name(l->precision),
                quant_format_find(format)->name);
    size_t row =
        variant_choose(l, CHOICE_matrix_packed, tag, (uint64_t[VARIANT_DIMS]){s->m, s->n, s->k, 0});
    return matrix_unit_packed_choose(s, l->precision, l->profile, row);
}

/* Emits only the product, into y. */
static rlxvk_status emit_product(lowering *l, uint32_t id, const matmul_shape *s,
                                 const matrix_class *c, const struct dequant_product_args *product,
                                 const operand operands[4], uint32_t format)
{
    uint64_t slice = matrix_slice(c, s, l->profile), splits = divide_up(s->k, slice);
    struct dequant_matrix_args args = {
        DEQUANT_WEIGHTS(product),
        .y_offset = operands[2].offset,
        .k_octets = (uint32_t)(round_up(s->k, c->tile_k) / 8),
        .slice_octets = (uint32_t)(slice / 8),
        .splits = (uint32_t)splits,
    };
    dequant_set_ends(product, splits, args.ends);
    dispatch d = {.node = id,
                  .variant = dequant_shown(&l->variants, DEQUANT_FORM_MATRIX, c->row.name)};
    dequant_set_format(&d, format, &operands[0]);
    dequant_set_kernel(l, &d,
                       l->precision == RLXVK_PRECISION_BF16 ? DEQUANT_OF_MATRIX_BF16
                                                            : DEQUANT_OF_MATRIX_F16);
    set_constants(l, c, &d);
    lower_groups(l, &d, splits * divide_up(s->m, c->tile_m) * divide_up(s->n, c->tile_n));
    d.order.run = splits == 1 ? MATMUL_BAND * (uint32_t)divide_up(s->n, c->tile_n) : 0;
    return lower_emit(l, &d, &args, sizeof args, operands, kernel_table[d.kernel].binding_count);
}

rlxvk_status dequant_lower_matrix(lowering *l, uint32_t id, const matmul_request *r,
                                  const struct dequant_product_args *args,
                                  const operand operands[5])
{
    const dequant_attributes *a = graph_node(l->graph, id)->attributes;
    const matmul_shape *s = &r->problem.shape;
    const matrix_class *c = choose(l, a->format, s);
    uint64_t splits = divide_up(s->k, matrix_slice(c, s, l->profile));
    operand bound[] = {operands[0], r->a, r->y, operands[4]};
    matrix_unit_packing packing = {c->tile_m, c->tile_k, quant_format_find(a->format)->distance,
                                   false};
    rlxvk_status status;
    TRY(matrix_unit_pack_emit(l, id, r, &packing, &bound[1]));
    if (splits > 1)
        TRY(lower_temporary(l, splits * s->m * s->n * sizeof(float), &bound[2]));
    TRY(emit_product(l, id, s, c, args, bound, a->format));
    if (splits > 1)
        TRY(matmul_emit_sum(l, id, r, bound[2], splits));
error:
    return status;
}
