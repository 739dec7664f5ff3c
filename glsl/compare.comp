#version 450
/* y[i] = a[..] ? b[..]: 1.0 or 0.0 by the operands' bits, so that NaN and denormals compare as
 * IEEE says on any driver. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "elementwise.glsl"

layout(set = 0, binding = 0) readonly buffer left { float a[]; };
layout(set = 0, binding = 1) readonly buffer right { float b[]; };
layout(set = 0, binding = 2) writeonly buffer target { float y[]; };

bool holds(float p, float q)
{
    int u = order_key(p), v = order_key(q);
    if (is_nan(p) || is_nan(q))
        return CODE == COMPARE_NE;
    if (CODE == COMPARE_EQ)
        return u == v;
    if (CODE == COMPARE_NE)
        return u != v;
    if (CODE == COMPARE_LT)
        return u < v;
    if (CODE == COMPARE_LE)
        return u <= v;
    return CODE == COMPARE_GT ? u > v : u >= v;
}

void main()
{
    uvec4 i = four_elements();
    location at = locate(i);
    vec4 p = vec4(LOAD_FOUR(a, at.a)), q = vec4(LOAD_FOUR(b, at.b));
    for (uint k = 0; k < 4; k++)
        p[k] = holds(p[k], q[k]) ? 1.0 : 0.0;
    STORE_FOUR(y, args.target_offset, i, args.numel, p)
}
