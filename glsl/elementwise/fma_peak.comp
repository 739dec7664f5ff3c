#version 450
/*
 * Measures the device's rate of f32 fused multiply-adds. It has FMA_PEAK_CHAINS independent chains:
 * enough to hide latency, and few enough to stay in registers. |scale| < 1 keeps the sums finite.
 * Every sum goes into the result, so that the compiler cannot remove any. Only `rlxvk bench` uses
 * it.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/elementwise.h"

layout(push_constant) uniform block { fma_peak_args args; };
layout(set = 0, binding = 0) restrict writeonly buffer target { float y[]; };

void main()
{
    vec4 a = vec4(0, 1, 2, 3) + float(gl_LocalInvocationID.x), b = a + 0.25, c = a + 0.5;
    vec4 scale = vec4(args.scale), shift = vec4(args.shift);
    for (uint i = 0; i < args.rounds; i += 4) {
        for (uint k = 0; k < 4; k++) {
            a = fma(a, scale, shift);
            b = fma(b, scale, shift);
            c = fma(c, scale, shift);
        }
    }
    y[global_index()] = dot(a + b + c, vec4(1));
}
