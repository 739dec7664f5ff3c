#version 450
/* y[i] = a[..] == b[..] (or !=), both parts. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "elementwise.glsl"

layout(set = 0, binding = 0) readonly buffer left { float a[]; };
layout(set = 0, binding = 1) readonly buffer right { float b[]; };
layout(set = 0, binding = 2) writeonly buffer target { float y[]; };

bool same(float p, float q)
{
    return !is_nan(p) && !is_nan(q) && order_key(p) == order_key(q);
}

void main()
{
    for (uint k = 0; k < 4; k++) {
        uint i = element(k);
        if (i >= args.numel)
            continue;
        uvec3 at = locate(i);
        vec2 p = (PAIRS & 1u) != 0u ? vec2(a[2 * at.x], a[2 * at.x + 1]) : vec2(a[at.x], 0.0);
        vec2 q = (PAIRS & 2u) != 0u ? vec2(b[2 * at.y], b[2 * at.y + 1]) : vec2(b[at.y], 0.0);
        bool equal = same(p.x, q.x) && same(p.y, q.y);
        y[args.target_offset + i] = equal == (CODE == COMPARE_EQ) ? 1.0 : 0.0;
    }
}
