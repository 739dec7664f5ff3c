#version 450
/*
 * The cell of each window that holds its first maximum (CODE: or minimum) in row-major order. NaN
 * counts as larger (smaller) than any number. A window that contains only -Inf (+Inf) has no such
 * cell. One invocation computes a window. If windows are long, a workgroup does (TEAM), and each
 * invocation takes a strided subset of the cells.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/conv.h"
#include "args/rows.h"

layout(constant_id = 1) const uint CODE = REDUCE_MAX;
layout(constant_id = 2) const bool TEAM = false;
layout(constant_id = 3) const bool FLOATS = false; /* as f32, -1 for none */
layout(constant_id = 4) const bool DILATED = false; /* a dilation is above 1 */
layout(push_constant) uniform block { pool_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { uint first[]; };

#include "conv/pool_cells.glsl"

shared float team_value[TEAM ? gl_WorkGroupSize.x : 1];
shared uint team_cell[TEAM ? gl_WorkGroupSize.x : 1];

float value_of(float v)
{
    return CODE == REDUCE_MAX ? v : -v;
}

uint written(uint cell)
{
    return FLOATS ? floatBitsToUint(cell == POOL_NO_CELL ? -1.0 : float(cell)) : cell;
}

/* Does value b win over a, regardless of their positions? */
bool exceeds(float b, float a)
{
    return b > a || (is_nan(b) && !is_nan(a));
}

/* Reduces over the invocations. If values are equal, the first cell wins. */
void join_team(inout float best, inout uint cell)
{
    uint lane = gl_LocalInvocationID.x;
    team_value[lane] = best;
    team_cell[lane] = cell;
    barrier();
    uint count = gl_WorkGroupSize.x;
    [[dont_unroll]] while (count > 1u) {
        uint upper = (count + 1u) / 2u;
        if (lane + upper < count) {
            float other = team_value[lane + upper];
            uint other_cell = team_cell[lane + upper];
            if (exceeds(other, best) || (!exceeds(best, other) && other_cell < cell)) {
                best = other;
                cell = other_cell;
                team_value[lane] = best;
                team_cell[lane] = cell;
            }
        }
        count = upper;
        barrier();
    }
}

void main()
{
    uint i = TEAM ? group_index() : global_index();
    if (i >= args.numel)
        return;
    uint rest = i / args.results[2];
    uvec2 columns = cells(2u, i - rest * args.results[2]);
    uint plane = rest / args.results[1];
    uvec2 rows = cells(1u, rest - plane * args.results[1]);
    rest = plane / args.results[0];
    uvec2 layers = cells(0u, plane - rest * args.results[0]);
    uint from = args.x_offset + rest * args.extents[0] * args.extents[1] * args.extents[2];
    float best = -INFINITY;
    uint cell = POOL_NO_CELL;
    if (TEAM) {
        uint across = count_of(2u, columns), down = count_of(1u, rows);
        uint count = count_of(0u, layers) * down * across;
        [[dont_unroll]] for (uint k = gl_LocalInvocationID.x; k < count; k += gl_WorkGroupSize.x) {
            uint line = k / across, layer = line / down;
            uint l = layers.x + layer * step_of(0u);
            uint r = rows.x + (line - layer * down) * step_of(1u);
            uint at = (l * args.extents[1] + r) * args.extents[2] + columns.x +
                      (k - line * across) * step_of(2u);
            float v = value_of(x[from + at]);
            if (exceeds(v, best)) {
                best = v;
                cell = at;
            }
        }
        join_team(best, cell);
        if (gl_LocalInvocationID.x == 0u)
            first[args.y_offset + i] = written(cell);
        return;
    }
    for (uint l = layers.x; l < layers.y; l += step_of(0u))
        for (uint r = rows.x; r < rows.y; r += step_of(1u)) {
            uint line = (l * args.extents[1] + r) * args.extents[2];
            for (uint c = columns.x; c < columns.y; c += step_of(2u)) {
                float v = value_of(x[from + line + c]);
                if (exceeds(v, best)) {
                    best = v;
                    cell = line + c;
                }
            }
        }
    first[args.y_offset + i] = written(cell);
}
