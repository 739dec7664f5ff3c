/*
 * axial_rope2d: rotary embedding by the position (tx, ty) of a token on a grid. In the first half
 * of each head, neighbouring pairs turn by tx f_c; in the second half, by ty f_c. Here f_c =
 * theta^(-4c/D). The kernel computes the angles. Error of a pair (p, q): 1e-6 + (4e-6 + 4 u w)
 * hypot(p, q), if w is the largest angle.
 */
#include "args/attention.h"
#include "constants/attention.h"
#include "base/numeric.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"

#include <math.h>

typedef struct axial_rope2d_attributes {
    rlxvk_axial_rope2d_options options; /* defaults are resolved */
} axial_rope2d_attributes;

rlxvk_tensor rlxvk_axial_rope2d(rlxvk_graph *g, rlxvk_tensor x,
                                const rlxvk_axial_rope2d_options *options)
{
    axial_rope2d_attributes a = {0};
    if (!op_take(g, "axial_rope2d", SIZED(rlxvk_axial_rope2d_options), options, &a.options))
        return RLXVK_NONE;
    return op_build(g, OP_axial_rope2d, &x, 1, &a);
}

static rlxvk_status check_options(const node *n, const rlxvk_axial_rope2d_options *o)
{
    int64_t most = INT32_MAX;
    if (o->head_dim < 4 || o->head_dim % 4 || o->head_dim > most)
        return op_fail(n, RLXVK_E_ATTR, "head_dim %lld; must be a multiple of 4, at least 4",
                       (long long)o->head_dim);
    if (o->end_x < 1 || o->end_y < 1 || o->end_x > most || o->end_y > most ||
        o->repeat_factor < 1 || o->repeat_factor > most || o->num_heads < 0)
        return op_fail(n, RLXVK_E_ATTR,
                       "grid %lld x %lld, repeat_factor %lld, num_heads %lld; the first three are "
                       "1 or more, num_heads is not negative",
                       (long long)o->end_x, (long long)o->end_y, (long long)o->repeat_factor,
                       (long long)o->num_heads);
    if (!(o->theta > 0) || isinf(o->theta) || (unsigned)o->repeat_mode > RLXVK_AXIAL_TILE)
        return op_fail(
            n, RLXVK_E_ATTR,
            "theta %g, repeat_mode %d; theta is finite and above 0, the mode EACH or TILE",
            (double)o->theta, (int)o->repeat_mode);
    return RLXVK_OK;
}

static rlxvk_status axial_rope2d_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_axial_rope2d_options *o = &((axial_rope2d_attributes *)attributes)->options;
    const rlxvk_shape *x = input_shape(g, n, 0);
    char shape[SHAPE_TEXT];
    uint64_t tokens;
    rlxvk_status status;
    if (o->theta == 0)
        o->theta = 10000;
    if (o->repeat_factor == 0)
        o->repeat_factor = 1;
    TRY(check_options(n, o));
    if (x->rank != 3 || x->dims[2] % o->head_dim)
        return op_fail(n, RLXVK_E_SHAPE, "x is %s; must be [B, T, heads * %lld]",
                       shape_text(x, shape), (long long)o->head_dim);
    if (o->num_heads == 0)
        o->num_heads = x->dims[2] / o->head_dim;
    if (x->dims[2] / o->head_dim != o->num_heads)
        return op_fail(n, RLXVK_E_SHAPE, "x is %s; rows must have %lld heads of %lld",
                       shape_text(x, shape), (long long)o->num_heads, (long long)o->head_dim);
    if (!size_multiply((uint64_t)(o->end_x * o->end_y), (uint64_t)o->repeat_factor, &tokens) ||
        tokens != (uint64_t)x->dims[1])
        return op_fail(n, RLXVK_E_SHAPE, "x is %s; tokens must be %lld * %lld * %lld",
                       shape_text(x, shape), (long long)o->end_x, (long long)o->end_y,
                       (long long)o->repeat_factor);
    n->shape = *x;
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

static uint32_t axial_rope2d_sizes(void *attributes, int64_t *out[OP_MOST_SIZES])
{
    axial_rope2d_attributes *a = attributes;
    out[0] = &a->options.end_x;
    out[1] = &a->options.end_y;
    return 2;
}

static rlxvk_status axial_rope2d_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const rlxvk_axial_rope2d_options *o =
        &((const axial_rope2d_attributes *)n->attributes)->options;
    bool tile = o->repeat_mode == RLXVK_AXIAL_TILE;
    operand operands[] = {lower_input(l, id, 0), lower_write(l, id)};
    struct axial_rope2d_args args = {.pairs = (u32)(n->shape.dims[0] * n->shape.dims[1] *
                                                    (o->head_dim / 2)),
                                     .tokens = (u32)n->shape.dims[1],
                                     .half_head = (u32)o->head_dim / 2,
                                     .heads = (u32)o->num_heads,
                                     .columns = (u32)n->shape.dims[2],
                                     .end_x = (u32)o->end_x,
                                     .positions = (u32)(o->end_x * o->end_y),
                                     .repeat = tile ? 1 : (u32)o->repeat_factor,
                                     .x_offset = operands[0].offset,
                                     .y_offset = operands[1].offset,
                                     .theta = o->theta,
                                     .sign = o->inverse ? -1.0f : 1.0f};
    dispatch d = {.kernel = KERNEL_AXIAL_ROPE2D};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {AXIAL_ROPE2D_TILE, tile});
    lower_groups(l, &d, groups_for(args.pairs, l->profile->workgroup_size));
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

static void host_pair(const float *x, double w, double most, double *y, double *bound)
{
    y[0] = x[0] * numeric_cos(w) - x[1] * numeric_sin(w);
    y[1] = x[0] * numeric_sin(w) + x[1] * numeric_cos(w);
    if (bound)
        bound[0] = bound[1] =
            1e-6 + (4e-6 + ldexp(4 * most, -24)) * hypot((double)x[0], (double)x[1]);
}

static rlxvk_status axial_rope2d_host(const host_call *call)
{
    const node *n = call->node;
    const rlxvk_axial_rope2d_options *o =
        &((const axial_rope2d_attributes *)n->attributes)->options;
    int64_t d = o->head_dim, rows = n->shape.dims[0] * n->shape.dims[1], at = 0;
    double last = pow(o->theta, -4.0 * (double)(d / 4 - 1) / (double)d);
    double most = (double)(MAX(o->end_x, o->end_y) - 1) * fmax(1, last);
    for (int64_t row = 0; row < rows; row++) {
        int64_t t = row % n->shape.dims[1], grid = o->end_x * o->end_y;
        int64_t place = o->repeat_mode == RLXVK_AXIAL_TILE ? t % grid : t / o->repeat_factor;
        int64_t places[] = {place % o->end_x, place / o->end_x};
        for (int64_t h = 0; h < o->num_heads; h++)
            for (int64_t half = 0; half < 2; half++)
                for (int64_t c = 0; c < d / 4; c++, at += 2) {
                    double w = (double)places[half] * pow(o->theta, -4.0 * (double)c / (double)d);
                    host_pair(call->inputs[0].words + at, o->inverse ? -w : w, most, call->out + at,
                              call->bound ? call->bound + at : NULL);
                }
    }
    return RLXVK_OK;
}

/* Tokens do not depend on each other, but a token's index gives its position. */
static uint64_t axial_rope2d_bucket(bucket_call *c)
{
    return bucket_rows(c, 1u << 2, 0);
}

/* The transpose of a rotation is the rotation back. */
static rlxvk_status axial_rope2d_vjp(gradient_call *c)
{
    rlxvk_axial_rope2d_options o = ((const axial_rope2d_attributes *)c->n.attributes)->options;
    o.inverse = !o.inverse;
    gradient_give(c, 0, rlxvk_axial_rope2d(c->graph, c->dy, &o));
    return RLXVK_OK;
}

static void axial_rope2d_describe(const node *n, text *out)
{
    const rlxvk_axial_rope2d_options *o =
        &((const axial_rope2d_attributes *)n->attributes)->options;
    text_append(out, " grid=%lldx%lld head_dim=%lld theta=%g repeat=%lld%s%s", (long long)o->end_x,
                (long long)o->end_y, (long long)o->head_dim, (double)o->theta,
                (long long)o->repeat_factor, o->repeat_mode == RLXVK_AXIAL_TILE ? " tile" : "",
                o->inverse ? " inverse" : "");
}

const op_family axial_rope2d_family = {
    .name = "axial_rope2d",
    .attribute_size = sizeof(axial_rope2d_attributes),
    .infer = axial_rope2d_infer,
    .sizes = axial_rope2d_sizes,
    .memory = {.in_place = op_first_in_place},
    .execution = {.lower = axial_rope2d_lower, .host = axial_rope2d_host},
    .rows = {.bucket = axial_rope2d_bucket},
    .derivative = {.vjp = axial_rope2d_vjp},
    .describe = axial_rope2d_describe,
};
