#version 450
/* y[i] = a[..] * b[..] + c[..], rounded twice on every driver, as in a region. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "elementwise/elementwise.glsl"

layout(set = 0, binding = 0) readonly buffer left { float a[]; };
layout(set = 0, binding = 1) readonly buffer right { float b[]; };
layout(set = 0, binding = 2) readonly buffer addend { float c[]; };
layout(set = 0, binding = 3) writeonly buffer target { float y[]; };

void main()
{
    uvec4 i = four_elements();
    location at = locate(i);
    vec4 p = vec4(LOAD_FOUR(a, at.a)), q = vec4(LOAD_FOUR(b, at.b)), r = vec4(LOAD_FOUR(c, at.c));
    precise vec4 v = p * q + r;
    STORE_FOUR(y, args.target_offset, i, args.numel, v)
}
