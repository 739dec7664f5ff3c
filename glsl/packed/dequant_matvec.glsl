/*
 * y[r][j] = sum over p of x[r][p] * w[j][p] for few rows r. w is packed, n rows of units * 32
 * elements. With EXPERTS, w holds one such matrix for each expert, and ROWS is 1. Then row r is
 * multiplied by the matrix of expert index[r]; if that is not an expert, the result is zeros. With
 * PARTS, this is a projection of the only row (lib/projection.glsl). If it is gated, a team needs
 * two of its COLUMNS for each output.
 *
 * A team of TEAM invocations computes COLUMNS outputs j of ROWS rows r, so w is decoded once for
 * all rows. The members walk through the units together, so that neighbours read neighbouring
 * bytes. Row and column indices past the end are clamped, and their results are not stored. Scale
 * and bias are applied once for each run: scale * sum(x code) + bias * sum(x). The partial sums of
 * the members are added at the end.
 *
 * With CHUNK, the workgroup loads x into shared memory, CHUNK units at a time.
 */
#include "lib/common.glsl"
#include "lib/parts.glsl"
#include "args/packed.h"
#include "matmul/experts.glsl"

layout(push_constant) uniform block { dequant_product_args args; };
layout(constant_id = 7) const bool X_ALIGNED = false;
layout(constant_id = 8) const uint TEAM = 32; /* a power of two that divides the workgroup size */
layout(constant_id = 9) const uint COLUMNS = 2;
layout(constant_id = 10) const uint ROWS = 1;
layout(constant_id = 11) const bool EXPERTS = false;
layout(constant_id = 12) const bool LOOKUP = false;
layout(constant_id = 13) const uint CHUNK = 0; /* 0, or a power of two of at least 8 */
layout(constant_id = 14) const uint PARTS = 0; /* PROJECTION_... */
#define DEQUANT_GRID_BINDING 5
#define DEQUANT_LOOKUP       LOOKUP
#include "packed/dequant.glsl"
#include "packed/dequant_source.glsl"
layout(set = 0, binding = 2) writeonly restrict buffer target { float y[]; };
layout(set = 0, binding = 3) readonly restrict buffer indices { float index[]; };
layout(set = 0, binding = 3) readonly restrict buffer gammas { float gamma[]; };
layout(set = 0, binding = 3) readonly restrict buffer gamma_vectors { vec4 gamma4[]; };
layout(set = 0, binding = 4) readonly restrict buffer residuals { float residual[]; };
#include "lib/projection.glsl"

vec4 projected_x(uint element)
{
    return load_x(args.x_offset + element);
}

const uint SUMS = COLUMNS * ROWS, OUTPUTS = GATED ? SUMS / 2 : SUMS;
/* Several rows of x are in shared memory. Then the members of two teams alternate. Pairs of
 * neighbouring invocations read the same x, which halves the load on the memory banks. */
const bool SHARED_ROWS = ROWS > 1 && CHUNK != 0;
const uint NEAR = SHARED_ROWS ? 2 : 1;

uint row_start(uint row)
{
    return args.x_offset + min(row, args.m - 1) * args.units * UNIT_ELEMENTS;
}

/* The first byte of the weights of the team's column c. `packed` is the first byte of the
 * matrix. */
uint column_start(uint packed, uint first_column, uint c)
{
    return packed + min(weight_row(first_column, c, COLUMNS, args.n), args.n - 1) * args.row_bytes;
}

/* Multiplies elements `element` .. + 3 of the only row by gamma. If is_new, also adds their
 * squares. */
vec4 normalized(vec4 v, uint element, bool is_new)
{
    if (!NORMALIZED)
        return v;
    if (is_new)
        add_squares(v);
    return v * load_gamma(args.parts.gamma_offset + element, X_ALIGNED);
}

/* Stores output i of the team from its sum. If GATED, `other` is the sum of the other half. */
void store_sum(uint first_column, uint first_row, uint i, float sum, float other)
{
    uint column = (GATED ? first_column / 2 : first_column) + i / ROWS, row = first_row + i % ROWS;
    uint columns = GATED ? args.n / 2 : args.n;
    if (column < columns && row < args.m)
        y[args.y_offset + place_in_parts(row, column, args.m, columns, args.ends)] =
            projected(sum, other, args.parts.residual_offset + row * columns + column);
}

#include "packed/dequant_floats.glsl"

void main()
{
    uint teams = gl_WorkGroupSize.x / TEAM, thread = gl_LocalInvocationID.x;
    uint team = thread / (NEAR * TEAM) * NEAR + thread % NEAR, lane = thread / NEAR % TEAM;
    uint groups_across = (args.n + teams * COLUMNS - 1) / (teams * COLUMNS);
    uint first_column = (group_index() % groups_across * teams + team) * COLUMNS;
    uint first_row = group_index() / groups_across * ROWS;
    if (first_row >= args.m)
        return;
    uint expert = EXPERTS ? expert_of(index[args.index_offset + first_row], args.experts) : 0;
    uint units = EXPERTS && expert >= args.experts ? 0 : args.units;
    uint packed = args.w_offset + expert * args.n * args.row_bytes;

    float sum[SUMS];
    [[unroll]] for (uint i = 0; i < SUMS; i++)
        sum[i] = 0;
    fill_levels();

    add_units(packed, first_column, first_row, units, lane, sum);

    store_sums(first_column, first_row, team, lane, sum);
}
