/* Operands and attributes for the gradients of scans; see fuzz_calls.c. */
#include "support/fuzz_calls.h"

static const rlxvk_tensor none = {0};

rlxvk_tensor fuzz_call_selective_scan_backward(fuzz_maker *m)
{
    int64_t b = fuzz_dim(m), s = fuzz_dim(m), c = fuzz_dim(m), n = fuzz_dim(m);
    rlxvk_shape wide = RLXVK_SHAPE(b, s, c), vectors = RLXVK_SHAPE(b, s, n);
    rlxvk_tensor x = f32(m, wide), delta = f32(m, wide), a = f32(m, RLXVK_SHAPE(c, n));
    rlxvk_tensor in = f32(m, vectors), out = f32(m, vectors), dy = f32(m, wide), d[4] = {0};
    rlxvk_tensor dx = rlxvk_selective_scan_backward(m->g, x, delta, a, in, out, dy, &d[0], &d[1],
                                                    &d[2], fuzz_bool(m->in) ? &d[3] : NULL);
    for (size_t i = 0; i < 4; i++)
        fuzz_keep(m, d[i]);
    return dx;
}

rlxvk_tensor fuzz_call_mamba2_backward(fuzz_maker *m)
{
    int64_t b = fuzz_dim(m), s = fuzz_dim(m), h = fuzz_dim(m), p = fuzz_dim(m), n = fuzz_dim(m);
    rlxvk_shape wide = RLXVK_SHAPE(b, s, h, p), vectors = RLXVK_SHAPE(b, s, h, n);
    rlxvk_shape states = RLXVK_SHAPE(b, h, p, n);
    rlxvk_tensor x = f32(m, wide), dt = f32(m, RLXVK_SHAPE(b, s, h)), a = f32(m, RLXVK_SHAPE(h));
    rlxvk_tensor in = f32(m, vectors), out = f32(m, vectors), dy = f32(m, wide), d[5] = {0};
    rlxvk_tensor state = fuzz_maybe(m, states), last = state.id ? fuzz_maybe(m, states) : none;
    rlxvk_tensor dx = rlxvk_mamba2_backward(m->g, x, dt, a, in, out, state, dy, last, &d[0], &d[1],
                                            &d[2], &d[3], fuzz_bool(m->in) ? &d[4] : NULL);
    for (size_t i = 0; i < 5; i++)
        fuzz_keep(m, d[i]);
    return dx;
}

rlxvk_tensor fuzz_call_gated_delta_net_backward(fuzz_maker *m)
{
    int64_t b = fuzz_dim(m), s = fuzz_dim(m), h = fuzz_dim(m), n = fuzz_dim(m);
    rlxvk_shape wide = RLXVK_SHAPE(b, s, h, n), narrow = RLXVK_SHAPE(b, s, h);
    rlxvk_shape states = RLXVK_SHAPE(b, h, n, n);
    rlxvk_tensor q = f32(m, wide), k = f32(m, wide), v = f32(m, wide), dy = f32(m, wide);
    rlxvk_tensor decay = f32(m, narrow), beta = f32(m, narrow), d[5] = {0};
    rlxvk_tensor state = fuzz_maybe(m, states), last = state.id ? fuzz_maybe(m, states) : none;
    rlxvk_tensor dq =
        rlxvk_gated_delta_net_backward(m->g, q, k, v, decay, beta, state, dy, last, &d[0], &d[1],
                                       &d[2], &d[3], fuzz_bool(m->in) ? &d[4] : NULL);
    for (size_t i = 0; i < 5; i++)
        fuzz_keep(m, d[i]);
    return dq;
}

rlxvk_tensor fuzz_call_linear_attention_backward(fuzz_maker *m)
{
    int64_t b = fuzz_dim(m), s = fuzz_dim(m), h = fuzz_dim(m), n = fuzz_dim(m), w = fuzz_dim(m);
    int64_t heads = times(h, 1 + fuzz_below(m->in, 3));
    rlxvk_shape narrow = RLXVK_SHAPE(b, s, h), keys = RLXVK_SHAPE(b, s, h, n);
    rlxvk_shape states = RLXVK_SHAPE(b, h, n, w);
    rlxvk_tensor q = f32(m, RLXVK_SHAPE(b, s, heads, n)), k = f32(m, keys), d[5] = {0};
    rlxvk_tensor v = f32(m, RLXVK_SHAPE(b, s, h, w)), dy = f32(m, RLXVK_SHAPE(b, s, heads, w));
    rlxvk_tensor decay = fuzz_maybe(m, fuzz_bool(m->in) ? keys : narrow);
    rlxvk_tensor beta = fuzz_maybe(m, narrow), state = fuzz_maybe(m, states);
    rlxvk_tensor last = state.id ? fuzz_maybe(m, states) : none;
    rlxvk_linear_attention_options o = {.scale = fuzz_real(m)};
    rlxvk_tensor dq =
        rlxvk_linear_attention_backward(m->g, q, k, v, decay, beta, state, dy, last, &o, &d[0],
                                        &d[1], &d[2], &d[3], fuzz_bool(m->in) ? &d[4] : NULL);
    for (size_t i = 0; i < 5; i++)
        fuzz_keep(m, d[i]);
    return dq;
}
