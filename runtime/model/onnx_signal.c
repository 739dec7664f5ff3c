/* Lowerings of windows, transforms and spectra. */
#include "model/host.h"
#include "base/numeric.h"
#include "model/onnx_ops.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

/* ---- Windows ---- */

/* a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n), of which the last period is left out, or not. */
static void give_window(call *c, double a0, double a1, double a2)
{
    int64_t size = call_host_integer(c, 0, "the length of the result", 0);
    bool periodic = call_flag(c, "periodic", true);
    int32_t type = (int32_t)call_integer(c, "output_datatype", ONNX_FLOAT);
    host_array *h;
    if (size < 0 || size > INT32_MAX || !onnx_is_real(type)) {
        call_refuse(c, "output_datatype", "only floats are supported, up to 2^31 - 1 of them");
        return;
    }
    h = call_make_host(c, type, RLXVK_SHAPE(size));
    for (int64_t i = 0; h && i < size; i++) {
        double at = 2 * PI * (double)i / (double)MAX(periodic ? size : size - 1, 1);
        h->reals[i] = onnx_round_to(type, a0 - a1 * numeric_cos(at) + a2 * numeric_cos(2 * at));
    }
    call_give_host(c, 0, h);
}

void onnx_hann_window(call *c)
{
    give_window(c, 0.5, 0.5, 0);
}

void onnx_hamming_window(call *c)
{
    give_window(c, 25.0 / 46, 1 - 25.0 / 46, 0);
}

void onnx_blackman_window(call *c)
{
    give_window(c, 0.42, 0.5, 0.08);
}

/* Triangles between points at equal distances on the mel scale. */
void onnx_mel_weight_matrix(call *c)
{
    int64_t bands = call_host_integer(c, 0, "the matrix", 0);
    int64_t length = call_host_integer(c, 1, "the matrix", 0);
    int64_t rate = call_host_integer(c, 2, "the matrix", 0), bins = length / 2 + 1;
    double low = call_host_real(c, 3, "the matrix", 0),
           high = call_host_real(c, 4, "the matrix", 0);
    int32_t type = (int32_t)call_integer(c, "output_datatype", ONNX_FLOAT);
    double from = 2595 * log10(1 + low / 700), to = 2595 * log10(1 + high / 700);
    host_array *h;
    if (bands < 1 || length < 1 || rate < 1 || bands > 65536 || length > (1 << 24) ||
        !onnx_is_real(type)) {
        call_refuse(c, NULL, "its operands are out of range");
        return;
    }
    h = call_make_host(c, type, RLXVK_SHAPE(bins, bands));
    for (int64_t b = 0; h && b < bands; b++) {
        double edge[3];
        for (int k = 0; k < 3; k++) {
            double mel = from + (to - from) * (double)(b + k) / (double)(bands + 2);
            edge[k] = floor((double)(length + 1) * 700 * (pow(10, mel / 2595) - 1) / (double)rate);
        }
        for (int64_t i = 0; i < bins; i++) {
            double at = (double)i, weight = 0;
            if (at == edge[1] && edge[1] == edge[0])
                weight = 1;
            else if (at >= edge[0] && at <= edge[1] && edge[1] > edge[0])
                weight = (at - edge[0]) / (edge[1] - edge[0]);
            else if (at > edge[1] && at < edge[2])
                weight = (edge[2] - at) / (edge[2] - edge[1]);
            h->reals[i * bands + b] = onnx_round_to(type, weight);
        }
    }
    call_give_host(c, 0, h);
}

/* ---- Transforms ---- */

/* The part `i` of the last axis, real or imaginary, without that axis. */
static rlxvk_tensor part(call *c, rlxvk_tensor x, int64_t i)
{
    rlxvk_shape s = call_tensor_shape(c, x);
    x = rlxvk_narrow(c->graph, x, (int32_t)s.rank - 1, i, 1);
    s.rank--;
    return rlxvk_reshape(c->graph, x, s);
}

/* Joins real and imaginary parts along a new last axis. */
static rlxvk_tensor join(call *c, rlxvk_tensor re, rlxvk_tensor im)
{
    rlxvk_shape s = call_tensor_shape(c, re);
    s.dims[s.rank++] = 1;
    re = rlxvk_reshape(c->graph, re, s);
    if (!im.graph)
        return re;
    return rlxvk_concat(c->graph, (rlxvk_tensor[]){re, rlxvk_reshape(c->graph, im, s)}, 2, -1);
}

/* Exchanges an axis with the last one. */
static rlxvk_tensor to_last(call *c, rlxvk_tensor x, int32_t axis)
{
    int32_t perm[RLXVK_MAX_RANK];
    uint32_t rank = call_tensor_shape(c, x).rank;
    for (uint32_t i = 0; i < rank; i++)
        perm[i] = (int32_t)i;
    perm[axis] = (int32_t)rank - 1;
    perm[rank - 1] = axis;
    return axis == (int32_t)rank - 1 ? x : rlxvk_transpose(c->graph, x, perm, rank);
}

static rlxvk_tensor first_bins(call *c, rlxvk_tensor x, int64_t count)
{
    return rlxvk_narrow(c->graph, x, -1, 0, count);
}

void onnx_dft(call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, 0);
    bool inverse = call_flag(c, "inverse", false), onesided = call_flag(c, "onesided", false);
    int64_t given =
        c->opset >= 20 ? call_host_integer(c, 2, "the axis", -2) : call_integer(c, "axis", 1);
    int32_t axis = c->failed ? 0 : call_axis(c, "axis", given, s.rank);
    bool real = s.rank >= 2 && s.dims[s.rank - 1] == 1;
    rlxvk_tensor x = call_tensor(c, 0), re, im, block;
    int64_t length, bins;
    if (c->failed || !call_is_fixed(c, s))
        return;
    if (s.rank < 2 || axis == (int32_t)s.rank - 1 || s.dims[s.rank - 1] < 1 ||
        s.dims[s.rank - 1] > 2) {
        call_refuse(c, "axis", "the last axis must have 1 or 2 elements, and is not transformed");
        return;
    }
    bins = s.dims[axis];
    length = call_host_integer(c, 1, "the length of the transform",
                               inverse && onesided ? 2 * (bins - 1) : bins);
    if (c->failed || length < 1 || length > INT32_MAX) {
        call_refuse(c, NULL, "the length of the transform is out of range");
        return;
    }
    re = to_last(c, part(c, x, 0), axis);
    im = real ? rlxvk_mul(g, re, call_scalar(c, 0)) : to_last(c, part(c, x, 1), axis);
    if (inverse && onesided) {
        re = rlxvk_pad_last(g, re, length / 2 + 1);
        im = rlxvk_pad_last(g, im, length / 2 + 1);
        re = rlxvk_irfft(g, re, im, length, RLXVK_FFT_INVERSE);
        call_give(c, 0, join(c, to_last(c, re, axis), RLXVK_NONE));
        return;
    }
    block = rlxvk_fft_merge(g, rlxvk_pad_last(g, re, length), rlxvk_pad_last(g, im, length));
    re = rlxvk_fft_split(g, rlxvk_fft(g, block, inverse, RLXVK_FFT_INVERSE), &im);
    if (onesided) {
        re = first_bins(c, re, length / 2 + 1);
        im = first_bins(c, im, length / 2 + 1);
    }
    call_give(c, 0, join(c, to_last(c, re, axis), to_last(c, im, axis)));
}

void onnx_stft(call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, 0), window = call_shape(c, 2);
    bool onesided = call_flag(c, "onesided", true);
    int64_t hop = call_host_integer(c, 1, "the number of frames", 0);
    int64_t length =
        call_host_integer(c, 3, "the length of a frame", call_has(c, 2) ? window.dims[0] : 0);
    rlxvk_tensor x = call_tensor(c, 0), re, im;
    if (c->failed || !call_is_fixed(c, s))
        return;
    if (s.rank == 3 && s.dims[2] == 2) {
        call_refuse(c, NULL, "complex signals are not supported");
        return;
    }
    if (hop < 1 || length < 1) {
        call_refuse(c, NULL, "frames need a length and a step of at least 1");
        return;
    }
    if (s.rank == 3)
        x = part(c, x, 0);
    x = rlxvk_frames(g, x, length, hop);
    if (call_has(c, 2))
        x = rlxvk_mul(g, x, call_tensor(c, 2));
    re = onesided ? rlxvk_rfft(g, x, 0, RLXVK_FFT_INVERSE, &im)
                  : rlxvk_fft_real(g, x, 0, RLXVK_FFT_INVERSE, &im);
    call_give(c, 0, join(c, re, im));
}
