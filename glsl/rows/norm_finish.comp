#version 450
/*
 * Norm of the chunks of long rows from the statistics (norm_partial) of all the row's chunks. With
 * a kept sum, x is that sum and FLAGS names no residual. y may be x or the residual.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/rows.h"

layout(push_constant) uniform block { norm_args args; };
#define ROW_VOTES
#include "lib/rows.glsl"
#include "rows/norm.glsl"
#include "rows/norm_result.glsl"
layout(set = 0, binding = 5) restrict readonly buffer partial { float statistics[]; };

/* The deviations of v from the mean. */
vec4 deviation_from(vec4 v, vec4 moments)
{
    return (v - moments.y) - moments.z;
}

ROW_TREE(vec4, join_lanes, scratch, join_moments)

vec4 statistics_of_row(row_work w, float factor)
{
    uint row = row_first_chunk(w.o);
    vec4 all = vec4(0.0);
    for (uint c = w.lane; c < args.rows.chunks; c += args.rows.lanes) {
        uint at = NORM_PART_WORDS * (row + c * args.rows.inner);
        uint elements = min(args.rows.chunk_length, args.rows.extent - c * args.rows.chunk_length);
        all = join_moments(all, norm_part(float(elements), statistics[at], statistics[at + 1u],
                                          statistics[at + 2u], statistics[at + 3u], factor));
    }
    return all;
}

void main()
{
    row_work w = row_part();
    float count = float(args.rows.extent), factor = 1.0;
    vec4 all = w.live ? statistics_of_row(w, 1.0) : vec4(0.0);
    all = join_lanes(all, w.lane);
    if (w.live)
        factor = norm_factor(all.w / count + args.eps, all.y);
    if (row_vote(factor != 1.0, w)) {
        vec4 before = all;
        row_barrier();
        all = join_lanes(w.live ? statistics_of_row(w, factor) : vec4(0.0), w.lane);
        all = factor == 1.0 ? before : all;
    }
    float scale = norm_scale(all.w / count, norm_eps(args.eps, factor));
    for (uint k = 0u; w.first + 4u * k * args.rows.lanes < w.end; k++) {
        uvec4 r = w.first + row_quad(w, k), at = w.start + r * args.rows.inner;
        bvec4 inside = row_live(r, w.end);
        vec4 v = with_bias(residual_sum(at, inside), r, inside);
        if (factor != 1.0)
            v = norm_scaled(v, factor);
        store_normalized(w.o / args.rows.inner / args.rows.chunks, at, r, inside,
                         deviation_from(v, all) * scale);
    }
}
