/*
 * Products of few rows with packed weights on the device's matrix units (dequant_fragment_f16).
 * Lanes give the weights to the units directly from their registers. x is packed in the same order
 * as the lanes have the weights (fragment_pack). If the format has mins, sums of x are packed, too.
 */
#include "args/matmul.h"
#include "args/packed.h"
#include "constants/packed.h"
#include "op/packed/dequant.h"
#include "op/packed/quant_format.h"

#define PACK_GROUP 128

static dequant_fragment_shape shape_of(const matmul_shape *s, uint32_t format)
{
    bool exact = format == RLXVK_Q4_K || format == RLXVK_Q5_K;
    return (dequant_fragment_shape){.m = s->m, .n = s->n, .rounds = !exact};
}

static const dequant_fragment_class *choose(const lowering *l, const matmul_shape *s,
                                            uint32_t format)
{
    dequant_fragment_shape shape = shape_of(s, format);
    return dequant_fragment_choose(&shape, l->profile,
                                   variant_named(&l->variants, CHOICE_dequant_fragment));
}

bool dequant_in_fragments(const lowering *l, const matmul_shape *s, uint32_t format)
{
    return l->precision == RLXVK_PRECISION_F16 &&
           quant_format_find(format)->group == DEQUANT_COMMON && s->m > 0 && s->n > 0 && s->k > 0 &&
           choose(l, s, format);
}

uint32_t dequant_lane_rows(matrix_shape unit, const device_profile *profile)
{
    return MATRIX_LANES * unit.m / profile->subgroup_size;
}

static uint64_t count_chunks(const matmul_shape *s)
{
    return divide_up(s->k, FRAGMENT_CHUNK);
}

static rlxvk_status pack(lowering *l, uint32_t id, const matmul_request *r,
                         const quant_format *format, operand *out)
{
    const matmul_shape *s = &r->problem.shape;
    uint64_t chunks = count_chunks(s);
    uint64_t halves = FRAGMENT_CHUNK + (format->affine ? 2 * FRAGMENT_SUMS : 0);
    struct fragment_pack_args args = {.rows = (uint32_t)s->m,
                                      .units = (uint32_t)(s->k / DEQUANT_UNIT_ELEMENTS),
                                      .chunks = (uint32_t)chunks,
                                      .x_offset = r->a.offset};
    dispatch d = {.kernel = KERNEL_FRAGMENT_PACK, .node = id};
    rlxvk_status status;
    TRY(lower_temporary(l, 2 * halves * chunks * round_up(s->m, FRAGMENT_ROWS), out));
    const operand operands[] = {r->a, *out};
    SET_CONSTANTS(&d, {LOCAL_SIZE, PACK_GROUP}, {FRAGMENT_PACK_AFFINE, format->affine},
                  {FRAGMENT_PACK_UNIT_N, l->profile->matrix_f16.n},
                  {FRAGMENT_PACK_UNIT_K, l->profile->matrix_f16.k},
                  {FRAGMENT_PACK_ROWS, dequant_lane_rows(l->profile->matrix_f16, l->profile)},
                  {FRAGMENT_PACK_DISTANCE, format->distance},
                  {FRAGMENT_PACK_QUADS, r->a.offset % 4 == 0});
    lower_groups(l, &d, groups_for(s->m * chunks * (FRAGMENT_CHUNK / 4), PACK_GROUP));
    TRY(lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands)));
    out->access = ACCESS_READ;
error:
    return status;
}

rlxvk_status dequant_lower_fragment(lowering *l, uint32_t id, const matmul_request *r,
                                    const struct dequant_product_args *product,
                                    const operand operands[5])
{
    const dequant_attributes *a = graph_node(l->graph, id)->attributes;
    const matmul_shape *s = &r->problem.shape;
    const dequant_fragment_class *c = choose(l, s, a->format);
    dequant_fragment_shape shape = shape_of(s, a->format);
    matrix_shape unit = l->profile->matrix_f16;
    struct dequant_fragment_args args = {
        DEQUANT_WEIGHTS(product),
        .y_offset = r->y.offset,
        .chunks = (uint32_t)count_chunks(s),
        .ends = {product->ends[0], product->ends[1]},
    };
    dispatch d = {.node = id,
                  .variant = dequant_shown(&l->variants, DEQUANT_FORM_FRAGMENT, c->row.name)};
    operand bound[] = {operands[0], r->a, r->y};
    rlxvk_status status;
    TRY(pack(l, id, r, quant_format_find(a->format), &bound[1]));
    dequant_set_format(&d, a->format, &operands[0]);
    dequant_set_kernel(l, &d, DEQUANT_OF_FRAGMENT);
    SET_CONSTANTS(&d, {LOCAL_SIZE, c->splits * l->profile->subgroup_size},
                  {DEQUANT_FRAGMENT_F16_UNIT_M, unit.m}, {DEQUANT_FRAGMENT_F16_UNIT_N, unit.n},
                  {DEQUANT_FRAGMENT_F16_UNIT_K, unit.k},
                  {DEQUANT_FRAGMENT_F16_ROWS, dequant_lane_rows(unit, l->profile)},
                  {DEQUANT_FRAGMENT_F16_DIRECT, l->matrix_in_lanes && unit.k == unit.n},
                  {DEQUANT_FRAGMENT_F16_SPLITS, c->splits});
    lower_groups(l, &d, dequant_fragment_groups(&shape, l->profile));
    TRY(lower_emit(l, &d, &args, sizeof args, bound, ARRAY_COUNT(bound)));
error:
    return status;
}
