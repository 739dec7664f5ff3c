#version 450
/* y[i] = f(x[i]); the function is specialization constant 1. y may be x. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/elementwise.h"
#include "elementwise/activation.glsl"
#include "lib/four.glsl"

layout(constant_id = 1) const uint CODE = 0;
layout(push_constant) uniform block { unary_args args; };
layout(set = 0, binding = 0) readonly buffer source { float x[]; };
layout(set = 0, binding = 1) writeonly buffer target { float y[]; };

void main()
{
    uvec4 i = four_elements(), from = args.x_offset + min(i, uvec4(args.numel - 1));
    vec4 v = vec4(LOAD_FOUR(x, from));
    for (uint k = 0; k < 4; k++)
        v[k] = activation(CODE, v[k]);
    STORE_FOUR(y, args.y_offset, i, args.numel, v)
}
