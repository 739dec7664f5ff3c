#version 450
/*
 * exponent[matrix][row] of an operand in split mode. This power of two brings the row's largest
 * finite magnitude to [2^14, 2^15). There f16 has room for sums above, and the most room below. A
 * row of zeros has 0. A workgroup takes one row, or 32 rows if they are neighbours in memory
 * (TRANSPOSED).
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/matmul.h"

layout(constant_id = 1) const uint STORAGE = MATMUL_WORDS;
layout(constant_id = 2) const bool TRANSPOSED = false;

layout(push_constant) uniform block { matrix_scale_args args; };
layout(set = 0, binding = 0) readonly buffer x_view { uint x_words[]; };
layout(set = 0, binding = 1) writeonly buffer scale_view { int exponent[]; };

const uint LANES = TRANSPOSED ? 32 : 1; /* rows of a workgroup */
shared uint largest[gl_WorkGroupSize.x];

/* Bits of the magnitude as f32. Infinities and NaN give 0. */
uint magnitude(uint i)
{
    uint bits = x_words[STORAGE == MATMUL_WORDS ? i : i >> 1];
    if (STORAGE != MATMUL_WORDS) {
        bits = (i & 1) != 0 ? bits >> 16 : bits & 0xffff;
        bits = STORAGE == MATMUL_F16 ? floatBitsToUint(unpackHalf2x16(bits).x) : bits << 16;
    }
    bits &= 0x7fffffff;
    return bits < 0x7f800000 ? bits : 0;
}

/* floor(log2) of a positive f32. */
int exponent_of(uint bits)
{
    return bits >= 0x00800000 ? int(bits >> 23) - 127 : findMSB(bits) - 149;
}

void main()
{
    uint groups = (args.rows + LANES - 1) / LANES, group = group_index();
    uint matrix = group / groups, lane = gl_LocalInvocationID.x % LANES;
    uint row = group % groups * LANES + lane;
    if (matrix >= args.matrices)
        return;
    uint base = args.x_offset + matrix * args.matrix_step, seen = 0;
    uint step = gl_WorkGroupSize.x / LANES, k = gl_LocalInvocationID.x / LANES;
    for (; k < args.k && row < args.rows; k += step)
        seen = max(seen, magnitude(base + (TRANSPOSED ? k * args.rows + row : row * args.k + k)));
    largest[gl_LocalInvocationID.x] = seen;
    for (uint half_size = gl_WorkGroupSize.x / 2; half_size >= LANES; half_size /= 2) {
        barrier();
        if (gl_LocalInvocationID.x < half_size)
            largest[gl_LocalInvocationID.x] = max(largest[gl_LocalInvocationID.x],
                                                  largest[gl_LocalInvocationID.x + half_size]);
    }
    if (gl_LocalInvocationID.x < LANES && row < args.rows) {
        uint bits = largest[gl_LocalInvocationID.x];
        exponent[matrix * args.rows + row] = bits == 0 ? 0 : exponent_of(bits) - 14;
    }
}
