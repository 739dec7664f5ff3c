/*
 * Softmax of rows that fit the registers of their lanes, QUADS (constant 1) times four elements
 * each: one read, one write. y may be x. Longer rows: softmax_partial, softmax_finish.
 */
#include "lib/common.glsl"
#include "args/rows.h"
#include "lib/rows.glsl"
#include "rows/softmax.glsl"

layout(constant_id = 1) const uint QUADS = 1;
layout(constant_id = 2) const bool VECTORS = false;
layout(push_constant) uniform block { softmax_args args; };
layout(set = 0, binding = 0) readonly buffer source { float x[]; };
layout(set = 0, binding = 0) readonly buffer source4 { vec4 x4[]; };
layout(set = 0, binding = 1) writeonly buffer target { float y[]; };
layout(set = 0, binding = 1) writeonly buffer target4 { vec4 y4[]; };

#include "lib/row_quads.glsl"
QUAD_READER(read_x, x, x4, VECTORS)
QUAD_WRITER(write_y, y, y4)
ROW_TREE(float, largest_of_lanes, scratch, row_larger)
ROW_TREE(float, sum_of_lanes, scratch_of_sum, row_add)

void main()
{
    uint lane = row_lane(args.lanes, args.lane_stride);
    uint o = row_output(args.lanes, args.lane_stride);
    uint end = o < args.outputs ? args.extent : 0u;
    uint start = row_start(o, args.inner, args.extent, 1u);

    vec4 v[QUADS];
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        uvec4 r = row_quad(lane, args.lanes, k);
        v[k] = read_x(args.x_offset + start + r * args.inner, row_live(r, end), -INFINITY);
    }
    largest most = largest(-INFINITY, 0u);
    [[unroll]] for (uint k = 0u; k < QUADS; k++)
        take_largest(most, v[k]);
    float m = largest_of_lanes(largest_value(most), lane, args.lanes, args.lane_stride);

    float s = 0.0;
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        v[k] = decay(v[k] - m);
        s += sum_of(v[k]);
    }
    s = sum_of_lanes(s, lane, args.lanes, args.lane_stride);
    float share = 1.0 / s;
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        uvec4 r = row_quad(lane, args.lanes, k);
        write_y(args.y_offset + start + r * args.inner, row_live(r, end),
                softmax_value(v[k], m, share));
    }
}
