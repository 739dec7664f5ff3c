#version 450
/*
 * Runs after attention_delta if there is a bias. It finds the part of a log-sum-exp that rounding
 * lost because the log-sum-exp is large. For example, the bias of all keys of a row may be the
 * lowest f32. Then the log-sum-exp is m, the largest score, and the rest, ln l, is lost. For such
 * rows the kernel processes all keys again; other rows have a rest of 0. LANES invocations share a
 * row; each takes every LANES-th key.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/attention.h"
#include "args/attention_backward.h"

#define LARGE 1024.0 /* then rounding changes weights by 6e-5, relative */

layout(constant_id = 1) const bool SOFTCAP = false;
layout(constant_id = 2) const uint LANES = 16; /* a power of two */
layout(constant_id = 3) const uint ROWS = 4;   /* the local size / LANES */
layout(push_constant) uniform block { attention_backward_args args; };
layout(set = 0, binding = 0) readonly restrict buffer q_source { float q[]; };
layout(set = 0, binding = 1) readonly restrict buffer k_source { float k[]; };
layout(set = 0, binding = 2) readonly restrict buffer mask_source { float mask[]; };
layout(set = 0, binding = 3) restrict buffer statistics { float stats[]; };

const uint MASK = ATTENTION_BIAS;
#define MASK_QUERY args.mask_query
#define MASK_KEY   args.mask_key
#include "attention/attention.glsl"

shared vec2 pairs[LANES * ROWS]; /* largest score and sum of each invocation */

/* Joins two pairs of maximum and sum, relative to their common maximum. */
vec2 joined(vec2 a, vec2 b)
{
    float m = larger(a.x, b.x), l = 0.0;
    if (floatBitsToUint(a.y) != 0u)
        l += a.y * weight_of(a.x, m);
    if (floatBitsToUint(b.y) != 0u)
        l += b.y * weight_of(b.x, m);
    return vec2(m, l);
}

vec2 walk(uint b, uint h, uint i, uint lane)
{
    uint group = args.heads / args.kv_heads;
    uint q_at = args.q_offset + b * args.q_batch + h * args.q_head + i * args.q_seq;
    uint k_at = args.k_offset + b * args.kv_batch + h / group * args.kv_head;
    uint mask_at = args.mask_offset + b * args.mask_batch + h * args.mask_head;
    vec2 all = vec2(NEGATIVE_INFINITY, 0.0);
    for (uint j = lane; j < args.keys; j += LANES) {
        float product = 0.0, term = mask_term(mask_at, i, j);
        for (uint d = 0u; d < args.width; d++)
            product = fma(q[q_at + d], k[k_at + j * args.kv_seq + d], product);
        if (!is_dropped(term))
            all = joined(all, vec2(capped_score(product * score_factor()) + term, 1.0));
    }
    return all;
}

void main()
{
    uint at = gl_LocalInvocationID.x, lane = at % LANES, row = group_index() * ROWS + at / LANES;
    uint rows = args.batch * args.heads * args.queries, known = min(row, rows - 1u);
    uint head = known / args.queries;
    float lse = stats[args.lse_offset + known];
    bool large = abs(lse) >= LARGE && !is_inf(lse) && !is_nan(lse);
    pairs[at] = vec2(NEGATIVE_INFINITY, 0.0);
    if (large)
        pairs[at] = walk(head / args.heads, head % args.heads, known % args.queries, lane);
    [[unroll]] for (uint half_lanes = LANES / 2u; half_lanes > 0u; half_lanes /= 2u) {
        barrier();
        if (lane < half_lanes)
            pairs[at] = joined(pairs[at], pairs[at + half_lanes]);
    }
    if (lane != 0u || row >= rows)
        return;
    stats[args.lse_offset + row + 2u * rows] = large ? log(pairs[at].y) : 0.0;
    if (large)
        stats[args.lse_offset + row] = pairs[at].x;
}
