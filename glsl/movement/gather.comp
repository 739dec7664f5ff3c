#version 450
/*
 * y[o, t, i] = data[o, index(t), i] in units of WIDTH words, moved as integers. If data is packed
 * F16 or BF16 (STORAGE), a unit is WIDTH halves of the source, widened exactly with integer
 * arithmetic. An invocation moves COPY_ITEMS units.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"
#include "lib/index.glsl"

layout(constant_id = 1) const uint WIDTH = 1;
layout(constant_id = 2) const uint STORAGE = GATHER_WORDS;
layout(push_constant) uniform block { gather_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source1 { uint x1[]; };
layout(set = 0, binding = 0) restrict readonly buffer source2 { uvec2 x2[]; };
layout(set = 0, binding = 0) restrict readonly buffer source4 { uvec4 x4[]; };
layout(set = 0, binding = 1) restrict readonly buffer indices { float index[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target1 { uint y1[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target2 { uvec2 y2[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target4 { uvec4 y4[]; };

uint widen_half(uint bits)
{
    if (STORAGE == GATHER_BF16)
        return bits << 16;
    uint sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31u, mantissa = bits & 0x3ffu;
    if (exponent == 0u) /* zero or a denormal, which is normal in f32 */
        return sign | floatBitsToUint(float(mantissa) * 5.9604644775390625e-8);
    if (exponent == 31u)
        return sign | 0x7f800000u | mantissa << 13;
    return sign | (exponent + 112u) << 23 | mantissa << 13;
}

uvec2 widen_word(uint word)
{
    return uvec2(widen_half(word & 0xffffu), widen_half(word >> 16));
}

uint read_half(uint element)
{
    uvec2 both = widen_word(x1[element >> 1]);
    return (element & 1u) != 0u ? both.y : both.x;
}

uvec4 read_unit(uint i)
{
    if (WIDTH == 2u)
        return uvec4(x2[i], 0u, 0u);
    if (WIDTH == 1u)
        return uvec4(STORAGE == GATHER_WORDS ? x1[i] : read_half(i), 0u, 0u, 0u);
    if (STORAGE == GATHER_WORDS)
        return x4[i];
    uvec2 words = x2[i];
    return uvec4(widen_word(words.x), widen_word(words.y));
}

void write_unit(uint i, uvec4 unit)
{
    if (WIDTH == 4u)
        y4[i] = unit;
    else if (WIDTH == 2u)
        y2[i] = unit.xy;
    else
        y1[i] = unit.x;
}

/* The unit of data that becomes unit i of the result. */
uint locate(uint i)
{
    uint row = i / args.inner, outer = row / args.index_count;
    float v = index[args.index_offset + row - outer * args.index_count];
    uint from = outer * args.extent + clamped_index(v, args.extent);
    return args.data_offset + from * args.inner + (i - row * args.inner);
}

void main()
{
    uint step = gl_WorkGroupSize.x;
    uint first = group_index() * step * COPY_ITEMS + gl_LocalInvocationID.x;
    if (first >= args.count)
        return;
    uvec4 units[COPY_ITEMS];
    for (uint k = 0u; k < COPY_ITEMS; k++)
        units[k] = read_unit(locate(min(first + k * step, args.count - 1u)));
    for (uint k = 0u; k < COPY_ITEMS; k++)
        if (first + k * step < args.count)
            write_unit(args.target_offset + first + k * step, units[k]);
}
