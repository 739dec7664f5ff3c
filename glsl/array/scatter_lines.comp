#version 450
/*
 * Lines of the last axis, a workgroup each: which update wins each element is found in shared
 * memory by maxima of integers, so that it does not depend on the order of the threads. Of
 * SCATTER_ASSIGN each thread has at most SCATTER_LINE_UPDATES updates and notes which of them won;
 * these then put their values in the winners' places.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/array.h"

layout(constant_id = 1) const uint MODE = SCATTER_ASSIGN;
layout(push_constant) uniform block { scatter_args args; };
layout(set = 0, binding = 0) restrict readonly buffer old { uint x[]; };
layout(set = 0, binding = 1) restrict readonly buffer indices { float index[]; };
layout(set = 0, binding = 2) restrict readonly buffer source { uint updates[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { uint y[]; };
#include "array/scatter.glsl"

#define BATCH  4u /* indices under way at a time */
#define ROUNDS 8192u /* of a loop over batches */

shared uint winners[SCATTER_LINE];

uint line, first;

/* Of update j of the line; ~0: none. */
uint row_at(uint j)
{
    if (j >= args.updates)
        return 0xffffffffu;
    return checked_index(index[args.index_offset + first + j], args.rows);
}

uint value_at(uint j)
{
    return updates[args.updates_offset + first + min(j, args.updates - 1u)];
}

void find_winners(uint begin, uint step)
{
    for (uint part = 0u; begin < args.updates && part < ROUNDS; part++, begin += BATCH * step) {
        uint rows[BATCH], ranks[BATCH];
        [[unroll]] for (uint k = 0u; k < BATCH; k++) {
            uint j = begin + k * step;
            rows[k] = row_at(j);
            ranks[k] = j + 1u;
            if (MODE != SCATTER_ASSIGN)
                ranks[k] = rank_of(MODE, value_at(j));
        }
        [[unroll]] for (uint k = 0u; k < BATCH; k++)
            if (rows[k] != 0xffffffffu)
                atomicMax(winners[rows[k]], ranks[k]);
    }
}

/* The values of those that won, and of x where none did, in the places of their numbers. */
void place_values(uint t, uint step, uint from)
{
    uint won = 0u, bare = 0u, bit = 0u;
    for (uint j = t; j < args.updates; j += step, bit++) {
        uint row = row_at(j);
        if (row != 0xffffffffu && winners[row] == j + 1u)
            won |= 1u << bit;
    }
    bit = 0u;
    for (uint r = t; r < args.rows; r += step, bit++)
        if (winners[r] == 0u)
            bare |= 1u << bit;
    barrier();
    bit = 0u;
    for (uint j = t; j < args.updates; j += step, bit++)
        if ((won >> bit & 1u) != 0u)
            winners[row_at(j)] = value_at(j);
    bit = 0u;
    for (uint r = t; r < args.rows; r += step, bit++)
        if ((bare >> bit & 1u) != 0u)
            winners[r] = x[from + r];
    barrier();
}

void main()
{
    uint t = gl_LocalInvocationID.x, step = gl_WorkGroupSize.x;
    line = group_index();
    if (line >= args.lines)
        return;
    uint from = args.x_offset + line * args.rows, to = args.y_offset + line * args.rows;
    first = line * args.updates;
    for (uint r = t; r < args.rows; r += step)
        winners[r] = MODE == SCATTER_ASSIGN ? 0u : rank_of(MODE, x[from + r]);
    barrier();
    for (uint begin = t; begin < args.updates; begin += min(ROUNDS * BATCH * step, args.updates))
        find_winners(begin, step);
    barrier();
    if (MODE == SCATTER_ASSIGN)
        place_values(t, step, from);
    for (uint r = t; r < args.rows; r += step)
        y[to + r] = MODE == SCATTER_ASSIGN ? winners[r] : bits_of(MODE, winners[r]);
}
