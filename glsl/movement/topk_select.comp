#version 450
/*
 * The k <= TOPK_MOST largest elements of a row or of a chunk, by radix selection. One workgroup
 * takes one row or chunk. An element is the pair (key, 2^24 - 1 - index). Therefore no two are
 * equal, and a smaller index wins among equal keys.
 *
 * Digits of 8 bits are taken from the top. A histogram of the elements that agree with the digits
 * chosen so far tells which digit has the k-th largest element. The search ends early if all
 * elements of a digit are taken. Then all elements that are not below the chosen digits are
 * collected in any order, and sorted by counting. STAGE is specialization constant 1.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"
#include "movement/radix.glsl"

#define SETS       8u /* counter sets, so that equal digits of neighbours do not collide */
#define DIGITS     256u
#define PARTS      16u
#define LAST_INDEX 0xffffffu

layout(constant_id = 1) const uint STAGE = TOPK_ONLY_STAGE;
layout(push_constant) uniform block { topk_select_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { uint x[]; };
layout(set = 0, binding = 1) restrict readonly buffer chosen { uint candidates[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target_words { uint new_candidates[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target { float y[]; };

shared uint pool[TOPK_POOL]; /* SETS histograms; then the keys and indices of the chosen elements */
shared uint parts[PARTS];
shared uint chosen_digit, still_needed, taken_whole, collected;

uint row, chunk, row_first, item_first, items;

/* The chosen bits of (key, complemented index) so far, and which bits they are. */
uvec2 prefix, mask;

uvec2 element(uint i)
{
    uint index = item_first + i;
    if (STAGE == TOPK_SECOND_STAGE)
        index = candidates[row * args.candidates + i];
    return uvec2(ordered_key(x[row_first + index]), LAST_INDEX - index);
}

/* Passes 0-3 take digits of the key, 4-6 of the index. */
uint digit_of(uvec2 e, uint pass)
{
    return (pass < 4u ? e.x >> (24u - 8u * pass) : e.y >> (48u - 8u * pass)) & (DIGITS - 1u);
}

void count_digits(uint pass)
{
    uint t = gl_LocalInvocationID.x, step = gl_WorkGroupSize.x;
    for (uint i = t; i < SETS * DIGITS; i += step)
        pool[i] = 0u;
    barrier();
    for (uint i = t; i < items; i += step) {
        uvec2 e = element(i);
        if ((e & mask) == prefix)
            atomicAdd(pool[t % SETS * DIGITS + digit_of(e, pass)], 1u);
    }
    barrier();
    for (uint i = t; i < DIGITS; i += step)
        for (uint s = 1u; s < SETS; s++)
            pool[i] += pool[s * DIGITS + i];
    barrier();
    if (t < PARTS) {
        uint sum = 0u;
        for (uint i = 0u; i < DIGITS / PARTS; i++)
            sum += pool[t * (DIGITS / PARTS) + i];
        parts[t] = sum;
    }
    barrier();
}

/* Goes down from the largest digit to the one that has the `still_needed`-th element from the top.
 * It exists because select_elements() wants fewer elements than there are. */
void choose_digit()
{
    uint needed = still_needed, part = PARTS - 1u;
    while (parts[part] < needed)
        needed -= parts[part--];
    uint digit = (part + 1u) * (DIGITS / PARTS) - 1u;
    while (pool[digit] < needed)
        needed -= pool[digit--];
    chosen_digit = digit;
    taken_whole = pool[digit] == needed ? 1u : 0u;
    still_needed = needed;
}

/* Sets prefix and mask so that exactly `wanted` elements are not below the prefix. */
void select_elements(uint wanted)
{
    prefix = mask = uvec2(0u);
    if (wanted >= items)
        return;
    if (gl_LocalInvocationID.x == 0u)
        still_needed = wanted;
    for (uint pass = 0u; pass < 7u; pass++) {
        count_digits(pass);
        if (gl_LocalInvocationID.x == 0u)
            choose_digit();
        barrier();
        if (pass < 4u) {
            prefix.x |= chosen_digit << (24u - 8u * pass);
            mask.x |= (DIGITS - 1u) << (24u - 8u * pass);
        } else {
            prefix.y |= chosen_digit << (48u - 8u * pass);
            mask.y |= (DIGITS - 1u) << (48u - 8u * pass);
        }
        /* taken_whole is written again only after the barriers of the next count. */
        if (taken_whole != 0u)
            return;
    }
}

bool is_selected(uvec2 e)
{
    uvec2 digits = e & mask;
    return digits.x > prefix.x || (digits.x == prefix.x && digits.y >= prefix.y);
}

void collect(uint wanted)
{
    uint t = gl_LocalInvocationID.x, step = gl_WorkGroupSize.x;
    if (t == 0u)
        collected = 0u;
    barrier();
    for (uint i = t; i < items; i += step) {
        uvec2 e = element(i);
        if (!is_selected(e))
            continue;
        uint place = atomicAdd(collected, 1u);
        if (STAGE == TOPK_FIRST_STAGE) {
            new_candidates[row * args.candidates + chunk * args.k + place] = LAST_INDEX - e.y;
        } else {
            pool[place] = e.x;
            pool[TOPK_MOST + place] = e.y;
        }
    }
    barrier();
}

void store_in_order(uint wanted)
{
    for (uint i = gl_LocalInvocationID.x; i < wanted; i += gl_WorkGroupSize.x) {
        uint key = pool[i], complement = pool[TOPK_MOST + i], place = 0u;
        for (uint j = 0u; j < wanted; j++) {
            bool before = pool[j] > key || (pool[j] == key && pool[TOPK_MOST + j] > complement);
            place += before ? 1u : 0u;
        }
        y[args.y_offset + row * args.k + place] = float(LAST_INDEX - complement);
    }
}

void main()
{
    uint g = group_index();
    if (g >= args.groups)
        return;
    row = g / args.chunks;
    chunk = g - row * args.chunks;
    row_first = args.x_offset + row * args.extent;
    item_first = chunk * args.chunk_length;
    items = STAGE == TOPK_SECOND_STAGE ? args.candidates
                                       : min(args.chunk_length, args.extent - item_first);
    uint wanted = min(args.k, items);
    select_elements(wanted);
    collect(wanted);
    if (STAGE != TOPK_FIRST_STAGE)
        store_in_order(wanted);
}
