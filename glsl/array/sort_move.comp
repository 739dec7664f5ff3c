#version 450
/*
 * A pass over long rows: the elements of a block are put in order of a digit of 8 bits in the
 * workgroup, and each digit's run of them goes to where those of the blocks before end. FIRST:
 * what is read are floats, and the items are the positions in the row. LAST: what is written is the
 * result, indices or values, and no keys; a value is its key turned back, but where that stands for
 * several.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/array.h"

layout(constant_id = 1) const bool FIRST = false;
layout(constant_id = 2) const bool LAST = false;
layout(push_constant) uniform block { sort_pass_args args; };
#include "array/sort.glsl"
#include "array/sort_key.glsl"

layout(set = 0, binding = 0) readonly buffer source_keys { uint keys[]; };
layout(set = 0, binding = 1) readonly buffer source_items { uint items[]; };
layout(set = 0, binding = 2) restrict readonly buffer before { uint counts[]; };
layout(set = 0, binding = 3) restrict readonly buffer sums { uint totals[]; };
layout(set = 0, binding = 4) readonly buffer source { uint x[]; };
layout(set = 0, binding = 5) writeonly buffer target_keys { uint new_keys[]; };
layout(set = 0, binding = 6) writeonly buffer target_items { uint new_items[]; };

#define RUN (SORT_DIGITS / 16u)

uint digit_of(uint k)
{
    return k >> args.shift & (SORT_DIGITS - 1u);
}

/* pool[SORT_DIGITS + d]: where the block's elements of digit d go. */
void find_starts(uint row, uint block)
{
    uint t = gl_LocalInvocationID.x, first = SORT_DIGITS;
    for (uint d = t; d < SORT_DIGITS; d += THREADS)
        pool[first + d] = totals[row * SORT_DIGITS + d];
    barrier();
    if (t < 16u) {
        uint sum = 0u;
        for (uint i = first + RUN * t; i < first + RUN * t + RUN; i++) {
            uint v = pool[i];
            pool[i] = sum;
            sum += v;
        }
        pool[2u * SORT_DIGITS + t] = sum;
    }
    barrier();
    for (uint d = t; d < SORT_DIGITS; d += THREADS) {
        uint start = pool[first + d] + counts[(row * SORT_DIGITS + d) * args.blocks + block];
        for (uint r = 0u; r < d / RUN; r++)
            start += pool[2u * SORT_DIGITS + r];
        pool[first + d] = start;
    }
}

uint value_of(uint k, uint at)
{
    uint forward = args.descending != 0u ? ~k : k;
    bool several = k == 0xffffffffu || forward == 0x80000000u; /* NaN, zero */
    if (several)
        return x[at];
    return (forward & 0x80000000u) != 0u ? forward ^ 0x80000000u : ~forward;
}

void main()
{
    uint g = group_index(), t = gl_LocalInvocationID.x;
    if (g >= args.groups)
        return;
    uint row = g / args.blocks, block = g - row * args.blocks, base = row * args.extent;
    uint first = block * SORT_ITEMS * THREADS;
    uint count = min(args.extent - first, SORT_ITEMS * THREADS);
    EACH_ITEM(j) {
        uint e = element(j, false), i = first + e;
        key[j] = 0xffffffffu;
        item[j] = FIRST ? first + element(j, false) : 0u;
        if (e >= count)
            continue;
        if (FIRST) {
            key[j] = sort_key(keys[args.x_offset + base + i]);
        } else {
            key[j] = keys[base + i];
            item[j] = items[base + i];
        }
    }
    split_by_key(args.shift, false);
    EACH_ITEM(j)
        place[j] = key[j] >> (args.shift + 4u) & 15u;
    rank_items();
    EACH_ITEM(j)
        pool[spot(place[j])] = key[j];
    barrier();
    uint leads = 0u; /* bit j: the first of its digit */
    EACH_ITEM(j) {
        uint q = element(j, true);
        key[j] = pool[spot(q)];
        if (q == 0u || digit_of(pool[spot(q - 1u)]) != digit_of(key[j]))
            leads |= 1u << j;
    }
    barrier();
    move_items(true);
    EACH_ITEM(j)
        if ((leads >> j & 1u) != 0u)
            pool[digit_of(key[j])] = element(j, true);
    find_starts(row, block);
    barrier();
    EACH_ITEM(j) {
        uint q = element(j, true), digit = digit_of(key[j]);
        if (q >= count)
            continue;
        uint to = base + pool[SORT_DIGITS + digit] + q - pool[digit];
        if (!LAST) {
            new_keys[to] = key[j];
            new_items[to] = item[j];
        } else if (args.indices == 0u) {
            new_items[args.y_offset + to] = value_of(key[j], args.x_offset + base + item[j]);
        } else {
            new_items[args.y_offset + to] = floatBitsToUint(float(item[j]));
        }
    }
}
