#version 450
/*
 * Converts between floats and 8-bit codes:
 *   quantize    y = saturated(x * factor + zero point); factor is the reciprocal of the scale
 *               EVEN: y = saturated(x / factor + zero point), halves to even
 *   dequantize  y = (x - zero point) * factor
 *
 * Element i uses factor and zero point (i / inner) % channels. If both x and y are words, y may be
 * x.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/packed.h"
#include "lib/four.glsl"
#include "packed/integer.glsl"

layout(constant_id = 1) const uint MODE = QUANTIZE_WORDS;
layout(constant_id = 2) const uint PER_CHANNEL = 0;
layout(constant_id = 3) const uint UNSIGNED = 0;
layout(constant_id = 4) const uint EVEN = 0; /* of QUANTIZE_WORDS */
layout(push_constant) uniform block { quantize_args args; };
layout(set = 0, binding = 0) readonly buffer source { uint x[]; };
layout(set = 0, binding = 1) restrict readonly buffer factor_buffer { float factors[]; };
layout(set = 0, binding = 2) restrict readonly buffer zero_buffer { float zero_points[]; };
layout(set = 0, binding = 3) writeonly buffer target { float y[]; };

/* The f32 nearest to x / scale, rounded to a whole number, halves to even. Numbers beyond 1000 in
 * magnitude become some number beyond 999. Devices divide with an error, so it decides only which
 * half is near. Whether x is above this half, below it, or rounds to it, is computed exactly: the
 * half has at most 11 bits, and each part of the scale has 12. */
int round_quotient(float x, float scale)
{
    float near = clamp(x / scale, -1000.0, 1000.0);
    float whole = floor(near), middle = whole + 0.5;
    float high = uintBitsToFloat(floatBitsToUint(scale) & 0xfffff000u);
    precise float low = scale - high;
    precise float rest = (x - middle * high) - middle * low;
    /* Half of the distance of two neighbours of `middle`; below 1/2, they are twice as dense. */
    float unit = uintBitsToFloat(floatBitsToUint(middle) & 0x7f800000u) * 5.96046448e-8 * scale;
    bool towards_zero = middle > 0.0 ? rest < 0.0 : rest > 0.0;
    if (abs(middle) == 0.5 && towards_zero)
        unit *= 0.5;
    if (abs(rest) <= unit)
        return int(whole) + (int(whole) & 1);
    return int(whole) + (rest > 0.0 ? 1 : 0);
}

float quantize_even(float x, float scale, int zero_point)
{
    int code = is_nan(x) ? zero_point : round_quotient(x, scale) + zero_point;
    return float(UNSIGNED != 0 ? clamp(code, 0, 255) : clamp(code, -128, 127));
}

float convert(uint word, uint index, uint i)
{
    uint channel = PER_CHANNEL != 0 ? i / args.inner % args.channels : 0u;
    float factor = factors[args.factor_offset + channel];
    int zero_point = int(zero_points[args.zero_offset + channel]);
    if (MODE == QUANTIZE_WORDS && EVEN != 0)
        return quantize_even(uintBitsToFloat(word), factor, zero_point);
    if (MODE == QUANTIZE_WORDS) {
        precise float scaled = uintBitsToFloat(word) * factor;
        if (UNSIGNED != 0)
            return clamp(saturate_integer(scaled, zero_point - 128) + 128.0, 0.0, 255.0);
        return saturate_integer(scaled, zero_point);
    }
    int code = MODE == DEQUANTIZE_BYTES ? signed_byte(word, index) : signed_word(word);
    precise float value = float(code - zero_point) * factor;
    return value;
}

void main()
{
    uvec4 i = four_elements(), last = min(i, uvec4(args.numel - 1)), from = args.x_offset + last;
    uvec4 at = MODE == DEQUANTIZE_BYTES ? from >> 2 : from;
    uvec4 word = uvec4(LOAD_FOUR(x, at));
    vec4 v;
    for (uint k = 0; k < 4; k++)
        v[k] = convert(word[k], from[k], last[k]);
    STORE_FOUR(y, args.y_offset, i, args.numel, v)
}
