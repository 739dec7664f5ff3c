#version 450
/*
 * Sums of dy xhat over chunks of rows that share an element of gamma, from the statistics
 * (norm_statistics) of what was normalized: those of a whole row here, or of each of its elements
 * (args.step). Four products at a time, added with compensation.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/rows.h"

layout(push_constant) uniform block { norm_products_args args; };
#include "lib/rows.glsl"
#include "rows/norm_moments.glsl"
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict readonly buffer upstream { float dy[]; };
layout(set = 0, binding = 2) restrict readonly buffer known { float statistics[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { float sums[]; };

ROW_TREE(float, sum_of_lanes, scratch, row_add)

void main()
{
    row_work w = row_part();
    uint row = row_of_chunk(w.o);
    uint first = row / args.channels * args.outer_step +
                 row % args.channels / args.group_channels * args.group_step;
    float high = 0.0, low = 0.0;
    for (uint r = w.first + w.lane; r < w.end; r += 4u * args.rows.lanes) {
        vec4 products = vec4(0.0);
        [[unroll]] for (uint k = 0u; k < 4u; k++) {
            uint i = r + k * args.rows.lanes, at = w.start + i * args.rows.inner;
            uint s = NORM_PART_WORDS * (first + i * args.step);
            if (i < w.end) {
                float v = x[args.x_offset + at], factor = statistics[s + 3u];
                if (factor != 1.0)
                    v = norm_scaled(v, factor);
                float deviation = (v - statistics[s]) - statistics[s + 1u];
                products[k] = dy[args.dy_offset + at] * (deviation * statistics[s + 2u]);
            }
        }
        add_compensated(high, low, (products.x + products.y) + (products.z + products.w));
    }
    float sum = sum_of_lanes(compensated_value(high, low), w.lane);
    if (w.live && w.lane == 0u)
        sums[args.sums_offset + w.o] = sum;
}
