#version 450
/* Softmax of the chunks of long rows, from the statistics of all the row's chunks. y may be x. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "rows.glsl"
#include "softmax.glsl"

layout(push_constant) uniform block { softmax_finish_args args; };
layout(set = 0, binding = 0) readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict readonly buffer partial { float statistics[]; };
layout(set = 0, binding = 2) writeonly buffer target { float y[]; };

shared vec2 scratch[ROW_THREADS];
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
    for (uint r = first + lane; r < end; r += args.lanes) {
        uint at = start + r * args.inner;
        y[args.y_offset + at] = softmax_value(x[args.x_offset + at], all.x, all.y);
    }
}
