#version 450
/* y[i] = a[..] op b[..], real operands. y may be a or b where that operand is read densely. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "elementwise.glsl"
#include "math.glsl"

layout(set = 0, binding = 0) readonly buffer left { float a[]; };
layout(set = 0, binding = 1) readonly buffer right { float b[]; };
layout(set = 0, binding = 2) writeonly buffer target { float y[]; };

float extreme(float p, float q, bool largest)
{
    if (is_nan(p) || is_nan(q))
        return NAN_VALUE;
    return (order_key(p) > order_key(q)) == largest ? p : q;
}

float combine(float p, float q)
{
    if (CODE == BINARY_ADD)
        return p + q;
    if (CODE == BINARY_SUB)
        return p - q;
    if (CODE == BINARY_MUL)
        return p * q;
    if (CODE == BINARY_DIV)
        return divide(p, q);
    if (CODE == BINARY_POW)
        return power(p, q);
    return extreme(p, q, CODE == BINARY_MAX);
}

void main()
{
    uvec4 i = four_elements();
    location at = locate(i);
    vec4 p = vec4(LOAD_FOUR(a, at.a)), q = vec4(LOAD_FOUR(b, at.b));
    for (uint k = 0; k < 4; k++)
        p[k] = combine(p[k], q[k]);
    STORE_FOUR(y, args.target_offset, i, args.numel, p)
}
