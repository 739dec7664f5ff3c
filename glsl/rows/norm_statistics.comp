#version 450
/*
 * Joins the statistics of the chunks of rows (from norm_partial). The result is a vec4 for each
 * row: the mean (as a sum of two), 1 / sqrt(var + eps), and the factor of these. A row of this
 * kernel consists of the chunks of one row of x. For RMS norm the means of the chunks are 0.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/rows.h"

layout(push_constant) uniform block { norm_statistics_args args; };
#define ROW_VOTES
#include "lib/rows.glsl"
#include "rows/norm_moments.glsl"
layout(set = 0, binding = 0) restrict readonly buffer partial { vec4 parts[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { vec4 statistics[]; };

ROW_TREE(vec4, join_lanes, scratch, join_moments)

vec4 part_of(row_work w, uint c, out float elements)
{
    elements = float(min(args.chunk_length, args.row_length - c * args.chunk_length));
    return parts[w.start + c * args.rows.inner];
}

vec4 moments_of_lane(row_work w)
{
    float elements;
    vec4 all = vec4(0.0);
    for (uint c = w.lane; c < w.end; c += args.rows.lanes) {
        vec4 part = part_of(w, c, elements);
        all = join_moments(all, usual_moments(elements, part));
    }
    return all;
}

vec4 scaled_of_lane(row_work w, float factor)
{
    float elements;
    vec4 all = vec4(0.0);
    for (uint c = w.lane; c < w.end; c += args.rows.lanes) {
        vec4 part = part_of(w, c, elements);
        all = join_moments(all, scaled_moments(elements, part, factor));
    }
    return all;
}
NORM_JOIN_AGAIN(vec4, scaled_of_lane)

void main()
{
    row_work w = row_whole();
    float count = float(args.row_length), factor = 1.0;
    vec4 all = join_lanes(moments_of_lane(w), w.lane);
    if (w.live)
        factor = norm_factor(all.w / count + args.eps, all.y);
    if (row_vote(factor != 1.0))
        all = join_again(w, all, factor);
    if (w.live && w.lane == 0u)
        statistics[w.o] =
            vec4(all.yz, norm_scale(all.w / count, norm_eps(args.eps, factor)), factor);
}
