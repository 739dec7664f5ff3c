#version 450
/*
 * Norm of the chunks of long rows from the statistics (norm_partial) of all the row's chunks,
 * merged by mean = ma + (mb - ma) nb / n, squares = qa + qb + (mb - ma)^2 na nb / n. With a kept
 * sum, x is that sum and FLAGS names no residual. y may be x or the residual.
 */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "rows.glsl"

layout(push_constant) uniform block { norm_finish_args args; };
#include "norm.glsl"
#include "norm_result.glsl"
layout(set = 0, binding = 5) restrict readonly buffer partial { float statistics[]; };

/* (elements, mean, sum of squared deviations) */
vec3 merge(vec3 a, vec3 b)
{
    if (a.x == 0.0)
        return b;
    if (b.x == 0.0)
        return a;
    float n = a.x + b.x, apart = b.y - a.y, weight = b.x / n;
    return vec3(n, a.y + apart * weight, a.z + b.z + apart * apart * a.x * weight);
}

shared vec3 scratch[ROW_THREADS];
ROW_TREE(vec3, merge_lanes, scratch, merge)

vec3 statistics_of_row(uint o, uint lane)
{
    uint row = o / args.inner / args.chunks * args.chunks * args.inner + o % args.inner;
    vec3 all = vec3(0.0);
    for (uint c = lane; c < args.chunks; c += args.lanes) {
        uint at = 2u * (row + c * args.inner);
        uint elements = min(args.chunk_length, args.extent - c * args.chunk_length);
        all = merge(all, vec3(float(elements), statistics[at], statistics[at + 1u]));
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
    vec3 all = live ? statistics_of_row(o, lane) : vec3(0.0);
    all = merge_lanes(all, lane, args.lanes, args.lane_stride);
    float scale = norm_scale(all.z / float(args.extent), args.eps);
    for (uint r = first + lane; r < end; r += args.lanes) {
        uint at = start + r * args.inner;
        float deviation = with_bias(residual_sum(at), r) - all.y;
        store_normalized(o / args.inner / args.chunks, at, r, deviation * scale);
    }
}
