/*
 * resize and resize_backward. Along each spatial axis, a cell of y is a weighted sum of a few
 * neighbouring cells of x. In the same way, a cell of dx is a weighted sum of cells of dy. One
 * kernel does both. A table tells it which cells and weights to use (resize_table.c). No atomics
 * are needed, because each invocation only gathers. Nearest mode uses another kernel, which copies
 * words. An invocation computes a block of cells, so that cells that they share are read once.
 *
 * Error: 2^-24 (sum over the axes of taps + 2) sum |term|. Nearest is exact.
 */
#include "op/image/resize.h"
#include "constants/image.h"
#include "op/bucket.h"
#include "op/conv/conv.h"
#include "op/families.h"
#include "op/gradient.h"

#include <math.h>

#define LONGEST_AXIS (1 << 24)
#define FARTHEST     (1 << 20) /* corners of a region, in sizes of x */
#define BLOCK        4         /* cells along an axis in a block, if blocks pay */
/* If y has more blocks of one row, they fill a device several times over, so blocks of several rows
 * are tried. */
#define MOST_SINGLE_ROWS (1u << 18)
/* Most taps of a block whose loops are unrolled. */
#define MOST_ACROSS   8
#define MOST_UNROLLED 64
/* Four columns form a block only if they read few more cells than one column does. Otherwise
 * neighbouring invocations would read cells too far apart. */
#define MORE_CELLS 2

rlxvk_tensor rlxvk_resize(rlxvk_graph *g, rlxvk_tensor x, const rlxvk_resize_options *options)
{
    resize_attributes a = {0};
    if (!op_take(g, "resize", SIZED(rlxvk_resize_options), options, &a.options))
        return RLXVK_NONE;
    return op_build(g, OP_resize, &x, 1, &a);
}

rlxvk_tensor rlxvk_resize_backward(rlxvk_graph *g, rlxvk_tensor dy, const int64_t *input_size,
                                   const rlxvk_resize_options *options)
{
    resize_attributes a = {0};
    if (!op_take(g, "resize_backward", SIZED(rlxvk_resize_options), options, &a.options) ||
        graph_fail(g, status_require_items(input_size, 1, "resize_backward", "input_size")) !=
            RLXVK_OK ||
        graph_fail(g, graph_take(g, dy, "resize_backward", "operand", 1)) != RLXVK_OK)
        return RLXVK_NONE;
    rlxvk_shape shape = rlxvk_tensor_shape(g, dy);
    for (uint32_t i = 0; i < RESIZE_AXES && i + 2 < shape.rank; i++)
        a.input_size[i] = input_size[i];
    return op_build(g, OP_resize_backward, &dy, 1, &a);
}

/* ---- Infer ---- */

static rlxvk_status check_size(const node *n, const char *name, uint32_t axis, int64_t size,
                               bool exists)
{
    if (!exists && size)
        return op_fail(n, RLXVK_E_ATTR, "%s[%u] is for no axis of x; leave it 0", name, axis);
    if (exists && size < 1)
        return op_fail(n, RLXVK_E_ATTR, "%s[%u] is %lld; must be at least 1", name, axis,
                       (long long)size);
    if (size > LONGEST_AXIS)
        return op_fail(n, RLXVK_E_TOO_LARGE, "%s[%u] is %lld; at most 2^24", name, axis,
                       (long long)size);
    return RLXVK_OK;
}

static rlxvk_status check_options(const node *n, const rlxvk_shape *x,
                                  const rlxvk_resize_options *o)
{
    char shape[SHAPE_TEXT];
    if (x->rank < 3 || x->rank > 2 + RESIZE_AXES)
        return op_fail(n, RLXVK_E_SHAPE, "x is %s; must be [N, C, 1 to 3 spatial axes]",
                       shape_text(x, shape));
    if ((unsigned)o->mode > RLXVK_RESIZE_CUBIC_ANTIALIAS)
        return op_fail(n, RLXVK_E_ATTR, "mode %d is none of 0 .. 5", (int)o->mode);
    if ((unsigned)o->coordinates > RLXVK_RESIZE_CROP)
        return op_fail(n, RLXVK_E_ATTR, "coordinates %d are none of 0 .. 6", (int)o->coordinates);
    if ((unsigned)o->rounding > RLXVK_RESIZE_ROUND_UP)
        return op_fail(n, RLXVK_E_ATTR, "rounding %d is none of 0 .. 4", (int)o->rounding);
    if ((unsigned)o->outside > RLXVK_RESIZE_OUTSIDE_EXCLUDED)
        return op_fail(n, RLXVK_E_ATTR, "outside %d is neither 0 nor 1", (int)o->outside);
    if (!isfinite(o->cubic_coefficient))
        return op_fail(n, RLXVK_E_ATTR, "cubic_coefficient is %g; must be finite",
                       (double)o->cubic_coefficient);
    for (uint32_t i = 2; i < x->rank; i++) {
        if (x->dims[i] == 0)
            return op_fail(n, RLXVK_E_SHAPE,
                           "x is %s; a spatial axis without cells has none to "
                           "resize",
                           shape_text(x, shape));
        if (x->dims[i] > LONGEST_AXIS)
            return op_fail(n, RLXVK_E_TOO_LARGE, "axis %u is %lld; at most 2^24", i,
                           (long long)x->dims[i]);
    }
    return RLXVK_OK;
}

/* Checks the scale and the region of an axis of `from` cells in x and `to` in the result. */
static rlxvk_status check_scale(const node *n, const rlxvk_resize_options *o, uint32_t axis,
                                bool exists, int64_t from, int64_t to)
{
    double scale = o->scale[axis], begin = o->crop_begin[axis], end = o->crop_end[axis];
    double length = scale * (double)from;
    bool crops = exists && o->coordinates == RLXVK_RESIZE_CROP;
    if (scale != 0 && !(exists && length >= 0.5 && fabs(length - (double)to) < 1))
        return op_fail(n, RLXVK_E_ATTR,
                       "scale[%u] is %g; %lld cells times it must be at least 1/2 and less than 1 "
                       "from %lld",
                       axis, scale, (long long)from, (long long)to);
    if (!crops && (begin != 0 || end != 0))
        return op_fail(n, RLXVK_E_ATTR, "crop_begin[%u] and crop_end[%u] need RLXVK_RESIZE_CROP",
                       axis, axis);
    if (!(fabs(begin) <= FARTHEST && fabs(end) <= FARTHEST))
        return op_fail(n, RLXVK_E_ATTR, "the region of axis %u is %g to %g; within 2^20", axis,
                       begin, end);
    return RLXVK_OK;
}

static rlxvk_status check_adjoint(const node *n, const rlxvk_shape *dy, resize_attributes *a)
{
    char shape[SHAPE_TEXT];
    for (uint32_t i = 0; i < RESIZE_AXES; i++) {
        bool exists = i + 2 < dy->rank;
        rlxvk_status status = check_size(n, "input_size", i, a->input_size[i], exists);
        if (status != RLXVK_OK)
            return status;
        if (exists && a->options.size[i] == 0)
            a->options.size[i] = dy->dims[i + 2];
        if (a->options.size[i] != (exists ? dy->dims[i + 2] : 0))
            return op_fail(n, RLXVK_E_SHAPE,
                           "size[%u] is %lld, dy %s; they must agree, or leave "
                           "size out",
                           i, (long long)a->options.size[i], shape_text(dy, shape));
    }
    return RLXVK_OK;
}

static rlxvk_status resize_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    resize_attributes *a = attributes;
    const rlxvk_shape *x = input_shape(g, n, 0);
    bool backward = node_code(n) == RESIZE_BACKWARD;
    rlxvk_status status;
    TRY(check_options(n, x, &a->options));
    if (backward)
        TRY(check_adjoint(n, x, a));
    for (uint32_t i = 0; i < RESIZE_AXES; i++) {
        bool exists = i + 2 < x->rank;
        int64_t own = exists ? x->dims[i + 2] : 1, size = a->options.size[i];
        TRY(check_size(n, "size", i, size, exists));
        TRY(check_scale(n, &a->options, i, exists, backward ? a->input_size[i] : own, size));
    }
    n->shape = *x;
    for (uint32_t i = 0; i + 2 < x->rank; i++)
        n->shape.dims[i + 2] = backward ? a->input_size[i] : a->options.size[i];
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

static uint32_t resize_sizes(void *attributes, int64_t *out[OP_MOST_SIZES])
{
    resize_attributes *a = attributes;
    for (uint32_t i = 0; i < RESIZE_AXES; i++) {
        out[i] = &a->options.size[i];
        out[RESIZE_AXES + i] = &a->input_size[i];
    }
    return 2 * RESIZE_AXES;
}

/* ---- Lower ---- */

/* If there are fewer than three axes, the first ones have one cell. */
static uint64_t cells_along(const rlxvk_shape *s, uint32_t axis)
{
    return axis + s->rank >= 5 ? (uint64_t)s->dims[axis + s->rank - 3] : 1;
}

/* How y is divided into blocks, and the taps of a block; 0 if their loops are not unrolled. */
typedef struct resize_form {
    resize_axis axes[RESIZE_AXES];
    bool backward, moves;
    bool filled; /* cells outside the region get a value */
    uint32_t columns, rows, across, down;
} resize_form;

static resize_form form_of(const node *n, const rlxvk_shape *x)
{
    const resize_attributes *a = n->attributes;
    resize_form f = {.backward = node_code(n) == RESIZE_BACKWARD, .columns = 1, .rows = 1};
    const rlxvk_resize_options *o = &a->options;
    uint32_t absent = 2 + RESIZE_AXES - x->rank;
    f.moves = !f.backward && o->mode == RLXVK_RESIZE_NEAREST;
    f.filled = !f.backward && o->coordinates == RLXVK_RESIZE_CROP && o->mode != RLXVK_RESIZE_AREA;
    for (uint32_t i = 0; i < RESIZE_AXES; i++) {
        uint64_t from = cells_along(x, i), to = cells_along(&n->shape, i);
        f.axes[i] = (resize_axis){.mode = o->mode,
                                  .coordinates = o->coordinates,
                                  .rounding = o->rounding,
                                  .from = f.backward ? to : from,
                                  .to = f.backward ? from : to,
                                  .cubic = (double)op_number(o->cubic_coefficient, -0.75f),
                                  .excludes = o->outside == RLXVK_RESIZE_OUTSIDE_EXCLUDED,
                                  .block = 1};
        if (i < absent)
            continue;
        f.axes[i].scale = o->scale[i - absent];
        f.axes[i].begin = o->crop_begin[i - absent];
        f.axes[i].end = o->crop_end[i - absent];
    }
    return f;
}

/* If words are copied, each cell of a block has its own source, so the table has no blocks. */
static void set_block(resize_form *f, uint32_t axis, uint32_t *out)
{
    *out = BLOCK;
    if (!f->moves)
        f->axes[axis].block = BLOCK;
}

/* Finds the number of taps of a cell and of a block along an axis. */
static rlxvk_status measure(const resize_form *f, uint32_t axis, uint64_t *out, uint64_t *out_block)
{
    resize_axis a = f->axes[axis];
    rlxvk_status status;
    TRY(resize_table_width(&a, f->backward, out));
    a.block = BLOCK;
    TRY(resize_table_width(&a, f->backward, out_block));
error:
    return status;
}

/* Chooses how many columns of y a block has, and then how many rows. */
static rlxvk_status cut(resize_form *f, const rlxvk_shape *y)
{
    uint64_t columns = cells_along(y, 2), rows = cells_along(y, 1);
    uint64_t across = 1, across_block = 1, down = 1, down_block = 1;
    rlxvk_status status = RLXVK_OK;
    if (f->filled)
        return RLXVK_OK;
    if (!f->moves) {
        TRY(measure(f, 2, &across, &across_block));
        TRY(measure(f, 1, &down, &down_block));
    }
    if (columns >= BLOCK && across_block <= MIN(across + MORE_CELLS, MOST_ACROSS)) {
        set_block(f, 2, &f->columns);
        across = across_block;
    }
    bool many = shape_numel(y) / columns * divide_up(columns, f->columns) > MOST_SINGLE_ROWS;
    bool shared = down_block < BLOCK * down; /* whether rows share cells of x */
    if (rows >= BLOCK && many && shared && across * down_block <= MOST_UNROLLED) {
        set_block(f, 1, &f->rows);
        down = down_block;
    }
    if (across <= MOST_ACROSS && across * down <= MOST_UNROLLED) {
        f->across = (uint32_t)across;
        f->down = (uint32_t)down;
    }
error:
    return status;
}

static void set_constants(dispatch *d, const resize_form *f, uint32_t size, bool quads)
{
    quads = quads && f->columns == BLOCK;
    if (f->moves)
        SET_CONSTANTS(d, {LOCAL_SIZE, size}, {RESIZE_MOVE_COLUMNS, f->columns},
                      {RESIZE_MOVE_ROWS, f->rows}, {RESIZE_MOVE_QUADS, quads},
                      {RESIZE_MOVE_FILLED, f->filled});
    else
        SET_CONSTANTS(d, {LOCAL_SIZE, size}, {RESIZE_COLUMNS, f->columns}, {RESIZE_ROWS, f->rows},
                      {RESIZE_QUADS, quads}, {RESIZE_ACROSS, f->across}, {RESIZE_DOWN, f->down},
                      {RESIZE_FILLED, f->filled});
}

static rlxvk_status emit(lowering *l, uint32_t id, const resize_form *f, struct resize_args *args,
                         operand table)
{
    const rlxvk_shape *x = input_shape(l->graph, graph_node(l->graph, id), 0);
    operand operands[] = {lower_input(l, id, 0), table, lower_write(l, id)};
    uint32_t size = l->profile->workgroup_size;
    dispatch d = {.kernel = f->moves ? KERNEL_RESIZE_MOVE : KERNEL_RESIZE};
    for (uint32_t i = 0; i < RESIZE_AXES; i++) {
        args->from[i] = (u32)cells_along(x, i);
        args->to[i] = (u32)cells_along(&graph_node(l->graph, id)->shape, i);
    }
    args->blocks = (u32)divide_up(args->to[2], f->columns);
    args->strips = (u32)divide_up(args->to[1], f->rows);
    args->divide[0] = conv_divide_multiplier(args->blocks);
    args->divide[1] = conv_divide_multiplier(args->strips);
    args->divide[2] = conv_divide_multiplier(args->to[0]);
    args->count = (u32)(shape_product(x, 0, 2) * args->to[0] * args->strips * args->blocks);
    args->x_offset = operands[0].offset;
    args->y_offset = operands[2].offset;
    args->value = ((const resize_attributes *)graph_node(l->graph, id)->attributes)
                      ->options.extrapolation_value;
    set_constants(&d, f, size, (args->y_offset | args->to[2]) % BLOCK == 0);
    lower_groups(l, &d, groups_for(args->count, size));
    d.order.run = 1;
    return lower_emit(l, &d, args, sizeof *args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status resize_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    resize_form f = form_of(n, input_shape(l->graph, n, 0));
    struct resize_args args = {0};
    uint32_t *words;
    uint64_t count;
    operand table;
    rlxvk_status status;
    TRY(cut(&f, &n->shape));
    TRY(resize_table_make(f.axes, f.backward, &args, &words, &count));
    status = lower_constant(l, words, count * sizeof *words, &table);
    memory_free(words);
    if (status == RLXVK_OK)
        status = emit(l, id, &f, &args, table);
error:
    return status;
}

/* ---- Gradients ---- */

/* What is extrapolated does not depend on x. */
static rlxvk_status resize_vjp(gradient_call *c)
{
    rlxvk_resize_options o = ((const resize_attributes *)c->n.attributes)->options;
    rlxvk_shape x = gradient_shape(c, 0);
    o.extrapolation_value = 0;
    gradient_give(c, 0,
                  node_code(&c->n) == RESIZE_BACKWARD
                      ? rlxvk_resize(c->graph, c->dy, &o)
                      : rlxvk_resize_backward(c->graph, c->dy, x.dims + 2, &o));
    return RLXVK_OK;
}

/* ---- The family ---- */

static void resize_describe(const node *n, text *out)
{
    static const char *const modes[] = {"nearest", "linear",           "cubic",
                                        "area",    "linear_antialias", "cubic_antialias"};
    static const char *const coordinates[] = {
        "half_pixel",         "align_corners",          "asymmetric", "half_pixel_symmetric",
        "pytorch_half_pixel", "half_pixel_for_nearest", "crop"};
    const resize_attributes *a = n->attributes;
    text_append(out, " mode=%s coordinates=%s size=", modes[a->options.mode],
                coordinates[a->options.coordinates]);
    for (uint32_t i = 0; i + 2 < n->shape.rank; i++)
        text_append(out, i ? ",%lld" : "%lld", (long long)a->options.size[i]);
}

const op_family resize_family = {
    .name = "resize",
    .attribute_size = sizeof(resize_attributes),
    .infer = resize_infer,
    .sizes = resize_sizes,
    .execution = {.lower = resize_lower, .host = resize_host},
    .rows = {.bucket = bucket_batch},
    .derivative = {.vjp = resize_vjp},
    .describe = resize_describe,
};
