#version 450
/*
 * Concatenates up to CONCAT_PARTS matrices with the same number of rows side by side. Columns
 * ends[p - 1] to ends[p] of the target's rows, counted from target_offset, are the rows of part p.
 * Units of WIDTH words are moved as integers, so that every bit pattern survives.
 *
 * An invocation moves ITEMS units, one workgroup size apart, and reads all of them before it writes
 * the first. step_rows and step_columns are that distance in rows and columns.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/movement.h"

layout(constant_id = 1) const uint WIDTH = 1;
layout(constant_id = 2) const uint ITEMS = 4;
layout(push_constant) uniform block { concat_args args; };

#define UNIT_BUFFER(slot, access, name)                                                            \
    layout(set = 0, binding = slot) restrict access buffer words_##name { uint name##1[]; };       \
    layout(set = 0, binding = slot) restrict access buffer twos_##name { uvec2 name##2[]; };       \
    layout(set = 0, binding = slot) restrict access buffer fours_##name { uvec4 name##4[]; };
#define SOURCE_BUFFER(slot, name)                                                                  \
    UNIT_BUFFER(slot, readonly, name)                                                              \
    uvec4 read_##name(uint i)                                                                      \
    {                                                                                              \
        if (WIDTH == 4u)                                                                           \
            return name##4[i];                                                                     \
        return WIDTH == 2u ? uvec4(name##2[i], 0u, 0u) : uvec4(name##1[i], 0u, 0u, 0u);            \
    }
SOURCE_BUFFER(0, a)
SOURCE_BUFFER(1, b)
SOURCE_BUFFER(2, c)
SOURCE_BUFFER(3, d)
UNIT_BUFFER(4, writeonly, y)

uint place(uint part, uint row, uint column)
{
    uint begin = part == 0u ? 0u : args.ends[part - 1u];
    return args.offsets[part] + row * (args.ends[part] - begin) + column - begin;
}

uvec4 read_unit(uint row, uint column)
{
    if (column < args.ends[0])
        return read_a(place(0u, row, column));
    if (column < args.ends[1])
        return read_b(place(1u, row, column));
    if (column < args.ends[2])
        return read_c(place(2u, row, column));
    return read_d(place(3u, row, column));
}

void main()
{
    uint first = group_index() * gl_WorkGroupSize.x * ITEMS + gl_LocalInvocationID.x;
    uint row = first / args.columns, column = first - row * args.columns;
    uvec4 units[ITEMS];
    uint to[ITEMS];
    [[unroll]] for (uint k = 0u; k < ITEMS; k++) {
        units[k] = uvec4(0u);
        if (row < args.rows)
            units[k] = read_unit(row, column);
        to[k] = row < args.rows ? args.target_offset + row * args.target_row + column : ~0u;
        row += args.step_rows;
        column += args.step_columns;
        if (column >= args.columns) {
            column -= args.columns;
            row += 1u;
        }
    }
    [[unroll]] for (uint k = 0u; k < ITEMS; k++) {
        if (to[k] == ~0u)
            continue;
        if (WIDTH == 4u)
            y4[to[k]] = units[k];
        else if (WIDTH == 2u)
            y2[to[k]] = units[k].xy;
        else
            y1[to[k]] = units[k].x;
    }
}
