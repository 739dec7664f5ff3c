/* Operands and attributes for the builders of rlxvk_train.h; see fuzz_calls.c. */
#include "support/fuzz_calls.h"

rlxvk_tensor fuzz_call_activation_backward(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    rlxvk_tensor dy = f32(m, shape_of(m, x));
    return rlxvk_activation_backward(m->g, x, dy, (rlxvk_activation)fuzz_below(m->in, 19));
}

/* Mostly the gradient of one window that covers all of x. */
static rlxvk_tensor pool_backward(fuzz_maker *m, bool largest)
{
    uint32_t spatial = 1 + fuzz_below(m->in, 3), bits = fuzz_byte(m->in);
    rlxvk_shape x = fuzz_shape(m, 2 + spatial), dy = x;
    rlxvk_pool_options o = {0};
    for (uint32_t i = 0; i < spatial; i++) {
        o.kernel[i] = bits & 1 ? 1 : x.dims[2 + i];
        dy.dims[2 + i] = bits & 1 ? x.dims[2 + i] : 1;
        if (bits >= 128)
            o.stride[i] = fuzz_number(m);
        if (bits >= 250)
            o.padding[i] = fuzz_number(m);
    }
    fuzz_later_windows(m, &o, spatial);
    rlxvk_tensor image = f32(m, x), upstream = f32(m, dy);
    return (largest ? rlxvk_pool_max_backward : rlxvk_pool_min_backward)(m->g, image, upstream, &o);
}

rlxvk_tensor fuzz_call_pool_max_backward(fuzz_maker *m)
{
    return pool_backward(m, true);
}

rlxvk_tensor fuzz_call_pool_min_backward(fuzz_maker *m)
{
    return pool_backward(m, false);
}

/* dy has any size. If it is too large for x, the call is refused. */
rlxvk_tensor fuzz_call_conv_backward_input(fuzz_maker *m)
{
    uint32_t spatial = 1 + fuzz_below(m->in, 3), bits = fuzz_byte(m->in);
    rlxvk_shape w = fuzz_shape(m, 2 + spatial), dy = fuzz_shape(m, 2 + spatial);
    rlxvk_conv_options o = {0};
    int64_t size[3] = {0};
    dy.dims[1] = w.dims[0];
    for (uint32_t i = 0; i < spatial; i++) {
        if (__builtin_add_overflow(dy.dims[2 + i], w.dims[2 + i], &size[i]))
            size[i] = INT64_MAX;
        size[i] -= size[i] > 0;
        if (bits & 1)
            o.padding[i] = fuzz_number(m);
        if (bits & 2)
            size[i] = fuzz_number(m);
        if (bits >= 200)
            o.stride[i] = o.dilation[i] = fuzz_number(m);
    }
    rlxvk_tensor weights = f32(m, w), upstream = f32(m, dy);
    return rlxvk_conv_backward_input(m->g, weights, upstream, size, &o);
}

rlxvk_tensor fuzz_call_conv_backward_weight(fuzz_maker *m)
{
    uint32_t spatial = 1 + fuzz_below(m->in, 3), bits = fuzz_byte(m->in);
    rlxvk_shape x = fuzz_shape(m, 2 + spatial), dy = fuzz_shape(m, 2 + spatial);
    rlxvk_conv_options o = {0};
    dy.dims[0] = x.dims[0];
    for (uint32_t i = 0; i < spatial; i++) {
        o.kernel[i] = bits & 1 ? fuzz_number(m) : 1;
        if (bits & 2)
            o.padding[i] = fuzz_number(m);
        if (bits >= 200)
            o.stride[i] = o.dilation[i] = fuzz_number(m);
        if (!(bits & 4))
            dy.dims[2 + i] = x.dims[2 + i];
    }
    rlxvk_tensor image = f32(m, x), upstream = f32(m, dy);
    return rlxvk_conv_backward_weight(m->g, image, upstream, &o);
}

rlxvk_tensor fuzz_call_softmax_backward(fuzz_maker *m)
{
    rlxvk_tensor y = fuzz_any(m);
    rlxvk_shape s = shape_of(m, y);
    return rlxvk_softmax_backward(m->g, y, f32(m, s), fuzz_axis(m, s.rank));
}

static rlxvk_shape rows_of(rlxvk_shape s)
{
    if (s.rank)
        s.dims[--s.rank] = 0;
    return s;
}

rlxvk_tensor fuzz_call_softmax_cross_entropy(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    rlxvk_tensor labels = fuzz_fit(m, RLXVK_I32, rows_of(shape_of(m, x)));
    return rlxvk_softmax_cross_entropy(m->g, x, labels);
}

rlxvk_tensor fuzz_call_softmax_cross_entropy_backward(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    rlxvk_shape rows = rows_of(shape_of(m, x));
    rlxvk_tensor labels = f32(m, rows), d_loss = f32(m, rows);
    return rlxvk_softmax_cross_entropy_backward(m->g, x, labels, d_loss);
}

rlxvk_tensor fuzz_call_softmax_cross_entropy_dense(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    return rlxvk_softmax_cross_entropy_dense(m->g, x, f32(m, shape_of(m, x)));
}

rlxvk_tensor fuzz_call_softmax_cross_entropy_dense_backward(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m), d_targets;
    rlxvk_shape s = shape_of(m, x);
    rlxvk_tensor targets = f32(m, s), d_loss = f32(m, rows_of(s));
    bool both = fuzz_bool(m->in);
    rlxvk_tensor d_logits = rlxvk_softmax_cross_entropy_dense_backward(m->g, x, targets, d_loss,
                                                                       both ? &d_targets : NULL);
    return both ? d_targets : d_logits;
}

rlxvk_tensor fuzz_call_gather_backward(fuzz_maker *m)
{
    rlxvk_tensor dy = fuzz_any(m);
    rlxvk_shape s = shape_of(m, dy);
    int32_t axis = fuzz_axis(m, s.rank);
    uint32_t at = (uint32_t)(axis < 0 ? axis + (int32_t)s.rank : axis);
    rlxvk_tensor indices = fuzz_fit(m, RLXVK_I32, RLXVK_SHAPE(at < s.rank ? s.dims[at] : 1));
    return rlxvk_gather_backward(m->g, dy, indices, axis, fuzz_dim(m));
}

rlxvk_tensor fuzz_call_take_along_axis_backward(fuzz_maker *m)
{
    rlxvk_tensor dy = fuzz_any(m);
    rlxvk_shape s = shape_of(m, dy);
    rlxvk_tensor indices = fuzz_fit(m, RLXVK_I32, s);
    return rlxvk_take_along_axis_backward(m->g, dy, indices, fuzz_axis(m, s.rank), fuzz_dim(m));
}

/* x, a dy of its shape, and a gamma for axis 1 if there is one. `rank` is x's rank; 0: any. */
static rlxvk_tensor norm_operands(fuzz_maker *m, uint32_t rank, rlxvk_tensor out[3])
{
    out[0] = rank ? fuzz_ranked(m, RLXVK_F32, rank) : fuzz_any(m);
    rlxvk_shape s = shape_of(m, out[0]);
    uint32_t at = rank ? 1 : s.rank - 1;
    out[1] = fuzz_maybe(m, RLXVK_SHAPE(at < s.rank ? s.dims[at] : 1));
    out[2] = f32(m, s);
    return out[0];
}

rlxvk_tensor fuzz_call_layer_norm_backward_input(fuzz_maker *m)
{
    rlxvk_tensor t[3], x = norm_operands(m, 0, t);
    return rlxvk_layer_norm_backward_input(m->g, x, t[1], t[2], -1, fuzz_real(m));
}

rlxvk_tensor fuzz_call_layer_norm_backward_gamma(fuzz_maker *m)
{
    rlxvk_tensor t[3], x = norm_operands(m, 0, t);
    int32_t axis = fuzz_axis(m, shape_of(m, x).rank);
    return rlxvk_layer_norm_backward_gamma(m->g, x, t[2], axis, fuzz_real(m));
}

rlxvk_tensor fuzz_call_layer_norm_backward_parameters(fuzz_maker *m)
{
    rlxvk_tensor t[3], x = norm_operands(m, 0, t);
    int32_t axis = fuzz_axis(m, shape_of(m, x).rank);
    return rlxvk_layer_norm_backward_parameters(m->g, x, t[2], axis, fuzz_real(m));
}

rlxvk_tensor fuzz_call_rms_norm_backward_parameters(fuzz_maker *m)
{
    rlxvk_tensor t[3], x = norm_operands(m, 0, t);
    return rlxvk_rms_norm_backward_parameters(m->g, x, t[2], -1, fuzz_real(m));
}

rlxvk_tensor fuzz_call_rms_norm_backward_input(fuzz_maker *m)
{
    rlxvk_tensor t[3], x = norm_operands(m, 0, t);
    return rlxvk_rms_norm_backward_input(m->g, x, t[1], t[2], -1, fuzz_real(m));
}

rlxvk_tensor fuzz_call_rms_norm_backward_gamma(fuzz_maker *m)
{
    rlxvk_tensor t[3], x = norm_operands(m, 0, t);
    int32_t axis = fuzz_axis(m, shape_of(m, x).rank);
    return rlxvk_rms_norm_backward_gamma(m->g, x, t[2], axis, fuzz_real(m));
}

rlxvk_tensor fuzz_call_rms_norm_backward_beta(fuzz_maker *m)
{
    rlxvk_tensor dy = fuzz_any(m);
    return rlxvk_rms_norm_backward_beta(m->g, dy, fuzz_axis(m, shape_of(m, dy).rank));
}

rlxvk_tensor fuzz_call_layer_norm2d_backward_input(fuzz_maker *m)
{
    rlxvk_tensor t[3], x = norm_operands(m, 4, t);
    return rlxvk_layer_norm2d_backward_input(m->g, x, t[1], t[2], fuzz_real(m));
}

rlxvk_tensor fuzz_call_layer_norm2d_backward_gamma(fuzz_maker *m)
{
    rlxvk_tensor t[3], x = norm_operands(m, 4, t);
    return rlxvk_layer_norm2d_backward_gamma(m->g, x, t[2], fuzz_real(m));
}

rlxvk_tensor fuzz_call_layer_norm2d_backward_beta(fuzz_maker *m)
{
    return rlxvk_layer_norm2d_backward_beta(m->g, fuzz_ranked(m, RLXVK_F32, 4));
}

rlxvk_tensor fuzz_call_group_norm_backward_input(fuzz_maker *m)
{
    rlxvk_tensor t[3], x = norm_operands(m, 2 + fuzz_below(m->in, 4), t);
    return rlxvk_group_norm_backward_input(m->g, x, t[1], t[2], fuzz_number(m), fuzz_real(m));
}

rlxvk_tensor fuzz_call_group_norm_backward_parameters(fuzz_maker *m)
{
    rlxvk_tensor t[3], x = norm_operands(m, 2 + fuzz_below(m->in, 4), t);
    return rlxvk_group_norm_backward_parameters(m->g, x, t[2], fuzz_number(m), fuzz_real(m));
}

rlxvk_tensor fuzz_call_group_norm_backward_gamma(fuzz_maker *m)
{
    rlxvk_tensor t[3], x = norm_operands(m, 2 + fuzz_below(m->in, 4), t);
    return rlxvk_group_norm_backward_gamma(m->g, x, t[2], fuzz_number(m), fuzz_real(m));
}

rlxvk_tensor fuzz_call_group_norm_backward_beta(fuzz_maker *m)
{
    rlxvk_tensor dy = fuzz_ranked(m, RLXVK_F32, 2 + fuzz_below(m->in, 4));
    return rlxvk_group_norm_backward_beta(m->g, dy, fuzz_number(m));
}

/* The gradient of any tensor, mostly with the tensor itself as the seed. Without a seed it must be
 * a single element. */
rlxvk_tensor fuzz_call_grad(fuzz_maker *m)
{
    rlxvk_tensor wrt[2] = {fuzz_any(m), fuzz_any(m)}, loss = fuzz_any(m), gradients[2];
    rlxvk_tensor seed = fuzz_below(m->in, 8) ? loss : RLXVK_NONE;
    rlxvk_grad(m->g, loss, seed, wrt, 1 + fuzz_below(m->in, 2), gradients);
    return gradients[0];
}

rlxvk_tensor fuzz_call_checkpoint(fuzz_maker *m)
{
    rlxvk_tensor t = fuzz_any(m);
    rlxvk_checkpoint(m->g, t);
    return rlxvk_graph_status(m->g) == RLXVK_OK ? t : RLXVK_NONE;
}

/* ---- Optimizers ---- */

static const rlxvk_optimizer_data *any_data(fuzz_maker *m, int64_t numbers,
                                            rlxvk_optimizer_data *out)
{
    uint32_t bits = fuzz_byte(m->in);
    *out = (rlxvk_optimizer_data){RLXVK_NONE, RLXVK_NONE};
    if (bits & 1)
        out->schedule = f32(m, RLXVK_SHAPE(numbers));
    if (bits & 2)
        out->gradient_scale = f32(m, RLXVK_SCALAR);
    return bits & 4 ? NULL : out;
}

rlxvk_tensor fuzz_call_adamw(fuzz_maker *m)
{
    rlxvk_tensor p = fuzz_any(m), averages[2];
    rlxvk_shape s = shape_of(m, p);
    rlxvk_tensor d = f32(m, s), first = f32(m, s), second = f32(m, s);
    rlxvk_adamw_options options = {1e-3f, 0.9f, 0.999f, 1e-8f, 0.01f, fuzz_below(m->in, 3)};
    rlxvk_optimizer_data data;
    const rlxvk_optimizer_data *given = any_data(m, 3, &data);
    return rlxvk_adamw(m->g, p, d, first, second, &options, given,
                       fuzz_bool(m->in) ? averages : NULL);
}

rlxvk_tensor fuzz_call_sgd(fuzz_maker *m)
{
    rlxvk_tensor p = fuzz_any(m), average;
    rlxvk_shape s = shape_of(m, p);
    rlxvk_tensor d = f32(m, s), momentum = f32(m, s);
    rlxvk_sgd_options options = {fuzz_real(m), 0.9f, 0, fuzz_bool(m->in)};
    rlxvk_optimizer_data data;
    const rlxvk_optimizer_data *given = any_data(m, 1, &data);
    return rlxvk_sgd(m->g, p, d, momentum, &options, given, fuzz_bool(m->in) ? &average : NULL);
}

rlxvk_tensor fuzz_call_lion(fuzz_maker *m)
{
    rlxvk_tensor p = fuzz_any(m), average;
    rlxvk_shape s = shape_of(m, p);
    rlxvk_tensor d = f32(m, s), momentum = f32(m, s);
    rlxvk_lion_options options = {1e-3f, 0.9f, 0.99f, fuzz_real(m)};
    rlxvk_optimizer_data data;
    const rlxvk_optimizer_data *given = any_data(m, 1, &data);
    return rlxvk_lion(m->g, p, d, momentum, &options, given, fuzz_bool(m->in) ? &average : NULL);
}

rlxvk_tensor fuzz_call_state(fuzz_maker *m)
{
    const char *name = fuzz_below(m->in, 16) < 13 ? "state" : "w";
    return rlxvk_state(m->g, name, RLXVK_F32, fuzz_shape(m, fuzz_below(m->in, 9)));
}

rlxvk_tensor fuzz_call_gradient_clip(fuzz_maker *m)
{
    rlxvk_tensor gradients[2] = {fuzz_any(m), fuzz_any(m)};
    return rlxvk_gradient_clip(m->g, gradients, fuzz_below(m->in, 3), fuzz_real(m));
}
