#version 450
/*
 * Statistics of rows from those of their chunks (norm_partial): mean, as a sum of two,
 * 1 / sqrt(var + eps) and their factor, NORM_PART_WORDS a row. A row here is the chunks of one; of
 * the rms norm their means are 0.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/rows.h"

layout(push_constant) uniform block { norm_statistics_args args; };
#define ROW_VOTES
#include "lib/rows.glsl"
#include "rows/norm_moments.glsl"
layout(set = 0, binding = 0) restrict readonly buffer partial { float parts[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { float statistics[]; };

ROW_TREE(vec4, join_lanes, scratch, join_moments)

vec4 moments_of_lane(row_work w, float factor)
{
    vec4 all = vec4(0.0);
    for (uint c = w.lane; c < w.end; c += args.rows.lanes) {
        uint at = NORM_PART_WORDS * (w.start + c * args.rows.inner);
        uint elements = min(args.chunk_length, args.row_length - c * args.chunk_length);
        all = join_moments(all, norm_part(float(elements), parts[at], parts[at + 1u],
                                          parts[at + 2u], parts[at + 3u], factor));
    }
    return all;
}

void main()
{
    row_work w = row_whole();
    float count = float(args.row_length), factor = 1.0;
    vec4 all = join_lanes(moments_of_lane(w, 1.0), w.lane);
    if (w.live)
        factor = norm_factor(all.w / count + args.eps, all.y);
    if (row_vote(factor != 1.0, w)) {
        vec4 before = all;
        row_barrier();
        all = join_lanes(moments_of_lane(w, factor), w.lane);
        all = factor == 1.0 ? before : all;
    }
    if (w.live && w.lane == 0u) {
        uint to = NORM_PART_WORDS * w.o;
        statistics[to] = all.y;
        statistics[to + 1u] = all.z;
        statistics[to + 2u] = norm_scale(all.w / count, norm_eps(args.eps, factor));
        statistics[to + 3u] = factor;
    }
}
