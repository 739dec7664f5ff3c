#version 450
/*
 * y[i] = activation(sum over s of partial[s][i] + bias[i % n]). It joins the results of a split-K
 * product, in order. The rows of y may have gaps between them, or its columns may be in parts.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/elementwise.h"
#include "args/matmul.h"
#include "elementwise/activation.glsl"
#include "lib/parts.glsl"

layout(constant_id = 1) const uint BIAS = MATMUL_NO_BIAS;
layout(constant_id = 2) const uint ACTIVATION = UNARY_NONE;
layout(push_constant) uniform block { matmul_sum_args args; };
layout(set = 0, binding = 0) readonly buffer partial_view { float partial[]; };
layout(set = 0, binding = 1) readonly buffer bias_view { float bias[]; };
layout(set = 0, binding = 2) writeonly buffer target { float y[]; };

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    float sum = 0.0;
    uint s = 0;
    /* Four loads in flight, added in order. */
    [[dont_unroll]] for (; s + 4 <= args.splits; s += 4) {
        uint at = s * args.count + i;
        vec4 next = vec4(partial[at], partial[at + args.count], partial[at + 2 * args.count],
                         partial[at + 3 * args.count]);
        sum = sum + next.x + next.y + next.z + next.w;
    }
    [[dont_unroll]] for (; s < args.splits; s++)
        sum += partial[s * args.count + i];
    if (BIAS == MATMUL_BIAS_COLUMN)
        sum += bias[args.bias_offset + i % args.n];
    uint at = place_in_parts(i / args.n, i % args.n, args.count / args.n, args.y_row, args.ends);
    y[args.y_offset + at] = ACTIVATION == UNARY_NONE ? sum : activation(ACTIVATION, sum);
}
