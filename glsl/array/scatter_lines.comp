#version 450
/*
 * Lines of the last axis, a workgroup each: which update wins each element is found in shared
 * memory by maxima of integers, so that it does not depend on the order of the threads.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/array.h"

layout(constant_id = 1) const uint MODE = SCATTER_ASSIGN;
layout(push_constant) uniform block { scatter_args args; };
layout(set = 0, binding = 0) restrict readonly buffer old { uint x[]; };
layout(set = 0, binding = 1) restrict readonly buffer indices { float index[]; };
layout(set = 0, binding = 2) restrict readonly buffer source { uint updates[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { uint y[]; };
#include "array/scatter.glsl"

#define ROUNDS 32768u /* of a loop */

shared uint winners[SCATTER_LINE];

void main()
{
    uint line = group_index(), t = gl_LocalInvocationID.x, step = gl_WorkGroupSize.x;
    if (line >= args.lines)
        return;
    uint from = args.x_offset + line * args.rows, to = args.y_offset + line * args.rows;
    uint first = line * args.updates, source_first = args.updates_offset + first;
    for (uint r = t; r < args.rows; r += step)
        winners[r] = MODE == SCATTER_ASSIGN ? 0u : rank_of(MODE, x[from + r]);
    barrier();
    for (uint part = 0u; part < args.updates; part += min(ROUNDS * step, args.updates - part))
        for (uint j = part + t; j < args.updates && j - part < ROUNDS * step; j += step) {
            uint row = checked_index(index[args.index_offset + first + j], args.rows);
            if (row == 0xffffffffu)
                continue;
            uint rank = j + 1u;
            if (MODE != SCATTER_ASSIGN)
                rank = rank_of(MODE, updates[source_first + j]);
            atomicMax(winners[row], rank);
        }
    barrier();
    for (uint r = t; r < args.rows; r += step) {
        uint rank = winners[r];
        if (MODE != SCATTER_ASSIGN)
            y[to + r] = bits_of(MODE, rank);
        else if (rank == 0u)
            y[to + r] = x[from + r];
        else
            y[to + r] = updates[source_first + rank - 1u];
    }
}
