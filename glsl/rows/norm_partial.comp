#version 450
/*
 * Mean, as a sum of two, and sum of squared deviations of the chunks of rows too long for
 * norm.comp, three words a chunk; a chunk fits the registers of its lanes. Stores the sums on the
 * way where they are wanted.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/rows.h"
#include "lib/rows.glsl"

layout(push_constant) uniform block { norm_partial_args args; };
#include "rows/norm.glsl"
const uint QUADS = NORM_CHUNK_ELEMENTS / 4u;
layout(set = 0, binding = 3) writeonly buffer kept { float sums[]; };
layout(set = 0, binding = 3) writeonly buffer kept4 { vec4 sums4[]; };
layout(set = 0, binding = 4) restrict writeonly buffer target { float statistics[]; };
#include "rows/norm_lanes.glsl"

void main()
{
    uint lane = row_lane(args.lanes, args.lane_stride);
    uint o = row_output(args.lanes, args.lane_stride);
    bool live_row = o < args.outputs;
    uint first = row_chunk(o, args.inner, args.chunks) * args.chunk_length;
    uint end = live_row ? min(first + args.chunk_length, args.extent) : 0u;
    uint start = row_start(o, args.inner, args.extent, args.chunks);
    float count = float(end - first);
#include "rows/norm_held.glsl"
    if (live_row && lane == 0u) {
        statistics[3u * o] = pivot;
        statistics[3u * o + 1u] = offset;
        statistics[3u * o + 2u] = squares;
    }
}
