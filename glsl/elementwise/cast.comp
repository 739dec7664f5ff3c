#version 450
/* y[i] = x[i] converted. SOURCE says how x is stored, and TARGET is the new dtype. y may be x if
 * both are words. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/elementwise.h"
#include "elementwise/convert.glsl"
#include "lib/four.glsl"

layout(constant_id = 1) const uint SOURCE = CAST_FROM_WORD;
layout(constant_id = 2) const uint TARGET = DTYPE_F32;
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

void main()
{
    uvec4 i = four_elements(), from = args.x_offset + min(i, uvec4(args.numel - 1));
    vec4 v = vec4(load(from.x), load(from.y), load(from.z), load(from.w));
    for (uint k = 0; k < 4; k++)
        v[k] = convert(TARGET, v[k]);
    if (TARGET != DTYPE_C64) {
        STORE_FOUR(y, args.y_offset, i, args.numel, v)
        return;
    }
    for (uint k = 0; k < 4 && i[k] < args.numel; k++) {
        y[2 * (args.y_offset + i[k])] = v[k];
        y[2 * (args.y_offset + i[k]) + 1] = 0.0;
    }
}
