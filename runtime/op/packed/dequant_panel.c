/*
 * Products of many rows with packed weights on the device's matrix units (dequant_panel.glsl).
 * Lanes give the weights to the units directly from their registers. x is packed to 16 bits in the
 * same order as the lanes have the weights (matrix_pack). If K is split, matmul_sum joins the
 * parts.
 */
#include "args/matmul.h"
#include "args/packed.h"
#include "constants/packed.h"
#include "op/matmul/matrix_unit_product.h"
#include "op/packed/dequant.h"
#include "op/packed/quant_format.h"

_Static_assert(PANEL_GROUP == MATRIX_LANES * DEQUANT_UNIT_ELEMENTS && PANEL_GROUP == 2 * PANEL_STEP,
               "dequant_panel has a group in two steps");

static const dequant_panel_class *choose(const lowering *l, const matmul_shape *s)
{
    return dequant_panel_choose(s, l->precision, l->profile,
                                variant_named(&l->variants, CHOICE_dequant_panel));
}

/* Formats with a grid are excluded, because it takes too long to look up their codes in registers.
 * On an H200, 512 x 4096 x 14336 took 2 ms this way, and takes 0.43 ms through shared memory. */
bool dequant_in_panels(const lowering *l, const matmul_shape *s, uint32_t format)
{
    return dequant_on_matrices(format) && quant_format_find(format)->group != DEQUANT_GRID &&
           s->m > 0 && s->n > 0 && s->k > 0 && choose(l, s);
}

static void set_constants(const lowering *l, const dequant_panel_class *c, dispatch *d)
{
    matrix_shape unit = matrix_unit(l->precision, l->profile);
    SET_CONSTANTS(d, {LOCAL_SIZE, c->subgroups * l->profile->subgroup_size},
                  {DEQUANT_PANEL_UNIT_M, unit.m}, {DEQUANT_PANEL_UNIT_N, unit.n},
                  {DEQUANT_PANEL_UNIT_K, unit.k},
                  {DEQUANT_PANEL_ROWS, dequant_lane_rows(unit, l->profile)},
                  {DEQUANT_PANEL_DIRECT, l->matrix_in_lanes && unit.k == unit.n},
                  {DEQUANT_PANEL_PANEL_ROWS, c->rows}, {DEQUANT_PANEL_PART_W, DEQUANT_PANEL_PART},
                  {DEQUANT_PANEL_BAND, MATMUL_BAND});
    if (l->precision == RLXVK_PRECISION_F16)
        SET_CONSTANTS(d, {DEQUANT_PANEL_F16_NEAREST, l->profile->half_rounding});
}

rlxvk_status dequant_lower_panel(lowering *l, uint32_t id, const matmul_request *r,
                                 const struct dequant_product_args *product,
                                 const operand operands[5])
{
    const dequant_attributes *a = graph_node(l->graph, id)->attributes;
    const matmul_shape *s = &r->problem.shape;
    const dequant_panel_class *c = choose(l, s);
    uint64_t slice = dequant_panel_slice(c, s, l->profile), groups = divide_up(s->k, PANEL_GROUP);
    uint64_t splits = divide_up(groups, slice), panels = divide_up(s->m, c->rows);
    uint64_t tiles_w = divide_up(s->n, dequant_panel_columns(c));
    matrix_unit_packing packing = {c->rows, PANEL_GROUP, quant_format_find(a->format)->distance,
                                   true};
    operand bound[] = {operands[0], r->a, r->y};
    dispatch d = {.node = id,
                  .variant = dequant_shown(&l->variants, DEQUANT_FORM_PANEL, c->row.name)};
    rlxvk_status status;
    TRY(matrix_unit_pack_emit(l, id, r, &packing, &bound[1]));
    if (splits > 1)
        TRY(lower_temporary(l, splits * s->m * s->n * sizeof(float), &bound[2]));
    struct dequant_panel_args args = {
        DEQUANT_WEIGHTS(product),
        .y_offset = bound[2].offset,
        .k_octets = (uint32_t)(groups * PANEL_GROUP / 8),
        .groups = (uint32_t)groups,
        .slice = (uint32_t)slice,
        .splits = (uint32_t)splits,
    };
    dequant_set_ends(product, splits, args.ends);
    dequant_set_format(&d, a->format, &operands[0]);
    dequant_set_kernel(l, &d,
                       l->precision == RLXVK_PRECISION_BF16 ? DEQUANT_OF_PANEL_BF16
                                                            : DEQUANT_OF_PANEL_F16);
    set_constants(l, c, &d);
    lower_groups(l, &d, splits * panels * tiles_w);
    d.order.run = splits == 1 ? MATMUL_BAND * (uint32_t)tiles_w : 0;
    TRY(lower_emit(l, &d, &args, sizeof args, bound, ARRAY_COUNT(bound)));
    if (splits > 1)
        TRY(matmul_emit_sum(l, id, r, bound[2], splits));
error:
    return status;
}
