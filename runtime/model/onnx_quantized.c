/*
 * Lowerings of ops on quantized integers. Integers are computed as f32 words: sums of products of
 * bytes are exact up to 2^24, and a larger sum is rounded.
 */
#include "model/host.h"
#include "model/onnx_cast.h"
#include "model/onnx_conv.h"
#include "model/onnx_float8.h"
#include "model/onnx_ops.h"
#include "model/onnx_quantized.h"

#include <string.h>

/* ---- Scales and zero points ---- */

rlxvk_tensor onnx_quantized_spread(call *c, size_t i, rlxvk_shape x, int32_t axis, int64_t block)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor t = call_cast(c, call_tensor(c, i), ONNX_FLOAT);
    rlxvk_shape s = call_shape(c, i), row = {.rank = x.rank}, split, wide;
    if (call_product(c, s, 0, s.rank) == 1 && block == 0)
        return rlxvk_reshape(c->graph, t, RLXVK_SCALAR);
    if (block == 0) {
        if (s.rank != 1) {
            call_refuse(c, NULL, "operand %zu has %u axes; numbers and rows are supported", i,
                        s.rank);
            return t;
        }
        for (uint32_t k = 0; k < x.rank; k++)
            row.dims[k] = (int32_t)k == axis ? s.dims[0] : 1;
        return rlxvk_reshape(g, t, row);
    }
    if (s.rank != x.rank || x.rank == RLXVK_MAX_RANK || !call_is_fixed(c, x) ||
        s.dims[axis] * block < x.dims[axis]) {
        call_refuse(c, "block_size", "operand %zu does not have one number for each block", i);
        return t;
    }
    split = wide = s;
    split.rank = wide.rank = s.rank + 1;
    memmove(split.dims + axis + 2, s.dims + axis + 1,
            (s.rank - (uint32_t)axis - 1) * sizeof *s.dims);
    split.dims[axis + 1] = 1;
    wide = split;
    wide.dims[axis + 1] = block;
    t = rlxvk_expand(g, rlxvk_reshape(g, t, split), wide);
    s.dims[axis] *= block;
    t = rlxvk_reshape(g, t, s);
    return s.dims[axis] == x.dims[axis] ? t : rlxvk_narrow(g, t, axis, 0, x.dims[axis]);
}

static bool limits_of(call *c, int32_t type, float *low, float *high)
{
    uint32_t bits = onnx_type_bits(type);
    if (!onnx_is_integer(type) || bits > 16) {
        call_refuse(c, NULL, "codes of type %s are not supported", onnx_type_name(type));
        return false;
    }
    *low = onnx_is_signed(type) ? -(float)(1 << (bits - 1)) : 0;
    *high = *low + (float)((1 << bits) - 1);
    return true;
}

/* The distance of two neighbours of v = 1/2, 3/2, .. in f32, to within 2e-6 of it. */
static rlxvk_tensor step_at(call *c, rlxvk_tensor v)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor ln2 = call_scalar(c, 0.69314718055994531);
    rlxvk_tensor power = rlxvk_div(g, rlxvk_log(g, v), ln2);
    power = rlxvk_floor(g, rlxvk_add(g, power, call_scalar(c, 1e-4)));
    power = rlxvk_exp(g, rlxvk_mul(g, power, ln2));
    return rlxvk_mul(g, power, call_scalar(c, 1.0 / (1 << 23)));
}

/* A division on the device may be off, but the remainder is exact, and so is its distance from half
 * a scale. */
rlxvk_tensor onnx_quantized_quotient(call *c, rlxvk_tensor x, rlxvk_tensor scale)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor most = rlxvk_mul(g, scale, call_scalar(c, 131072)), rest, whole, above, half, odd;
    x = rlxvk_max(g, rlxvk_min(g, x, most), rlxvk_neg(g, most));
    rest = rlxvk_fmod(g, x, scale);
    whole = rlxvk_round(g, rlxvk_div(g, rlxvk_sub(g, x, rest), scale));
    rest = rlxvk_abs(g, rest);
    above = rlxvk_sub(g, rlxvk_add(g, rest, rest), scale);
    half = step_at(c, rlxvk_add(g, rlxvk_abs(g, whole), call_scalar(c, 0.5)));
    half = rlxvk_mul(g, half, scale); /* up to here, the quotient is the half itself */
    odd = rlxvk_ne(g, rlxvk_fmod(g, whole, call_scalar(c, 2)), call_scalar(c, 0));
    odd = rlxvk_min(g, odd, rlxvk_le(g, rlxvk_abs(g, above), half));
    above = rlxvk_max(g, odd, rlxvk_gt(g, above, half));
    return rlxvk_add(g, whole, rlxvk_where(g, above, rlxvk_sign(g, x), call_scalar(c, 0)));
}

void onnx_quantized_give(call *c, size_t result, rlxvk_tensor x, rlxvk_tensor zero, int32_t type)
{
    float low, high;
    if (!limits_of(c, type, &low, &high))
        return;
    x = rlxvk_round(c->graph, x);
    if (zero.graph)
        x = rlxvk_add(c->graph, x, zero);
    call_give_as(c, result, rlxvk_clip(c->graph, x, low, high), type);
}

static int32_t quantized_axis(call *c, rlxvk_shape s, int64_t *block)
{
    int64_t axis = call_integer(c, "axis", 1);
    *block = c->opset >= 21 ? call_integer(c, "block_size", 0) : 0;
    return s.rank == 0 || (axis >= s.rank && *block == 0 && call_shape(c, 1).rank == 0)
               ? 0
               : call_axis(c, "axis", axis, s.rank);
}

/* Scales as floats and zero points as integers, if both are known and rlxvk_quantize takes them. */
static bool read_native(call *c, int32_t type, float **out_scales, int32_t **out_zeros, size_t *out)
{
    const host_array *scale = call_is_known(c, 1) ? call_host(c, 1, "the scales") : NULL;
    const host_array *zero = call_is_known(c, 2) ? call_host(c, 2, "the zero points") : NULL;
    float *scales;
    int32_t *zeros;
    if (!scale || (call_has(c, 2) && !zero) || (type != ONNX_INT8 && type != ONNX_UINT8) ||
        scale->shape.rank > 1 || !scale->reals || (zero && zero->numel != scale->numel))
        return false; /* the general path takes or refuses them */
    scales = arena_allocate(c->a, ((size_t)scale->numel + 1) * sizeof *scales);
    zeros = arena_allocate(c->a, ((size_t)scale->numel + 1) * sizeof *zeros);
    if (!scales || !zeros) {
        import_end(c->import, status_fail_memory("scales"));
        return false;
    }
    for (uint64_t i = 0; i < scale->numel; i++) {
        scales[i] = (float)scale->reals[i];
        zeros[i] = zero ? (int32_t)zero->integers[i] : 0;
        if (!(scales[i] >= 1e-30f && scales[i] <= 1e30f))
            return false;
    }
    *out_scales = scales;
    *out_zeros = zeros;
    *out = (size_t)scale->numel;
    return scale->numel > 0;
}

/* One op, if scales and zero points are known. */
static bool quantize_by_op(call *c, rlxvk_tensor x, int32_t axis, int32_t type)
{
    rlxvk_quantize_options o =
        RLXVK_SIZED(rlxvk_quantize_options, .axis = axis, .rounding = RLXVK_QUANTIZE_EVEN);
    float *scales;
    int32_t *zeros;
    if (c->failed || !read_native(c, type, &scales, &zeros, &o.count) || c->failed)
        return false;
    o.scales = scales;
    o.zero_points = zeros;
    o.per_axis = o.count > 1;
    o.code = type == ONNX_UINT8 ? RLXVK_U8 : (rlxvk_dtype)0;
    call_give_as(c, 0, rlxvk_quantize(c->graph, x, &o), type);
    return true;
}

void onnx_quantize_linear(call *c)
{
    rlxvk_shape s = call_shape(c, 0);
    int64_t block;
    int32_t axis = quantized_axis(c, s, &block);
    int32_t type =
        call_has(c, 2) ? call_type(c, 2) : (int32_t)call_integer(c, "output_dtype", ONNX_UINT8);
    rlxvk_tensor x = call_cast(c, call_tensor(c, 0), ONNX_FLOAT), zero = RLXVK_NONE;
    bool saturate = call_flag(c, "saturate", true);
    call_ignore(c, "output_dtype");
    call_ignore(c, "precision"); /* it is f32 */
    if (type == ONNX_UNDEFINED)
        type = ONNX_UINT8;
    if (onnx_find_float8(type)) { /* the zero point is 0 */
        x = rlxvk_div(c->graph, x, onnx_quantized_spread(c, 1, s, axis, block));
        call_give_as(c, 0, onnx_round_float8(c, x, type, saturate, ONNX_ROUND_UP), type);
        return;
    }
    if (block == 0 && quantize_by_op(c, x, axis, type))
        return;
    x = onnx_quantized_quotient(c, x, onnx_quantized_spread(c, 1, s, axis, block));
    if (call_has(c, 2))
        zero = onnx_quantized_spread(c, 2, s, axis, block);
    onnx_quantized_give(c, 0, x, zero, type);
}

void onnx_dequantize_linear(call *c)
{
    rlxvk_shape s = call_shape(c, 0);
    int64_t block;
    int32_t axis = quantized_axis(c, s, &block);
    int32_t type = (int32_t)call_integer(c, "output_dtype", call_type(c, 1));
    rlxvk_tensor x = call_cast(c, call_tensor(c, 0), ONNX_FLOAT);
    if (call_has(c, 2))
        x = rlxvk_sub(c->graph, x, onnx_quantized_spread(c, 2, s, axis, block));
    x = rlxvk_mul(c->graph, x, onnx_quantized_spread(c, 1, s, axis, block));
    call_give_as(c, 0, x, type == ONNX_UNDEFINED ? call_type(c, 1) : type);
}

rlxvk_tensor onnx_quantized_dynamic(call *c, rlxvk_tensor x, rlxvk_tensor *out_scale,
                                    rlxvk_tensor *out_zero)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_tensor_shape(c, x);
    int32_t axes[RLXVK_MAX_RANK];
    rlxvk_tensor none = call_scalar(c, 0), low, high, scale, zero;
    for (uint32_t i = 0; i < s.rank; i++)
        axes[i] = (int32_t)i;
    low = rlxvk_min(g, rlxvk_reduce_min(g, x, axes, s.rank, false), none);
    high = rlxvk_max(g, rlxvk_reduce_max(g, x, axes, s.rank, false), none);
    scale = rlxvk_div(g, rlxvk_sub(g, high, low), call_scalar(c, 255));
    scale = rlxvk_where(g, rlxvk_gt(g, scale, none), scale, call_scalar(c, 1)); /* all are 0 */
    zero = rlxvk_clip(g, onnx_quantized_quotient(c, rlxvk_neg(g, low), scale), 0, 255);
    *out_scale = scale;
    *out_zero = zero;
    return rlxvk_clip(g, rlxvk_add(g, onnx_quantized_quotient(c, x, scale), zero), 0, 255);
}

void onnx_dynamic_quantize_linear(call *c)
{
    rlxvk_tensor scale, zero, x = call_tensor(c, 0);
    if (c->failed)
        return;
    call_give_as(c, 0, onnx_quantized_dynamic(c, x, &scale, &zero), ONNX_UINT8);
    call_give_as(c, 1, scale, ONNX_FLOAT);
    call_give_as(c, 2, zero, ONNX_UINT8);
}

/* ---- Products ---- */

rlxvk_tensor onnx_quantized_centred(call *c, size_t i, size_t zero, int32_t axis)
{
    rlxvk_tensor x = call_cast(c, call_tensor(c, i), ONNX_FLOAT);
    return call_has(c, zero)
               ? rlxvk_sub(c->graph, x, onnx_quantized_spread(c, zero, call_shape(c, i), axis, 0))
               : x;
}

void onnx_mat_mul_integer(call *c)
{
    uint32_t a = call_shape(c, 0).rank, b = call_shape(c, 1).rank;
    rlxvk_tensor x, w;
    if (a < 1 || b < 1) {
        call_refuse(c, NULL, "an operand is a scalar");
        return;
    }
    x = onnx_quantized_centred(c, 0, 2, (int32_t)a - 2);
    w = onnx_quantized_centred(c, 1, 3, (int32_t)b - 1);
    call_give_as(c, 0, rlxvk_matmul(c->graph, x, w), ONNX_INT32);
}

void onnx_q_linear_mat_mul(call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape a = call_shape(c, 0), b = call_shape(c, 3);
    rlxvk_tensor x, w, y, scale;
    if (a.rank < 2 || b.rank < 2) {
        call_refuse(c, NULL, "an operand has fewer than 2 axes");
        return;
    }
    x = onnx_quantized_centred(c, 0, 2, (int32_t)a.rank - 2);
    w = onnx_quantized_centred(c, 3, 5, (int32_t)b.rank - 1);
    y = rlxvk_matmul(g, x, w);
    scale = rlxvk_mul(g, onnx_quantized_spread(c, 1, a, (int32_t)a.rank - 2, 0),
                      onnx_quantized_spread(c, 4, b, (int32_t)b.rank - 1, 0));
    scale = rlxvk_div(g, scale, onnx_quantized_spread(c, 6, RLXVK_SCALAR, 0, 0));
    onnx_quantized_give(c, 0, rlxvk_mul(g, y, scale),
                        onnx_quantized_spread(c, 7, RLXVK_SCALAR, 0, 0), call_type(c, 7));
}

void onnx_conv_integer(call *c)
{
    rlxvk_tensor x = onnx_quantized_centred(c, 0, 2, 1), w = onnx_quantized_centred(c, 1, 3, 0);
    if (!c->failed)
        call_give_as(c, 0, onnx_convolve(c, x, w, RLXVK_NONE), ONNX_INT32);
}

void onnx_q_linear_conv(call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor x = onnx_quantized_centred(c, 0, 2, 1), w = onnx_quantized_centred(c, 3, 5, 0), y,
                 scale;
    rlxvk_tensor bias = call_has(c, 8) ? call_cast(c, call_tensor(c, 8), ONNX_FLOAT) : RLXVK_NONE;
    if (c->failed)
        return;
    y = onnx_convolve(c, x, w, bias);
    if (c->failed)
        return;
    scale = rlxvk_mul(g, onnx_quantized_spread(c, 1, RLXVK_SCALAR, 0, 0),
                      onnx_quantized_spread(c, 4, call_tensor_shape(c, y), 1, 0));
    scale = rlxvk_div(g, scale, onnx_quantized_spread(c, 6, RLXVK_SCALAR, 0, 0));
    onnx_quantized_give(c, 0, rlxvk_mul(g, y, scale),
                        onnx_quantized_spread(c, 7, RLXVK_SCALAR, 0, 0), call_type(c, 7));
}
