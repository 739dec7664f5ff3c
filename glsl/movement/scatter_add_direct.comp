#version 450
/*
 * Scatter-add for few updates. A workgroup takes a row, or some of its columns. It marks the
 * updates of that row in a shared bit mask, and adds them in order. If CLAMPED (constant 1), an
 * index outside means the nearest row. Otherwise its update is dropped.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"
#include "lib/index.glsl"

layout(constant_id = 1) const bool CLAMPED = false;
layout(push_constant) uniform block { scatter_add_direct_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float updates[]; };
layout(set = 0, binding = 1) restrict readonly buffer indices { float index[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target { float y[]; };

shared uint marks[SCATTER_DIRECT_UPDATES / 32];

bool goes_to(uint row, uint u)
{
    float v = index[args.index_offset + u];
    return (CLAMPED ? clamped_index(v, args.rows) : checked_index(v, args.rows)) == row;
}

float sum_of_column(uint first, uint column, uint words)
{
    float sum = 0.0;
    for (uint w = 0u; w < words; w++)
        for (uint bits = marks[w]; bits != 0u; bits &= bits - 1u) {
            uint u = 32u * w + uint(findLSB(bits));
            sum += updates[args.updates_offset + (first + u) * args.columns + column];
        }
    return sum;
}

void main()
{
    uint g = group_index(), t = gl_LocalInvocationID.x, step = gl_WorkGroupSize.x;
    uint line = g / args.tiles, first = (g - line * args.tiles) * args.tile_columns;
    uint o = line / args.rows, row = line - o * args.rows;
    uint words = (args.updates + 31u) / 32u;
    if (o >= args.outer)
        return;
    for (uint w = t; w < words; w += step)
        marks[w] = 0u;
    barrier();
    for (uint u = t; u < args.updates; u += step)
        if (goes_to(row, u))
            atomicOr(marks[u / 32u], 1u << (u & 31u));
    barrier();
    uint end = min(first + args.tile_columns, args.columns);
    for (uint column = first + t; column < end; column += step)
        y[args.y_offset + line * args.columns + column] =
            sum_of_column(o * args.updates, column, words);
}
