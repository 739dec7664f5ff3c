#version 450
/*
 * Power of spectra, summed over pieces of the rows that are averaged. One invocation takes one bin.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/spectral.h"

layout(push_constant) uniform block { welch_power_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { float y[]; };

void main()
{
    uint i = global_index();
    if (i >= args.outputs)
        return;
    uint bin = i % args.bins, row = i / args.bins, piece = row % args.pieces;
    uint first = piece * args.piece, last = min(first + args.piece, args.segments);
    uint start = args.x_offset + bin + row / args.pieces * args.segments * 2u * args.width;
    float sum = 0.0;
    for (uint s = first; s < last; s++) {
        float re = x[start + s * 2u * args.width];
        float im = x[start + (s * 2u + 1u) * args.width];
        sum += re * re + im * im;
    }
    float fold = bin == 0u || bin == args.single ? 1.0 : args.fold;
    y[args.y_offset + i] = sum * args.scale * fold;
}
