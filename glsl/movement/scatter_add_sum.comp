#version 450
/*
 * Scatter-add with one invocation for each element of the result or, if QUADS (constant 1), for
 * four. It adds the updates of its row in order, with four loads in flight. `positions` has the
 * updates sorted by row, and row r begins at starts[r]. If `outer` is above 1, all outer indices
 * have the same order. If a run is too long for one dispatch, the next dispatch continues from the
 * value in y.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"

layout(constant_id = 1) const bool QUADS = false;
layout(push_constant) uniform block { scatter_add_sum_args args; };
layout(set = 0, binding = 0) readonly buffer source { float updates[]; };
layout(set = 0, binding = 0) readonly buffer source4 { vec4 updates4[]; };
layout(set = 0, binding = 1) restrict readonly buffer order { uint positions[]; };
layout(set = 0, binding = 2) restrict readonly buffer bounds { uint starts[]; };
layout(set = 0, binding = 3) buffer target { float y[]; };
layout(set = 0, binding = 3) buffer target4 { vec4 y4[]; };

vec4 update_at(uint first, uint i, uint column)
{
    uint at = args.updates_offset + (first + positions[i]) * args.columns + column;
    if (QUADS)
        return updates4[at];
    return vec4(updates[at], 0.0, 0.0, 0.0);
}

void main()
{
    uint e = global_index(), line = e / args.columns, column = e - line * args.columns;
    uint o = line / args.rows, row = line - o * args.rows;
    if (o >= args.outer)
        return;
    uint i = starts[row], end = starts[row + 1u];
    uint first = o * args.updates;
    if (args.skipped > 0u && end - i <= args.skipped)
        return;
    vec4 sum = vec4(0.0);
    if (args.skipped > 0u)
        sum = QUADS ? y4[args.y_offset + e] : vec4(y[args.y_offset + e], 0.0, 0.0, 0.0);
    i += args.skipped;
    end = min(end, i + args.most);
    for (; i + 4u <= end; i += 4u) {
        vec4 a = update_at(first, i, column), b = update_at(first, i + 1u, column);
        vec4 c = update_at(first, i + 2u, column), d = update_at(first, i + 3u, column);
        sum += a;
        sum += b;
        sum += c;
        sum += d;
    }
    for (; i < end; i++)
        sum += update_at(first, i, column);
    if (QUADS)
        y4[args.y_offset + e] = sum;
    else
        y[args.y_offset + e] = sum.x;
}
