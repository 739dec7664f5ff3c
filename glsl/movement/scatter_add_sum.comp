#version 450
/* An invocation an element of the result: the updates of its row in their order, four loads in
 * flight. positions: updates by row, those of row r from starts[r] on. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"

layout(push_constant) uniform block { scatter_add_sum_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float updates[]; };
layout(set = 0, binding = 1) restrict readonly buffer order { uint positions[]; };
layout(set = 0, binding = 2) restrict readonly buffer bounds { uint starts[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { float y[]; };

float update_at(uint i, uint column)
{
    return updates[args.updates_offset + positions[i] * args.columns + column];
}

void main()
{
    uint e = global_index(), row = e / args.columns, column = e - row * args.columns;
    if (row >= args.rows)
        return;
    uint i = starts[row * args.start_stride], end = starts[(row + 1u) * args.start_stride];
    float sum = 0.0;
    for (; i + 4u <= end; i += 4u) {
        float a = update_at(i, column), b = update_at(i + 1u, column);
        float c = update_at(i + 2u, column), d = update_at(i + 3u, column);
        sum += a;
        sum += b;
        sum += c;
        sum += d;
    }
    for (; i < end; i++)
        sum += update_at(i, column);
    y[args.y_offset + e] = sum;
}
