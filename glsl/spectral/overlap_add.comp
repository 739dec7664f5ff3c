#version 450
/*
 * Puts frames back to their positions in the signal. One invocation per sample adds up the frames
 * that cover it, in order. If WINDOWED, frames are multiplied by a window, and the result is
 * divided by the sum of the window's squares.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/spectral.h"

layout(constant_id = 1) const uint WINDOWED = 0;
layout(push_constant) uniform block { overlap_add_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict readonly buffer weights { float window[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target { float y[]; };

#define RUN 16384u

void main()
{
    uint i = global_index();
    if (i >= args.outputs)
        return;
    uint t = i % args.samples, row = i / args.samples;
    uint first = t < args.extent ? 0u : (t - args.extent) / args.hop + 1u;
    uint end = min(t / args.hop + 1u, args.frames);
    float sum = 0.0, squares = 0.0;
    for (uint run = first; run < end; run += RUN)
        for (uint f = run; f < min(end, run + RUN); f++) {
            uint j = t - f * args.hop;
            float v = x[args.x_offset + (row * args.frames + f) * args.extent + j];
            if (WINDOWED != 0u) {
                float weight = window[args.window_offset + j];
                v *= weight;
                squares += weight * weight;
            }
            sum += v;
        }
    if (WINDOWED != 0u)
        sum = squares > OVERLAP_ADD_LEAST ? sum / squares : 0.0;
    y[args.y_offset + i] = sum;
}
