#version 450
/*
 * Statistics (maximum, sum of exponentials) of the chunks of long rows, two words a chunk. Each
 * lane takes its elements two quads at a time: their maximum first, so that the running sum is
 * rescaled once a block.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/rows.h"
#include "lib/rows.glsl"
#include "rows/softmax.glsl"

layout(constant_id = 1) const bool VECTORS = false;
layout(push_constant) uniform block { softmax_partial_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 0) restrict readonly buffer source4 { vec4 x4[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { float statistics[]; };

#include "lib/row_quads.glsl"
QUAD_READER(read_x, x, x4, VECTORS)
ROW_TREE(vec2, join_lanes, scratch, join_statistics)

const uint BLOCK = 2u;

/* Of BLOCK quads of this lane, from quad k on. */
vec2 statistics_of_block(uint base, uint first, uint lane, uint k, uint end)
{
    vec4 v[BLOCK];
    largest most = largest(-INFINITY, 0u);
    [[unroll]] for (uint i = 0u; i < BLOCK; i++) {
        uvec4 r = first + row_quad(lane, args.lanes, k + i);
        v[i] = read_x(base + r * args.inner, row_live(r, end), -INFINITY);
    }
    [[unroll]] for (uint i = 0u; i < BLOCK; i++)
        take_largest(most, v[i]);
    vec2 block = vec2(largest_value(most), 0.0);
    if (is_plain(block.x)) {
        [[unroll]] for (uint i = 0u; i < BLOCK; i++)
            block.y += sum_of(decay(v[i] - block.x));
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
    for (uint k = 0u; first + 4u * k * args.lanes < end; k += BLOCK)
        all = join_statistics(all, statistics_of_block(base, first, lane, k, end));
    all = join_lanes(all, lane, args.lanes, args.lane_stride);
    if (live && lane == 0u) {
        statistics[2u * o] = all.x;
        statistics[2u * o + 1u] = all.y;
    }
}
