#version 450
/*
 * Mean, as a sum of two, and sum of squared deviations of the chunks of rows too long for
 * norm.comp, three words a chunk; a chunk fits the registers of its lanes. Stores the sums on the
 * way where they are wanted.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
#include "rows.glsl"

layout(push_constant) uniform block { norm_partial_args args; };
#include "norm.glsl"
const uint QUADS = NORM_CHUNK_ELEMENTS / 4u;
#define NORM_SUMS_BINDING 3
#include "norm_take.glsl"
layout(set = 0, binding = 4) restrict writeonly buffer target { float statistics[]; };

void main()
{
    uint lane = row_lane(args.lanes, args.lane_stride);
    uint o = row_output(args.lanes, args.lane_stride);
    bool live = o < args.outputs;
    uint first = row_chunk(o, args.inner, args.chunks) * args.chunk_length;
    uint end = live ? min(first + args.chunk_length, args.extent) : 0u;
    uint start = row_start(o, args.inner, args.extent, args.chunks);
    take(start, first, lane, end);
    if (!IS_RMS)
        find_mean(start, first, lane, end, float(end - first));
    float squares = sum_of_squares(first, lane, end);
    keep_sum(start, first, lane, end);
    if (live && lane == 0u) {
        statistics[3u * o] = pivot;
        statistics[3u * o + 1u] = offset;
        statistics[3u * o + 2u] = squares;
    }
}
