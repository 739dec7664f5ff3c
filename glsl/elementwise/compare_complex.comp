#version 450
/* y[i] = a[..] == b[..] (or !=) for complex numbers: both parts must be equal. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/elementwise.h"
#include "elementwise/arithmetic.glsl"
#include "elementwise/elementwise.glsl"

layout(set = 0, binding = 0) readonly buffer left { float a[]; };
layout(set = 0, binding = 1) readonly buffer right { float b[]; };
layout(set = 0, binding = 2) writeonly buffer target { float y[]; };

bool same(float p, float q)
{
    return !is_nan(p) && !is_nan(q) && order_key(p) == order_key(q);
}

vec2 left_at(uint at)
{
    return (PAIRS & 1u) != 0u ? vec2(a[2 * at], a[2 * at + 1]) : vec2(a[at], 0.0);
}
vec2 right_at(uint at)
{
    return (PAIRS & 2u) != 0u ? vec2(b[2 * at], b[2 * at + 1]) : vec2(b[at], 0.0);
}

void main()
{
    uvec4 i = four_elements();
    location at = locate(i);
    for (uint k = 0; k < 4 && i[k] < args.numel; k++) {
        vec2 p = left_at(at.a[k]), q = right_at(at.b[k]);
        bool equal = same(p.x, q.x) && same(p.y, q.y);
        y[args.target_offset + i[k]] = equal == (CODE == COMPARE_EQ) ? 1.0 : 0.0;
    }
}
