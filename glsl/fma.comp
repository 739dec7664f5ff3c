#version 450
/* y[i] = a[..] * b[..] + c[..], rounded once or twice. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "elementwise.glsl"

layout(set = 0, binding = 0) readonly buffer left { float a[]; };
layout(set = 0, binding = 1) readonly buffer right { float b[]; };
layout(set = 0, binding = 2) readonly buffer addend { float c[]; };
layout(set = 0, binding = 3) writeonly buffer target { float y[]; };

void main()
{
    for (uint k = 0; k < 4; k++) {
        uint i = element(k);
        if (i < args.numel) {
            uvec3 at = locate(i);
            y[args.target_offset + i] = a[at.x] * b[at.y] + c[at.z];
        }
    }
}
