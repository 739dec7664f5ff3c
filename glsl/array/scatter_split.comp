#version 450
/*
 * Sums or products for lines of the last axis, one workgroup for each line. The updates are sorted
 * by their element, stably. The first update of each run applies the whole run in order. Elements
 * without an update keep the value of x.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/array.h"

layout(constant_id = 1) const uint MODE = SCATTER_ADD;
layout(push_constant) uniform block { scatter_args args; };
layout(set = 0, binding = 0) restrict readonly buffer old { float x[]; };
layout(set = 0, binding = 1) restrict readonly buffer indices { float index[]; };
layout(set = 0, binding = 2) restrict readonly buffer source { float updates[]; };
layout(set = 0, binding = 3) coherent writeonly buffer target { float y[]; };
#include "array/scatter.glsl"
#include "movement/radix_block.glsl"

#define ITEM_MASK ((1u << SCATTER_ITEM_BITS) - 1u)
#define DROPPED   0x80000000u /* sorted with the last element, but skipped */

uint row_at(uint packed)
{
    return (packed & ~DROPPED) >> SCATTER_ITEM_BITS;
}

void main()
{
    uint line = group_index(), t = gl_LocalInvocationID.x, count = RADIX_ITEMS * THREADS;
    if (line >= args.lines)
        return;
    uint from = args.x_offset + line * args.rows, to = args.y_offset + line * args.rows;
    uint first = line * args.updates;
    for (uint r = t; r < args.rows; r += 4u * THREADS) {
        float v[4];
        [[unroll]] for (uint k = 0u; k < 4u; k++)
            v[k] = x[from + min(r + k * THREADS, args.rows - 1u)];
        [[unroll]] for (uint k = 0u; k < 4u; k++)
            if (r + k * THREADS < args.rows)
                y[to + r + k * THREADS] = v[k];
    }
    EACH_ITEM(j) {
        uint e = element(j, false), row = 0xffffffffu;
        if (e < args.updates)
            row = checked_index(index[args.index_offset + first + e], args.rows);
        key[j] = row != 0xffffffffu ? row << SCATTER_ITEM_BITS | e
                                    : DROPPED | (args.rows - 1u) << SCATTER_ITEM_BITS | e;
    }
    for (uint bits = 0u; (args.rows - 1u) >> bits != 0u; bits += 4u) {
        EACH_ITEM(j)
            place[j] = row_at(key[j]) >> bits & 15u;
        rank_items();
        move_keys(false);
    }
    EACH_ITEM(j)
        pool[spot(element(j, false))] = key[j];
    memoryBarrierBuffer();
    barrier();
    for (uint j = 0u; j < RADIX_ITEMS; j++) {
        uint q = element(j, true), row = row_at(pool[spot(q)]);
        if (q > 0u && row_at(pool[spot(q - 1u)]) == row)
            continue;
        float v = x[from + row];
        for (; q < count; q++) {
            uint packed = pool[spot(q)];
            if (row_at(packed) != row)
                break;
            if ((packed & DROPPED) == 0u)
                v = apply(MODE, v, updates[args.updates_offset + first + (packed & ITEM_MASK)]);
        }
        y[to + row] = v;
    }
}
