#version 450
/*
 * Gradient of a group norm's gamma. If BOTH is true, the gradient of beta follows it. The inputs
 * are the sums of each channel's chunks (from norm_backward) and the statistics of the groups (from
 * norm_backward_join). A lane adds with compensation because it may take many chunks.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/rows.h"

layout(constant_id = 1) const bool BOTH = false;
layout(push_constant) uniform block { norm_backward_channels_args args; };
#include "lib/rows.glsl"
#include "rows/norm_moments.glsl"
layout(set = 0, binding = 0) restrict readonly buffer partial { float parts[]; };
layout(set = 0, binding = 1) restrict readonly buffer groups_known { float known[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target { float sums[]; };

ROW_TREE(vec2, sums_of_lanes, scratch, row_add)

void main()
{
    row_work w = row_part();
    uint channel = w.o / args.rows.chunks;
    vec2 high = vec2(0.0), low = vec2(0.0);
    for (uint i = w.first + w.lane; i < w.end; i += args.rows.lanes) {
        uint piece = i / args.chunks * args.channels + channel;
        uint at = NORM_CHUNK_SUMS * (piece * args.chunks + i % args.chunks);
        uint group = NORM_CHUNK_SUMS * (piece / args.group_channels);
        float mean = parts[at], rest = parts[at + 1u], own = parts[at + 5u];
        float weights = parts[at + 3u], products = parts[at + 4u], factor = known[group + 5u];
        if (own != factor) {
            float ratio = norm_ratio(own, factor);
            mean = norm_scaled(mean, ratio);
            rest = norm_scaled(rest, ratio);
            products *= ratio;
        }
        products += ((mean - known[group]) + (rest - known[group + 1u])) * weights;
        add_compensated(high.x, low.x, products * known[group + 2u]);
        if (BOTH)
            add_compensated(high.y, low.y, weights);
    }
    vec2 sum = vec2(compensated_value(high.x, low.x), compensated_value(high.y, low.y));
    sum = sums_of_lanes(sum, w.lane);
    if (w.live && w.lane == 0u) {
        sums[args.target_offset + w.o] = sum.x;
        if (BOTH)
            sums[args.target_offset + args.rows.outputs + w.o] = sum.y;
    }
}
