/*
 * Convolution on the device's matrix units, as an implicit matrix product: M channels of a group
 * times N positions. See conv.glsl for the sums and phases. The includer defines ELEMENT, the
 * 16-bit type of the operands. Sums are f32.
 *
 * Both operands are packed to octets of channels. K is a list of octets, each of one tap. For each
 * of them, `places` tells where it lies from the window's first tap. Rows of w are in this order,
 * padded with zeros to whole steps of each phase. x is [images, groups, cells, channels], or blocks
 * of channels instead of groups. An invocation loads the same octet of K for all its positions, so
 * it reads one entry of `places` for each step. A tap outside x counts as 0.
 *
 * Tiles and steps are as in matrix_product.glsl. Grid, fastest first: tiles of channels, tiles of
 * positions, phases, groups, splits of K. With splits, y is [splits, y].
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#include "lib/common.glsl"
#include "args/conv.h"
#include "args/conv_matrix.h"

layout(constant_id = 11) const uint STAGES = 1;
const uint PLANES = 1;

layout(push_constant) uniform block { conv_matrix_args args; };
layout(set = 0, binding = 0) readonly buffer x_view { uvec4 x[]; };
layout(set = 0, binding = 1) readonly buffer w_view { uvec4 w[]; };
layout(set = 0, binding = 2) readonly buffer place_view { ivec4 places[]; };
layout(set = 0, binding = 3) writeonly buffer y_view { float y[]; };
#define EPILOGUE_BINDING 4
#define RELU_ONLY
#include "conv/epilogue.glsl"
#include "conv/positions.glsl"
#define MATRIX_CONSTANT 3
#include "matmul/matrix_tiles.glsl"

const uint CARRY_X = TILE_N * OCTETS / THREADS, LINES = THREADS / OCTETS;

uvec4 next_w[CARRY_A], next_x[CARRY_X];
ivec4 next_place;
ivec3 origin[CARRY_X]; /* coordinates in x of the first tap of a position, perhaps outside */
int x_at[CARRY_X];     /* octet of x at these coordinates */
uint w_at, y_base, group;

void find_place(uint octet)
{
    next_place = places[2 * args.phases + octet + gl_LocalInvocationID.x % OCTETS];
}

/* Positions past the last one repeat it. */
void start(uint m0, uint n0)
{
    uint line = gl_LocalInvocationID.x / OCTETS;
    ivec3 size = ivec3(in_size());
    [[unroll]] for (uint i = 0; i < CARRY_X; i++) {
        uvec3 at;
        uint image = locate(min(n0 + line + i * LINES, args.positions - 1), at);
        origin[i] = window_origin(at);
        x_at[i] = int(image * args.image + group * args.group) +
                  ((origin[i].x * size.y + origin[i].y) * size.z + origin[i].z) * int(args.cell);
    }
    w_at = (group * args.w_rows + m0 + line) * args.k_octets + gl_LocalInvocationID.x % OCTETS;
}

/* Loads a step, and finds the places of the next one. */
void fetch(uint octet)
{
    uvec3 size = in_size();
    [[unroll]] for (uint i = 0; i < CARRY_A; i++)
        next_w[i] = w[w_at + octet + i * LINES * args.k_octets];
    [[unroll]] for (uint i = 0; i < CARRY_X; i++) {
        uvec3 at = uvec3(origin[i] + next_place.xyz);
        bool inside = at.z < size.z && at.y < size.y && (DEPTH == 0 || at.x < size.x);
        next_x[i] = inside ? x[x_at[i] + next_place.w] : uvec4(0);
    }
    find_place(octet + OCTETS);
}

void store(uint stage)
{
    uint at = gl_LocalInvocationID.x / OCTETS * PITCH + gl_LocalInvocationID.x % OCTETS;
    [[unroll]] for (uint i = 0; i < CARRY_A; i++)
        tile_a[stage * STAGE_A + at + i * LINES * PITCH] = next_w[i];
    [[unroll]] for (uint i = 0; i < CARRY_X; i++)
        tile_b[stage * STAGE_B + at + i * LINES * PITCH] = next_x[i];
}

uint column_place(uint column, out bool real)
{
    uint n = min(column, args.positions - 1), image, cell;
    real = column < args.positions;
    if (TRANSPOSED != 0) {
        uvec3 at;
        image = locate(n, at);
        real = target_cell(at, cell) && real;
    } else {
        image = divide(n, volume(out_size()), args.divide[0]);
        cell = n - image * volume(out_size());
    }
    return y_base + (image * args.groups + group) * args.m * volume(out_size()) + cell;
}

void write(float value, uint row, uint place)
{
    uint at = place + row * volume(out_size());
    y[at] = finish(value, channel_terms(group * args.m + row, args.groups * args.m), at);
}

#include "conv/conv_matrix_leave.glsl"

void main()
{
    uint tiles_m = (args.m + TILE_M - 1) / TILE_M;
    uint tiles_n = (args.positions + TILE_N - 1) / TILE_N;
    uint index = group_index(), rest = index / tiles_m;
    uvec2 tile = uvec2(index % tiles_m * TILE_M, rest % tiles_n * TILE_N);
    rest /= tiles_n;
    uint phase_index = rest % args.phases;
    rest /= args.phases;
    group = rest % args.groups;
    uint split = rest / args.groups;
    if (split >= args.splits)
        return;
    uvec3 phases = min(triple(args.stride), out_size());
    phase = uvec3(phase_index / phases.z / phases.y, phase_index / phases.z % phases.y,
                  phase_index % phases.z);
    base = places[2 * phase_index + 1].xyz;
    uvec2 range = uvec2(places[2 * phase_index].xy);
    uint images = args.positions / volume(grid_size());
    y_base = args.y_offset + split * (images * args.groups * args.m * volume(out_size()));
    uint first = range.x + split * args.k_slice, last = min(range.y, first + args.k_slice);
    uvec2 part = uvec2(gl_SubgroupID / PARTS_N * PART_M, gl_SubgroupID % PARTS_N * PART_N);
    start(tile.x, tile.y);

    [[unroll]] for (uint i = 0; i < SUMS_M * SUMS_N; i++)
        sums[i] = SUM(0.0);
    if (first < last) {
        find_place(first);
        fetch(first);
    }
    uint stage = 0;
    [[dont_unroll]] for (uint octet = first; octet < last; octet += OCTETS) {
        if (STAGES == 1)
            barrier();
        store(stage);
        barrier();
        if (octet + OCTETS < last)
            fetch(octet + OCTETS);
        multiply(stage, part);
        if (STAGES == 2)
            stage ^= 1;
    }
    LEAVE
}
