#version 450
/* y = up * silu(gate). up and gate are the halves of a row of x. silu(-Inf) is its limit, 0. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/elementwise.h"
#include "elementwise/activation.glsl"

layout(constant_id = 1) const bool QUADS = false; /* four neighbours per invocation */
layout(push_constant) uniform block { swiglu_args args; };
layout(set = 0, binding = 0) readonly restrict buffer source { float x[]; };
layout(set = 0, binding = 0) readonly restrict buffer source_quads { vec4 x4[]; };
layout(set = 0, binding = 1) writeonly restrict buffer target { float y[]; };
layout(set = 0, binding = 1) writeonly restrict buffer target_quads { vec4 y4[]; };

void main()
{
    uint i = global_index() * (QUADS ? 4 : 1);
    if (i >= args.numel)
        return;
    uint at = i / args.columns * args.x_row + i % args.columns;
    uint up = args.up_offset + at, gate = args.gate_offset + at;
    if (QUADS) {
        vec4 g = x4[gate >> 2];
        g = vec4(silu(g.x), silu(g.y), silu(g.z), silu(g.w));
        y4[args.y_offset + i >> 2] = x4[up >> 2] * g;
    } else {
        y[args.y_offset + i] = x[up] * silu(x[gate]);
    }
}
