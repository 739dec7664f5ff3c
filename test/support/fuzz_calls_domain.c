/* Operands and attributes for the builders of special domains, and for builders that take bodies or
 * draw random numbers. */
#include "support/fuzz_calls.h"

/* ---- Images ---- */

static rlxvk_conv_options window(fuzz_maker *m, uint32_t spatial)
{
    rlxvk_conv_options o = {0};
    uint32_t bits = fuzz_byte(m->in);
    for (uint32_t i = 0; i < spatial; i++) {
        if (bits & 1)
            o.stride[i] = fuzz_number(m);
        if (bits & 2)
            o.padding[i] = fuzz_number(m);
        if (bits & 4)
            o.dilation[i] = fuzz_number(m);
    }
    return o;
}

/* An image [n, ci, spatial], its weights and bias. If it is transposed, the weights begin with
 * ci. */
typedef struct convolution {
    rlxvk_tensor image, weights, bias;
    rlxvk_conv_options options;
} convolution;

static convolution draw_convolution(fuzz_maker *m, bool transposed)
{
    uint32_t spatial = 1 + fuzz_below(m->in, 3), bits = fuzz_byte(m->in);
    rlxvk_conv_options o = window(m, spatial);
    int64_t groups = bits & 1 ? 1 + fuzz_below(m->in, 3) : 1;
    int64_t in = times(groups, fuzz_dim(m)), out = times(groups, fuzz_dim(m));
    rlxvk_shape x = fuzz_shape(m, 2 + spatial), w = fuzz_shape(m, 2 + spatial);
    x.dims[1] = in;
    w.dims[0] = transposed ? in : out;
    w.dims[1] = (transposed ? out : in) / groups;
    o.groups = groups;
    if (bits & 2 && transposed)
        o.output_padding[0] = fuzz_number(m);
    if (bits >= 250)
        o.kernel[0] = fuzz_number(m);
    rlxvk_tensor image = f32(m, x), weights = f32(m, w);
    return (convolution){image, weights, fuzz_maybe(m, RLXVK_SHAPE(out)), o};
}

rlxvk_tensor fuzz_call_conv(fuzz_maker *m)
{
    convolution c = draw_convolution(m, false);
    return rlxvk_conv(m->g, c.image, c.weights, c.bias, &c.options);
}

rlxvk_tensor fuzz_call_conv_transpose2d(fuzz_maker *m)
{
    convolution c = draw_convolution(m, true);
    return rlxvk_conv_transpose2d(m->g, c.image, c.weights, c.bias, &c.options);
}

/* The residual is the result of a convolution, or there is none. */
rlxvk_tensor fuzz_call_fused_conv(fuzz_maker *m)
{
    convolution c = draw_convolution(m, false);
    uint32_t bits = fuzz_byte(m->in);
    rlxvk_fused_conv_options o = {c.options, (rlxvk_activation)fuzz_below(m->in, 19), bits & 1};
    rlxvk_tensor residual = RLXVK_NONE;
    if (bits & 2 && c.bias.id)
        c.bias = f32(m, RLXVK_SHAPE(2, shape_of(m, c.bias).dims[0]));
    if (bits & 4)
        residual = rlxvk_conv(m->g, c.image, c.weights, RLXVK_NONE, &c.options);
    return rlxvk_fused_conv(m->g, c.image, c.weights, c.bias, residual, &o);
}

rlxvk_tensor fuzz_call_im2col(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_ranked(m, RLXVK_F32, 4);
    rlxvk_conv_options o = window(m, 2);
    o.kernel[0] = fuzz_dim(m);
    o.kernel[1] = fuzz_dim(m);
    return rlxvk_im2col(m->g, x, &o);
}

/* As many rows as the im2col of the image would have. */
rlxvk_tensor fuzz_call_col2im(fuzz_maker *m)
{
    int64_t height = fuzz_dim(m), width = fuzz_dim(m), kh = fuzz_dim(m), kw = fuzz_dim(m);
    rlxvk_conv_options o = {.kernel = {kh, kw}};
    int64_t down = height >= kh && kh > 0 ? height - kh + 1 : 1;
    int64_t across = width >= kw && kw > 0 ? width - kw + 1 : 1;
    if (fuzz_byte(m->in) >= 200)
        o = window(m, 2);
    rlxvk_tensor columns = f32(m, RLXVK_SHAPE(times(times(down, across), 1 + fuzz_below(m->in, 3)),
                                              times(times(kh, kw), fuzz_dim(m))));
    return rlxvk_col2im(m->g, columns, height, width, &o);
}

/* ---- Sequence models ---- */

typedef struct recurrent {
    rlxvk_recurrent_options options;
    rlxvk_tensor x, w_ih, w_hh, bias, bias2, h0, c0;
} recurrent;

static recurrent recurrent_operands(fuzz_maker *m, int64_t gates, bool two_states)
{
    recurrent r = {{.hidden_size = fuzz_dim(m)}, .h0 = RLXVK_NONE};
    uint32_t bits = fuzz_byte(m->in);
    int64_t hidden = r.options.hidden_size, layers = 1, nets = bits & 1 ? 2 : 1;
    int64_t b = fuzz_dim(m), s = fuzz_dim(m), width = fuzz_dim(m);
    r.options.bidirectional = bits & 1;
    r.options.relu = bits & 2;
    if (bits & 4)
        r.options.num_layers = layers = 1 + fuzz_below(m->in, 3);
    if (bits >= 250)
        r.options.num_layers = fuzz_number(m);
    int64_t rows = times(gates, hidden), inner = times(layers - 1, times(nets, hidden));
    int64_t total = inner > INT32_MAX || width > INT32_MAX || width < 0 ? INT64_MAX : width + inner;
    r.x = f32(m, RLXVK_SHAPE(b, s, width));
    r.w_ih = f32(m, RLXVK_SHAPE(times(times(nets, rows), total)));
    r.w_hh = f32(m, RLXVK_SHAPE(times(times(times(layers, nets), rows), hidden)));
    r.bias = f32(m, RLXVK_SHAPE(times(times(layers, nets), rows)));
    r.bias2 = gates == 3 ? f32(m, RLXVK_SHAPE(times(times(layers, nets), rows))) : RLXVK_NONE;
    if (bits & 8) {
        r.options.in_place = bits & 16;
        r.h0 = f32(m, RLXVK_SHAPE(times(layers, nets), b, hidden));
        if (two_states)
            r.c0 = f32(m, RLXVK_SHAPE(times(layers, nets), b, hidden));
    }
    return r;
}

rlxvk_tensor fuzz_call_lstm(fuzz_maker *m)
{
    recurrent r = recurrent_operands(m, 4, true);
    rlxvk_tensor h = RLXVK_NONE, c = RLXVK_NONE;
    rlxvk_tensor y = rlxvk_lstm(m->g, r.x, r.w_ih, r.w_hh, r.bias, r.h0, r.c0, &r.options, &h,
                                fuzz_bool(m->in) ? &c : NULL);
    fuzz_keep(m, h);
    fuzz_keep(m, c);
    return y;
}

rlxvk_tensor fuzz_call_gru(fuzz_maker *m)
{
    recurrent r = recurrent_operands(m, 3, false);
    rlxvk_tensor h = RLXVK_NONE;
    rlxvk_tensor y = rlxvk_gru(m->g, r.x, r.w_ih, r.w_hh, r.bias, r.bias2, r.h0, &r.options, &h);
    fuzz_keep(m, h);
    return y;
}

rlxvk_tensor fuzz_call_rnn(fuzz_maker *m)
{
    recurrent r = recurrent_operands(m, 1, false);
    rlxvk_tensor h = RLXVK_NONE;
    rlxvk_tensor y = rlxvk_rnn(m->g, r.x, r.w_ih, r.w_hh, r.bias, r.h0, &r.options, &h);
    fuzz_keep(m, h);
    return y;
}

rlxvk_tensor fuzz_call_selective_scan(fuzz_maker *m)
{
    int64_t b = fuzz_dim(m), s = fuzz_dim(m), c = fuzz_dim(m), n = fuzz_dim(m);
    rlxvk_tensor x = f32(m, RLXVK_SHAPE(b, s, c)), delta = f32(m, RLXVK_SHAPE(b, s, c));
    rlxvk_tensor a = f32(m, RLXVK_SHAPE(c, n)), in = f32(m, RLXVK_SHAPE(b, s, n));
    return rlxvk_selective_scan(m->g, x, delta, a, in, f32(m, RLXVK_SHAPE(b, s, n)));
}

rlxvk_tensor fuzz_call_mamba2(fuzz_maker *m)
{
    int64_t b = fuzz_dim(m), s = fuzz_dim(m), h = fuzz_dim(m), p = fuzz_dim(m), n = fuzz_dim(m);
    rlxvk_tensor x = f32(m, RLXVK_SHAPE(b, s, h, p)), dt = f32(m, RLXVK_SHAPE(b, s, h));
    rlxvk_tensor a = f32(m, RLXVK_SHAPE(h)), in = f32(m, RLXVK_SHAPE(b, s, h, n));
    rlxvk_tensor c = f32(m, RLXVK_SHAPE(b, s, h, n)), last_state = RLXVK_NONE;
    rlxvk_tensor state = fuzz_maybe(m, RLXVK_SHAPE(b, h, p, n));
    rlxvk_tensor y = rlxvk_mamba2(m->g, x, dt, a, in, c, state, fuzz_bool(m->in), &last_state);
    fuzz_keep(m, last_state);
    return y;
}

rlxvk_tensor fuzz_call_gated_delta_net(fuzz_maker *m)
{
    int64_t b = fuzz_dim(m), s = fuzz_dim(m), h = fuzz_dim(m), n = fuzz_dim(m);
    rlxvk_shape wide = RLXVK_SHAPE(b, s, h, n), narrow = RLXVK_SHAPE(b, s, h);
    rlxvk_tensor q = f32(m, wide), k = f32(m, wide), v = f32(m, wide);
    rlxvk_tensor decay = f32(m, narrow), beta = f32(m, narrow), last_state = RLXVK_NONE;
    rlxvk_tensor state = fuzz_maybe(m, RLXVK_SHAPE(b, h, n, n));
    rlxvk_tensor y = rlxvk_gated_delta_net(m->g, q, k, v, decay, beta, state, fuzz_bool(m->in),
                                           fuzz_bool(m->in) ? &last_state : NULL);
    fuzz_keep(m, last_state);
    return y;
}

rlxvk_tensor fuzz_call_linear_attention(fuzz_maker *m)
{
    int64_t b = fuzz_dim(m), s = fuzz_dim(m), h = fuzz_dim(m), n = fuzz_dim(m), w = fuzz_dim(m);
    rlxvk_shape narrow = RLXVK_SHAPE(b, s, h), keys = RLXVK_SHAPE(b, s, h, n);
    rlxvk_tensor q = f32(m, RLXVK_SHAPE(b, s, times(h, 1 + fuzz_below(m->in, 3)), n));
    rlxvk_tensor k = f32(m, keys), v = f32(m, RLXVK_SHAPE(b, s, h, w)), last_state = RLXVK_NONE;
    rlxvk_tensor decay = fuzz_maybe(m, fuzz_bool(m->in) ? keys : narrow);
    rlxvk_tensor beta = fuzz_maybe(m, narrow), state = fuzz_maybe(m, RLXVK_SHAPE(b, h, n, w));
    rlxvk_linear_attention_options o = {.scale = fuzz_real(m), .in_place = fuzz_bool(m->in)};
    rlxvk_tensor y = rlxvk_linear_attention(m->g, q, k, v, decay, beta, state, &o,
                                            fuzz_bool(m->in) ? &last_state : NULL);
    fuzz_keep(m, last_state);
    return y;
}

/* ---- Attention over caches ---- */

rlxvk_tensor fuzz_call_attention_step(fuzz_maker *m)
{
    int64_t b = fuzz_dim(m), n = fuzz_dim(m), group = fuzz_dim(m), rotated = fuzz_dim(m);
    rlxvk_attention_step_options o = {.kv_heads = fuzz_dim(m),
                                      .head_dim = fuzz_dim(m),
                                      .style = (rlxvk_rope_style)any_of(m, 2),
                                      .window = fuzz_number(m),
                                      .score_scale = fuzz_real(m),
                                      .softcap = fuzz_bool(m->in) ? fuzz_real(m) : 0};
    o.heads = times(o.kv_heads, group);
    o.n_rot = fuzz_bool(m->in) ? times(2, rotated) : 0;
    /* Columns of v may follow those of k. Columns of k, or of both, may follow those of q. */
    int64_t own = times(o.kv_heads, o.head_dim), k_row = fuzz_bool(m->in) ? times(2, own) : own;
    int64_t behind_q = fuzz_bool(m->in) ? k_row : 0, q_row;
    if (__builtin_add_overflow(times(o.heads, o.head_dim), behind_q, &q_row))
        q_row = INT64_MAX;
    rlxvk_shape table = RLXVK_SHAPE(times(b, n), rotated);
    rlxvk_dtype held = fuzz_bool(m->in) ? RLXVK_F16 : RLXVK_F32;
    rlxvk_tensor keys = fuzz_ranked(m, held, 4), values, cos = fuzz_maybe(m, table);
    if (fuzz_byte(m->in) & 7)
        keys = fuzz_fit(m, held, RLXVK_SHAPE(b, o.kv_heads, fuzz_dim(m), o.head_dim));
    values = fuzz_fit(m, held, shape_of(m, keys));
    rlxvk_tensor k = behind_q ? RLXVK_NONE : f32(m, RLXVK_SHAPE(b, n, k_row));
    rlxvk_tensor v = k_row == own ? f32(m, RLXVK_SHAPE(b, n, own)) : RLXVK_NONE;
    rlxvk_shape position = fuzz_bool(m->in) ? RLXVK_SHAPE(b, 2) : RLXVK_SHAPE(b);
    return rlxvk_attention_step(m->g, f32(m, RLXVK_SHAPE(b, n, q_row)), k, v, keys, values,
                                f32(m, position), cos, cos.id ? f32(m, table) : RLXVK_NONE, &o);
}

/* ---- 8-bit integers ---- */

static rlxvk_tensor quantized(fuzz_maker *m, rlxvk_dtype dtype,
                              rlxvk_tensor (*build)(rlxvk_graph *, rlxvk_tensor,
                                                    const rlxvk_quantize_options *))
{
    rlxvk_tensor x = fuzz_ranked(m, dtype, fuzz_below(m->in, 4));
    rlxvk_shape s = shape_of(m, x);
    float scales[8] = {fuzz_real(m), fuzz_real(m), 1, 1, 1, 1, 1, 1};
    int32_t zeros[8] = {(int32_t)fuzz_number(m), 0, 1, 2, 3, 4, 5, 6};
    rlxvk_quantize_options o = {.scales = scales, .count = 1, .per_axis = fuzz_bool(m->in)};
    o.zero_points = fuzz_bool(m->in) ? zeros : NULL;
    if (o.per_axis) {
        o.axis = fuzz_axis(m, s.rank);
        uint32_t at = (uint32_t)(o.axis < 0 ? o.axis + (int32_t)s.rank : o.axis);
        o.count = at < s.rank && s.dims[at] < 8 ? (size_t)s.dims[at] : fuzz_below(m->in, 9);
    }
    return build(m->g, x, &o);
}

rlxvk_tensor fuzz_call_quantize(fuzz_maker *m)
{
    return quantized(m, RLXVK_F32, rlxvk_quantize);
}

rlxvk_tensor fuzz_call_dequantize(fuzz_maker *m)
{
    return quantized(m, RLXVK_I8, rlxvk_dequantize);
}

static rlxvk_requantize requantize(fuzz_maker *m)
{
    return (rlxvk_requantize){(int32_t)fuzz_number(m), (int32_t)fuzz_number(m),
                              (int32_t)fuzz_number(m), fuzz_real(m)};
}

static rlxvk_tensor integer_bias(fuzz_maker *m, int64_t n)
{
    return fuzz_bool(m->in) ? fuzz_fit(m, RLXVK_I32, RLXVK_SHAPE(n)) : RLXVK_NONE;
}

rlxvk_tensor fuzz_call_qmatmul(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_ranked(m, RLXVK_I8, 2 + fuzz_below(m->in, 2));
    int64_t k = last(shape_of(m, x), 0), n = fuzz_dim(m);
    rlxvk_tensor w = fuzz_fit(m, RLXVK_I8, RLXVK_SHAPE(k, n)), bias = integer_bias(m, n);
    rlxvk_requantize o = requantize(m);
    return rlxvk_qmatmul(m->g, x, w, bias, &o);
}

rlxvk_tensor fuzz_call_qconv2d(fuzz_maker *m)
{
    rlxvk_conv_options like = window(m, 2);
    rlxvk_qconv2d_options o = {.requantize = requantize(m), .groups = 1 + fuzz_below(m->in, 2)};
    for (int i = 0; i < 2; i++) {
        o.stride[i] = like.stride[i];
        o.padding[i] = like.padding[i];
        o.dilation[i] = like.dilation[i];
    }
    rlxvk_shape x = fuzz_shape(m, 4), w = fuzz_shape(m, 4);
    w.dims[1] = x.dims[1];
    x.dims[1] = times(x.dims[1], o.groups);
    w.dims[0] = times(w.dims[0], o.groups);
    if (fuzz_byte(m->in) >= 250)
        o.kernel[0] = fuzz_number(m);
    rlxvk_tensor image = fuzz_fit(m, RLXVK_I8, x), weights = fuzz_fit(m, RLXVK_I8, w);
    return rlxvk_qconv2d(m->g, image, weights, integer_bias(m, w.dims[0]), &o);
}

/* ---- Spectra ---- */

static rlxvk_fft_norm any_norm(fuzz_maker *m)
{
    return (rlxvk_fft_norm)any_of(m, 3);
}

/* A length. If it is above 4,096 and below 2^31, it is reduced, because making the table would take
 * longer than the checks. */
static int64_t length_of_table(fuzz_maker *m)
{
    int64_t n = fuzz_dim(m);
    return n > 4096 && n <= INT32_MAX ? n % 4096 : n;
}

/* A signal. If it is long, a short one instead, because framing makes a table with one index for
 * each element of the frames. */
static rlxvk_tensor signal_of_table(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    int64_t n = last(shape_of(m, x), 0);
    return n > 4096 && n <= 1 << 24 ? f32(m, RLXVK_SHAPE(2, 12)) : x;
}

/* A complex tensor, or a block of real and imaginary parts. */
static rlxvk_tensor signal(fuzz_maker *m)
{
    rlxvk_shape s = fuzz_shape(m, 1 + fuzz_below(m->in, 3));
    if (fuzz_bool(m->in))
        return fuzz_fit(m, RLXVK_C64, s);
    s.dims[s.rank - 1] = times(2, s.dims[s.rank - 1]);
    return f32(m, s);
}

rlxvk_tensor fuzz_call_fft(fuzz_maker *m)
{
    rlxvk_tensor x = signal(m);
    return rlxvk_fft(m->g, x, fuzz_bool(m->in), any_norm(m));
}

rlxvk_tensor fuzz_call_fft_axis(fuzz_maker *m)
{
    rlxvk_tensor x = signal(m);
    return rlxvk_fft_axis(m->g, x, fuzz_axis(m, shape_of(m, x).rank), fuzz_bool(m->in),
                          any_norm(m));
}

rlxvk_tensor fuzz_call_fftn(fuzz_maker *m)
{
    rlxvk_tensor x = signal(m);
    int32_t axes[] = {fuzz_axis(m, shape_of(m, x).rank), fuzz_axis(m, shape_of(m, x).rank)};
    return rlxvk_fftn(m->g, x, fuzz_bool(m->in) ? axes : NULL, fuzz_below(m->in, 3),
                      fuzz_bool(m->in), any_norm(m));
}

rlxvk_tensor fuzz_call_pad_last(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    return rlxvk_pad_last(m->g, x, fuzz_dim(m));
}

rlxvk_tensor fuzz_call_fft_split(fuzz_maker *m)
{
    rlxvk_tensor im = RLXVK_NONE, re = rlxvk_fft_split(m->g, fuzz_any(m), &im);
    fuzz_keep(m, im);
    return re;
}

rlxvk_tensor fuzz_call_fft_merge(fuzz_maker *m)
{
    rlxvk_tensor re = fuzz_any(m);
    return rlxvk_fft_merge(m->g, re, f32(m, shape_of(m, re)));
}

static rlxvk_tensor spectrum(fuzz_maker *m,
                             rlxvk_tensor (*build)(rlxvk_graph *, rlxvk_tensor, int64_t,
                                                   rlxvk_fft_norm, rlxvk_tensor *))
{
    rlxvk_tensor x = fuzz_any(m), im = RLXVK_NONE;
    int64_t n = length_of_table(m);
    rlxvk_tensor re = build(m->g, x, n, any_norm(m), &im);
    fuzz_keep(m, im);
    return re;
}

rlxvk_tensor fuzz_call_fft_real(fuzz_maker *m)
{
    return spectrum(m, rlxvk_fft_real);
}

rlxvk_tensor fuzz_call_rfft(fuzz_maker *m)
{
    return spectrum(m, rlxvk_rfft);
}

rlxvk_tensor fuzz_call_irfft(fuzz_maker *m)
{
    rlxvk_tensor re = fuzz_any(m), im = f32(m, shape_of(m, re));
    int64_t bins = last(shape_of(m, re), 0), n = fuzz_dim(m);
    return rlxvk_irfft(m->g, re, im, fuzz_bool(m->in) && bins < 4096 ? 2 * bins - 2 + (n & 1) : n,
                       any_norm(m));
}

rlxvk_tensor fuzz_call_rfft_block(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    int64_t n = length_of_table(m);
    return rlxvk_rfft_block(m->g, x, n, any_norm(m));
}

rlxvk_tensor fuzz_call_irfft_block(fuzz_maker *m)
{
    int64_t n = length_of_table(m), bins = n > 0 ? times(2, n / 2 + 1) : 2;
    rlxvk_tensor x = f32(m, RLXVK_SHAPE(fuzz_dim(m), bins));
    return rlxvk_irfft_block(m->g, x, n, any_norm(m));
}

rlxvk_tensor fuzz_call_ifft_real(fuzz_maker *m)
{
    rlxvk_tensor re = fuzz_any(m), im = f32(m, shape_of(m, re));
    return rlxvk_ifft_real(m->g, re, im, any_norm(m));
}

rlxvk_tensor fuzz_call_frames(fuzz_maker *m)
{
    rlxvk_tensor x = signal_of_table(m);
    int64_t length = fuzz_dim(m);
    return rlxvk_frames(m->g, x, length, fuzz_dim(m));
}

rlxvk_tensor fuzz_call_stft(fuzz_maker *m)
{
    rlxvk_tensor x = signal_of_table(m);
    rlxvk_stft_options o = {fuzz_dim(m), fuzz_dim(m), fuzz_bool(m->in) ? length_of_table(m) : 0,
                            any_norm(m), fuzz_bool(m->in)};
    return rlxvk_stft(m->g, x, fuzz_maybe(m, RLXVK_SHAPE(o.length)), &o);
}

rlxvk_tensor fuzz_call_psd(fuzz_maker *m)
{
    rlxvk_tensor re = fuzz_any(m), im = f32(m, shape_of(m, re));
    return rlxvk_psd(m->g, re, im, fuzz_dim(m));
}

rlxvk_tensor fuzz_call_psd_real(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    return rlxvk_psd_real(m->g, x, any_norm(m));
}

rlxvk_tensor fuzz_call_signal_fftfreq(fuzz_maker *m)
{
    return rlxvk_signal_fftfreq(m->g, length_of_table(m));
}

rlxvk_tensor fuzz_call_signal_rfftfreq(fuzz_maker *m)
{
    return rlxvk_signal_rfftfreq(m->g, length_of_table(m));
}

rlxvk_tensor fuzz_call_signal_hann(fuzz_maker *m)
{
    int64_t n = length_of_table(m);
    return rlxvk_signal_hann(m->g, n, fuzz_bool(m->in));
}

rlxvk_tensor fuzz_call_fft_conv1d(fuzz_maker *m)
{
    rlxvk_tensor a = fuzz_any(m);
    rlxvk_shape s = shape_of(m, a);
    if (s.rank)
        s.dims[s.rank - 1] = fuzz_dim(m);
    return rlxvk_fft_conv1d(m->g, a, f32(m, s));
}

static rlxvk_tensor complex_of(fuzz_maker *m)
{
    return fuzz_ranked(m, RLXVK_C64, fuzz_below(m->in, 4));
}

rlxvk_tensor fuzz_call_complex_norm_sq(fuzz_maker *m)
{
    return rlxvk_complex_norm_sq(m->g, complex_of(m));
}

rlxvk_tensor fuzz_call_conjugate(fuzz_maker *m)
{
    return rlxvk_conjugate(m->g, complex_of(m));
}

rlxvk_tensor fuzz_call_complex_norm_sq_backward(fuzz_maker *m)
{
    rlxvk_tensor z = complex_of(m);
    return rlxvk_complex_norm_sq_backward(m->g, z, f32(m, shape_of(m, z)));
}

/* ---- Random numbers ---- */

static const rlxvk_rng_stream *any_stream(fuzz_maker *m, rlxvk_rng_stream *s)
{
    uint32_t bits = fuzz_byte(m->in);
    *s = (rlxvk_rng_stream){.has_key = bits & 1, .has_op_seed = bits & 2};
    if (bits & 1)
        s->key = fuzz_bits(m->in, 8);
    if (bits & 2)
        s->op_seed = fuzz_real(m);
    return bits & 4 ? NULL : s;
}

rlxvk_tensor fuzz_call_rng_uniform(fuzz_maker *m)
{
    rlxvk_rng_stream s;
    rlxvk_shape shape = fuzz_shape(m, fuzz_below(m->in, 4));
    return rlxvk_rng_uniform(m->g, shape, fuzz_real(m), fuzz_real(m), any_stream(m, &s));
}

rlxvk_tensor fuzz_call_rng_normal(fuzz_maker *m)
{
    rlxvk_rng_stream s;
    rlxvk_shape shape = fuzz_shape(m, fuzz_below(m->in, 4));
    return rlxvk_rng_normal(m->g, shape, fuzz_real(m), fuzz_real(m), any_stream(m, &s));
}

rlxvk_tensor fuzz_call_rng_uniform_like(fuzz_maker *m)
{
    rlxvk_rng_stream s;
    rlxvk_tensor like = fuzz_any(m);
    return rlxvk_rng_uniform_like(m->g, like, fuzz_real(m), fuzz_real(m), any_stream(m, &s));
}

rlxvk_tensor fuzz_call_rng_normal_like(fuzz_maker *m)
{
    rlxvk_rng_stream s;
    rlxvk_tensor like = fuzz_any(m);
    return rlxvk_rng_normal_like(m->g, like, fuzz_real(m), fuzz_real(m), any_stream(m, &s));
}

rlxvk_tensor fuzz_call_sample(fuzz_maker *m)
{
    rlxvk_tensor logits = fuzz_any(m);
    rlxvk_sample_options o = {.temperature = fuzz_real(m),
                              .top_k = (uint32_t)fuzz_number(m),
                              .top_p = fuzz_real(m),
                              .seed = fuzz_byte(m->in)};
    (void)any_stream(m, &o.stream);
    return rlxvk_sample(m->g, logits, &o);
}

/* ---- Control flow ---- */

/* A body with inputs like `inputs`. Its last tensors are results like `results`. */
static rlxvk_graph *make_body(fuzz_maker *m, const rlxvk_tensor *inputs, size_t count,
                              const rlxvk_tensor *results, size_t result_count)
{
    rlxvk_graph *g = NULL;
    if (m->depth || rlxvk_graph_create(&g) != RLXVK_OK)
        return NULL;
    fuzz_maker body = {.g = g, .in = m->in, .depth = m->depth + 1};
    for (size_t i = 0; i < count; i++) {
        char name[2] = {(char)('a' + i), 0};
        fuzz_keep(&body, rlxvk_input(g, name, rlxvk_tensor_dtype(m->g, inputs[i]),
                                     rlxvk_tensor_shape(m->g, inputs[i])));
    }
    fuzz_build(&body, fuzz_below(m->in, 4));
    for (size_t i = 0; i < result_count; i++) {
        rlxvk_dtype dtype = rlxvk_tensor_dtype(m->g, results[i]);
        rlxvk_graph_output(g, fuzz_fit(&body, dtype, rlxvk_tensor_shape(m->g, results[i])));
    }
    return g;
}

/* Tensors for the operands and results of bodies. */
static size_t captures(fuzz_maker *m, rlxvk_tensor *out)
{
    size_t count = 1 + fuzz_below(m->in, 3);
    for (size_t i = 0; i < count; i++)
        out[i] = fuzz_any(m);
    return count;
}

rlxvk_tensor fuzz_call_call(fuzz_maker *m)
{
    rlxvk_tensor in[3], out[2] = {RLXVK_NONE, RLXVK_NONE};
    size_t count = captures(m, in), results = 1 + fuzz_below(m->in, 2) % count;
    rlxvk_graph *body = make_body(m, in, count, in, results);
    if (!body)
        return rlxvk_copy(m->g, in[0]);
    rlxvk_call(m->g, body, in, fuzz_byte(m->in) < 250 ? count : fuzz_below(m->in, 4), out,
               fuzz_byte(m->in) < 250 ? results : 2);
    rlxvk_graph_destroy(body);
    fuzz_keep(m, out[1]);
    return out[0];
}

rlxvk_tensor fuzz_call_if(fuzz_maker *m)
{
    rlxvk_tensor in[3], predicate = fuzz_bool(m->in) ? f32(m, RLXVK_SCALAR) : fuzz_any(m);
    size_t count = captures(m, in);
    rlxvk_graph *yes = make_body(m, in, count, in, 1), *no = make_body(m, in, count, in, 1);
    rlxvk_tensor y =
        yes && no ? rlxvk_if(m->g, predicate, yes, no, in, count) : rlxvk_copy(m->g, predicate);
    rlxvk_graph_destroy(yes);
    rlxvk_graph_destroy(no);
    return y;
}

rlxvk_tensor fuzz_call_while(fuzz_maker *m)
{
    rlxvk_tensor in[3], out[3] = {RLXVK_NONE, RLXVK_NONE, RLXVK_NONE};
    size_t count = captures(m, in);
    rlxvk_graph *condition = make_body(m, in, count, in, 1);
    rlxvk_graph *body = make_body(m, in, count, in, count);
    if (!body || !condition) {
        rlxvk_graph_destroy(body);
        rlxvk_graph_destroy(condition);
        return rlxvk_copy(m->g, in[0]);
    }
    uint32_t rounds = fuzz_below(m->in, 8); /* 4 and more: that many fewer, and they replay */
    rlxvk_graph_set_unroll_limit(m->g, rounds >= 4);
    rlxvk_while(m->g, condition, body, rounds % 4, in, count, out);
    rlxvk_graph_destroy(condition);
    rlxvk_graph_destroy(body);
    for (size_t i = 1; i < count; i++)
        fuzz_keep(m, out[i]);
    return out[0];
}

rlxvk_tensor fuzz_call_scan(fuzz_maker *m)
{
    rlxvk_tensor in[3] = {fuzz_any(m)}, step[3] = {in[0]};
    rlxvk_scan_options o = {.length = 1 + fuzz_below(m->in, 3),
                            .save_trajectory = fuzz_bool(m->in)};
    uint32_t bits = fuzz_byte(m->in);
    size_t count = 1;
    if (bits & 1) {
        step[count] = in[count] = fuzz_any(m);
        o.broadcast_count = 1;
        count++;
    }
    if (bits & 2) { /* a sequence: the step sees one element of its leading axis */
        rlxvk_shape s = rlxvk_tensor_shape(m->g, in[0]);
        for (uint32_t i = s.rank < RLXVK_MAX_RANK ? s.rank++ : 0; i > 0; i--)
            s.dims[i] = s.dims[i - 1];
        s.dims[0] = o.length;
        step[count] = in[0];
        in[count++] = fuzz_fit(m, rlxvk_tensor_dtype(m->g, in[0]), s);
    }
    rlxvk_graph_set_unroll_limit(m->g, bits >> 2 & 1); /* 1: all replay */
    if (bits >= 240)
        o.checkpoints = fuzz_number(m);
    if (bits >= 250)
        o.length = fuzz_number(m) % 64;
    rlxvk_graph *body = make_body(m, step, count, in, 1);
    if (!body)
        return rlxvk_copy(m->g, in[0]);
    rlxvk_tensor y = rlxvk_scan(m->g, body, in, count, &o);
    rlxvk_graph_destroy(body);
    return y;
}

/* ---- Custom ops ---- */

static bool custom_infer(const rlxvk_shape *inputs, size_t count, const void *attributes,
                         size_t size, rlxvk_shape *out_shape, rlxvk_dtype *out_dtype)
{
    (void)out_dtype;
    if (count == 0 || (size && *(const uint8_t *)attributes == 255))
        return false;
    *out_shape = inputs[0];
    return true;
}

static size_t count_of(const rlxvk_shape *s)
{
    size_t numel = 1;
    for (uint32_t i = 0; i < s->rank; i++)
        numel *= (size_t)s->dims[i];
    return numel;
}

static int custom_host(const rlxvk_custom_view *inputs, size_t count, const void *attributes,
                       size_t size, const rlxvk_shape *shape, float *out)
{
    (void)count, (void)attributes, (void)size;
    size_t given = inputs[0].values ? count_of(&inputs[0].shape) : 0;
    for (size_t i = 0; i < count_of(shape); i++)
        out[i] = i < given ? 2 * inputs[0].values[i] : 1;
    return 0;
}

void fuzz_register(void)
{
    static const rlxvk_custom_op op = {.name = "fuzz",
                                       .input_count = 2,
                                       .infer = custom_infer,
                                       .host = custom_host};
    FUZZ_CHECK(rlxvk_custom_register(&op) == RLXVK_OK, "%s", rlxvk_last_error());
}

rlxvk_tensor fuzz_call_custom(fuzz_maker *m)
{
    rlxvk_tensor in[2] = {fuzz_any(m), fuzz_any(m)};
    uint8_t attribute = fuzz_byte(m->in);
    return rlxvk_custom(m->g, attribute == 254 ? "no such op" : "fuzz", in,
                        attribute == 253 ? 1 : 2, &attribute, attribute & 1);
}

rlxvk_tensor fuzz_call_custom_packed(fuzz_maker *m)
{
    rlxvk_tensor in[2] = {fuzz_any(m), fuzz_any(m)};
    rlxvk_shape shape = fuzz_bool(m->in) ? fuzz_shape(m, fuzz_below(m->in, 5)) : shape_of(m, in[0]);
    return rlxvk_custom_packed(m->g, "fuzz", in, 2, NULL, 0, shape, any_dtype(m));
}
