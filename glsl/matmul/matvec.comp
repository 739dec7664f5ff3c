#version 450
/*
 * Product of a large matrix with a few vectors: y[r][c] = activation(sum_k a[r][k] b[k][c] + bias),
 * r < M <= REG_M. Every element of b is read once, for all vectors. K is divided among lanes of the
 * workgroup and, with split-K, among workgroups:
 *
 *   TRANSPOSE_B (b is [N, K]): all lanes run along K, one quad each; the workgroup computes REG_N
 *     columns.
 *   otherwise   (b is [K, N]): 32 lanes run along N, a quad of columns each; the others take other
 *     quads of b's rows.
 *
 * Lanes are joined in shared memory in a fixed order. If SWAPPED, b is really the left operand of
 * the node, so that y is transposed when it is written. Grid, fastest first: column tiles, splits
 * of K, batch. The workgroup size is a power of two from 32 to 128. With PARTS, the kernel is a
 * projection of one vector by b [N, K]. Then K consists of whole quads and is not split.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/projection.h"
layout(push_constant) uniform block { matvec_args whole; };
#define args        whole.product
#define MATMUL_ARGS args
#include "matmul/matmul.glsl"
#include "lib/parts.glsl"

layout(constant_id = 10) const uint SWAPPED = 0;
layout(constant_id = 11) const uint PARTS = 0; /* PROJECTION_ bits */
layout(set = 0, binding = 2) readonly buffer gammas { float gamma[]; };
layout(set = 0, binding = 2) readonly buffer gamma_vectors { vec4 gamma4[]; };
layout(set = 0, binding = 4) readonly buffer residuals { float residual[]; };
#include "lib/projection.glsl"

vec4 projected_x(uint element)
{
    return read_a4(args.a_offset + element, 4);
}

const uint LANES = gl_WorkGroupSize.x;
const uint LANES_N = TRANSPOSE_B != 0 ? 1 : 32;             /* lanes along N */
const uint LANE_COLUMNS = TRANSPOSE_B != 0 ? REG_N : 4;     /* columns of a lane */
const uint COLUMNS = LANES_N * LANE_COLUMNS;                /* of the workgroup */
const uint SUMS = REG_M * LANE_COLUMNS;

const uint JOINED = NORMALIZED ? SUMS + 1 : SUMS; /* the sum of squares is one more */

shared float joined[JOINED * LANES];

float sum[SUMS];

/* Elements k .. k + 3 of vector r, or 0 beyond k_end. */
vec4 fetch_a(uint base, uint r, uint k, uint k_end)
{
    uint row = min(r, args.m - 1), count = quad_count(k, k_end);
    if (TRANSPOSE_A == 0)
        return read_a4(base + row * args.k + k, count);
    uint i = base + k * args.m + row;
    return vec4(count > 0 ? read_a(i) : 0.0, count > 1 ? read_a(i + args.m) : 0.0,
                count > 2 ? read_a(i + 2 * args.m) : 0.0, count > 3 ? read_a(i + 3 * args.m) : 0.0);
}

/* Adds the products for elements k .. k + 3 of K to REG_N columns, if b is [N, K]. */
void add_along_k(uvec2 base, uint column, uint k, uint k_end)
{
    vec4 b[REG_N];
    [[unroll]] for (uint c = 0; c < REG_N; c++)
        b[c] = read_b4(base.y + min(weight_row(column, c, REG_N, args.n), args.n - 1) * args.k + k,
                       quad_count(k, k_end));
    [[unroll]] for (uint r = 0; r < REG_M; r++) {
        vec4 a = fetch_a(base.x, r, k, k_end);
        if (NORMALIZED) {
            add_squares(a);
            a *= load_gamma(whole.parts.gamma_offset + k, whole.parts.gamma_offset % 4 == 0);
        }
        [[unroll]] for (uint c = 0; c < REG_N; c++)
            sum[r * REG_N + c] += dot(a, b[c]);
    }
}

/* The same for four columns, if b is [K, N]. */
void add_along_n(uvec2 base, uint column, uint k, uint k_end)
{
    vec4 b[4];
    uint columns = quad_count(column, args.n);
    [[unroll]] for (uint i = 0; i < 4; i++)
        b[i] = read_b4(base.y + (k + i) * args.n + column, k + i < k_end ? columns : 0);
    [[unroll]] for (uint r = 0; r < REG_M; r++) {
        vec4 a = fetch_a(base.x, r, k, k_end);
        vec4 v = a.x * b[0] + a.y * b[1] + a.z * b[2] + a.w * b[3];
        [[unroll]] for (uint c = 0; c < 4; c++)
            sum[r * 4 + c] += v[c];
    }
}

/* Afterwards lane l < LANES_N of `joined` holds the complete sums of its columns. */
void join_lanes(uint lane)
{
    [[unroll]] for (uint i = 0; i < SUMS; i++)
        joined[i * LANES + lane] = sum[i];
    if (NORMALIZED)
        joined[SUMS * LANES + lane] = squares;
    for (uint half_width = LANES / 2; half_width >= LANES_N; half_width /= 2) {
        barrier();
        if (lane < half_width)
            for (uint i = 0; i < JOINED; i++)
                joined[i * LANES + lane] += joined[i * LANES + lane + half_width];
    }
    barrier();
}

/* Writes the outputs of a projection: one for each column, or for every two if GATED. */
void store_projection(uint tile, uint lane)
{
    const uint outputs = GATED ? REG_N / 2 : REG_N;
    uint columns = GATED ? args.n / 2 : args.n, first = GATED ? tile / 2 : tile;
    if (NORMALIZED)
        set_factor(joined[SUMS * LANES], args.k, whole.parts.epsilon);
    for (uint c = lane; c < outputs && first + c < columns; c += LANES)
        y[args.y_offset + first + c] =
            projected(joined[c * LANES], GATED ? joined[(c + outputs) * LANES] : 0.0,
                      whole.parts.residual_offset + first + c);
}

void main()
{
    uint tiles = (args.n + COLUMNS - 1) / COLUMNS;
    uint splits = args.k_slice < args.k ? (args.k + args.k_slice - 1) / args.k_slice : 1;
    if (SWAPPED != 0) /* tiles are rows of y */
        tiles = launched_rows(tiles, splits);
    uint group = group_index(), lane = gl_LocalInvocationID.x;
    uint split = group / tiles % splits, batch = group / tiles / splits;
    if (batch >= args.batch_count)
        return;
    uint tile = group % tiles * COLUMNS;
    uvec2 base = batch_offsets(batch);
    uint k_begin = split * args.k_slice, k_end = min(args.k, k_begin + args.k_slice);

    [[unroll]] for (uint i = 0; i < SUMS; i++)
        sum[i] = 0.0;
    uint column = tile + lane % LANES_N * LANE_COLUMNS;
    for (uint k = k_begin + lane / LANES_N * 4; k < k_end; k += LANES / LANES_N * 4) {
        if (TRANSPOSE_B != 0)
            add_along_k(base, column, k, k_end);
        else
            add_along_n(base, column, k, k_end);
    }
    join_lanes(lane);
    if (PARTS != 0) {
        store_projection(tile, lane);
        return;
    }

    uint y_base = args.y_offset + (split * args.batch_count + batch) * args.m * args.n;
    for (uint i = lane; i < SUMS * LANES_N; i += LANES) {
        uint part = i / LANES_N, row = part / LANE_COLUMNS;
        uint at = tile + i % LANES_N * LANE_COLUMNS + part % LANE_COLUMNS;
        if (row < args.m && at < args.n)
            y[y_base + (SWAPPED != 0 ? place_in_parts(at, row, args.n, args.m, whole.ends)
                                     : place_in_parts(row, at, args.m, args.n, whole.ends))] =
                epilogue(joined[part * LANES + i % LANES_N], row, at);
    }
}
