/* What the builders of quantization-aware training and batch norm are called with; see
 * fuzz_calls.c. */
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

/* An element a channel, mostly. */
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
