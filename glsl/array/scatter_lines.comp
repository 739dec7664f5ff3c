#version 450
/*
 * Scatters into lines of the last axis, one workgroup for each line. The winning update of each
 * element is found in shared memory with integer atomicMax, so that it does not depend on the order
 * of the threads. With SCATTER_ASSIGN, the winning updates then replace their numbers by their
 * values, and elements without an update get x. A thread has at most RADIX_ITEMS updates and as
 * many elements.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/array.h"
#include "args/movement.h"

layout(constant_id = 1) const uint MODE = SCATTER_ASSIGN;
layout(push_constant) uniform block { scatter_args args; };
layout(set = 0, binding = 0) restrict readonly buffer old { uint x[]; };
layout(set = 0, binding = 1) restrict readonly buffer indices { float index[]; };
layout(set = 0, binding = 2) restrict readonly buffer source { uint updates[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { uint y[]; };
#include "array/scatter.glsl"

#define EACH_ITEM(k) [[unroll]] for (uint k = 0u; k < RADIX_ITEMS; k++)

shared uint winners[RADIX_ITEMS * gl_WorkGroupSize.x];

uint rows[RADIX_ITEMS], values[RADIX_ITEMS], olds[RADIX_ITEMS];

void place_values(uint t, uint step)
{
    uint won = 0u, bare = 0u;
    EACH_ITEM(k) {
        uint j = t + k * step;
        if (rows[k] != 0xffffffffu && winners[rows[k]] == j + 1u)
            won |= 1u << k;
        if (winners[j] == 0u)
            bare |= 1u << k;
    }
    barrier();
    EACH_ITEM(k) {
        if ((won >> k & 1u) != 0u)
            winners[rows[k]] = values[k];
        if ((bare >> k & 1u) != 0u)
            winners[t + k * step] = olds[k];
    }
    barrier();
}

void main()
{
    uint line = group_index(), t = gl_LocalInvocationID.x, step = gl_WorkGroupSize.x;
    if (line >= args.lines)
        return;
    uint from = args.x_offset + line * args.rows, to = args.y_offset + line * args.rows;
    uint first = line * args.updates;
    EACH_ITEM(k) {
        uint j = t + k * step, u = first + min(j, args.updates - 1u);
        rows[k] = checked_index(index[args.index_offset + u], args.rows);
        values[k] = updates[args.updates_offset + u];
        olds[k] = x[from + min(j, args.rows - 1u)];
        if (j >= args.updates)
            rows[k] = 0xffffffffu;
    }
    EACH_ITEM(k)
        winners[t + k * step] = MODE == SCATTER_ASSIGN ? 0u : rank_of(MODE, olds[k]);
    barrier();
    EACH_ITEM(k) {
        uint rank = MODE == SCATTER_ASSIGN ? t + k * step + 1u : rank_of(MODE, values[k]);
        if (rows[k] != 0xffffffffu)
            atomicMax(winners[rows[k]], rank);
    }
    barrier();
    if (MODE == SCATTER_ASSIGN)
        place_values(t, step);
    EACH_ITEM(k) {
        uint r = t + k * step, w = winners[r];
        if (r < args.rows)
            y[to + r] = MODE == SCATTER_ASSIGN ? w : bits_of(MODE, w);
    }
}
