#version 450
/*
 * How often each digit occurs in each block of each row: a workgroup a block. Eight sets of
 * counters, so that equal digits of neighbouring threads do not all meet in one.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"
#include "movement/radix.glsl"

#define SETS 8u

layout(push_constant) uniform block { radix_count_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { uint keys[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { uint counts[]; };

shared uint counters[SETS * RADIX_DIGITS];

void main()
{
    uint g = group_index(), t = gl_LocalInvocationID.x;
    if (g >= args.groups)
        return;
    uint row = g / args.blocks, block = g - row * args.blocks;
    if (t < SETS * RADIX_DIGITS)
        counters[t] = 0u;
    barrier();
    uint first = block * RADIX_BLOCK, end = min(first + RADIX_BLOCK, args.extent);
    for (uint i = first + t; i < end; i += RADIX_THREADS) {
        uint digit = radix_digit(keys[row * args.extent + i], args.shift);
        atomicAdd(counters[t % SETS * RADIX_DIGITS + digit], 1u);
    }
    barrier();
    if (t < RADIX_DIGITS) {
        uint sum = 0u;
        for (uint k = 0u; k < SETS; k++)
            sum += counters[k * RADIX_DIGITS + t];
        counts[(row * RADIX_DIGITS + t) * args.blocks + block] = sum;
    }
}
