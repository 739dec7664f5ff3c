#version 450
/*
 * How often each digit of 8 bits occurs in each block of each row: a workgroup a block. Four sets
 * of counters, so that equal digits of neighbouring threads do not all meet in one. FIRST: what is
 * read are floats, else their keys.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"

#define SETS 4u

layout(constant_id = 1) const bool FIRST = false;
layout(push_constant) uniform block { radix_pass_args args; };
#include "movement/radix_block.glsl"
#include "movement/radix_key.glsl"

layout(set = 0, binding = 0) restrict readonly buffer source { uint x[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { uint counts[]; };

void main()
{
    uint g = group_index(), t = gl_LocalInvocationID.x;
    if (g >= args.groups)
        return;
    uint row = g / args.blocks, block = g - row * args.blocks;
    for (uint i = t; i < SETS * RADIX_DIGITS; i += THREADS)
        pool[i] = 0u;
    barrier();
    uint first = block * RADIX_ITEMS * THREADS;
    for (uint j = 0u; j < RADIX_ITEMS; j++) {
        uint i = first + element(j, true);
        if (i >= args.extent)
            break;
        uint k = x[args.x_offset + row * args.extent + i];
        if (FIRST)
            k = sort_key(k);
        atomicAdd(pool[t % SETS * RADIX_DIGITS + (k >> args.shift & (RADIX_DIGITS - 1u))], 1u);
    }
    barrier();
    for (uint d = t; d < RADIX_DIGITS; d += THREADS) {
        uint sum = 0u;
        for (uint s = 0u; s < SETS; s++)
            sum += pool[s * RADIX_DIGITS + d];
        counts[(row * RADIX_DIGITS + d) * args.blocks + block] = sum;
    }
}
