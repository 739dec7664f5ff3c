/*
 * See conv_matrix.h. A convolution takes these steps:
 *
 *   matrix_pack            packs x to octets of channels, and dy for a gradient of weights; if it
 *                          does not pay, conv_matrix_* reads x as it is
 *   conv_matrix_filters    packs w
 *   conv_matrix_*          multiplies and applies a light epilogue; conv_matrix_weight_* for a
 *                          gradient of weights
 *   conv_sum               sums the parts if K is split, and applies any other epilogue
 *
 * Operands are rounded to f16 or bf16, and sums are f32. So |error| is at most f32's bound + 2^-10
 * S in f16, and 2^-7 S in bf16, with S = sum |w x|. Operands beyond the range of the 16-bit type
 * become infinite. A weight that is not finite makes NaN also where its tap is outside x, because
 * that tap counts as 0. Split mode stays f32, as do groups with few channels.
 */
#include "op/conv/conv_matrix.h"
#include "args/conv_matrix.h"
#include "args/elementwise.h"
#include "args/matmul.h"
#include "constants/conv.h"
#include "op/activation.h"
#include "op/conv/conv_matrix_choice.h"
#include "op/conv/conv_matrix_order.h"
#include "op/matmul/matrix_unit_product.h"

#include <string.h>

#define LEAST_SIDE    16 /* with fewer rows, columns or terms, a unit is hardly filled */
#define FILTERS_GROUP 128
#define MOST_ELEMENTS (1u << 22) /* of K; the tables list its octets, or even these */

static uint64_t product_of(const uint32_t sizes[CONV_AXES])
{
    return (uint64_t)sizes[0] * sizes[1] * sizes[2];
}

/* The sizes with channels of x padded to octets. */
static conv_matrix_shape shape_of(const conv_problem *p)
{
    const conv_shape *s = &p->shape;
    uint64_t cells = product_of(p->args.in_size), channels = p->args.channels;
    conv_matrix_shape shape = {.m = s->m,
                               .n = s->n,
                               .k = s->k,
                               .k_elements = s->k,
                               .groups = s->groups,
                               .to_pack = p->images * p->args.groups * channels * cells,
                               .weight = p->swapped,
                               .octets = channels % 8 == 0};
    if (p->swapped) {
        shape.n = product_of(p->args.out_size) * round_up(p->images, 8);
        shape.to_pack += p->args.groups * channels * s->m * product_of(p->args.kernel);
    } else
        shape.k = s->k / MAX(channels, 1u) * round_up(channels, 8);
    return shape;
}

bool conv_matrix_wanted(const lowering *l, const conv_problem *p)
{
    const conv_shape *s = &p->shape;
    conv_matrix_shape shape = shape_of(p);
    uint64_t channels = p->swapped ? p->images : p->args.channels;
    if (variant_named(&l->variants, CHOICE_conv) != VARIANT_NONE &&
        variant_named(&l->variants, CHOICE_conv_matrix) == VARIANT_NONE)
        return false;
    return s->m >= LEAST_SIDE && s->n >= LEAST_SIDE && s->k >= LEAST_SIDE &&
           (p->args.groups == 1 || channels >= LEAST_SIDE) &&
           (p->swapped || product_of(p->args.kernel) * channels <= MOST_ELEMENTS) &&
           conv_matrix_choose(&shape, l->precision, l->profile, VARIANT_NONE);
}

/* ---- Operands ---- */

/* Packs [matrices, channels, cells] to cells of octets of channels. */
static rlxvk_status pack_cells(lowering *l, uint32_t id, operand source, uint64_t matrices,
                               uint64_t channels, uint64_t cells, operand *out)
{
    const matmul_request r = {
        .a = source,
        .problem = {
            .shape = {.m = cells, .n = 1, .k = channels, .batch = matrices, .transpose_a = true},
            .axes = {{.extent = matrices, .a_stride = channels * cells}},
            .axis_count = 1}};
    const matrix_unit_packing packing = {.tile = 1, .tile_k = 8, .distance = MATRIX_IN_ORDER};
    return matrix_unit_pack_emit(l, id, &r, &packing, out);
}

static rlxvk_status pack_filters(lowering *l, const conv_problem *p, const conv_matrix_order *o,
                                 uint64_t octets, uint64_t w_rows, operand *out)
{
    const struct conv_args *a = &p->args;
    uint32_t taps = (uint32_t)product_of(a->kernel);
    struct conv_matrix_filters_args args = {.rows = a->groups * a->m,
                                            .m = a->m,
                                            .w_rows = (uint32_t)w_rows,
                                            .k_octets = (uint32_t)octets,
                                            .group_step = a->m * a->channels * taps,
                                            .row_step = p->transposed ? taps : a->channels * taps,
                                            .channel_step = p->transposed ? a->m * taps : taps,
                                            .w_offset = p->w.offset};
    dispatch d = {.kernel = KERNEL_CONV_MATRIX_FILTERS, .node = p->node};
    operand filters;
    rlxvk_status status;
    TRY(lower_constant(l, o->filters, o->items * sizeof *o->filters, &filters));
    TRY(lower_temporary(l, a->groups * w_rows * octets * 16, out));
    const operand operands[] = {p->w, filters, *out};
    SET_CONSTANTS(&d, {LOCAL_SIZE, FILTERS_GROUP},
                  {CONV_MATRIX_FILTERS_TO,
                   l->precision == RLXVK_PRECISION_F16 ? MATRIX_F16 : MATRIX_BF16},
                  {CONV_MATRIX_FILTERS_SCATTERED, o->items != octets});
    lower_groups(l, &d, groups_for(args.rows * octets, FILTERS_GROUP));
    l->prepares = true;
    status = lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
    l->prepares = false;
    *out = reading(*out);
error:
    return status;
}

/* ---- Products ---- */

static void set_tiles(const lowering *l, const matrix_class *c, dispatch *d)
{
    matrix_shape unit = matrix_unit(l->precision, l->profile);
    SET_CONSTANTS(d, {LOCAL_SIZE, matrix_unit_threads(c, l->profile)},
                  {CONV_MATRIX_LEAVE_TILE_M, c->tile_m}, {CONV_MATRIX_LEAVE_TILE_N, c->tile_n},
                  {CONV_MATRIX_LEAVE_TILE_K, c->tile_k}, {CONV_MATRIX_LEAVE_PART_M, c->part_m},
                  {CONV_MATRIX_LEAVE_PART_N, c->part_n}, {CONV_MATRIX_LEAVE_UNIT_M, unit.m},
                  {CONV_MATRIX_LEAVE_UNIT_N, unit.n}, {CONV_MATRIX_LEAVE_UNIT_K, unit.k},
                  {CONV_MATRIX_LEAVE_STAGES, c->stages});
}

/* Whether the product applies the epilogue itself. Otherwise its results are bare sums. */
static bool holds_epilogue(const conv_problem *p)
{
    uint32_t code = activation_code(p->epilogue.activation);
    return p->splits == 1 && (code == UNARY_NONE || code == UNARY_RELU);
}

static rlxvk_status emit_product(lowering *l, conv_problem *p, const conv_matrix_class *c,
                                 const conv_matrix_layout *layout, const conv_matrix_order *o,
                                 operand x, operand w, operand places)
{
    const struct conv_args *a = &p->args;
    uint64_t channels = divide_up(a->m, c->tiles.tile_m);
    struct conv_matrix_args args = {.positions = a->positions,
                                    .groups = a->groups,
                                    .m = a->m,
                                    .w_rows = (u32)round_up(a->m, c->tiles.tile_m),
                                    .k_octets = (u32)(o->items / layout->octet_items),
                                    .phases = (u32)o->phases,
                                    .k_slice = (u32)(p->slice / 8),
                                    .splits = (u32)p->splits,
                                    .image = (u32)(a->groups * layout->group_stride),
                                    .group = (u32)layout->group_stride,
                                    .cell = (u32)layout->cell_stride,
                                    .x_offset = x.offset,
                                    .bias_offset = a->bias_offset,
                                    .residual_offset = a->residual_offset,
                                    .y_offset = p->y.offset};
    dispatch d = {.kernel = l->precision == RLXVK_PRECISION_F16 ? KERNEL_CONV_MATRIX_F16
                                                                : KERNEL_CONV_MATRIX_BF16,
                  .node = p->node,
                  .variant = c->tiles.row.name};
    const conv_epilogue none = {0}, *e = holds_epilogue(p) ? &p->epilogue : &none;
    const operand operands[] = {x, w, places, p->y, conv_bias_of(e, x), conv_residual_of(e, x)};
    memcpy(args.in_size, a->in_size, sizeof args.in_size);
    memcpy(args.out_size, a->out_size, sizeof args.out_size);
    memcpy(args.stride, a->stride, sizeof args.stride);
    memcpy(args.divide, a->divide, sizeof args.divide);
    set_tiles(l, &c->tiles, &d);
    SET_CONSTANTS(&d, {POSITIONS_DEPTH, p->deep}, {POSITIONS_TRANSPOSED, p->transposed},
                  {CONV_MATRIX_FORM, c->form},
                  {CONV_MATRIX_HALF_ROUNDING, l->profile->half_rounding});
    conv_set_epilogue(&d, e);
    uint64_t tiles = channels * divide_up(p->shape.n, c->tiles.tile_n);
    lower_groups(l, &d, tiles * p->shape.groups * p->splits);
    d.order = (group_order){.span = shape_numel(&graph_node(l->graph, p->node)->shape),
                            .cycle = (u32)tiles,
                            .cycles = (u32)(p->shape.groups * p->splits),
                            .rows_run = (u32)channels};
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status emit_forward(lowering *l, conv_problem *p, const conv_matrix_class *c)
{
    conv_matrix_layout layout = conv_matrix_layout_of(p, c->form);
    conv_matrix_order order;
    operand x = p->x, w, places;
    rlxvk_status status;
    TRY(conv_matrix_order_create(p, &layout, c->tiles.tile_k / 8u * layout.octet_items, &order));
    if (c->form == CONV_MATRIX_PACKED)
        TRY(pack_cells(l, p->node, p->x, p->images * p->args.groups * layout.blocks,
                       layout.channels, layout.cells, &x));
    TRY(pack_filters(l, p, &order, order.items / layout.octet_items,
                     round_up(p->args.m, c->tiles.tile_m), &w));
    TRY(lower_constant(l, order.places, order.place_count * sizeof *order.places, &places));
    TRY(emit_product(l, p, c, &layout, &order, x, w, places));
error:
    conv_matrix_order_destroy(&order);
    return status;
}

/* The problem is swapped: its "kernel" is dy, and its output the taps. */
static rlxvk_status emit_weight(lowering *l, conv_problem *p, const conv_matrix_class *c)
{
    const struct conv_args *a = &p->args;
    uint64_t images = a->channels, cells = product_of(a->kernel);
    uint64_t channels = p->images, x_cells = product_of(a->in_size);
    conv_matrix_shape shape = shape_of(p);
    struct conv_matrix_weight_args args = {.positions = (u32)(images * cells),
                                           .groups = a->groups,
                                           .m = a->m,
                                           .channels = (u32)channels,
                                           .k_slice = (u32)p->slice,
                                           .splits = (u32)p->splits,
                                           .divide = {conv_divide_multiplier((u32)cells),
                                                      conv_divide_multiplier(a->kernel[1]),
                                                      conv_divide_multiplier(a->kernel[2])},
                                           .x_octets = (u32)divide_up(channels, 8),
                                           .dy_octets = (u32)divide_up(a->m, 8),
                                           .y_offset = p->y.offset};
    dispatch d = {.kernel = l->precision == RLXVK_PRECISION_F16 ? KERNEL_CONV_MATRIX_WEIGHT_F16
                                                                : KERNEL_CONV_MATRIX_WEIGHT_BF16,
                  .node = p->node,
                  .variant = c->tiles.row.name};
    operand x, dy;
    rlxvk_status status;
    memcpy(args.in_size, a->in_size, sizeof args.in_size);
    memcpy(args.out_size, a->kernel, sizeof args.out_size);
    memcpy(args.kernel, a->out_size, sizeof args.kernel);
    memcpy(args.stride, a->dilation, sizeof args.stride);
    memcpy(args.padding, a->padding, sizeof args.padding);
    memcpy(args.dilation, a->stride, sizeof args.dilation);
    TRY(pack_cells(l, p->node, p->x, images * a->groups, channels, x_cells, &x));
    TRY(pack_cells(l, p->node, p->w, images * a->groups, a->m, cells, &dy));
    const operand operands[] = {x, dy, p->y};
    set_tiles(l, &c->tiles, &d);
    SET_CONSTANTS(&d, {POSITIONS_DEPTH, p->deep}, {POSITIONS_TRANSPOSED, 0});
    lower_groups(l, &d, conv_matrix_tiles(c, &shape) * p->splits);
    TRY(lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands)));
error:
    return status;
}

/* ---- All ---- */

static size_t choose(lowering *l, const conv_problem *p, const conv_matrix_shape *s)
{
    char tag[VARIANT_TAG] = "";
    text_append(&(text){tag, sizeof tag, 0}, "%s_%s", rlxvk_precision_name(l->precision),
                p->swapped      ? "swapped"
                : p->transposed ? "transposed"
                                : "forward");
    return variant_choose(l, CHOICE_conv_matrix, tag,
                          (uint64_t[VARIANT_DIMS]){s->m, s->n, s->k, s->groups});
}

rlxvk_status conv_matrix_lower(lowering *l, conv_problem *p)
{
    conv_matrix_shape shape = shape_of(p);
    const conv_matrix_class *c =
        conv_matrix_choose(&shape, l->precision, l->profile, choose(l, p, &shape));
    operand y = p->y;
    rlxvk_status status;
    p->slice = conv_matrix_slice(c, &shape, l->profile);
    p->splits = divide_up(conv_matrix_k(c, &shape), p->slice);
    bool apart = !holds_epilogue(p);
    if (apart)
        TRY(lower_temporary(l,
                            p->splits * shape_numel(&graph_node(l->graph, p->node)->shape) *
                                sizeof(float),
                            &p->y));
    TRY(p->swapped ? emit_weight(l, p, c) : emit_forward(l, p, c));
    if (apart)
        TRY(conv_emit_sum(l, p, y));
error:
    return status;
}
