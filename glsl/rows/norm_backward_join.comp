#version 450
/*
 * Joins the sums of the chunks of long rows (from norm_backward) into the values that all elements
 * of a row need. A row has NORM_CHUNK_SUMS words: the mean (as a sum of two), s = 1 / sqrt(var +
 * eps), mean(w), mean(w xhat), and the factor that applies to the first three.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/rows.h"

layout(push_constant) uniform block { norm_backward_join_args args; };
#define ROW_VOTES
#include "lib/rows.glsl"
#include "rows/norm_moments.glsl"
layout(set = 0, binding = 0) restrict readonly buffer partial { float parts[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { float known[]; };

/* Sums of a set of elements: its moments, the sum of w, and the sum of w times the deviation from
 * the set's mean. */
struct norm_sums {
    vec4 moments;
    float weights, products;
};

/* Shifts the products to the common mean by the difference of the two means. A mean itself is never
 * used, because it may be much larger than the deviations. */
norm_sums join_sums(norm_sums a, norm_sums b)
{
    float na = a.moments.x, nb = b.moments.x, n = na + nb;
    if (na == 0.0)
        return b;
    if (nb == 0.0)
        return a;
    float apart = (b.moments.y - a.moments.y) + (b.moments.z - a.moments.z);
    float moved = apart * (b.weights * (na / n) - a.weights * (nb / n));
    return norm_sums(join_moments(a.moments, b.moments), a.weights + b.weights,
                     a.products + b.products + moved);
}

ROW_TREE(norm_sums, join_lanes, scratch, join_sums)

norm_sums sums_of_lane(row_work w)
{
    norm_sums all = norm_sums(vec4(0.0), 0.0, 0.0);
    for (uint c = w.lane; c < w.end; c += args.rows.lanes) {
        uint at = NORM_CHUNK_SUMS * (w.start + c * args.rows.inner);
        uint first = c % args.chunks * args.chunk_length;
        float elements = float(min(args.chunk_length, args.piece_length - first));
        vec4 part = vec4(parts[at], parts[at + 1u], parts[at + 2u], parts[at + 5u]);
        all = join_sums(all, norm_sums(usual_moments(elements, part), parts[at + 3u],
                                       parts[at + 4u]));
    }
    return all;
}

norm_sums scaled_of_lane(row_work w, float factor)
{
    norm_sums all = norm_sums(vec4(0.0), 0.0, 0.0);
    for (uint c = w.lane; c < w.end; c += args.rows.lanes) {
        uint at = NORM_CHUNK_SUMS * (w.start + c * args.rows.inner);
        uint first = c % args.chunks * args.chunk_length;
        float elements = float(min(args.chunk_length, args.piece_length - first));
        vec4 part = vec4(parts[at], parts[at + 1u], parts[at + 2u], parts[at + 5u]);
        float products = parts[at + 4u];
        if (part.w != factor)
            products *= norm_ratio(part.w, factor);
        vec4 moments = scaled_moments(elements, part, factor);
        all = join_sums(all, norm_sums(moments, parts[at + 3u], products));
    }
    return all;
}

vec4 moments_in(norm_sums all)
{
    return all.moments;
}
NORM_JOIN_AGAIN(norm_sums, scaled_of_lane)

void main()
{
    row_work w = row_whole();
    float factor = 1.0;
    norm_sums all = join_lanes(sums_of_lane(w), w.lane);
    float n = all.moments.x;
    if (w.live)
        factor = norm_factor(all.moments.w / n + args.eps, all.moments.y);
    if (row_vote(factor != 1.0))
        all = join_again(w, all, factor);
    if (w.live && w.lane == 0u) {
        uint to = NORM_CHUNK_SUMS * w.o;
        float scale = norm_scale(all.moments.w / n, norm_eps(args.eps, factor));
        known[to] = all.moments.y;
        known[to + 1u] = all.moments.z;
        known[to + 2u] = scale;
        known[to + 3u] = all.weights / n;
        known[to + 4u] = all.products / n * scale;
        known[to + 5u] = factor;
    }
}
