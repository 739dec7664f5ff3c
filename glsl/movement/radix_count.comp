#version 450
/*
 * Counts how often each digit of 8 bits occurs in each block of each row, one workgroup per block.
 * There are four sets of counters, so that equal digits of neighbouring threads do not all use the
 * same counter.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"
#include "movement/radix_items.glsl"
#include "movement/radix_key.glsl"

#define SETS 4u

layout(constant_id = 1) const uint MODE = RADIX_WORDS;
layout(push_constant) uniform block { radix_pass_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { uint words[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { uint counts[]; };

shared uint counters[SETS * RADIX_DIGITS];

void main()
{
    uint g = group_index(), t = gl_LocalInvocationID.x;
    if (g >= args.groups)
        return;
    uint row = g / args.blocks, block = g - row * args.blocks;
    uint first = block * BLOCK, count = min(args.extent - first, BLOCK);
    uint base = args.source_offset + row * args.extent + first;
    EACH_ITEM(j)
        item[j] = words[base + min(j * THREADS + t, count - 1u)];
    for (uint i = t; i < SETS * RADIX_DIGITS; i += THREADS)
        counters[i] = 0u;
    barrier();
    EACH_ITEM(j) {
        uint digit = key_of(item[j], MODE, args.limit) >> args.shift & (RADIX_DIGITS - 1u);
        if (j * THREADS + t < count)
            atomicAdd(counters[digit * SETS + t % SETS], 1u);
    }
    barrier();
    for (uint d = t; d < RADIX_DIGITS; d += THREADS) {
        uint sum = 0u;
        for (uint s = 0u; s < SETS; s++)
            sum += counters[d * SETS + (s + d) % SETS];
        counts[(row * RADIX_DIGITS + d) * args.blocks + block] = sum;
    }
}
