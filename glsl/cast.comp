#version 450
/* y[i] = x[i] converted: SOURCE says how x is held, TARGET what it becomes. Halves are rounded on
 * the bits and stored widened; integers are truncated toward zero and saturated. y may be x where
 * both are words. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "four.glsl"
#include "narrow.glsl"

layout(constant_id = 1) const uint SOURCE = CAST_FROM_WORD;
layout(constant_id = 2) const uint TARGET = CAST_TO_WORD;
layout(push_constant) uniform block { cast_args args; };
layout(set = 0, binding = 0) readonly buffer source { uint x[]; };
layout(set = 0, binding = 1) writeonly buffer target { float y[]; };

float load(uint i)
{
    if (SOURCE == CAST_FROM_WORD)
        return uintBitsToFloat(x[i]);
    if (SOURCE == CAST_FROM_PAIR)
        return uintBitsToFloat(x[2 * i]);
    uint shift = (i & 3u) * 8u;
    if (SOURCE == CAST_FROM_U8)
        return float(x[i >> 2] >> shift & 0xffu);
    return float(int(x[i >> 2] << (24u - shift)) >> 24);
}

float to_integer(float v)
{
    if (is_nan(v))
        return 0.0;
    if (v <= args.lowest)
        return args.lowest;
    if (v >= args.highest)
        return args.highest;
    return abs(v) < 8388608.0 ? float(int(v)) : v;
}

float convert(float v)
{
    if (TARGET == CAST_TO_F16)
        return to_f16(v);
    if (TARGET == CAST_TO_BF16)
        return to_bf16(v);
    if (TARGET == CAST_TO_INTEGER)
        return to_integer(v);
    if (TARGET == CAST_TO_BOOL)
        return (floatBitsToUint(v) & 0x7fffffffu) != 0u ? 1.0 : 0.0;
    return v;
}

void main()
{
    uvec4 i = four_elements(), from = args.x_offset + min(i, uvec4(args.numel - 1));
    vec4 v = vec4(load(from.x), load(from.y), load(from.z), load(from.w));
    for (uint k = 0; k < 4; k++)
        v[k] = convert(v[k]);
    if (TARGET != CAST_TO_PAIR) {
        STORE_FOUR(y, args.y_offset, i, args.numel, v)
        return;
    }
    for (uint k = 0; k < 4 && i[k] < args.numel; k++) {
        y[2 * (args.y_offset + i[k])] = v[k];
        y[2 * (args.y_offset + i[k]) + 1] = 0.0;
    }
}
