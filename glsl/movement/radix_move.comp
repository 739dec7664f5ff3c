#version 450
/*
 * A pass over long rows: the elements of a block are put in order of a digit of 8 bits in the
 * workgroup, and each digit's run of them goes to where those of the blocks before end. FIRST:
 * what is read are floats, else their keys. POSITIONS: the items are the positions in the row.
 * LAST: what is written is the result, indices or values, and no keys; a value is its key turned
 * back, but where that stands for several.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"

layout(constant_id = 1) const bool FIRST = false;
layout(constant_id = 2) const bool LAST = false;
layout(constant_id = 3) const bool POSITIONS = false;
layout(push_constant) uniform block { radix_pass_args args; };
#include "movement/radix_block.glsl"
#include "movement/radix_key.glsl"

layout(set = 0, binding = 0) readonly buffer source_keys { uint keys[]; };
layout(set = 0, binding = 1) readonly buffer source_items { uint items[]; };
layout(set = 0, binding = 2) restrict readonly buffer before { uint counts[]; };
layout(set = 0, binding = 3) restrict readonly buffer sums { uint totals[]; };
layout(set = 0, binding = 4) readonly buffer source { uint x[]; };
layout(set = 0, binding = 5) writeonly buffer target_keys { uint new_keys[]; };
layout(set = 0, binding = 6) writeonly buffer target_items { uint new_items[]; };

#define RUN (RADIX_DIGITS / 16u)

uint digit_of(uint k)
{
    return k >> args.shift & (RADIX_DIGITS - 1u);
}

/* pool[RADIX_DIGITS + d]: where the block's elements of digit d go. */
void find_starts(uint row, uint block)
{
    uint t = gl_LocalInvocationID.x, first = RADIX_DIGITS;
    for (uint d = t; d < RADIX_DIGITS; d += THREADS)
        pool[first + d] = totals[row * RADIX_DIGITS + d];
    barrier();
    if (t < 16u) {
        uint sum = 0u;
        for (uint i = first + RUN * t; i < first + RUN * t + RUN; i++) {
            uint v = pool[i];
            pool[i] = sum;
            sum += v;
        }
        pool[2u * RADIX_DIGITS + t] = sum;
    }
    barrier();
    for (uint d = t; d < RADIX_DIGITS; d += THREADS) {
        uint start = pool[first + d] + counts[(row * RADIX_DIGITS + d) * args.blocks + block];
        for (uint r = 0u; r < d / RUN; r++)
            start += pool[2u * RADIX_DIGITS + r];
        pool[first + d] = start;
    }
}

/* Of a key, and of the element that it is of, in the order before this pass. */
uint value_of(uint k, uint base, uint i)
{
    uint forward = args.descending != 0u ? ~k : k;
    bool several = k == 0xffffffffu || forward == 0x80000000u; /* NaN, zero */
    if (several)
        return x[args.x_offset + base + (POSITIONS ? i : items[base + i])];
    return (forward & 0x80000000u) != 0u ? forward ^ 0x80000000u : ~forward;
}

/* The key of element i of the row. */
uint key_at(uint base, uint i)
{
    return FIRST ? sort_key(keys[args.x_offset + base + i]) : keys[base + i];
}

/* Writes the keys, or what the result has instead, where place[] says. */
void store_keys(uint base, uint first, uint count)
{
    EACH_ITEM(j) {
        uint e = element(j, true);
        pool[e] = e < count ? key_at(base, first + e) : 0u;
    }
    barrier();
    EACH_ITEM(j) {
        uint k = pool[key[j]];
        if (element(j, true) >= count)
            continue;
        if (LAST)
            new_items[args.y_offset + place[j]] = value_of(k, base, first + key[j]);
        else
            new_keys[place[j]] = k;
    }
    barrier();
}

void store_items(uint base, uint first, uint count)
{
    EACH_ITEM(j) {
        uint e = element(j, true);
        pool[e] = POSITIONS ? first + e : e < count ? items[base + first + e] : 0u;
    }
    barrier();
    EACH_ITEM(j) {
        uint at = pool[key[j]];
        if (element(j, true) >= count)
            continue;
        if (LAST)
            new_items[args.y_offset + place[j]] = floatBitsToUint(float(at));
        else
            new_items[place[j]] = at;
    }
}

void main()
{
    uint g = group_index(), t = gl_LocalInvocationID.x;
    if (g >= args.groups)
        return;
    uint row = g / args.blocks, block = g - row * args.blocks, base = row * args.extent;
    uint first = block * RADIX_ITEMS * THREADS;
    uint count = min(args.extent - first, RADIX_ITEMS * THREADS);
    EACH_ITEM(j) { /* the digit, and whose it is */
        uint e = element(j, false);
        uint digit = e < count ? digit_of(key_at(base, first + e)) : RADIX_DIGITS - 1u;
        key[j] = digit | e << 8u;
    }
    EACH_ITEM(j)
        place[j] = key[j] & 15u;
    rank_items();
    move_keys(false);
    EACH_ITEM(j)
        place[j] = key[j] >> 4u & 15u;
    rank_items();
    EACH_ITEM(j)
        pool[spot(place[j])] = key[j];
    barrier();
    uint leads = 0u; /* bit j: the first of its digit */
    EACH_ITEM(j) {
        uint q = element(j, true);
        key[j] = pool[spot(q)];
        if (q == 0u || (pool[spot(q - 1u)] & 255u) != (key[j] & 255u))
            leads |= 1u << j;
    }
    barrier();
    EACH_ITEM(j)
        if ((leads >> j & 1u) != 0u)
            pool[key[j] & 255u] = element(j, true);
    find_starts(row, block);
    barrier();
    EACH_ITEM(j) {
        uint digit = key[j] & 255u;
        place[j] = base + pool[RADIX_DIGITS + digit] + element(j, true) - pool[digit];
        key[j] >>= 8u;
    }
    barrier();
    if (!LAST || args.indices == 0u)
        store_keys(base, first, count);
    if (!LAST || args.indices != 0u)
        store_items(base, first, count);
}
