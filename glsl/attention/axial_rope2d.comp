#version 450
/*
 * Rotates neighbouring pairs of every head of x [batch, tokens, heads, head]. Pair c of the first
 * half is rotated by tx theta^(-4c/D), pair c of the second half by ty theta^(-4c/D). An invocation
 * computes one angle and rotates that pair in all heads of its token. It reads both elements of a
 * pair before it writes them, so y may be x. TILE (constant 1): the whole sequence of positions
 * repeats.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/attention.h"
#include "lib/math.glsl"

layout(constant_id = 1) const bool TILE = false;
layout(push_constant) uniform block { axial_rope2d_args args; };
layout(set = 0, binding = 0) readonly buffer source { float x[]; };
layout(set = 0, binding = 1) writeonly buffer target { float y[]; };

float angle_of(uint token, uint pair)
{
    uint position = TILE ? token % args.positions : token / args.repeat;
    uint quarter = args.half_head / 2u, c = pair % quarter;
    uint place = pair < quarter ? position % args.end_x : position / args.end_x;
    float frequency = power(args.theta, -2.0 * float(c) / float(args.half_head));
    return float(place) * frequency;
}

void main()
{
    uint i = global_index();
    if (i >= args.pairs)
        return;
    uint row = i / args.half_head, pair = i - row * args.half_head;
    float angle = angle_of(row % args.tokens, pair);
    float c = sine(angle, 1), s = args.sign * sine(angle, 0);
    uint at = row * args.columns + 2u * pair;
    for (uint h = 0u; h < args.heads; h++) {
        float p = x[args.x_offset + at], q = x[args.x_offset + at + 1u];
        y[args.y_offset + at] = p * c - q * s;
        y[args.y_offset + at + 1u] = p * s + q * c;
        at += 2u * args.half_head;
    }
}
