#version 450
/*
 * y = (x - mean) scale gamma + beta, with the statistics of the channel. BACKWARD computes the
 * gradient of x instead, from the sums of dy xhat and of dy, which are in beta's place. An
 * invocation takes one element. With VECTORS it takes four neighbours. Then all offsets are
 * multiples of four, and the first invocations also take the elements after the last whole quad.
 *
 * Workgroups go from the end of the tensor to its start, because a cache may still hold the
 * elements that the statistics or sums read last. y may be x or dy.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/rows.h"
#include "args/train.h"

layout(constant_id = 1) const bool BACKWARD = false;
layout(constant_id = 2) const uint CHANNELS = CHANNELS_ONE;
layout(constant_id = 3) const bool VECTORS = false;
layout(constant_id = 4) const uint FLAGS = 0; /* BATCH_NORM_HAS_ */
layout(push_constant) uniform block { batch_norm_elements_args args; };
#include "train/channels.glsl"
layout(set = 0, binding = 0) readonly buffer source { float x[]; };
layout(set = 0, binding = 0) readonly buffer source4 { vec4 x4[]; };
layout(set = 0, binding = 1) readonly buffer known { float statistics[]; };
layout(set = 0, binding = 2) readonly buffer scales { float gamma[]; };
layout(set = 0, binding = 3) readonly buffer shifts { float beta[]; };
layout(set = 0, binding = 4) readonly buffer upstream { float dy[]; };
layout(set = 0, binding = 4) readonly buffer upstream4 { vec4 dy4[]; };
layout(set = 0, binding = 5) writeonly buffer target { float y[]; };
layout(set = 0, binding = 5) writeonly buffer target4 { vec4 y4[]; };

/* Forward, with d = x - mean - rest: d factor + shift. Backward: (dy - shift - d pull) factor. */
struct terms {
    float mean, rest, factor, shift, pull;
};

terms terms_of(uint channel)
{
    uint at = args.statistics_offset + channel;
    float scale = statistics[at + 2u * args.channels];
    terms t = terms(statistics[at], statistics[at + args.channels], scale, 0.0, 0.0);
    if ((FLAGS & BATCH_NORM_HAS_GAMMA) != 0u)
        t.factor *= gamma[args.gamma_offset + channel];
    if ((FLAGS & BATCH_NORM_HAS_BETA) != 0u)
        t.shift = beta[args.beta_offset + channel];
    if (BACKWARD) {
        t.pull = scale * (beta[args.beta_offset + channel] / args.count);
        t.shift = beta[args.beta_offset + args.channels + channel] / args.count;
    }
    return t;
}

float result_of(terms t, float v, float d)
{
    float deviation = (v - t.mean) - t.rest;
    return BACKWARD ? ((d - t.shift) - deviation * t.pull) * t.factor
                    : deviation * t.factor + t.shift;
}

void take_one(uint i)
{
    float d = BACKWARD ? dy[args.dy_offset + i] : 0.0;
    y[args.y_offset + i] = result_of(terms_of(place_of(i).channel), x[args.x_offset + i], d);
}

void take_four(uint i)
{
    vec4 v = x4[args.x_offset / 4u + i], d = vec4(0.0), result;
    place p = place_of(4u * i);
    terms t = terms_of(p.channel);
    if (BACKWARD)
        d = dy4[args.dy_offset / 4u + i];
    for (uint k = 0u; k < 4u; k++) {
        result[k] = result_of(t, v[k], d[k]);
        if (next_place(p))
            t = terms_of(p.channel);
    }
    y4[args.y_offset / 4u + i] = result;
}

void main()
{
    uint groups = gl_NumWorkGroups.x * gl_NumWorkGroups.y * gl_NumWorkGroups.z;
    uint i = (groups - 1u - group_index()) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    uint count = VECTORS ? args.numel / 4u : args.numel;
    if (VECTORS && i < args.numel % 4u)
        take_one(count * 4u + i);
    if (i >= count)
        return;
    if (VECTORS)
        take_four(i);
    else
        take_one(i);
}
