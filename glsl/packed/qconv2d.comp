#version 450
/*
 * y = requantized(bias + sum of (x - x_zero) (w - w_zero)) over the taps that fall inside the
 * image, for 8-bit integers x [N, C, H, W] and w [Co, C / groups, kh, kw]. An invocation computes
 * one element of y, so that neighbours read neighbouring columns of x and the same w. A split sums
 * k_slice of the taps; integer_sum adds the sums of all splits.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/packed.h"
#include "packed/integer.glsl"

layout(constant_id = 1) const uint X_STORAGE = INTEGER_BYTES;
layout(constant_id = 2) const uint W_STORAGE = INTEGER_BYTES;
layout(constant_id = 3) const uint HAS_BIAS = 0;
layout(push_constant) uniform block { qconv2d_args args; };
layout(set = 0, binding = 0) restrict readonly buffer x_buffer { uint x[]; };
layout(set = 0, binding = 1) restrict readonly buffer w_buffer { uint w[]; };
layout(set = 0, binding = 2) restrict readonly buffer bias_buffer { float bias[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { uint y[]; };

INTEGER_READER(read_x, x, X_STORAGE)
INTEGER_READER(read_w, w, W_STORAGE)

/* The word to store in y: a partial sum, or the result for output channel c. */
uint finish(int sum, uint c)
{
    if (args.k_slice < args.channels * args.kernel[0] * args.kernel[1])
        return uint(sum);
    uvec2 total = wide_add(uvec2(0), sum);
    if (HAS_BIAS != 0)
        total = wide_add(total, bias_integer(bias[args.bias_offset + c]));
    return floatBitsToUint(requantize(total, args.multiplier, args.out_zero_point));
}

void main()
{
    uint split = global_index() / args.count, index = global_index() % args.count;
    uint taps = args.channels * args.kernel[0] * args.kernel[1];
    uint begin = split * args.k_slice, end = min(taps, begin + args.k_slice);
    if (split > 0 && begin >= taps)
        return;
    uint column = index % args.out_size[1], rest = index / args.out_size[1];
    uint row = rest % args.out_size[0], plane = rest / args.out_size[0];
    uint outputs = args.groups * args.m, co = plane % outputs, image = plane / outputs;

    /* Above and left of the image, these wrap around to large numbers. */
    uint top = row * args.stride[0] - args.padding[0];
    uint left = column * args.stride[1] - args.padding[1];
    uint b = begin % args.kernel[1], a = begin / args.kernel[1] % args.kernel[0];
    uint c = begin / (args.kernel[0] * args.kernel[1]);
    uint hi = top + a * args.dilation[0], wi = left + b * args.dilation[1];
    uint cells = args.in_size[0] * args.in_size[1], w_at = args.w_offset + co * taps;
    uint x_plane =
        args.x_offset + ((image * args.groups + co / args.m) * args.channels + c) * cells;
    int sum = 0;
    for (uint tap = begin; tap < end; tap++) {
        if (hi < args.in_size[0] && wi < args.in_size[1])
            sum += (read_x(x_plane + hi * args.in_size[1] + wi) - args.x_zero_point) *
                   (read_w(w_at + tap) - args.w_zero_point);
        b += 1;
        wi += args.dilation[1];
        if (b < args.kernel[1])
            continue;
        b = 0;
        wi = left;
        a += 1;
        hi += args.dilation[0];
        if (a == args.kernel[0]) {
            a = 0;
            hi = top;
            x_plane += cells;
        }
    }
    y[args.y_offset + split * args.count + index] = finish(sum, co);
}
