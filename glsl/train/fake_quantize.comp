#version 450
/*
 * y = x rounded to the grid of its channel, or dy times an estimate of the derivative of this step
 * function at x. An invocation takes one element. With VECTORS it takes four neighbours. Then all
 * offsets are multiples of four, and the first invocations also take the elements after the last
 * whole quad. y may be x or dy.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/train.h"
#include "lib/math.glsl"
#include "train/fake_quantize.glsl"

layout(constant_id = 1) const uint MODE = FAKE_QUANTIZE_ROUND;
layout(constant_id = 2) const uint CHANNELS = CHANNELS_ONE;
layout(constant_id = 3) const bool VECTORS = false;
layout(push_constant) uniform block { fake_quantize_args args; };
#include "train/channels.glsl"
layout(set = 0, binding = 0) readonly buffer source { float x[]; };
layout(set = 0, binding = 0) readonly buffer source4 { vec4 x4[]; };
layout(set = 0, binding = 1) readonly buffer scales { float scale[]; };
layout(set = 0, binding = 2) readonly buffer upstream { float dy[]; };
layout(set = 0, binding = 2) readonly buffer upstream4 { vec4 dy4[]; };
layout(set = 0, binding = 3) writeonly buffer target { float y[]; };
layout(set = 0, binding = 3) writeonly buffer target4 { vec4 y4[]; };

grid channel_grid(uint channel)
{
    float v = scale[args.scale_offset + channel];
    return grid_of(at_least(v * args.factor, args.least),
                   at_least(v * args.reach, args.least * args.most));
}

float rounded(grid g, float v)
{
    float z = on_grid(g, v);
    if (is_nan(z))
        return NAN_VALUE;
    precise float result = round_away(clamp(z, -args.most, args.most)) * g.step;
    return result;
}

float passed_on(grid g, float v, float d)
{
    if (MODE == FAKE_QUANTIZE_CLIPPED)
        return is_nan(v) || is_nan(g.edge) || abs(v) > g.edge ? 0.0 : d;
    float z = on_grid(g, v);
    if (is_nan(z))
        return NAN_VALUE;
    float t = MODE == FAKE_QUANTIZE_TANH ? hyperbolic_tangent(z) : 0.0;
    float share =
        MODE == FAKE_QUANTIZE_TANH ? fma(-t, t, 1.0) : max(0.0, 1.0 - abs(z) / args.most);
    return d * share;
}

float result_of(grid g, float v, float d)
{
    return MODE == FAKE_QUANTIZE_ROUND ? rounded(g, v) : passed_on(g, v, d);
}

void take_one(uint i)
{
    float d = MODE == FAKE_QUANTIZE_ROUND ? 0.0 : dy[args.dy_offset + i];
    y[args.y_offset + i] = result_of(channel_grid(place_of(i).channel), x[args.x_offset + i], d);
}

void take_four(uint i)
{
    vec4 v = x4[args.x_offset / 4u + i], d = vec4(0.0), result;
    place p = place_of(4u * i);
    grid g = channel_grid(p.channel);
    if (MODE != FAKE_QUANTIZE_ROUND)
        d = dy4[args.dy_offset / 4u + i];
    for (uint k = 0u; k < 4u; k++) {
        result[k] = result_of(g, v[k], d[k]);
        if (next_place(p))
            g = channel_grid(p.channel);
    }
    y4[args.y_offset / 4u + i] = result;
}

void main()
{
    uint i = global_index(), count = VECTORS ? args.numel / 4u : args.numel;
    if (VECTORS && i < args.numel % 4u)
        take_one(count * 4u + i);
    if (i >= count)
        return;
    if (VECTORS)
        take_four(i);
    else
        take_one(i);
}
