/*
 * A convolution as matrix products: the sizes that conv.glsl needs, and the choice of its kernel.
 * If K = channels * taps is long and y is small, K is split. Then workgroups sum parts of K into a
 * temporary [splits, y], and conv_sum adds the parts in order.
 *
 * A transposed convolution whose strides are all 1 has only one phase. It is a plain convolution by
 * a w with reversed taps and swapped channels. If the product is large enough, a copy permutes w in
 * this way first.
 */
#include "op/conv/conv_matrix.h"
#include "op/movement/layout.h"

/* A transposed convolution must be at least this large before permuting w pays. */
#define LEAST_TURNED_POSITIONS 2048
#define LEAST_TURNED_PRODUCT   1e7

static void fill_axes(struct conv_args *args, const rlxvk_shape *x, const rlxvk_shape *y,
                      const rlxvk_conv_options *o)
{
    uint32_t axes = x->rank - 2;
    for (uint32_t i = 0; i < CONV_AXES; i++) {
        bool real = i + axes >= CONV_AXES;
        uint32_t axis = real ? i + axes - CONV_AXES : 0;
        args->in_size[i] = real ? (u32)x->dims[2 + axis] : 1;
        args->out_size[i] = real ? (u32)y->dims[2 + axis] : 1;
        args->kernel[i] = real ? (u32)o->kernel[axis] : 1;
        args->stride[i] = real ? (u32)o->stride[axis] : 1;
        args->padding[i] = real ? (u32)o->padding[axis] : 0;
        args->dilation[i] = real ? (u32)o->dilation[axis] : 1;
    }
}

/* For one axis: the cells of a phase, the number of phases, and the most taps that a phase uses. */
typedef struct phase_axis {
    uint64_t cells, count, taps;
} phase_axis;

static phase_axis phases_of(const conv_problem *p, uint32_t i)
{
    const struct conv_args *args = &p->args;
    uint64_t stride = args->stride[i], out = args->out_size[i];
    if (!p->transposed)
        return (phase_axis){out, 1, args->kernel[i]};
    uint64_t step = stride / common_divisor(stride, args->dilation[i]);
    return (phase_axis){divide_up(out, stride), MIN(stride, out), divide_up(args->kernel[i], step)};
}

/* Positions are cells of `images` images: the images of y or, if swapped, the channels of x in a
 * group. */
static void fill_sizes(conv_problem *p)
{
    uint64_t images = p->images;
    struct conv_args *args = &p->args;
    phase_axis total = {1, 1, 1};
    for (uint32_t i = 0; i < CONV_AXES; i++) {
        phase_axis axis = phases_of(p, i);
        total.cells *= axis.cells;
        total.count *= axis.count;
        total.taps *= axis.taps;
        args->divide[i] = conv_divide_multiplier((uint32_t)axis.cells);
    }
    args->divide[0] = conv_divide_multiplier((uint32_t)total.cells);
    p->shape = (conv_shape){.m = args->m,
                            .n = images * total.cells,
                            .k = args->channels * total.taps,
                            .groups = args->groups * total.count,
                            .channels = p->transposed || p->swapped ? 0 : args->channels,
                            .long_k = p->swapped};
    if (p->swapped && !p->deep && images == 1)
        p->shape.taps = total.cells;
    args->positions = (u32)p->shape.n;
    if (!p->transposed && !p->swapped && !p->deep && args->channels == 1 &&
        args->dilation[1] == 1 && args->dilation[2] == 1)
        p->shape.planes = (conv_planes){.across = args->kernel[2],
                                        .down = args->kernel[1],
                                        .stride = MAX(args->stride[1], args->stride[2]),
                                        .rows = args->out_size[1],
                                        .columns = args->out_size[2],
                                        .count = images * args->groups * args->m};
}

/* Fills in the sizes of the three axes. If the problem is swapped, it swaps strides with dilations
 * and windows with taps. */
static void fill_problem(conv_problem *p, const rlxvk_shape *x, const rlxvk_shape *y,
                         const rlxvk_conv_options *o)
{
    struct conv_args *args = &p->args;
    uint64_t inputs = (uint64_t)x->dims[1] / (uint64_t)o->groups;
    p->deep = x->rank == 5;
    args->groups = (u32)o->groups;
    args->m = (u32)(y->dims[1] / o->groups);
    args->channels = (u32)(p->swapped ? x->dims[0] : (int64_t)inputs);
    fill_axes(args, x, y, o);
    for (uint32_t i = 0; i < CONV_AXES && p->swapped; i++) {
        u32 cells = args->out_size[i], stride = args->stride[i];
        args->out_size[i] = args->kernel[i];
        args->kernel[i] = cells;
        args->stride[i] = args->dilation[i];
        args->dilation[i] = stride;
    }
    p->images = p->swapped ? inputs : (uint64_t)y->dims[0];
}

/* ---- Transposed, without strides ---- */

static bool turning_pays(const conv_problem *p)
{
    const struct conv_args *a = &p->args;
    uint64_t n = p->images, taps = 1;
    for (uint32_t i = 0; i < CONV_AXES; i++) {
        if (a->stride[i] != 1 || a->padding[i] > (uint64_t)a->dilation[i] * (a->kernel[i] - 1))
            return false;
        n *= a->out_size[i];
        taps *= a->kernel[i];
    }
    return n >= LEAST_TURNED_POSITIONS &&
           (double)n * (double)taps * a->m * a->channels * a->groups >= LEAST_TURNED_PRODUCT;
}

/* Permutes w [groups, channels, m, taps] to [groups, m, channels, reversed taps]. */
static rlxvk_status turn(lowering *l, conv_problem *p)
{
    struct conv_args *a = &p->args;
    int64_t k1 = a->kernel[1], k2 = a->kernel[2], taps = a->kernel[0] * k1 * k2;
    rlxvk_shape shape = {6, {a->groups, a->m, a->channels, a->kernel[0], k1, k2}};
    const int64_t source[] = {
        (int64_t)a->channels * a->m * taps, taps, a->m * taps, -k1 * k2, -k2, -1};
    strided_copy copy = layout_dense_copy(&shape);
    operand turned;
    rlxvk_status status;
    for (uint32_t i = 0; i < ARRAY_COUNT(source); i++)
        copy.source[i] = source[i];
    copy.source_first = taps - 1;
    TRY(lower_temporary(l, shape_numel(&shape) * sizeof(float), &turned));
    l->prepares = true;
    TRY(layout_emit_copy(l, &copy, p->w, turned));
    l->prepares = false;
    turned.access = ACCESS_READ;
    p->w = turned;
    p->transposed = false;
    for (uint32_t i = 0; i < CONV_AXES; i++)
        a->padding[i] = a->dilation[i] * (a->kernel[i] - 1) - a->padding[i];
error:
    return status;
}

/* ---- All ---- */

static size_t choose(lowering *l, const conv_problem *p)
{
    const conv_shape *s = &p->shape;
    const char *tag = p->swapped ? "swapped" : p->transposed ? "transposed" : "forward";
    return variant_choose(l, CHOICE_conv, tag,
                          (uint64_t[VARIANT_DIMS]){s->m, s->n, s->k, s->groups});
}

rlxvk_status conv_lower_problem(lowering *l, conv_problem *p, const rlxvk_shape *x,
                                const rlxvk_shape *y, const rlxvk_conv_options *o)
{
    rlxvk_status status;
    fill_problem(p, x, y, o);
    fill_sizes(p);
    if (p->shape.groups * p->shape.m > UINT32_MAX / 2 / MAX(p->shape.n, 1))
        return op_fail(graph_node(l->graph, p->node), RLXVK_E_TOO_LARGE,
                       "the phases of this stride have 2^31 cells or more; use a smaller one");
    p->args.bias_offset = p->epilogue.bias.offset;
    p->args.residual_offset = p->epilogue.residual.offset;
    if (conv_matrix_wanted(l, p))
        return conv_matrix_lower(l, p);
    if (p->transposed && turning_pays(p)) {
        TRY(turn(l, p));
        fill_sizes(p);
    }
    p->args.x_offset = p->x.offset;
    p->args.w_offset = p->w.offset;
    p->class = conv_choose(&p->shape, l->profile, choose(l, p));
    p->slice = conv_slice(p->class, &p->shape, l->profile);
    p->splits = p->slice < p->shape.k ? divide_up(p->shape.k, p->slice) : 1;
    p->args.k_slice = (u32)p->slice;
    p->args.splits = (u32)p->splits;
    TRY(conv_emit(l, p));
error:
    return status;
}
