#version 450
/*
 * Converts between floats and 8-bit codes:
 *   quantize    y = saturated(x * factor + zero point); factor is the reciprocal of the scale
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
layout(push_constant) uniform block { quantize_args args; };
layout(set = 0, binding = 0) readonly buffer source { uint x[]; };
layout(set = 0, binding = 1) restrict readonly buffer factor_buffer { float factors[]; };
layout(set = 0, binding = 2) restrict readonly buffer zero_buffer { float zero_points[]; };
layout(set = 0, binding = 3) writeonly buffer target { float y[]; };

float convert(uint word, uint index, uint i)
{
    uint channel = PER_CHANNEL != 0 ? i / args.inner % args.channels : 0u;
    float factor = factors[args.factor_offset + channel];
    int zero_point = int(zero_points[args.zero_offset + channel]);
    if (MODE == QUANTIZE_WORDS) {
        precise float scaled = uintBitsToFloat(word) * factor;
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
