#version 450
/*
 * Norm of the chunks of long rows, from the statistics (norm_partial) of all chunks of the row. If
 * the sum was kept, x is that sum and FLAGS has no residual. y may be x or the residual.
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
layout(set = 0, binding = 5) restrict readonly buffer partial { vec4 statistics[]; };

/* The deviations of v from the mean. */
vec4 deviation_from(vec4 v, vec4 moments)
{
    return (v - moments.y) - moments.z;
}

ROW_TREE(vec4, join_lanes, scratch, join_moments)

/* Statistics of chunk c of a row, and its number of elements. `row` is the index of the row's first
 * chunk. */
vec4 chunk_of_row(uint row, uint c, out float elements)
{
    uint first = c * args.rows.chunk_length;
    elements = float(min(args.rows.chunk_length, args.rows.extent - first));
    return statistics[row + c * args.rows.inner];
}

vec4 statistics_of_row(row_work w)
{
    uint row = row_first_chunk(w.o);
    float elements;
    vec4 all = vec4(0.0);
    for (uint c = w.lane; c < args.rows.chunks; c += args.rows.lanes) {
        vec4 part = chunk_of_row(row, c, elements);
        all = join_moments(all, usual_moments(elements, part));
    }
    return all;
}

vec4 scaled_statistics(row_work w, float factor)
{
    uint row = row_first_chunk(w.o);
    float elements;
    vec4 all = vec4(0.0);
    for (uint c = w.lane; w.live && c < args.rows.chunks; c += args.rows.lanes) {
        vec4 part = chunk_of_row(row, c, elements);
        all = join_moments(all, scaled_moments(elements, part, factor));
    }
    return all;
}

NORM_JOIN_AGAIN(vec4, scaled_statistics)

void store_chunk(row_work w, vec4 all, float factor, float eps)
{
    float scale = norm_scale(all.w / float(args.rows.extent), eps);
    for (uint k = 0u; w.first + 4u * k * args.rows.lanes < w.end; k++) {
        uvec4 r = w.first + row_quad(w, k), at = w.start + r * args.rows.inner;
        bvec4 inside = row_live(r, w.end);
        vec4 v = norm_scaled(with_bias(residual_sum(at, inside), r, inside), factor);
        store_normalized(w.o / args.rows.inner / args.rows.chunks, at, r, inside,
                         deviation_from(v, all) * scale);
    }
}

void main()
{
    row_work w = row_part();
    float factor = 1.0;
    vec4 all = w.live ? statistics_of_row(w) : vec4(0.0);
    all = join_lanes(all, w.lane);
    if (w.live)
        factor = norm_factor(all.w / float(args.rows.extent) + args.eps, all.y);
    if (!row_vote(factor != 1.0)) {
        store_chunk(w, all, 1.0, args.eps);
        return;
    }
    all = join_again(w, all, factor);
    store_chunk(w, all, factor, norm_eps(args.eps, factor));
}
