/*
 * Builders around fft that are composed of other ops: padding, real transforms, frames, power
 * spectra, frequencies, convolution. Real signals use the block layout: real parts, then imaginary
 * parts, along the last axis.
 */
#include "op/compose/composite.h"
#include "op/spectral/fft.h"

#include <math.h>

/* ---- Checks: an error sticks to the graph, and the builder returns RLXVK_NONE ---- */

/* Is operand `index` a tensor with a last axis? */
static bool has_last(rlxvk_graph *g, const char *name, size_t index, rlxvk_tensor x)
{
    char who[CALL_LABEL];
    if (!graph_ready(g, name) ||
        graph_fail(g, graph_take(g, x, op_call_label(g, name, who), "operand", index)) != RLXVK_OK)
        return false;
    if (rlxvk_tensor_shape(g, x).rank == 0)
        return composite_fail(g, name, RLXVK_E_SHAPE,
                              "a scalar has no last axis; reshape it to [1]");
    return true;
}

/* ... and is its length a number? *out is that length. */
static bool last_of(rlxvk_graph *g, const char *name, size_t index, rlxvk_tensor x, int64_t *out)
{
    if (!has_last(g, name, index, x))
        return false;
    rlxvk_shape shape = rlxvk_tensor_shape(g, x);
    *out = shape.dims[shape.rank - 1];
    return composite_number(g, name, "the last dim", *out);
}

static bool at_least_one(rlxvk_graph *g, const char *name, const char *what, int64_t value)
{
    if (!graph_ready(g, name))
        return false;
    if (!composite_number(g, name, what, value))
        return false;
    if (value < 1 || value > INT32_MAX)
        return composite_fail(g, name, RLXVK_E_ATTR, "%s is %lld; takes 1 to 2^31 - 1", what,
                              (long long)value);
    return true;
}

/* ---- Helpers ---- */

static rlxvk_tensor scalar(rlxvk_graph *g, double value)
{
    float word = (float)value;
    return rlxvk_constant(g, RLXVK_F32, RLXVK_SCALAR, &word, sizeof word);
}

/* Zeros like x, with a last axis of n. */
static rlxvk_tensor zeros(rlxvk_graph *g, rlxvk_tensor x, int64_t n)
{
    static const uint8_t nothing[8] = {0};
    if (!has_last(g, "zeros", 0, x)) /* also if x is what a failed call returned */
        return RLXVK_NONE;
    rlxvk_shape shape = rlxvk_tensor_shape(g, x);
    rlxvk_dtype dtype = rlxvk_tensor_dtype(g, x);
    rlxvk_tensor zero = rlxvk_constant(g, dtype, RLXVK_SCALAR, nothing, rlxvk_dtype_size(dtype));
    shape.dims[shape.rank - 1] = n;
    return rlxvk_expand(g, zero, shape);
}

static rlxvk_tensor part(rlxvk_graph *g, rlxvk_tensor x, int64_t start, int64_t length)
{
    return rlxvk_narrow(g, x, -1, start, length);
}

/* An F32 constant [n] of values computed in double precision. */
static rlxvk_tensor table(rlxvk_graph *g, int64_t n, double (*value)(int64_t k, int64_t n))
{
    float *words = memory_zeroed((size_t)n, sizeof *words);
    if (!words) {
        graph_fail(g, status_fail_memory("table"));
        return RLXVK_NONE;
    }
    for (int64_t k = 0; k < n; k++)
        words[k] = (float)value(k, n);
    rlxvk_tensor t = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(n), words, (size_t)n * sizeof *words);
    memory_free(words);
    return t;
}

/* ---- Transforms ---- */

rlxvk_tensor rlxvk_fftn(rlxvk_graph *g, rlxvk_tensor x, const int32_t *axes, size_t count,
                        bool inverse, rlxvk_fft_norm norm)
{
    bool seen[RLXVK_MAX_RANK] = {false};
    if (!has_last(g, "fftn", 0, x))
        return RLXVK_NONE;
    int32_t rank = (int32_t)rlxvk_tensor_shape(g, x).rank;
    for (size_t i = 0; i < (axes ? count : (size_t)rank) && g->status == RLXVK_OK; i++) {
        int32_t axis = axes ? axes[i] : (int32_t)i, at = axis < 0 ? axis + rank : axis;
        if (at >= 0 && at < rank && seen[at])
            composite_fail(g, "fftn", RLXVK_E_AXIS, "axis %d is given twice; name each once", axis);
        if (at >= 0 && at < rank)
            seen[at] = true;
        x = rlxvk_fft_axis(g, x, axis, inverse, norm);
    }
    return x;
}

rlxvk_tensor rlxvk_pad_last(rlxvk_graph *g, rlxvk_tensor x, int64_t n)
{
    int64_t length;
    if (!at_least_one(g, "pad_last", "n", n) || !last_of(g, "pad_last", 0, x, &length))
        return RLXVK_NONE;
    if (n <= length)
        return n == length ? x : part(g, x, 0, n);
    rlxvk_tensor parts[] = {x, zeros(g, x, n - length)};
    return rlxvk_concat(g, parts, 2, -1);
}

/* Splits a block into its halves. The second only if the caller asks for it. */
static rlxvk_tensor split(rlxvk_graph *g, const char *name, rlxvk_tensor block,
                          rlxvk_tensor *out_im)
{
    int64_t length;
    if (out_im)
        *out_im = RLXVK_NONE;
    if (!last_of(g, name, 0, block, &length))
        return RLXVK_NONE;
    if (length % 2) {
        composite_fail(g, name, RLXVK_E_SHAPE, "last dim %lld is odd; a block has two halves",
                       (long long)length);
        return RLXVK_NONE;
    }
    if (out_im)
        *out_im = part(g, block, length / 2, length / 2);
    return part(g, block, 0, length / 2);
}

rlxvk_tensor rlxvk_fft_split(rlxvk_graph *g, rlxvk_tensor block, rlxvk_tensor *out_im)
{
    return split(g, "fft_split", block, out_im);
}

rlxvk_tensor rlxvk_fft_merge(rlxvk_graph *g, rlxvk_tensor re, rlxvk_tensor im)
{
    rlxvk_tensor parts[] = {re, im};
    char left[SHAPE_TEXT], right[SHAPE_TEXT];
    if (!composite_begin(g, "fft_merge", parts, 2))
        return RLXVK_NONE;
    rlxvk_shape a = rlxvk_tensor_shape(g, re), b = rlxvk_tensor_shape(g, im);
    if (!shape_equal(&a, &b))
        composite_fail(g, "fft_merge", RLXVK_E_SHAPE,
                       "real parts %s, imaginary parts %s; both have one shape",
                       shape_text(&a, left), shape_text(&b, right));
    return rlxvk_concat(g, parts, 2, -1);
}

/* The whole spectrum of real x, as a block [.., 2n]. */
static rlxvk_tensor real_block(rlxvk_graph *g, const char *name, rlxvk_tensor x, int64_t n,
                               rlxvk_fft_norm norm)
{
    int64_t length;
    if (!last_of(g, name, 0, x, &length) || !at_least_one(g, name, "n", n ? n : length))
        return RLXVK_NONE;
    n = n ? n : length;
    rlxvk_tensor parts[] = {x, zeros(g, x, 2 * n - MIN(n, length))};
    if (n < length)
        parts[0] = part(g, x, 0, n);
    return rlxvk_fft(g, rlxvk_concat(g, parts, 2, -1), false, norm);
}

rlxvk_tensor rlxvk_fft_real(rlxvk_graph *g, rlxvk_tensor x, int64_t n, rlxvk_fft_norm norm,
                            rlxvk_tensor *out_im)
{
    return split(g, "fft_real", real_block(g, "fft_real", x, n, norm), out_im);
}

/* If n is even, the transform has half the length. */
rlxvk_tensor rlxvk_rfft_block(rlxvk_graph *g, rlxvk_tensor x, int64_t n, rlxvk_fft_norm norm)
{
    int64_t length;
    if (!last_of(g, "rfft_block", 0, x, &length) ||
        !at_least_one(g, "rfft_block", "n", n ? n : length))
        return RLXVK_NONE;
    fft_real_attributes a = {n ? n : length, norm};
    if (a.length % 2 == 0) {
        x = length % 2 ? rlxvk_pad_last(g, x, a.length) : x;
        return op_build(g, OP_rfft_block, &x, 1, &a);
    }
    rlxvk_tensor im, re = rlxvk_fft_real(g, x, n, norm, &im);
    int64_t bins = a.length / 2 + 1;
    return rlxvk_fft_merge(g, part(g, re, 0, bins), part(g, im, 0, bins));
}

rlxvk_tensor rlxvk_rfft(rlxvk_graph *g, rlxvk_tensor x, int64_t n, rlxvk_fft_norm norm,
                        rlxvk_tensor *out_im)
{
    return split(g, "rfft", rlxvk_rfft_block(g, x, n, norm), out_im);
}

/* From bins 0 .. n / 2, with n odd, makes all n. Bin n - k is bin k, negated if `imaginary`. */
static rlxvk_tensor mirror(rlxvk_graph *g, rlxvk_tensor bins, int64_t n, bool imaginary)
{
    rlxvk_tensor parts[3] = {imaginary ? zeros(g, bins, 1) : part(g, bins, 0, 1)};
    if (n == 1)
        return parts[0];
    parts[1] = part(g, bins, 1, n / 2);
    parts[2] = rlxvk_reverse(g, parts[1], &(int32_t){-1}, 1);
    if (imaginary)
        parts[2] = rlxvk_neg(g, parts[2]);
    return rlxvk_concat(g, parts, 3, -1);
}

/* Does the last axis have as many bins as n points have? */
static bool has_bins(rlxvk_graph *g, const char *name, int64_t length, int64_t n)
{
    if (!at_least_one(g, name, "n", n))
        return false;
    if (length == n / 2 + 1)
        return true;
    return composite_fail(g, name, RLXVK_E_SHAPE, "%lld bins; n = %lld has %lld", (long long)length,
                          (long long)n, (long long)(n / 2 + 1));
}

rlxvk_tensor rlxvk_irfft_block(rlxvk_graph *g, rlxvk_tensor block, int64_t n, rlxvk_fft_norm norm)
{
    fft_real_attributes a = {n, norm};
    int64_t length;
    if (!last_of(g, "irfft_block", 0, block, &length) || !has_bins(g, "irfft_block", length / 2, n))
        return RLXVK_NONE;
    if (n % 2 == 0)
        return op_build(g, OP_irfft_block, &block, 1, &a);
    rlxvk_tensor im, re = rlxvk_fft_split(g, block, &im);
    return rlxvk_ifft_real(g, mirror(g, re, n, false), mirror(g, im, n, true), norm);
}

rlxvk_tensor rlxvk_irfft(rlxvk_graph *g, rlxvk_tensor re, rlxvk_tensor im, int64_t n,
                         rlxvk_fft_norm norm)
{
    int64_t bins[2];
    if (!last_of(g, "irfft", 0, re, &bins[0]) || !last_of(g, "irfft", 1, im, &bins[1]) ||
        !has_bins(g, "irfft", bins[0], n) || !has_bins(g, "irfft", bins[1], n))
        return RLXVK_NONE;
    if (n % 2 == 0)
        return rlxvk_irfft_block(g, rlxvk_fft_merge(g, re, im), n, norm);
    return rlxvk_ifft_real(g, mirror(g, re, n, false), mirror(g, im, n, true), norm);
}

rlxvk_tensor rlxvk_ifft_real(rlxvk_graph *g, rlxvk_tensor re, rlxvk_tensor im, rlxvk_fft_norm norm)
{
    int64_t length;
    if (!composite_begin(g, "ifft_real", (rlxvk_tensor[]){re, im}, 2) ||
        !last_of(g, "ifft_real", 0, re, &length) || !at_least_one(g, "ifft_real", "length", length))
        return RLXVK_NONE;
    return part(g, rlxvk_fft(g, rlxvk_fft_merge(g, re, im), true, norm), 0, length);
}

/* ---- Frames and spectra ---- */

rlxvk_tensor rlxvk_frames(rlxvk_graph *g, rlxvk_tensor x, int64_t length, int64_t hop)
{
    int64_t whole;
    if (!last_of(g, "frames", 0, x, &whole) || !at_least_one(g, "frames", "length", length) ||
        !at_least_one(g, "frames", "hop", hop))
        return RLXVK_NONE;
    int64_t count = whole < length ? 0 : 1 + (whole - length) / hop;
    if (count == 0 || whole > 1 << 24 || count * length > INT32_MAX) {
        composite_fail(g, "frames", count ? RLXVK_E_TOO_LARGE : RLXVK_E_SHAPE,
                       "last dim %lld in frames of %lld; takes at least a frame, at "
                       "most 2^24 elements, and results below 2^31",
                       (long long)whole, (long long)length);
        return RLXVK_NONE;
    }
    float *indices = memory_allocate((size_t)(count * length) * sizeof *indices);
    if (!indices) {
        graph_fail(g, status_fail_memory("frames"));
        return RLXVK_NONE;
    }
    for (int64_t i = 0; i < count * length; i++)
        indices[i] = (float)(i / length * hop + i % length);
    rlxvk_tensor from = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(count, length), indices,
                                       (size_t)(count * length) * sizeof *indices);
    memory_free(indices);
    return rlxvk_gather(g, x, from, -1);
}

rlxvk_tensor rlxvk_stft(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor window,
                        const rlxvk_stft_options *options)
{
    rlxvk_stft_options own, *o = &own;
    if (!op_take(g, "stft", SIZED(rlxvk_stft_options), options, o))
        return RLXVK_NONE;
    int64_t n = o->n_fft ? o->n_fft : o->length, length;
    if (!composite_begin(g, "stft", &x, 1) || !at_least_one(g, "stft", "length", o->length) ||
        !at_least_one(g, "stft", "hop", o->hop))
        return RLXVK_NONE;
    rlxvk_tensor frames = rlxvk_frames(g, x, o->length, o->hop);
    if (window.id && last_of(g, "stft", 1, window, &length)) {
        if (length != o->length)
            composite_fail(g, "stft", RLXVK_E_SHAPE,
                           "window of %lld, frames of %lld; make them one", (long long)length,
                           (long long)o->length);
        frames = rlxvk_mul(g, frames, window);
    }
    if (!last_of(g, "stft", 0, frames, &length) || !at_least_one(g, "stft", "n_fft", n))
        return RLXVK_NONE;
    if (o->two_sided)
        return real_block(g, "stft", frames, n, o->norm);
    return rlxvk_rfft_block(g, frames, n, o->norm);
}

rlxvk_tensor rlxvk_psd(rlxvk_graph *g, rlxvk_tensor re, rlxvk_tensor im, int64_t n)
{
    if (!composite_begin(g, "psd", (rlxvk_tensor[]){re, im}, 2) || !at_least_one(g, "psd", "n", n))
        return RLXVK_NONE;
    rlxvk_tensor power = rlxvk_fma(g, re, re, rlxvk_mul(g, im, im));
    return rlxvk_div(g, power, scalar(g, (double)n));
}

rlxvk_tensor rlxvk_psd_real(rlxvk_graph *g, rlxvk_tensor x, rlxvk_fft_norm norm)
{
    int64_t length;
    if (!last_of(g, "psd_real", 0, x, &length))
        return RLXVK_NONE;
    rlxvk_tensor im, re = rlxvk_rfft(g, x, 0, norm, &im);
    return rlxvk_psd(g, re, im, length);
}

static double frequency(int64_t k, int64_t n)
{
    return (double)(k < (n + 1) / 2 ? k : k - n) / (double)n;
}

rlxvk_tensor rlxvk_signal_fftfreq(rlxvk_graph *g, int64_t n)
{
    return at_least_one(g, "signal_fftfreq", "n", n) ? table(g, n, frequency) : RLXVK_NONE;
}

/* k / n, for a table with n / 2 + 1 entries. */
static double even_frequency(int64_t k, int64_t bins)
{
    return (double)k / (double)(2 * (bins - 1));
}
static double odd_frequency(int64_t k, int64_t bins)
{
    return (double)k / (double)(2 * bins - 1);
}

rlxvk_tensor rlxvk_signal_rfftfreq(rlxvk_graph *g, int64_t n)
{
    if (!at_least_one(g, "signal_rfftfreq", "n", n))
        return RLXVK_NONE;
    return table(g, n / 2 + 1, n % 2 ? odd_frequency : even_frequency);
}

static double periodic_hann(int64_t k, int64_t n)
{
    return n == 1 ? 1 : 0.5 - 0.5 * fft_unit_root((uint64_t)k, (uint64_t)n).re;
}
static double symmetric_hann(int64_t k, int64_t n)
{
    return n == 1 ? 1 : 0.5 - 0.5 * fft_unit_root((uint64_t)k, (uint64_t)n - 1).re;
}

rlxvk_tensor rlxvk_signal_hann(rlxvk_graph *g, int64_t n, bool periodic)
{
    if (!at_least_one(g, "signal_hann", "n", n))
        return RLXVK_NONE;
    return table(g, n, periodic ? periodic_hann : symmetric_hann);
}

rlxvk_tensor rlxvk_fft_conv1d(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b)
{
    int64_t la, lb;
    rlxvk_tensor ai, bi;
    if (!last_of(g, "fft_conv1d", 0, a, &la) || !last_of(g, "fft_conv1d", 1, b, &lb))
        return RLXVK_NONE;
    if (la == 0 || lb == 0) {
        composite_fail(g, "fft_conv1d", RLXVK_E_SHAPE,
                       "last dims %lld and %lld; each needs an element at least", (long long)la,
                       (long long)lb);
        return RLXVK_NONE;
    }
    if (la > INT32_MAX || lb > INT32_MAX || la + lb - 1 > INT32_MAX) {
        composite_fail(g, "fft_conv1d", RLXVK_E_TOO_LARGE,
                       "lines of %lld and %lld give 2^31 elements or more", (long long)la,
                       (long long)lb);
        return RLXVK_NONE;
    }
    int64_t n = (int64_t)fft_next_smooth((uint64_t)(la + lb - 1));
    size_t start = g->nodes.count;
    rlxvk_tensor ar = rlxvk_rfft(g, a, n, RLXVK_FFT_INVERSE, &ai);
    rlxvk_tensor br = rlxvk_rfft(g, b, n, RLXVK_FFT_INVERSE, &bi);
    rlxvk_tensor re = rlxvk_sub(g, rlxvk_mul(g, ar, br), rlxvk_mul(g, ai, bi));
    rlxvk_tensor im = rlxvk_add(g, rlxvk_mul(g, ar, bi), rlxvk_mul(g, ai, br));
    rlxvk_tensor y = rlxvk_irfft(g, re, im, n, RLXVK_FFT_INVERSE);
    return composite_end(g, "fft_conv1d", start, part(g, y, 0, la + lb - 1));
}
