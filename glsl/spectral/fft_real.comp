#version 450
/*
 * Spectra of real lines from those of their pairs (see fft_real.glsl). One invocation computes one
 * bin k = 0 .. h of a line. The output is blocks of h + 1 real and h + 1 imaginary parts. The table
 * has exp(-2 pi i k / 2h).
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/spectral.h"
#include "spectral/fft_butterfly.glsl"
#include "spectral/fft_real.glsl"

layout(push_constant) uniform block { fft_real_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { vec2 z[]; };
layout(set = 0, binding = 1) restrict readonly buffer factors { vec2 table[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target { float y[]; };

void main()
{
    uint index = global_index();
    if (index >= args.lines * (args.half_length + 1))
        return;
    uint line = index / (args.half_length + 1), k = index % (args.half_length + 1);
    uint mirror = args.half_length - k, start = line * args.half_length;
    vec2 a = z[start + (k == args.half_length ? 0 : k)];
    vec2 b = z[start + (k == 0 ? 0 : mirror)];
    vec2 bin = args.scale * bin_of_pairs(a, b, table[k]);
    uint place = args.y_offset + 2 * line * (args.half_length + 1) + k;
    y[place] = bin.x;
    y[place + args.half_length + 1] = bin.y;
}
