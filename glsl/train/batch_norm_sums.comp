#version 450
/* Sums of dy xhat and of dy over chunks of rows, each of one channel. Four products at a time,
 * added with compensation. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/train.h"

layout(push_constant) uniform block { batch_norm_sums_args args; };
#include "lib/rows.glsl"
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict readonly buffer upstream { float dy[]; };
layout(set = 0, binding = 2) restrict readonly buffer known { float statistics[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { float sums[]; };

ROW_TREE(vec2, sums_of_lanes, scratch, row_add)

float sum_of_four(vec4 v)
{
    return (v.x + v.y) + (v.z + v.w);
}

void main()
{
    row_work w = row_part();
    uint row = w.o / args.rows.inner / args.rows.chunks * args.rows.inner + w.o % args.rows.inner;
    uint channel = args.statistics_offset + row / args.step % args.channels;
    float mean = statistics[channel], rest = statistics[channel + args.channels];
    float scale = statistics[channel + 2u * args.channels];
    vec2 high = vec2(0.0), low = vec2(0.0);
    for (uint r = w.first + w.lane; r < w.end; r += 4u * args.rows.lanes) {
        vec4 products = vec4(0.0), d = vec4(0.0);
        [[unroll]] for (uint k = 0u; k < 4u; k++) {
            uint i = r + k * args.rows.lanes, at = w.start + i * args.rows.inner;
            if (i < w.end) {
                d[k] = dy[args.dy_offset + at];
                products[k] = d[k] * (((x[args.x_offset + at] - mean) - rest) * scale);
            }
        }
        add_compensated(high.x, low.x, sum_of_four(products));
        add_compensated(high.y, low.y, sum_of_four(d));
    }
    vec2 sum = vec2(compensated_value(high.x, low.x), compensated_value(high.y, low.y));
    sum = sums_of_lanes(sum, w.lane);
    if (w.live && w.lane == 0u) {
        sums[args.sums_offset + w.o] = sum.x;
        sums[args.sums_offset + args.plane + w.o] = sum.y;
    }
}
