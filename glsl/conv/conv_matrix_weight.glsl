/*
 * The gradient of a convolution's weights on the device's matrix units: y[g, m, c, t] = sum over
 * images b and cells o of dy[b, g, m, o] x[b, g, c, source(o, t)]. See conv.glsl for source. The
 * includer defines ELEMENT, the 16-bit type of the operands. Sums are f32.
 *
 * x and dy are packed: cells of octets of channels, padded with zeros. It is a product of M
 * channels of dy times N = taps * channels of x, summed over K = images * cells. Octets lie along M
 * and N, so the tiles are turned. A column of tiles may have several taps. An invocation loads the
 * same tap and channels for all its cells. Cells outside x, and those past the last one, count
 * as 0.
 *
 * Grid, fastest first: tiles of channels of dy, tiles of taps and channels of x, groups, splits of
 * K. With splits, y is [splits, y].
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#include "lib/common.glsl"
#include "args/conv_matrix.h"

layout(constant_id = 11) const uint STAGES = 1;
const uint PLANES = 1;

layout(push_constant) uniform block { conv_matrix_weight_args args; };
layout(set = 0, binding = 0) readonly buffer x_view { uvec4 x[]; };
layout(set = 0, binding = 1) readonly buffer dy_view { uvec4 dy[]; };
layout(set = 0, binding = 2) writeonly buffer y_view { float y[]; };
#include "conv/positions.glsl"
#define MATRIX_CONSTANT 3
#define MATRIX_TURNED
#include "matmul/matrix_tiles.glsl"

const uint WIDE_M = TILE_M / 8, WIDE_N = TILE_N / 8; /* octets of a row of a tile */
const uint CARRY_B = TILE_N * OCTETS / THREADS;
const uint LINES_M = THREADS / WIDE_M, LINES_N = THREADS / WIDE_N;

uvec4 next_dy[CARRY_A], next_x[CARRY_B];
uint group, last, y_base;
uint dy_octet, x_octet; /* of a cell */
ivec3 way;              /* from a window's origin to the tap */
bool dy_real, x_real;

uint taps()
{
    return volume(triple(args.kernel));
}

uvec3 tap_place(uint tap)
{
    uvec3 size = triple(args.kernel);
    uint line = tap / size.z, plane = DEPTH != 0 ? line / size.y : 0;
    return uvec3(plane, line - plane * size.y, tap - line * size.z);
}

void start(uvec2 tile)
{
    dy_octet = tile.x / 8 + gl_LocalInvocationID.x % WIDE_M;
    dy_real = dy_octet < args.dy_octets;
    uint octet = tile.y / 8 + gl_LocalInvocationID.x % WIDE_N, tap = octet / args.x_octets;
    x_octet = octet - tap * args.x_octets;
    x_real = tap < taps();
    way = ivec3(tap_place(tap) * triple(args.dilation)) - ivec3(triple(args.padding));
    if (DEPTH == 0)
        way.x = 0;
}

/* The cells of dy, or of x, that are before this image and group. */
uint cells_before(uint image, uvec3 size)
{
    return (image * args.groups + group) * volume(size);
}

void fetch(uint position)
{
    uvec3 size = in_size(), out_cells = out_size();
    [[unroll]] for (uint i = 0; i < CARRY_A; i++) {
        uint p = position + gl_LocalInvocationID.x / WIDE_M + i * LINES_M;
        uint image = divide(p, volume(out_cells), args.divide[0]);
        uint cell = cells_before(image, out_cells) + p - image * volume(out_cells);
        next_dy[i] = dy_real && p < last ? dy[cell * args.dy_octets + dy_octet] : uvec4(0);
    }
    [[unroll]] for (uint i = 0; i < CARRY_B; i++) {
        uint p = position + gl_LocalInvocationID.x / WIDE_N + i * LINES_N;
        uvec3 at;
        uint image = locate(p, at);
        at = uvec3(ivec3(at * triple(args.stride)) + way);
        bool inside = at.z < size.z && at.y < size.y && (DEPTH == 0 || at.x < size.x);
        uint cell = cells_before(image, size) + linear(at, size);
        next_x[i] = x_real && inside && p < last ? x[cell * args.x_octets + x_octet] : uvec4(0);
    }
}

void store(uint stage)
{
    uint lane = gl_LocalInvocationID.x;
    [[unroll]] for (uint i = 0; i < CARRY_A; i++)
        tile_a[stage * STAGE_A + (lane / WIDE_M + i * LINES_M) * PITCH_A + lane % WIDE_M] =
            next_dy[i];
    [[unroll]] for (uint i = 0; i < CARRY_B; i++)
        tile_b[stage * STAGE_B + (lane / WIDE_N + i * LINES_N) * PITCH_B + lane % WIDE_N] =
            next_x[i];
}

uint column_place(uint column, out bool real)
{
    uint octet = column / 8, tap = octet / args.x_octets;
    uint channel = (octet - tap * args.x_octets) * 8 + column % 8;
    real = channel < args.channels && tap < taps();
    return y_base + channel * taps() + tap;
}

const bool HAS_TERMS = false;
vec3 terms_of(uint row, uint place)
{
    return vec3(0.0);
}

void write(float sum, vec3 terms, uint row, uint place)
{
    y[place + row * args.channels * taps()] = sum;
}

#include "conv/conv_matrix_leave.glsl"

void main()
{
    uint tiles_m = (args.m + TILE_M - 1) / TILE_M;
    uint tiles_n = (taps() * args.x_octets * 8 + TILE_N - 1) / TILE_N;
    uint index = group_index(), rest = index / tiles_m;
    uvec2 tile = uvec2(index % tiles_m * TILE_M, rest % tiles_n * TILE_N);
    rest /= tiles_n;
    group = rest % args.groups;
    uint split = rest / args.groups;
    if (split >= args.splits)
        return;
    y_base = args.y_offset + (split * args.groups + group) * args.m * args.channels * taps();
    uint first = split * args.k_slice;
    last = min(args.positions, first + args.k_slice);
    uvec2 part = uvec2(gl_SubgroupID / PARTS_N * PART_M, gl_SubgroupID % PARTS_N * PART_N);
    start(tile);

    EACH_SUM(CLEAR_SUM)
    fetch(first);
    uint stage = 0;
    [[dont_unroll]] for (uint position = first; position < last; position += TILE_K) {
        if (STAGES == 1)
            barrier();
        store(stage);
        barrier();
        if (position + TILE_K < last)
            fetch(position + TILE_K);
        MULTIPLY_STEP(stage)
        if (STAGES == 2)
            stage ^= 1;
    }
    uint patch_start = gl_SubgroupID * UNIT_M * UNIT_N / 4;
    barrier();
    EACH_SUM(LEAVE)
}
