#version 450
/*
 * Statistics (maximum, sum of exponentials) of the chunks of long rows, two words a chunk. Each
 * lane takes its elements eight at a time: their maximum first, so that the running sum is
 * rescaled once a block.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
#include "rows.glsl"
#include "softmax.glsl"

layout(push_constant) uniform block { softmax_partial_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { float statistics[]; };

shared vec2 scratch[ROW_THREADS];
ROW_TREE(vec2, join_lanes, scratch, join_statistics)

const uint BLOCK = 8u;

vec2 statistics_of_block(uint base, uint r, uint end)
{
    float v[BLOCK];
    vec2 block = vec2(-INFINITY, 0.0);
    [[unroll]] for (uint k = 0u; k < BLOCK; k++) {
        uint at = r + k * args.lanes;
        v[k] = at < end ? x[base + at * args.inner] : -INFINITY;
    }
    [[unroll]] for (uint k = 0u; k < BLOCK; k++)
        block.x = row_larger(block.x, v[k]);
    if (is_plain(block.x)) {
        [[unroll]] for (uint k = 0u; k < BLOCK; k++)
            block.y += decay(v[k] - block.x);
    }
    return block;
}

void main()
{
    uint lane = row_lane(args.lanes, args.lane_stride);
    uint o = row_output(args.lanes, args.lane_stride);
    bool live = o < args.outputs;
    uint first = row_chunk(o, args.inner, args.chunks) * args.chunk_length;
    uint end = live ? min(first + args.chunk_length, args.extent) : 0u;
    uint base = args.x_offset + row_start(o, args.inner, args.extent, args.chunks);
    vec2 all = vec2(-INFINITY, 0.0);
    for (uint r = first + lane; r < end; r += BLOCK * args.lanes)
        all = join_statistics(all, statistics_of_block(base, r, end));
    all = join_lanes(all, lane, args.lanes, args.lane_stride);
    if (live && lane == 0u) {
        statistics[2u * o] = all.x;
        statistics[2u * o + 1u] = all.y;
    }
}
