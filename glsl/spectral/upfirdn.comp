#version 450
/*
 * Upsamples a signal by inserting zeros, filters it, and keeps only some of the samples. One
 * invocation computes one of these: y[i] = sum over j of taps[i down + shift - j up] x[j], j
 * ascending.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/spectral.h"

layout(push_constant) uniform block { upfirdn_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict readonly buffer filter_taps { float taps[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target { float y[]; };

#define RUN 16384

void main()
{
    uint i = global_index();
    if (i >= args.outputs)
        return;
    uint row = i / args.samples;
    int at = int(i - row * args.samples) * args.down + args.shift;
    int before = at - int(args.tap_count);
    int first = before < 0 ? 0 : before / args.up + 1;
    int end = at < 0 ? 0 : min(at / args.up + 1, int(args.extent));
    uint base = args.x_offset + row * args.extent;
    float sum = 0.0;
    for (int run = first; run < end; run += RUN)
        for (int j = run; j < min(end, run + RUN); j++)
            sum += taps[args.taps_offset + uint(at - j * args.up)] * x[base + uint(j)];
    y[args.y_offset + i] = sum;
}
