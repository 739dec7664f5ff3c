#version 450
/*
 * Sorts rows that fit a workgroup, as many rows together as fit. It sorts by all digits of the keys
 * and then by the row, stably, which separates the rows again. `indices`: the result is the index
 * of each element in its row, else its value.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/array.h"

layout(push_constant) uniform block { sort_rows_args args; };
#include "movement/radix_block.glsl"
#include "movement/radix_key.glsl"

layout(set = 0, binding = 0) restrict readonly buffer source { uint x[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { uint y[]; };

void main()
{
    uint g = group_index();
    if (g >= args.groups)
        return;
    uint row = g * args.lines, base = row * args.extent;
    uint count = min(args.lines, args.rows - row) * args.extent;
    uint mode = args.descending != 0u ? RADIX_DESCENDING : RADIX_ASCENDING;
    EACH_ITEM(j) {
        uint e = element(j, false);
        item[j] = e;
        key[j] = 0xffffffffu;
        if (e < count)
            key[j] = key_of(x[args.x_offset + base + e], mode, 0u);
    }
    for (uint shift = 0u; shift < 32u; shift += 4u)
        split_by_key(shift, false);
    for (uint shift = 0u; shift < args.line_bits; shift += 4u) {
        EACH_ITEM(j)
            place[j] = item[j] / args.extent >> shift & 15u;
        rank_items();
        move_items(false);
    }
    EACH_ITEM(j) {
        uint q = element(j, true), from = pool[spot(q)]; /* as move_items() left it */
        if (q >= count)
            continue;
        if (args.indices != 0u)
            y[args.y_offset + base + q] = floatBitsToUint(float(from % args.extent));
        else
            y[args.y_offset + base + q] = x[args.x_offset + base + from];
    }
}
