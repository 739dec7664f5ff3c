/* Emits the dispatches of a convolution: constants and arguments of the chosen kernel. If K is
 * split, another dispatch sums the parts. */
#include "op/conv/conv_emit.h"
#include "constants/conv.h"
#include "op/activation.h"
#include "op/matmul/matmul_choice.h"
#include "op/movement/layout.h"

#define MOST_UNROLLED 49 /* above this, conv_strips loops over taps */

static uint32_t out_cells(const conv_problem *p)
{
    return p->args.out_size[0] * p->args.out_size[1] * p->args.out_size[2];
}

/* ---- Epilogues ---- */

void conv_set_epilogue(dispatch *d, const conv_epilogue *e)
{
    SET_CONSTANTS(d, {EPILOGUE_BITS, e->bits},
                  {EPILOGUE_ACTIVATION, activation_code(e->activation)});
}

operand conv_bias_of(const conv_epilogue *e, operand stand_in)
{
    return e->bits & CONV_EPILOGUE_BIAS ? e->bias : stand_in;
}
operand conv_residual_of(const conv_epilogue *e, operand stand_in)
{
    return e->bits & CONV_EPILOGUE_RESIDUAL ? e->residual : stand_in;
}

/* ---- conv_direct, conv_tiled ---- */

/* The operands that conv_tiled may read or write as vec4s (bits of CONV_QUADS_...). */
static uint32_t quad_bits(const conv_problem *p)
{
    const struct conv_args *a = &p->args;
    uint64_t images = p->swapped ? a->positions / MAX(out_cells(p), 1) : 1;
    uint64_t line = p->swapped ? (uint64_t)a->kernel[0] * a->kernel[1] * a->kernel[2] : p->shape.k;
    uint64_t offsets = p->y.offset | p->epilogue.residual.offset;
    bool y = !p->transposed && (offsets | images * out_cells(p)) % 4 == 0;
    bool w = !p->transposed && (p->w.offset | line) % 4 == 0;
    return (y ? CONV_QUADS_Y : 0u) | (w ? CONV_QUADS_W : 0u);
}

/* How conv_tiled addresses x (CONV_X_...). */
static uint32_t source_of(const conv_problem *p)
{
    const struct conv_args *args = &p->args;
    uint64_t kernels = 0, others = 0, in_cells = 1, missed = 0;
    for (uint32_t i = 0; i < CONV_AXES; i++) {
        kernels += args->kernel[i];
        others += args->stride[i] - 1 + args->padding[i];
        in_cells *= args->in_size[i];
        missed += args->dilation[i] - 1 + args->padding[i] + args->in_size[i] - args->kernel[i];
    }
    bool quads = (args->x_offset | in_cells) % 4 == 0;
    if (p->swapped && out_cells(p) == 1 && missed == 0 && quads)
        return CONV_X_ALONG;
    if (kernels == CONV_AXES && others == 0 && !p->transposed && !p->swapped && quads)
        return CONV_X_QUADS;
    if (p->class->packed)
        return CONV_X_TAPS;
    return kernels <= CONV_TAP_BITS ? CONV_X_BITS : CONV_X_CELLS;
}

/* One image comes after the other, and the tiles of all channels of a group make the next
 * positions. So fewer active rows need fewer workgroups. */
static group_order order_of_tiles(const lowering *l, const conv_problem *p)
{
    const conv_class *c = p->class;
    uint64_t channels = divide_up(p->shape.m, c->tile_m);
    return (group_order){.span = shape_numel(&graph_node(l->graph, p->node)->shape),
                         .cycle = (u32)(channels * divide_up(p->shape.n, c->tile_n)),
                         .cycles = (u32)(p->shape.groups * p->splits),
                         .rows_run = (u32)channels};
}

static rlxvk_status emit_product(lowering *l, conv_problem *p)
{
    const conv_class *c = p->class;
    bool tiled = c->form == CONV_FORM_TILED;
    dispatch d = {.kernel = tiled ? KERNEL_CONV_TILED : KERNEL_CONV_DIRECT,
                  .node = p->node,
                  .variant = c->row.name};
    const conv_epilogue none = {0}, *e = p->splits == 1 ? &p->epilogue : &none; /* else conv_sum
                                                                                   has the
                                                                                   epilogue */
    const operand operands[] = {p->x, p->w, p->y, conv_bias_of(e, p->x), conv_residual_of(e, p->x)};
    SET_CONSTANTS(&d, {LOCAL_SIZE, c->threads ? c->threads : l->profile->workgroup_size},
                  {CONV_DEPTH, p->deep}, {CONV_TRANSPOSED, p->transposed},
                  {CONV_REG_M, c->register_m}, {CONV_REG_N, c->register_n},
                  {CONV_SWAPPED, p->swapped});
    conv_set_epilogue(&d, e);
    if (tiled)
        SET_CONSTANTS(&d, {CONV_TILED_TILE_M, c->tile_m}, {CONV_TILED_TILE_N, c->tile_n},
                      {CONV_TILED_STEP, c->step},
                      {CONV_TILED_LOOP, matmul_tile_loop(c->loop, l->profile)},
                      {CONV_TILED_QUADS, quad_bits(p)}, {CONV_TILED_SOURCE, source_of(p)});
    p->args.y_offset = p->y.offset;
    lower_groups(l, &d, conv_groups(c, &p->shape, l->profile) * p->splits);
    if (tiled && !p->swapped)
        d.order = order_of_tiles(l, p);
    return lower_emit(l, &d, &p->args, sizeof p->args, operands, ARRAY_COUNT(operands));
}

rlxvk_status conv_emit_sum(lowering *l, const conv_problem *p, operand y)
{
    uint64_t count = shape_numel(&graph_node(l->graph, p->node)->shape);
    dispatch d = {.kernel = KERNEL_CONV_SUM, .node = p->node};
    struct conv_sum_args args = {.count = (u32)count,
                                 .splits = (u32)p->splits,
                                 .cells = out_cells(p),
                                 .channels = p->args.groups * p->args.m,
                                 .bias_offset = p->args.bias_offset,
                                 .residual_offset = p->args.residual_offset,
                                 .y_offset = y.offset};
    operand partial = p->y;
    partial.access = ACCESS_READ;
    const conv_epilogue *e = &p->epilogue;
    const operand operands[] = {partial, y, conv_bias_of(e, partial), conv_residual_of(e, partial)};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size});
    conv_set_epilogue(&d, e);
    lower_groups_in_order(l, &d, count, l->profile->workgroup_size);
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

/* Permutes w [m, channels, taps] so that the channels of a step are innermost: [m, channels / step,
 * taps, step]. */
static rlxvk_status emit_packing(lowering *l, conv_problem *p)
{
    const struct conv_args *a = &p->args;
    int64_t step = p->class->step, taps = (int64_t)a->kernel[0] * a->kernel[1] * a->kernel[2];
    int64_t blocks = (int64_t)a->groups * a->m * a->channels / step;
    strided_copy copy = layout_dense_copy(&(rlxvk_shape){3, {blocks, taps, step}});
    operand packed;
    rlxvk_status status;
    copy.source[0] = taps * step;
    copy.source[1] = 1;
    copy.source[2] = taps;
    TRY(lower_temporary(l, (uint64_t)(blocks * taps * step) * sizeof(float), &packed));
    l->prepares = true;
    TRY(layout_emit_copy(l, &copy, p->w, packed));
    l->prepares = false;
    packed.access = ACCESS_READ;
    p->w = packed;
    p->args.w_offset = packed.offset;
error:
    return status;
}

/* ---- conv_strips ---- */

static struct conv_strips_args strips_args(const conv_problem *p)
{
    const struct conv_args *a = &p->args;
    const conv_planes *planes = &p->shape.planes;
    u32 strips = (u32)divide_up(planes->columns, 4), channels = a->groups * a->m;
    return (struct conv_strips_args){.count = (u32)planes->count * planes->rows * strips,
                                     .strips = strips,
                                     .rows = planes->rows,
                                     .columns = planes->columns,
                                     .channels = channels,
                                     .m = a->m,
                                     .in_size = {a->in_size[1], a->in_size[2]},
                                     .padding = {a->padding[1], a->padding[2]},
                                     .down = a->kernel[1],
                                     .stride = a->stride[1],
                                     .divide = {conv_divide_multiplier(planes->rows * strips),
                                                conv_divide_multiplier(strips),
                                                conv_divide_multiplier(channels),
                                                conv_divide_multiplier(a->m)},
                                     .x_offset = a->x_offset,
                                     .w_offset = a->w_offset,
                                     .bias_offset = a->bias_offset,
                                     .residual_offset = a->residual_offset,
                                     .y_offset = p->y.offset};
}

static rlxvk_status emit_strips(lowering *l, const conv_problem *p)
{
    const conv_class *c = p->class;
    const conv_planes *planes = &p->shape.planes;
    struct conv_strips_args args = strips_args(p);
    bool quads_x = (args.x_offset | args.in_size[1]) % 4 == 0;
    bool quads_y = (args.y_offset | args.residual_offset | args.columns) % 4 == 0;
    dispatch d = {.kernel = KERNEL_CONV_STRIPS, .node = p->node, .variant = c->row.name};
    const conv_epilogue *e = &p->epilogue;
    const operand operands[] = {p->x, p->w, p->y, conv_bias_of(e, p->x), conv_residual_of(e, p->x)};
    SET_CONSTANTS(&d, {LOCAL_SIZE, c->threads},
                  {CONV_STRIPS_QUADS,
                   (quads_y ? CONV_QUADS_Y : 0u) | (quads_x ? CONV_QUADS_X : 0u)},
                  {CONV_STRIPS_ACROSS, planes->across},
                  {CONV_STRIPS_DOWN,
                   planes->across * planes->down <= MOST_UNROLLED ? planes->down : 0},
                  {CONV_STRIPS_STRIDE, p->args.stride[2]},
                  {CONV_STRIPS_SHIFT, quads_x ? (0u - args.padding[1]) % 4 : 0},
                  {CONV_STRIPS_WEIGHTS, (u32)conv_strip_weights(c, &p->shape)});
    conv_set_epilogue(&d, e);
    lower_groups(l, &d, conv_groups(c, &p->shape, l->profile));
    d.order.run = 1;
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

/* ---- conv_depthwise_weights ---- */

static rlxvk_status emit_taps(lowering *l, const conv_problem *p)
{
    const conv_class *c = p->class;
    struct conv_args args = p->args;
    dispatch d = {.kernel = KERNEL_CONV_DEPTHWISE_WEIGHTS, .node = p->node, .variant = c->row.name};
    const operand operands[] = {p->x, p->w, p->y};
    args.divide[0] = conv_divide_multiplier(MAX(args.kernel[1] * args.kernel[2], 1));
    args.divide[2] = conv_divide_multiplier(MAX(args.kernel[2], 1));
    args.y_offset = p->y.offset;
    SET_CONSTANTS(&d, {LOCAL_SIZE, c->threads}, {CONV_DEPTHWISE_WEIGHTS_DOWN, args.out_size[1]},
                  {CONV_DEPTHWISE_WEIGHTS_ACROSS, args.out_size[2]});
    lower_groups(l, &d, conv_groups(c, &p->shape, l->profile) * p->splits);
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

/* ---- All ---- */

rlxvk_status conv_emit(lowering *l, conv_problem *p)
{
    operand y = p->y;
    rlxvk_status status;
    if (p->class->form == CONV_FORM_STRIPS)
        return emit_strips(l, p);
    if (p->splits > 1)
        TRY(lower_temporary(l,
                            p->splits * shape_numel(&graph_node(l->graph, p->node)->shape) *
                                sizeof(float),
                            &p->y));
    if (p->class->packed)
        TRY(emit_packing(l, p));
    TRY(p->class->form == CONV_FORM_TAPS ? emit_taps(l, p) : emit_product(l, p));
    if (p->splits > 1)
        TRY(conv_emit_sum(l, p, y));
error:
    return status;
}
