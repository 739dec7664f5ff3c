#version 450
/*
 * Sums of few updates: a workgroup takes a row, or some columns of one, marks in a shared bit mask
 * which updates go there, and adds them in their order.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"
#include "lib/index.glsl"

layout(push_constant) uniform block { scatter_add_direct_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float updates[]; };
layout(set = 0, binding = 1) restrict readonly buffer indices { float index[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target { float y[]; };

shared uint marks[SCATTER_DIRECT_UPDATES / 32];

float sum_of_column(uint column, uint words)
{
    float sum = 0.0;
    for (uint w = 0u; w < words; w++)
        for (uint bits = marks[w]; bits != 0u; bits &= bits - 1u) {
            uint u = 32u * w + uint(findLSB(bits));
            sum += updates[args.updates_offset + u * args.columns + column];
        }
    return sum;
}

void main()
{
    uint g = group_index(), t = gl_LocalInvocationID.x, step = gl_WorkGroupSize.x;
    uint row = g / args.tiles, first = (g - row * args.tiles) * args.tile_columns;
    uint words = (args.updates + 31u) / 32u;
    if (row >= args.rows)
        return;
    for (uint w = t; w < words; w += step)
        marks[w] = 0u;
    barrier();
    for (uint u = t; u < args.updates; u += step)
        if (checked_index(index[args.index_offset + u], args.rows) == row)
            atomicOr(marks[u / 32u], 1u << (u & 31u));
    barrier();
    uint end = min(first + args.tile_columns, args.columns);
    for (uint column = first + t; column < end; column += step)
        y[args.y_offset + row * args.columns + column] = sum_of_column(column, words);
}
