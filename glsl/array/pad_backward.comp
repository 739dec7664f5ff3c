#version 450
/*
 * The adjoint of padding along one axis. An invocation computes one element of dx, the sum over the
 * elements of dy that were copied from it (its images), in ascending order. There are one or two
 * images in each period, or all of one end (PAD_EDGE). MODE: specialization constant 1.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/array.h"

/* Images that are summed in a round of a loop. An old software driver silently ends the loops of an
 * invocation after 65,535 rounds in all, counting nested loops together. There, the kernel sums at
 * most about 500,000 images. */
#define EACH 8u

layout(constant_id = 1) const uint MODE = PAD_WRAP;
layout(push_constant) uniform block { pad_backward_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float dy[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { float dx[]; };

uint first_of_line;

float image(uint j)
{
    return j < args.size ? dy[args.dy_offset + first_of_line + j * args.inner] : 0.0;
}

float add_images(float sum, uint period, uint low, uint high)
{
    sum += image(period + low);
    if (low != high)
        sum += image(period + high);
    return sum;
}

/* The sum of the images at `a` and, if they differ, at `b`, in every period. Both are below the
 * period. */
float sum_of_images(uint a, uint b, uint period)
{
    float sum = 0.0;
    uint low = min(a, b), high = max(a, b);
    uint periods = (args.size + period - 1u) / period;
    uint k = 0u;
    for (; k + EACH <= periods; k += EACH)
        [[unroll]] for (uint j = 0u; j < EACH; j++)
            sum = add_images(sum, (k + j) * period, low, high);
    for (; k < periods; k++)
        sum = add_images(sum, k * period, low, high);
    return sum;
}

float sum_of_run(int first, int end)
{
    float sum = 0.0;
    first = max(first, 0);
    end = min(end, int(args.size));
    for (; first + int(EACH) <= end; first += int(EACH))
        [[unroll]] for (int j = 0; j < int(EACH); j++)
            sum += image(uint(first + j));
    for (; first < end; first++)
        sum += image(uint(first));
    return sum;
}

void main()
{
    uint e = global_index();
    if (e >= args.count)
        return;
    uint line = e / args.inner, column = e - line * args.inner;
    uint o = line / args.extent, i = line - o * args.extent;
    first_of_line = o * args.size * args.inner + column;
    float sum;
    if (MODE == PAD_EDGE) {
        int at = int(i) + args.before;
        sum = sum_of_run(i == 0u ? 0 : at, i + 1u == args.extent ? int(args.size) : at + 1);
    } else if (MODE == PAD_WRAP || args.extent == 1u) {
        uint at = (i + uint(args.before)) % args.extent;
        sum = sum_of_images(at, at, args.extent);
    } else {
        uint period = 2u * (args.extent - 1u), before = uint(args.before);
        sum = sum_of_images((before + i) % period, (before + period - i) % period, period);
    }
    dx[args.dx_offset + e] = sum;
}
