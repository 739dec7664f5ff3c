/* Operands and attributes for the builders of rlxvk_ops_signal.h. */
#include "support/fuzz_calls.h"

/* Reduces numbers of up to 32 bits to the limit, because tables of this length are made. */
static int64_t most(int64_t value, int64_t limit)
{
    bool small = value >= -INT64_C(0xffffffff) && value <= INT64_C(0xffffffff);
    return small && (value > limit || value < -limit) ? value % limit : value;
}

/* A spectrum of random size, and its n_fft. */
static rlxvk_tensor spectrum(fuzz_maker *m, int64_t *out_n)
{
    int64_t n = *out_n = fuzz_from(m, 1, 40);
    int64_t width = fuzz_bool(m->in) ? n : n / 2 + 1;
    return fuzz_bool(m->in) ? fuzz_any(m) : f32(m, RLXVK_SHAPE(fuzz_dim(m), times(2, width)));
}

rlxvk_tensor fuzz_call_welch_power(fuzz_maker *m)
{
    int64_t n;
    rlxvk_tensor x = spectrum(m, &n);
    rlxvk_welch_options o = {fuzz_below(m->in, 4), fuzz_bool(m->in) ? n : fuzz_number(m),
                             fuzz_bool(m->in)};
    return rlxvk_welch_power(m->g, x, fuzz_bool(m->in) ? &o : NULL);
}

rlxvk_tensor fuzz_call_welch_peaks(fuzz_maker *m)
{
    int64_t n, k = fuzz_dim(m);
    rlxvk_tensor x = spectrum(m, &n);
    return rlxvk_welch_peaks(m->g, x, k, fuzz_from(m, 1, 3));
}

rlxvk_tensor fuzz_call_welch(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_bool(m->in) ? fuzz_any(m) : f32(m, RLXVK_SHAPE(2, 60));
    int64_t length = fuzz_from(m, 1, 40), hop = fuzz_from(m, 1, 40);
    rlxvk_welch_frame_options o = {length, fuzz_bool(m->in) ? hop : fuzz_number(m)};
    o.n_fft = fuzz_bool(m->in) ? (length & 0xffff) + fuzz_below(m->in, 30) : 0;
    o.unfolded = fuzz_bool(m->in);
    o.scale = fuzz_below(m->in, 3);
    return rlxvk_welch(m->g, x, fuzz_maybe(m, RLXVK_SHAPE(length)), &o);
}

typedef struct mel_operands {
    rlxvk_tensor x, filters, dy;
    rlxvk_log_mel_scope scope;
} mel_operands;

static mel_operands draw_mel(fuzz_maker *m)
{
    int64_t n = fuzz_from(m, 1, 40), frames = fuzz_dim(m), mels = fuzz_from(m, 1, 9);
    int64_t width = fuzz_bool(m->in) ? n : n / 2 + 1;
    rlxvk_tensor x = f32(m, RLXVK_SHAPE(frames, times(2, width)));
    rlxvk_tensor filters = f32(m, RLXVK_SHAPE(mels, n / 2 + 1));
    rlxvk_tensor dy = f32(m, RLXVK_SHAPE(frames, mels));
    return (mel_operands){x, filters, dy, (rlxvk_log_mel_scope)fuzz_below(m->in, 2)};
}

rlxvk_tensor fuzz_call_log_mel(fuzz_maker *m)
{
    mel_operands o = draw_mel(m);
    return rlxvk_log_mel(m->g, o.x, o.filters, o.scope);
}

rlxvk_tensor fuzz_call_log_mel_slopes(fuzz_maker *m)
{
    mel_operands o = draw_mel(m);
    return rlxvk_log_mel_slopes(m->g, o.x, o.filters, o.dy, o.scope);
}

rlxvk_tensor fuzz_call_log_mel_backward(fuzz_maker *m)
{
    mel_operands o = draw_mel(m);
    return rlxvk_log_mel_backward(m->g, o.x, o.filters, o.dy, o.scope);
}

rlxvk_tensor fuzz_call_signal_mel_filterbank(fuzz_maker *m)
{
    rlxvk_mel_options o = {.rate = 16000,
                           .n_fft = most(fuzz_dim(m), 4096),
                           .n_mels = most(fuzz_dim(m), 100),
                           .low = fuzz_below(m->in, 100),
                           .high = fuzz_below(m->in, 2) * 7000.0,
                           .scale = (rlxvk_mel_scale)fuzz_below(m->in, 2),
                           .unnormalized = fuzz_bool(m->in)};
    return rlxvk_signal_mel_filterbank(m->g, &o);
}

rlxvk_tensor fuzz_call_overlap_add(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    rlxvk_shape s = shape_of(m, x);
    if (s.rank < 2 || fuzz_bool(m->in))
        x = f32(m, s = RLXVK_SHAPE(fuzz_dim(m), fuzz_dim(m)));
    rlxvk_tensor window = fuzz_maybe(m, RLXVK_SHAPE(last(s, 0)));
    return rlxvk_overlap_add(m->g, x, window, fuzz_dim(m));
}

rlxvk_tensor fuzz_call_istft(fuzz_maker *m)
{
    int64_t n = fuzz_from(m, 1, 40), hop = fuzz_dim(m), frames = fuzz_dim(m);
    int64_t length = 1 + fuzz_below(m->in, (uint32_t)n);
    rlxvk_istft_options o = {.length = length, .hop = hop, .n_fft = n};
    o.center = fuzz_bool(m->in);
    o.samples = fuzz_bool(m->in) ? fuzz_dim(m) : 0;
    rlxvk_tensor x = f32(m, RLXVK_SHAPE(frames, times(2, n / 2 + 1)));
    rlxvk_tensor window = fuzz_maybe(m, RLXVK_SHAPE(length));
    return rlxvk_istft(m->g, x, window, &o);
}

rlxvk_tensor fuzz_call_signal_hamming(fuzz_maker *m)
{
    int64_t n = most(fuzz_dim(m), 4096);
    return rlxvk_signal_hamming(m->g, n, fuzz_bool(m->in));
}

rlxvk_tensor fuzz_call_signal_blackman(fuzz_maker *m)
{
    int64_t n = most(fuzz_dim(m), 4096);
    return rlxvk_signal_blackman(m->g, n, fuzz_bool(m->in));
}

rlxvk_tensor fuzz_call_signal_kaiser(fuzz_maker *m)
{
    int64_t n = most(fuzz_dim(m), 4096);
    return rlxvk_signal_kaiser(m->g, n, fuzz_below(m->in, 30), fuzz_bool(m->in));
}

/* ---- Other rates ---- */

rlxvk_tensor fuzz_call_upfirdn(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m), taps = f32(m, RLXVK_SHAPE(fuzz_dim(m)));
    return rlxvk_upfirdn(m->g, x, taps, most(fuzz_number(m), 40), fuzz_from(m, 1, 9));
}

rlxvk_tensor fuzz_call_resample(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    return rlxvk_resample(m->g, x, most(fuzz_number(m), 40), fuzz_from(m, 1, 9));
}

rlxvk_tensor fuzz_call_mfcc(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    return rlxvk_mfcc(m->g, x, fuzz_dim(m), fuzz_below(m->in, 30));
}
