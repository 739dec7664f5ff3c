#version 450
/*
 * Sums of dy xhat over chunks of rows that share an element of gamma. The statistics of the
 * normalized rows come from norm_statistics. All elements of a row here have the same statistics,
 * or (if args.step is not 0) each element has its own. Four products are added at a time, with
 * compensation.
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
layout(set = 0, binding = 2) restrict readonly buffer known { vec4 statistics[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { float sums[]; };

ROW_TREE(float, sum_of_lanes, scratch, row_add)

/* dy xhat of the element at `at`. `known` has the statistics of its row. */
float product(uint at, vec4 known)
{
    float v = norm_scaled(x[args.x_offset + at], known.w);
    return dy[args.dy_offset + at] * (((v - known.x) - known.y) * known.z);
}

void main()
{
    row_work w = row_part();
    uint row = row_of_chunk(w.o);
    uint first = row / args.channels * args.outer_step +
                 row % args.channels / args.group_channels * args.group_step;
    float high = 0.0, low = 0.0;
    for (uint r = w.first + w.lane; r < w.end; r += 4u * args.rows.lanes) {
        vec4 products = vec4(0.0);
        bool scaled = false;
        [[unroll]] for (uint k = 0u; k < 4u; k++) {
            uint i = r + k * args.rows.lanes, at = w.start + i * args.rows.inner;
            if (i < w.end) {
                vec4 known = statistics[first + i * args.step];
                scaled = scaled || known.w != 1.0;
                products[k] = product(at, vec4(known.xyz, 1.0));
            }
        }
        if (scaled) {
            [[dont_unroll]] for (uint k = 0u; k < 4u; k++) {
                uint i = r + k * args.rows.lanes, at = w.start + i * args.rows.inner;
                if (i < w.end)
                    products[k] = product(at, statistics[first + i * args.step]);
            }
        }
        add_compensated(high, low, (products.x + products.y) + (products.z + products.w));
    }
    float sum = sum_of_lanes(compensated_value(high, low), w.lane);
    if (w.live && w.lane == 0u)
        sums[args.sums_offset + w.o] = sum;
}
