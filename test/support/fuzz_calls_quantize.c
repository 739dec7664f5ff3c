/* Operands and attributes for quantization-aware training and batch norm; see fuzz_calls.c. */
#include "support/fuzz_calls.h"

static rlxvk_fake_quantize_options any_options(fuzz_maker *m, rlxvk_shape x)
{
    uint32_t bits = fuzz_byte(m->in);
    return (rlxvk_fake_quantize_options){.bits = bits >= 250 ? (uint32_t)fuzz_number(m) : bits % 9,
                                         .per_axis = fuzz_bool(m->in),
                                         .axis = bits >= 240
                                                     ? (int32_t)fuzz_number(m)
                                                     : (int32_t)fuzz_below(m->in, x.rank + 1),
                                         .mode = (rlxvk_scale_mode)any_of(m, 3),
                                         .estimator = (rlxvk_estimator)any_of(m, 4),
                                         .decay = bits >= 200 ? fuzz_real(m) : 0.5f};
}

/* A scale, mostly with one element for each channel. */
static rlxvk_tensor any_scale(fuzz_maker *m, rlxvk_shape x, const rlxvk_fake_quantize_options *o)
{
    bool along = o->per_axis && o->axis >= 0 && o->axis < (int32_t)x.rank;
    return f32(m, RLXVK_SHAPE(along ? x.dims[o->axis] : 1));
}

rlxvk_tensor fuzz_call_fake_quantize(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    rlxvk_fake_quantize_options o = any_options(m, shape_of(m, x));
    rlxvk_tensor state = RLXVK_NONE;
    if (o.mode != RLXVK_SCALE_PER_BATCH)
        state = any_scale(m, shape_of(m, x), &o);
    return rlxvk_fake_quantize(m->g, x, state, &o);
}

rlxvk_tensor fuzz_call_fake_quantize_backward(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m), dy = f32(m, shape_of(m, x)), scale = RLXVK_NONE;
    rlxvk_fake_quantize_options o = any_options(m, shape_of(m, x));
    if (o.mode != RLXVK_SCALE_PER_BATCH)
        scale = any_scale(m, shape_of(m, x), &o);
    return rlxvk_fake_quantize_backward(m->g, x, dy, scale, &o);
}

rlxvk_tensor fuzz_call_fake_quantize_lsq(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    rlxvk_fake_quantize_options o = any_options(m, shape_of(m, x));
    return rlxvk_fake_quantize_lsq(m->g, x, any_scale(m, shape_of(m, x), &o), &o);
}

rlxvk_tensor fuzz_call_fake_quantize_lsq_backward_x(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m), dy = f32(m, shape_of(m, x));
    rlxvk_fake_quantize_options o = any_options(m, shape_of(m, x));
    rlxvk_tensor scale = any_scale(m, shape_of(m, x), &o);
    return rlxvk_fake_quantize_lsq_backward_x(m->g, x, scale, dy, &o);
}

rlxvk_tensor fuzz_call_fake_quantize_lsq_backward_scale(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m), dy = f32(m, shape_of(m, x));
    rlxvk_fake_quantize_options o = any_options(m, shape_of(m, x));
    rlxvk_tensor scale = any_scale(m, shape_of(m, x), &o);
    return rlxvk_fake_quantize_lsq_backward_scale(m->g, x, scale, dy, &o);
}

/* ---- Batch norm ---- */

static rlxvk_batch_norm_options any_batch_norm(fuzz_maker *m)
{
    uint32_t bits = fuzz_byte(m->in);
    return (rlxvk_batch_norm_options){bits >= 240 ? fuzz_real(m) : 1e-5f,
                                      bits % 16 == 0 ? fuzz_real(m) : 0.1f};
}

/* A vector with one element for each channel of x. If it is optional, maybe none. */
static rlxvk_tensor any_vector(fuzz_maker *m, rlxvk_shape x, bool optional)
{
    if (optional && fuzz_bool(m->in))
        return RLXVK_NONE;
    return f32(m, RLXVK_SHAPE(x.rank > 1 ? x.dims[1] : 1));
}

static rlxvk_tensor any_batch(fuzz_maker *m)
{
    if (fuzz_below(m->in, 8) == 0)
        return fuzz_any(m);
    return f32(m, fuzz_shape(m, 2 + fuzz_below(m->in, 3)));
}

rlxvk_tensor fuzz_call_batch_norm_statistics(fuzz_maker *m)
{
    rlxvk_tensor x = any_batch(m), mean = any_vector(m, shape_of(m, x), true);
    rlxvk_tensor variance = mean.id ? any_vector(m, shape_of(m, x), false) : RLXVK_NONE;
    rlxvk_batch_norm_options o = any_batch_norm(m);
    return rlxvk_batch_norm_statistics(m->g, x, mean, variance, &o);
}

rlxvk_tensor fuzz_call_batch_norm_training(fuzz_maker *m)
{
    rlxvk_tensor x = any_batch(m), gamma = any_vector(m, shape_of(m, x), true);
    rlxvk_tensor beta = any_vector(m, shape_of(m, x), true);
    rlxvk_tensor mean = any_vector(m, shape_of(m, x), true);
    rlxvk_tensor variance = mean.id ? any_vector(m, shape_of(m, x), false) : RLXVK_NONE;
    rlxvk_batch_norm_options o = any_batch_norm(m);
    return rlxvk_batch_norm_training(m->g, x, gamma, beta, mean, variance,
                                     fuzz_bool(m->in) ? &o : NULL);
}

rlxvk_tensor fuzz_call_batch_norm_backward_parameters(fuzz_maker *m)
{
    rlxvk_tensor x = any_batch(m), dy = f32(m, shape_of(m, x));
    rlxvk_shape s = shape_of(m, x);
    rlxvk_tensor known = f32(m, RLXVK_SHAPE(3, s.rank > 1 ? s.dims[1] : 1));
    return rlxvk_batch_norm_backward_parameters(m->g, x, known, dy);
}

rlxvk_tensor fuzz_call_batch_norm_backward_input(fuzz_maker *m)
{
    rlxvk_tensor x = any_batch(m), dy = f32(m, shape_of(m, x));
    rlxvk_tensor gamma = any_vector(m, shape_of(m, x), true);
    rlxvk_tensor known = rlxvk_batch_norm_statistics(m->g, x, RLXVK_NONE, RLXVK_NONE, NULL);
    rlxvk_tensor sums = rlxvk_batch_norm_backward_parameters(m->g, x, known, dy);
    return rlxvk_batch_norm_backward_input(m->g, x, gamma, known, sums, dy);
}
