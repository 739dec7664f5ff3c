#version 450
/*
 * Finds the update that wins each element of y, or each row with ND and SCATTER_ASSIGN. The buffer
 * holds the numbers of the updates, or the ranks of their values. START: initializes the buffer for
 * no updates.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/array.h"

layout(constant_id = 1) const uint MODE = SCATTER_ASSIGN;
layout(constant_id = 2) const bool ND = false;
layout(constant_id = 3) const bool START = false;
layout(push_constant) uniform block { scatter_args args; };
layout(set = 0, binding = 0) restrict readonly buffer indices { float index[]; };
layout(set = 0, binding = 1) restrict readonly buffer source { uint updates[]; };
layout(set = 0, binding = 2) restrict buffer target { uint winners[]; };
#include "array/scatter.glsl"

void main()
{
    uint e = global_index();
    if (e >= args.count)
        return;
    if (START) { /* `source` is x */
        uint w = 0u;
        if (MODE != SCATTER_ASSIGN)
            w = rank_of(MODE, updates[args.updates_offset + e]);
        winners[e] = w;
        return;
    }
    uint to = ND && MODE == SCATTER_ASSIGN ? row_of(e) : target_of(e, ND);
    if (to == 0xffffffffu)
        return;
    uint rank = e + 1u;
    if (MODE != SCATTER_ASSIGN)
        rank = rank_of(MODE, updates[args.updates_offset + e]);
    atomicMax(winners[to], rank);
}
