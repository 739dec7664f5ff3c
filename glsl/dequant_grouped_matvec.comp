#version 450
/*
 * y[i][j] = sum over p of x[i][p] * w[e][j][p], e the expert that index[i] names: w packed, n rows
 * of `units` units an expert. For few rows i, and for devices without real shared memory. A team of
 * TEAM invocations takes COLUMNS outputs of one row and walks their units together. Per run, scale
 * and bias are applied once. A row without an expert is zeros.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
#include "experts.glsl"

layout(push_constant) uniform block { dequant_grouped_args args; };
layout(constant_id = 7) const bool X_ALIGNED = false;
layout(constant_id = 8) const uint TEAM = 32; /* power of two that divides the workgroup */
layout(constant_id = 9) const uint COLUMNS = 2;
#include "dequant.glsl"
#include "dequant_source.glsl"
layout(set = 0, binding = 2) writeonly restrict buffer target { float y[]; };
layout(set = 0, binding = 3) readonly restrict buffer indices { float index[]; };

shared float partial[COLUMNS][gl_WorkGroupSize.x];

/* One run of x, and its sum. */
struct run {
    vec4 x[RUN_ELEMENTS / 4];
    float total;
};

run load_run(uint element)
{
    vec4 x[] = vec4[](load_x(element), load_x(element + 4), load_x(element + 8),
                      load_x(element + 12));
    return run(x, AFFINE ? dot(x[0] + x[1] + x[2] + x[3], vec4(1)) : 0);
}

float run_dot(run a, uvec4 codes, float scale, float bias)
{
    float product = dot(a.x[0], code_values(codes.x)) + dot(a.x[1], code_values(codes.y)) +
                    dot(a.x[2], code_values(codes.z)) + dot(a.x[3], code_values(codes.w));
    return AFFINE ? scale * product + bias * a.total : scale * product;
}

void add_unit(uint row_x, uint first_row, uint last_row, uint unit, inout float sum[COLUMNS])
{
    uint from = row_x + unit_position(unit);
    run a = load_run(from), b = load_run(from + DISTANCE);
    [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
        uint packed_row = args.w_offset + min(first_row + c, last_row) * args.row_bytes;
        unit_codes w = decode_row_unit(packed_row, unit);
        sum[c] += run_dot(a, w.first, w.scale.x, w.bias.x) +
                  run_dot(b, w.second, w.scale.y, w.bias.y);
    }
}

/* Lane 0 ends up with the sums of its team. */
void add_over_team(uint lane, inout float sum[COLUMNS])
{
    uint local = gl_LocalInvocationID.x;
    [[unroll]] for (uint i = 0; i < COLUMNS; i++)
        partial[i][local] = sum[i];
    for (uint stride = TEAM / 2; stride > 0; stride /= 2) {
        barrier();
        if (lane < stride)
            for (uint i = 0; i < COLUMNS; i++)
                partial[i][local] += partial[i][local + stride];
    }
    [[unroll]] for (uint i = 0; i < COLUMNS; i++)
        sum[i] = partial[i][local];
}

void main()
{
    uint local = gl_LocalInvocationID.x, lane = local % TEAM;
    uint columns = gl_WorkGroupSize.x / TEAM * COLUMNS;
    uint tiles = (args.n + columns - 1) / columns, row = group_index() / tiles;
    if (row >= args.m)
        return;
    uint column = group_index() % tiles * columns + local / TEAM * COLUMNS;
    uint expert = expert_of(index[args.index_offset + row], args.experts);

    float sum[COLUMNS];
    [[unroll]] for (uint c = 0; c < COLUMNS; c++)
        sum[c] = 0;
    if (expert < args.experts)
        for (uint unit = lane; unit < args.units; unit += TEAM)
            add_unit(args.x_offset + row * args.units * UNIT_ELEMENTS, expert * args.n + column,
                     expert * args.n + args.n - 1, unit, sum);
    if (TEAM > 1)
        add_over_team(lane, sum);
    if (lane != 0)
        return;
    [[unroll]] for (uint c = 0; c < COLUMNS; c++)
        if (column + c < args.n)
            y[args.y_offset + row * args.n + column + c] = sum[c];
}
