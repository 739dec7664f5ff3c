#version 450
/* The best token of each part of long rows of logits, for sample: its key and index. One workgroup
 * takes one part. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/random.h"

layout(constant_id = 1) const uint PARTS = 1; /* of a row */
layout(push_constant) uniform block { sample_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict writeonly buffer part_bests { uvec2 bests[]; };

shared uvec2 pair_scratch[gl_WorkGroupSize.x];
#include "random/sample_order.glsl"

void main()
{
    uint group = group_index(), row = group / PARTS, part = group % PARTS;
    if (row >= args.rows)
        return;
    uint length = (args.vocabulary + PARTS - 1u) / PARTS;
    uint end = min((part + 1u) * length, args.vocabulary);
    uvec2 best = uvec2(0u, ~0u);
    for (uint i = part * length + gl_LocalInvocationID.x; i < end; i += gl_WorkGroupSize.x) {
        float z = x[args.x_offset + row * args.vocabulary + i];
        best = better(best, uvec2(key_of(ranked(z)), i));
    }
    best = best_of_row(best);
    if (gl_LocalInvocationID.x == 0u)
        bests[group] = best;
}
