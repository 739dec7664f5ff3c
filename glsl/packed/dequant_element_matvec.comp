#version 450
/*
 * y[r][j] = sum over p < k of x[r][p] * w(p, j) for few rows r. w is addressed by element
 * (dequant_element.glsl).
 *
 * An invocation computes four columns of ROWS rows over one of TEAM slices of p. Neighbouring
 * invocations take neighbouring columns. Row and column indices past the end are clamped, and their
 * results are not stored. At most 32 products are summed before the sum is added to the total,
 * which limits rounding errors. The partial sums of a team are added in shared memory.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/packed.h"

layout(push_constant) uniform block { dequant_element_matvec_args args; };
layout(constant_id = 3) const uint TEAM = 16; /* a power of two that divides the workgroup size */
layout(constant_id = 4) const uint ROWS = 1;
#include "packed/dequant_element.glsl"
layout(set = 0, binding = 2) writeonly restrict buffer target { float y[]; };

shared vec4 partial[ROWS][gl_WorkGroupSize.x];

/* Reduces over the team, whose members lie `lanes` apart. Member 0 gets the sums. */
void add_over_team(uint member, uint lanes, inout vec4 sum[ROWS])
{
    uint local = gl_LocalInvocationID.x;
    for (uint r = 0; r < ROWS; r++)
        partial[r][local] = sum[r];
    for (uint stride = TEAM / 2; stride > 0; stride /= 2) {
        barrier();
        if (member < stride)
            for (uint r = 0; r < ROWS; r++)
                partial[r][local] += partial[r][local + stride * lanes];
    }
    for (uint r = 0; r < ROWS; r++)
        sum[r] = partial[r][local];
}

void main()
{
    uint lanes = gl_WorkGroupSize.x / TEAM;
    uint lane = gl_LocalInvocationID.x % lanes, member = gl_LocalInvocationID.x / lanes;
    uint groups_across = (args.n + 4 * lanes - 1) / (4 * lanes);
    uint first_column = (group_index() % groups_across * lanes + lane) * 4;
    uint first_row = group_index() / groups_across * ROWS;
    if (first_row >= args.m)
        return;
    uint column = clamp_columns(first_column);
    uint piece = (args.k + TEAM - 1) / TEAM;
    uint p = min(member * piece, args.k), end = min(p + piece, args.k);

    vec4 sum[ROWS];
    for (uint r = 0; r < ROWS; r++)
        sum[r] = vec4(0);
    while (p < end) {
        uint stop = min(min(end, p + 32), (p / args.block + 1) * args.block);
        column_scales s = load_scales(p / args.block, column);
        vec4 part[ROWS];
        for (uint r = 0; r < ROWS; r++)
            part[r] = vec4(0);
        for (; p < stop; p++) {
            vec4 w = load_weights(p, column, s);
            for (uint r = 0; r < ROWS; r++)
                part[r] += x[args.x_offset + min(first_row + r, args.m - 1) * args.k + p] * w;
        }
        for (uint r = 0; r < ROWS; r++)
            sum[r] += part[r];
    }

    if (TEAM > 1)
        add_over_team(member, lanes, sum);
    if (member != 0)
        return;
    for (uint r = 0; r < ROWS; r++)
        for (uint c = 0; c < 4; c++)
            if (first_column + c < args.n && first_row + r < args.m)
                y[args.y_offset + (first_row + r) * args.n + first_column + c] = sum[r][c];
}
