/*
 * Gradients of the norms (norm.c). Statistics are computed again from x. xhat is that of norm.c,
 * w = dy gamma, and s = 1 / sqrt(var + eps):
 *   input       dx = s (w - mean(w) - xhat mean(w xhat)), means over the row; rms: without mean(w)
 *   gamma       the sum of dy xhat over all elements that share an element of gamma
 *   beta        the sum of dy over the same
 *   parameters  gamma and beta, one after the other
 *
 * If the root is 0, s and xhat are 0. rlxvk_train.h has the bounds of the errors.
 */
#include "args/rows.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/rows/norm_backward.h"

#include <rlxvk_train.h>

#include <math.h>

/* ---- Building ---- */

static rlxvk_tensor input_of(rlxvk_graph *g, op_kind op, const rlxvk_tensor *operands,
                             norm_backward_attributes a)
{
    a.has_gamma = operands[2].id != 0;
    return op_build(g, op, operands, 3, &a);
}

rlxvk_tensor rlxvk_layer_norm_backward_input(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                             rlxvk_tensor dy, int32_t axis, float eps)
{
    return input_of(g, OP_layer_norm_backward_input, (rlxvk_tensor[]){x, dy, gamma},
                    (norm_backward_attributes){.axis = axis, .eps = eps});
}

rlxvk_tensor rlxvk_rms_norm_backward_input(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                           rlxvk_tensor dy, int32_t axis, float eps)
{
    return input_of(g, OP_rms_norm_backward_input, (rlxvk_tensor[]){x, dy, gamma},
                    (norm_backward_attributes){.axis = axis, .eps = eps});
}

rlxvk_tensor rlxvk_layer_norm2d_backward_input(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                               rlxvk_tensor dy, float eps)
{
    return input_of(g, OP_layer_norm2d_backward_input, (rlxvk_tensor[]){x, dy, gamma},
                    (norm_backward_attributes){.axis = 1, .eps = eps});
}

rlxvk_tensor rlxvk_group_norm_backward_input(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                             rlxvk_tensor dy, int64_t num_groups, float eps)
{
    norm_backward_attributes a = {.axis = 1, .eps = eps, .num_groups = num_groups};
    return input_of(g, OP_group_norm_backward_input, (rlxvk_tensor[]){x, dy, gamma}, a);
}

rlxvk_tensor rlxvk_layer_norm_backward_gamma(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                             int32_t axis, float eps)
{
    norm_backward_attributes a = {.axis = axis, .eps = eps};
    return op_build(g, OP_layer_norm_backward_gamma, (rlxvk_tensor[]){x, dy}, 2, &a);
}

rlxvk_tensor rlxvk_rms_norm_backward_gamma(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                           int32_t axis, float eps)
{
    norm_backward_attributes a = {.axis = axis, .eps = eps};
    return op_build(g, OP_rms_norm_backward_gamma, (rlxvk_tensor[]){x, dy}, 2, &a);
}

rlxvk_tensor rlxvk_layer_norm_backward_parameters(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                                  int32_t axis, float eps)
{
    norm_backward_attributes a = {.axis = axis, .eps = eps};
    return op_build(g, OP_layer_norm_backward_parameters, (rlxvk_tensor[]){x, dy}, 2, &a);
}

rlxvk_tensor rlxvk_rms_norm_backward_parameters(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                                int32_t axis, float eps)
{
    norm_backward_attributes a = {.axis = axis, .eps = eps};
    return op_build(g, OP_rms_norm_backward_parameters, (rlxvk_tensor[]){x, dy}, 2, &a);
}

rlxvk_tensor rlxvk_layer_norm2d_backward_gamma(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                               float eps)
{
    norm_backward_attributes a = {.axis = 1, .eps = eps};
    return op_build(g, OP_layer_norm2d_backward_gamma, (rlxvk_tensor[]){x, dy}, 2, &a);
}

rlxvk_tensor rlxvk_group_norm_backward_parameters(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                                  int64_t num_groups, float eps)
{
    norm_backward_attributes a = {.axis = 1, .eps = eps, .num_groups = num_groups};
    return op_build(g, OP_group_norm_backward_parameters, (rlxvk_tensor[]){x, dy}, 2, &a);
}

rlxvk_tensor rlxvk_group_norm_backward_gamma(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                             int64_t num_groups, float eps)
{
    norm_backward_attributes a = {.axis = 1, .eps = eps, .num_groups = num_groups};
    return op_build(g, OP_group_norm_backward_gamma, (rlxvk_tensor[]){x, dy}, 2, &a);
}

rlxvk_tensor rlxvk_rms_norm_backward_beta(rlxvk_graph *g, rlxvk_tensor dy, int32_t axis)
{
    norm_backward_attributes a = {.axis = axis};
    return op_build(g, OP_rms_norm_backward_beta, &dy, 1, &a);
}

rlxvk_tensor rlxvk_layer_norm2d_backward_beta(rlxvk_graph *g, rlxvk_tensor dy)
{
    norm_backward_attributes a = {.axis = 1};
    return op_build(g, OP_layer_norm2d_backward_beta, &dy, 1, &a);
}

rlxvk_tensor rlxvk_group_norm_backward_beta(rlxvk_graph *g, rlxvk_tensor dy, int64_t num_groups)
{
    norm_backward_attributes a = {.axis = 1, .num_groups = num_groups};
    return op_build(g, OP_group_norm_backward_beta, &dy, 1, &a);
}

/* ---- Infer ---- */

/* Checks x as the norm does. */
static rlxvk_status check_norm(const node *n, const norm_backward_attributes *a,
                               const rlxvk_shape *x)
{
    char shape[SHAPE_TEXT];
    uint32_t norm = norm_backward_norm(n);
    if (x->rank < (norm == NORM_GROUP ? 2u : 1u) || (norm == NORM_LAYER_2D && x->rank != 4))
        return op_fail(n, RLXVK_E_SHAPE, "dy is %s; must be %s", shape_text(x, shape),
                       norm == NORM_LAYER_2D ? "[N, C, H, W]"
                       : norm == NORM_GROUP  ? "[N, C, ...]"
                                             : "no scalar");
    if (norm == NORM_GROUP && (a->num_groups < 1 || x->dims[1] % a->num_groups))
        return op_fail(n, RLXVK_E_ATTR,
                       "num_groups %lld does not divide the channels of %s; choose a divisor",
                       (long long)a->num_groups, shape_text(x, shape));
    if (!(a->eps >= 0) || isinf(a->eps))
        return op_fail(n, RLXVK_E_ATTR, "eps is %g; needs a finite value >= 0", (double)a->eps);
    return RLXVK_OK;
}

static rlxvk_status norm_backward_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    norm_backward_attributes *a = attributes;
    uint32_t part = norm_backward_part(n);
    uint32_t count = part == NORM_BACKWARD_BETA ? 1 : 2u + a->has_gamma;
    char shapes[2][SHAPE_TEXT];
    rlxvk_status status;
    if (n->input_count != count)
        return op_fail(n, RLXVK_E_ARITY, "%u operands; its attributes name %u", n->input_count,
                       count);
    const rlxvk_shape *x = input_shape(g, n, 0), *dy = input_shape(g, n, norm_backward_dy(n));
    if (!shape_equal(x, dy))
        return op_fail(n, RLXVK_E_SHAPE, "x is %s, dy %s; they must be alike",
                       shape_text(x, shapes[0]), shape_text(dy, shapes[1]));
    TRY(check_norm(n, a, x));
    TRY(op_axis(n, a->axis, x->rank, &a->axis));
    if (a->has_gamma)
        TRY(op_require_vector(g, n, 2, "gamma", x->dims[a->axis],
                              norm_backward_norm(n) == NORM_GROUP ? "channels"
                                                                  : "normalized axis"));
    n->shape = part == NORM_BACKWARD_INPUT  ? *x
               : part == NORM_BACKWARD_BOTH ? RLXVK_SHAPE(2, x->dims[a->axis])
                                            : RLXVK_SHAPE(x->dims[a->axis]);
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

/* x and dy may share memory with the result. Each element is read before it is written, by the same
 * lane or in an earlier dispatch. */
static uint32_t norm_backward_in_place(const rlxvk_graph *g, const node *n)
{
    (void)g;
    return norm_backward_part(n) == NORM_BACKWARD_INPUT ? 3 : 0;
}

/* ---- Rows of a bucket ---- */

/* As for the norm itself: group norm computes across an image. */
static uint64_t norm_backward_bucket(bucket_call *c)
{
    const norm_backward_attributes *a = c->node->attributes;
    bool images = norm_backward_norm(c->node) == NORM_GROUP;
    if (norm_backward_part(c->node) != NORM_BACKWARD_INPUT)
        return bucket_refuse(c, "its gradient of parameters adds up over the rows");
    return bucket_rows(c, images ? ~1u : 1u << a->axis, 1u << norm_backward_dy(c->node));
}

/* ---- Gradients ---- */

typedef struct expansion {
    rlxvk_graph *g;
    rlxvk_shape shape, rows; /* of x, and of x with one axis for the elements of a row */
    int32_t axis;            /* that axis */
} expansion;

static rlxvk_tensor row_mean(const expansion *e, rlxvk_tensor t)
{
    return rlxvk_reduce_mean(e->g, t, &e->axis, 1, true);
}

/* The mean is subtracted twice, because a large mean is rounded. */
static rlxvk_tensor deviation_of(const expansion *e, rlxvk_tensor x)
{
    rlxvk_tensor near = rlxvk_sub(e->g, x, row_mean(e, x));
    return rlxvk_sub(e->g, near, row_mean(e, near));
}

/* The mean square of deviations, plus eps. */
static rlxvk_tensor square_of(const expansion *e, rlxvk_tensor deviation, rlxvk_tensor eps)
{
    rlxvk_tensor square = row_mean(e, rlxvk_mul(e->g, deviation, deviation));
    return rlxvk_add(e->g, square, eps);
}

/* A power of two for each row. Gradients of this contain s^3, which must fit f32 after scaling. For
 * ordinary rows it is 1. No gradient flows into it, because it is chosen by comparisons. */
static rlxvk_tensor factor_of(const expansion *e, rlxvk_tensor x, rlxvk_tensor square)
{
    rlxvk_graph *g = e->g;
    rlxvk_tensor one = gradient_scalar(g, 1);
    rlxvk_tensor near =
        rlxvk_lt(g, rlxvk_abs(g, row_mean(e, x)), one); /* a constant row may be far from 0 */
    rlxvk_tensor grown = rlxvk_where(g, near, gradient_scalar(g, 0x1p60), one);
    rlxvk_tensor small = rlxvk_lt(g, square, gradient_scalar(g, 0x1p-80));
    rlxvk_tensor fits = rlxvk_le(g, square, gradient_scalar(g, 0x1p80));
    return rlxvk_where(g, fits, rlxvk_where(g, small, grown, one), gradient_scalar(g, 0x1p-80));
}

/* xhat of rows, and s. */
static rlxvk_tensor normalize(const expansion *e, rlxvk_tensor x, bool rms, double eps,
                              rlxvk_tensor *out_scale)
{
    rlxvk_graph *g = e->g;
    rlxvk_tensor zero = gradient_scalar(g, 0), least = gradient_scalar(g, eps);
    rlxvk_tensor factor = factor_of(e, x, square_of(e, rms ? x : deviation_of(e, x), least));
    x = rlxvk_mul(g, x, factor);
    least = rlxvk_mul(g, rlxvk_mul(g, least, factor), factor);
    rlxvk_tensor deviation = rms ? x : deviation_of(e, x);
    rlxvk_tensor square = square_of(e, deviation, least);
    rlxvk_tensor none = rlxvk_eq(g, square, zero);
    rlxvk_tensor safe = rlxvk_where(g, none, gradient_scalar(g, 1), square);
    rlxvk_tensor scale = rlxvk_where(g, none, zero, rlxvk_rsqrt(g, safe));
    rlxvk_tensor least_safe = rlxvk_le(g, gradient_scalar(g, 0x1p-84), safe);
    rlxvk_tensor nan = gradient_scalar(g, NAN); /* outside the range of the factors */
    scale = rlxvk_where(g, rlxvk_le(g, safe, gradient_scalar(g, 0x1p84)), scale, nan);
    scale = rlxvk_where(g, least_safe, scale, nan);
    *out_scale = rlxvk_mul(g, scale, factor);
    return rlxvk_mul(g, deviation, scale);
}

static rlxvk_tensor sum_of_channels(const expansion *e, rlxvk_tensor t, int32_t channel_axis)
{
    int32_t axes[RLXVK_MAX_RANK];
    size_t count = 0;
    for (uint32_t i = 0; i < e->shape.rank; i++)
        if ((int32_t)i != channel_axis)
            axes[count++] = (int32_t)i;
    return count ? rlxvk_reduce_sum(e->g, t, axes, count, false) : t;
}

static expansion expansion_of(rlxvk_graph *g, const node *n, const norm_backward_attributes *a)
{
    rlxvk_shape x = *input_shape(g, n, 0);
    expansion e = {g, x, x, a->axis};
    if (norm_backward_norm(n) == NORM_GROUP) {
        axis_view v = norm_backward_rows(n, &x);
        e.rows = RLXVK_SHAPE((int64_t)v.outer, (int64_t)v.length);
    }
    return e;
}

static rlxvk_tensor norm_backward_expand(rlxvk_graph *g, const node *n)
{
    const norm_backward_attributes *a = n->attributes;
    expansion e = expansion_of(g, n, a);
    bool rms = norm_backward_norm(n) == NORM_RMS;
    rlxvk_tensor x = tensor_of(g, n->inputs[0]), scale;
    rlxvk_tensor dy = tensor_of(g, n->inputs[norm_backward_dy(n)]);
    if (norm_backward_part(n) == NORM_BACKWARD_BETA)
        return sum_of_channels(&e, dy, a->axis);
    rlxvk_shape vector = {.rank = e.shape.rank};
    for (uint32_t i = 0; i < vector.rank; i++)
        vector.dims[i] = (int32_t)i == a->axis ? e.shape.dims[i] : 1;
    if (a->has_gamma)
        dy = rlxvk_mul(g, dy, rlxvk_reshape(g, tensor_of(g, n->inputs[2]), vector));
    if (e.rows.rank != e.shape.rank || !shape_equal(&e.rows, &e.shape)) {
        x = rlxvk_reshape(g, x, e.rows);
        dy = rlxvk_reshape(g, dy, e.rows);
        e.axis = 1;
    }
    rlxvk_tensor normal = normalize(&e, x, rms, a->eps, &scale);
    rlxvk_tensor product = rlxvk_mul(g, dy, normal);
    if (norm_backward_part(n) != NORM_BACKWARD_INPUT) {
        rlxvk_tensor gamma = sum_of_channels(&e, rlxvk_reshape(g, product, e.shape), a->axis);
        if (norm_backward_part(n) == NORM_BACKWARD_GAMMA)
            return gamma;
        rlxvk_tensor both[] = {gamma, sum_of_channels(&e, rlxvk_reshape(g, dy, e.shape), a->axis)};
        return rlxvk_reshape(g, rlxvk_concat(g, both, 2, 0), n->shape);
    }
    rlxvk_tensor pull = rlxvk_mul(g, normal, row_mean(&e, product));
    rlxvk_tensor rest = rms ? dy : rlxvk_sub(g, dy, row_mean(&e, dy));
    rest = rlxvk_mul(g, scale, rlxvk_sub(g, rest, pull));
    return rlxvk_reshape(g, rest, e.shape);
}

static void norm_backward_describe(const node *n, text *out)
{
    const norm_backward_attributes *a = n->attributes;
    text_append(out, " axis=%d eps=%g%s", a->axis, (double)a->eps, a->has_gamma ? " gamma" : "");
    if (a->num_groups)
        text_append(out, " num_groups=%lld", (long long)a->num_groups);
}

const op_family norm_backward_family = {
    .name = "norm_backward",
    .attribute_size = sizeof(norm_backward_attributes),
    .infer = norm_backward_infer,
    .memory = {.in_place = norm_backward_in_place},
    .execution = {.lower = norm_backward_lower, .host = norm_backward_host},
    .rows = {.bucket = norm_backward_bucket},
    .derivative = {.expand = norm_backward_expand},
    .describe = norm_backward_describe,
};
