#version 450
/*
 * Statistics of rows from those of their chunks (norm_partial): mean, as a sum of two, and
 * 1 / sqrt(var + eps), three words a row. A row here is the chunks of one; of the rms norm their
 * means are 0.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/rows.h"

layout(push_constant) uniform block { norm_statistics_args args; };
#include "lib/rows.glsl"
#include "rows/norm_moments.glsl"
layout(set = 0, binding = 0) restrict readonly buffer partial { float parts[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { float statistics[]; };

ROW_TREE(vec4, join_lanes, scratch, join_moments)

void main()
{
    row_work w = row_whole();
    vec4 all = vec4(0.0);
    for (uint c = w.lane; c < w.end; c += args.rows.lanes) {
        uint at = 3u * (w.start + c * args.rows.inner);
        uint elements = min(args.chunk_length, args.row_length - c * args.chunk_length);
        all = join_moments(all, vec4(float(elements), parts[at], parts[at + 1u], parts[at + 2u]));
    }
    all = join_lanes(all, w.lane);
    if (w.live && w.lane == 0u) {
        statistics[3u * w.o] = all.y;
        statistics[3u * w.o + 1u] = all.z;
        statistics[3u * w.o + 2u] = norm_scale(all.w / float(args.row_length), args.eps);
    }
}
