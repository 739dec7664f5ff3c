#version 450
/*
 * Moves the keys of each block, and their values, to where the digit puts them; equal digits keep
 * their order, because a thread holds consecutive keys and its places of a digit come after those
 * of the threads before it. FIRST (constant 1): the values are the positions in the row.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"
#include "movement/radix.glsl"

#define RUNS_PER_DIGIT (RADIX_THREADS / RADIX_DIGITS)

layout(constant_id = 1) const bool FIRST = false;
layout(push_constant) uniform block { radix_scatter_args args; };
layout(set = 0, binding = 0) readonly buffer source_keys { uint keys[]; };
layout(set = 0, binding = 1) readonly buffer source_values { uint values[]; };
layout(set = 0, binding = 2) restrict readonly buffer starts { uint start[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target_keys { uint new_keys[]; };
layout(set = 0, binding = 4) restrict writeonly buffer target_values { uint new_values[]; };

shared uint places[RADIX_DIGITS * RADIX_THREADS]; /* [digit, thread]: counts, then places */
shared uint runs[RADIX_THREADS];

/* Turns the counts of a digit into sums over the threads before. */
void scan_places(uint t, uint row, uint block)
{
    uint digit = t / RUNS_PER_DIGIT, first = t * RADIX_DIGITS;
    uint sum = 0u;
    for (uint i = 0u; i < RADIX_DIGITS; i++)
        sum += places[first + i];
    runs[t] = sum;
    barrier();
    uint place = start[(row * RADIX_DIGITS + digit) * args.blocks + block];
    for (uint i = digit * RUNS_PER_DIGIT; i < t; i++)
        place += runs[i];
    for (uint i = 0u; i < RADIX_DIGITS; i++) {
        uint count = places[first + i];
        places[first + i] = place;
        place += count;
    }
    barrier();
}

void main()
{
    uint g = group_index(), t = gl_LocalInvocationID.x;
    if (g >= args.groups)
        return;
    uint row = g / args.blocks, block = g - row * args.blocks, base = row * args.extent;
    uint first = min(block * RADIX_BLOCK + t * RADIX_ITEMS, args.extent);
    uint end = min(first + RADIX_ITEMS, args.extent);
    for (uint digit = 0u; digit < RADIX_DIGITS; digit++)
        places[digit * RADIX_THREADS + t] = 0u;
    for (uint i = first; i < end; i++)
        places[radix_digit(keys[base + i], args.shift) * RADIX_THREADS + t]++;
    barrier();
    scan_places(t, row, block);
    for (uint i = first; i < end; i++) {
        uint key = keys[base + i], slot = radix_digit(key, args.shift) * RADIX_THREADS + t;
        uint place = base + places[slot]++;
        new_keys[place] = key;
        new_values[place] = FIRST ? i : values[base + i];
    }
}
