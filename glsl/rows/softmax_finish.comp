#version 450
/* Softmax of the chunks of long rows, from the statistics of all the row's chunks. y may be x. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/rows.h"
#include "lib/rows.glsl"
#include "rows/softmax.glsl"

layout(constant_id = 1) const bool VECTORS = false;
layout(push_constant) uniform block { softmax_finish_args args; };
layout(set = 0, binding = 0) readonly buffer source { float x[]; };
layout(set = 0, binding = 0) readonly buffer source4 { vec4 x4[]; };
layout(set = 0, binding = 1) restrict readonly buffer partial { float statistics[]; };
layout(set = 0, binding = 2) writeonly buffer target { float y[]; };
layout(set = 0, binding = 2) writeonly buffer target4 { vec4 y4[]; };

#include "lib/row_quads.glsl"
QUAD_READER(read_x, x, x4, VECTORS)
QUAD_WRITER(write_y, y, y4)
ROW_TREE(vec2, join_lanes, scratch, join_statistics)

vec2 statistics_of_row(uint o, uint lane)
{
    uint row = o / args.inner / args.chunks * args.chunks * args.inner + o % args.inner;
    vec2 all = vec2(-INFINITY, 0.0);
    for (uint c = lane; c < args.chunks; c += args.lanes) {
        uint at = 2u * (row + c * args.inner);
        all = join_statistics(all, vec2(statistics[at], statistics[at + 1u]));
    }
    return all;
}

void main()
{
    uint lane = row_lane(args.lanes, args.lane_stride);
    uint o = row_output(args.lanes, args.lane_stride);
    bool live = o < args.outputs;
    uint first = row_chunk(o, args.inner, args.chunks) * args.chunk_length;
    uint end = live ? min(first + args.chunk_length, args.extent) : 0u;
    uint start = row_start(o, args.inner, args.extent, args.chunks);
    vec2 all = live ? statistics_of_row(o, lane) : vec2(0.0);
    all = join_lanes(all, lane, args.lanes, args.lane_stride);
    float share = 1.0 / all.y;
    for (uint k = 0u; first + 4u * k * args.lanes < end; k++) {
        uvec4 r = first + row_quad(lane, args.lanes, k), at = start + r * args.inner;
        bvec4 inside = row_live(r, end);
        vec4 v = read_x(args.x_offset + at, inside, 0.0);
        write_y(args.y_offset + at, inside, softmax_value(decay(v - all.x), all.x, share));
    }
}
