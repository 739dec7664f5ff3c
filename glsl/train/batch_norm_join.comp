#version 450
/*
 * Statistics of the channels of a batch, from the moments of their chunks, and (RUNNING) the
 * running averages. A lane adds squares with compensation because it may join many chunks. If the
 * squares of a channel do not fit f32 (see norm_factor.glsl), the channel is read again, times a
 * power of two.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/train.h"

layout(constant_id = 1) const bool RUNNING = false;
layout(push_constant) uniform block { batch_norm_join_args args; };
#define ROW_VOTES
#include "lib/rows.glsl"
#include "rows/norm_moments.glsl"
layout(set = 0, binding = 0) restrict readonly buffer partial { float parts[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { float statistics[]; };
layout(set = 0, binding = 2) buffer means { float running_mean[]; };
layout(set = 0, binding = 3) buffer variances { float running_variance[]; };
layout(set = 0, binding = 4) restrict readonly buffer source { float x[]; };

ROW_TREE(vec4, join_lanes, scratch, join_moments)

/* The moments of chunk i of a channel. */
vec4 moments_of(uint channel, uint i)
{
    uint before = i / args.inner, within = i % args.inner;
    uint chunk = (before * args.rows.outputs + channel) * args.inner + within;
    uint first = (args.across != 0u ? before : within) * args.chunk_length;
    float elements = float(min(args.chunk_length, args.row_length - first));
    uint at = BATCH_NORM_MOMENTS_WORDS * chunk;
    return vec4(elements, parts[at], parts[at + 1u], parts[at + 2u]);
}

/* Joins `part` to `all`. low is the rounding error of the squares. */
void add_part(inout vec4 all, inout float low, vec4 part)
{
    if (all.x == 0.0) {
        all = part;
        return;
    }
    float count = all.x + part.x, weight = part.x / count;
    float apart = (part.y - all.y) + (part.z - all.z);
    add_compensated(all.y, all.z, apart * weight);
    add_compensated(all.w, low, part.w + apart * apart * (all.x * weight));
    all.x = count;
}

vec4 moments_of_lane(row_work w)
{
    vec4 all = vec4(0.0);
    float low = 0.0;
    for (uint i = w.lane; i < w.end; i += args.rows.lanes)
        add_part(all, low, moments_of(w.o, i));
    all.w = compensated_value(all.w, low);
    return all;
}

/*
 * The moments of the channel's elements times factor, for a channel whose squares do not fit f32.
 */
vec4 scaled_of_lane(row_work w, float factor)
{
    vec4 all = vec4(0.0);
    float low = 0.0;
    uint count = w.live ? args.x_outer * args.x_inner : 0u;
    [[dont_unroll]] for (uint i = w.lane; i < count; i += args.rows.lanes) {
        uint outer = i / args.x_inner, within = i % args.x_inner;
        float v = x[args.x_offset + (outer * args.rows.outputs + w.o) * args.x_inner + within];
        add_part(all, low, vec4(1.0, norm_scaled(v, factor), 0.0, 0.0));
    }
    all.w = compensated_value(all.w, low);
    return all;
}

float averaged(float before, float now)
{
    return fma(args.momentum, now, (1.0 - args.momentum) * before);
}

/* The scale for elements without a factor, or NaN if it is not a normal number. */
float scale_for_elements(float scale, float factor)
{
    float v = scale * factor;
    return scale == 0.0 ? 0.0 : v < 1.17549435e-38 || is_inf(v) ? NAN_VALUE : v;
}

/* Stores the statistics of w's channel, whose moments are those of its elements times factor. */
void store(row_work w, vec4 all, float factor)
{
    if (!w.live || w.lane != 0u)
        return;
    precise float mean = all.y + all.z;
    precise float part = mean - all.y;
    precise float rest = (all.y - (mean - part)) + (all.z - part);
    uint to = args.statistics_offset + w.o;
    float squares = all.w, scale = norm_scale(squares / args.count, norm_eps(args.eps, factor));
    if (factor != 1.0) {
        float back = norm_ratio(factor, 1.0);
        scale = scale_for_elements(scale, factor);
        mean *= back;
        rest *= back;
        squares *= back * back;
    }
    statistics[to] = mean;
    statistics[to + args.rows.outputs] = rest;
    statistics[to + 2u * args.rows.outputs] = scale;
    if (RUNNING) {
        uint m = args.mean_offset + w.o, v = args.variance_offset + w.o;
        running_mean[m] = averaged(running_mean[m], mean);
        running_variance[v] = averaged(running_variance[v], squares / (args.count - 1.0));
    }
}

/* Ordinary channels end early, so that their path is short. */
void main()
{
    row_work w = row_whole();
    vec4 all = join_lanes(moments_of_lane(w), w.lane);
    float factor = w.live ? norm_factor(all.w / args.count + args.eps, all.y) : 1.0;
    if (!row_vote(factor != 1.0)) {
        store(w, all, 1.0);
        return;
    }
    row_barrier();
    vec4 scaled = join_lanes(scaled_of_lane(w, factor), w.lane);
    store(w, factor != 1.0 ? scaled : all, factor);
}
