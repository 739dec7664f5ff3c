/*
 * y[r][j] = sum over p of x[r][p] * w[j][p]: w packed, n rows of units * 32 elements; made for few
 * rows r. With EXPERTS, w holds such a matrix for each expert, row r is multiplied with that of the
 * expert that index[r] names, and is zeros where it names none; ROWS is 1.
 *
 * A team of TEAM invocations takes COLUMNS outputs j of ROWS rows r, which share one decoding of w;
 * its members walk the rows' units together, so that neighbours read neighbouring bytes. Rows and
 * columns past the last are clamped, and not stored. Per run, scale and bias are applied once:
 * scale * sum(x code) + bias * sum(x). The members' sums are added in shared memory; a team of one
 * needs none.
 */
#include "common.glsl"
#include "experts.glsl"

layout(push_constant) uniform block { dequant_product_args args; };
layout(constant_id = 7) const bool X_ALIGNED = false;
layout(constant_id = 8) const uint TEAM = 32; /* power of two that divides the workgroup */
layout(constant_id = 9) const uint COLUMNS = 2;
layout(constant_id = 10) const uint ROWS = 1;
layout(constant_id = 11) const bool EXPERTS = false;
#define DEQUANT_GRID_BINDING 4
#include "dequant.glsl"
#include "dequant_source.glsl"
layout(set = 0, binding = 2) writeonly restrict buffer target { float y[]; };
layout(set = 0, binding = 3) readonly restrict buffer indices { float index[]; };

const uint SUMS = COLUMNS * ROWS;
shared float partial[SUMS][gl_WorkGroupSize.x];

struct run {
    vec4 x[RUN_ELEMENTS / 4];
};

run load_run(uint element)
{
    return run(vec4[](load_x(element), load_x(element + 4), load_x(element + 8),
                      load_x(element + 12)));
}

float run_sum(run a)
{
    return dot(a.x[0] + a.x[1] + a.x[2] + a.x[3], vec4(1));
}

float run_dot(run a, uvec4 codes)
{
    return dot(a.x[0], code_values(codes.x)) + dot(a.x[1], code_values(codes.y)) +
           dot(a.x[2], code_values(codes.z)) + dot(a.x[3], code_values(codes.w));
}

float unit_dot(run a, run b, vec2 total, unit_codes w)
{
    float product = w.scale.x * run_dot(a, w.first) + w.scale.y * run_dot(b, w.second);
    return AFFINE ? product + dot(w.bias, total) : product;
}

/* Lane 0 ends up with the sums of its team. */
void add_over_team(uint lane, inout float sum[SUMS])
{
    uint local = gl_LocalInvocationID.x;
    [[unroll]] for (uint i = 0; i < SUMS; i++)
        partial[i][local] = sum[i];
    for (uint stride = TEAM / 2; stride > 0; stride /= 2) {
        barrier();
        if (lane < stride)
            for (uint i = 0; i < SUMS; i++)
                partial[i][local] += partial[i][local + stride];
    }
    [[unroll]] for (uint i = 0; i < SUMS; i++)
        sum[i] = partial[i][local];
}

void main()
{
    uint local = gl_LocalInvocationID.x, lane = local % TEAM;
    uint teams = gl_WorkGroupSize.x / TEAM;
    uint groups_across = (args.n + teams * COLUMNS - 1) / (teams * COLUMNS);
    uint first_column = (group_index() % groups_across * teams + local / TEAM) * COLUMNS;
    uint first_row = group_index() / groups_across * ROWS;
    if (first_row >= args.m)
        return;
    uint expert = EXPERTS ? expert_of(index[args.index_offset + first_row], args.experts) : 0;
    uint units = EXPERTS && expert >= args.experts ? 0 : args.units;
    uint packed = args.w_offset + expert * args.n * args.row_bytes;

    float sum[SUMS];
    [[unroll]] for (uint i = 0; i < SUMS; i++)
        sum[i] = 0;

    for (uint unit = lane; unit < units; unit += TEAM) {
        unit_codes w[COLUMNS];
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
            uint column = min(first_column + c, args.n - 1);
            w[c] = decode_row_unit(packed + column * args.row_bytes, unit);
        }
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            uint row = min(first_row + r, args.m - 1);
            uint from = args.x_offset + row * args.units * UNIT_ELEMENTS + unit_position(unit);
            run a = load_run(from), b = load_run(from + DISTANCE);
            vec2 total = AFFINE ? vec2(run_sum(a), run_sum(b)) : vec2(0);
            [[unroll]] for (uint c = 0; c < COLUMNS; c++)
                sum[c * ROWS + r] += unit_dot(a, b, total, w[c]);
        }
    }

    if (TEAM > 1)
        add_over_team(lane, sum);
    if (lane != 0)
        return;
    [[unroll]] for (uint c = 0; c < COLUMNS; c++)
        [[unroll]] for (uint r = 0; r < ROWS; r++)
            if (first_column + c < args.n && first_row + r < args.m)
                y[args.y_offset + (first_row + r) * args.n + first_column + c] = sum[c * ROWS + r];
}
