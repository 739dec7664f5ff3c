/*
 * y[r][j] = sum over p of a[r][p] * w[j][p] on the device's matrix units: w packed, n rows of
 * `units` units of 32 elements, a packed as halves by matrix_pack in the order of the units, its
 * rows padded with zeros to k_octets. With several splits y is partial sums, one after the other,
 * each of slice_octets of K.
 *
 * Tiles as in matmul/matrix_tiles.glsl. An invocation brings whole units of w: their words are read
 * into registers two steps ahead, decoded to f32 and rounded to halves exactly as dequant_gather
 * does it, and stored into the tile. With ALONE, for few rows, a subgroup brings its own columns
 * and reads a as matrices, so that it waits for no other.
 *
 * Columns past the last repeat it and are not stored; units past the last are zeros. The code is
 * straight and its indices constant, so that the sums stay in registers.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#include "lib/common.glsl"
#include "args/packed.h"
#include "lib/narrow.glsl"

layout(push_constant) uniform block { dequant_matrix_args args; };
layout(constant_id = 7) const bool ALONE = false; /* PART_M is TILE_M */
layout(constant_id = 8) const bool HALF_ROUNDING = false; /* f32 to f16 is to nearest even */
layout(constant_id = 9) const uint BAND = 8;
#define DEQUANT_LOOKUP true
#include "packed/dequant.glsl"
layout(set = 0, binding = 1) readonly buffer a_view { uvec4 a[]; };
layout(set = 0, binding = 2) writeonly buffer y_view { float y[]; };

const uint PLANES = 1, STAGES = 1;
#define MATRIX_CONSTANT 16
#include "matmul/matrix_tiles.glsl"
#include "matmul/tile_place.glsl"

const uint UNIT_OCTETS = UNIT_ELEMENTS / 8, TILE_UNITS = TILE_K / UNIT_ELEMENTS;
const uint CARRY = TILE_N * TILE_UNITS / THREADS; /* units that an invocation brings a step */
const uint STEPS = TILE_K / UNIT_K;

uvec4 next_a[CARRY_A];
OPERAND_A alone_a[ALONE ? STEPS * SUMS_M : 1];
uint w_at[CARRY]; /* where the columns of its units begin */
unit_words next_w[CARRY], later_w[CARRY];
uvec4 next_b[CARRY * UNIT_OCTETS];

/* Column of the tile and unit of the step of the i-th unit that the invocation brings. */
uvec2 place_of(uint i)
{
    uint slot = i * THREADS + gl_LocalInvocationID.x, first = 0;
    if (ALONE) {
        slot = i * (PART_N * TILE_UNITS / CARRY) + gl_SubgroupInvocationID;
        first = gl_SubgroupID * PART_N;
    }
    return uvec2(first + slot / TILE_UNITS, slot % TILE_UNITS);
}

void find_columns(uint first_column)
{
    [[unroll]] for (uint i = 0; i < CARRY; i++)
        w_at[i] = args.w_offset + min(first_column + place_of(i).x, args.n - 1) * args.row_bytes;
}

void load_a(uint first_row, uint octet0)
{
    [[unroll]] for (uint i = 0; i < CARRY_A; i++) {
        uint slot = i * THREADS + gl_LocalInvocationID.x;
        next_a[i] = a[(first_row + slot / OCTETS) * args.k_octets + octet0 + slot % OCTETS];
    }
}

void load_alone(uint first_row, uint octet0)
{
    [[unroll]] for (uint k = 0; k < STEPS; k++) {
        [[unroll]] for (uint i = 0; i < SUMS_M; i++)
            coopMatLoad(alone_a[k * SUMS_M + i], a,
                        (first_row + i * UNIT_M) * args.k_octets + octet0 + k * UNIT_K / 8,
                        args.k_octets, gl_CooperativeMatrixLayoutRowMajor);
    }
}

uint unit_of(uint octet0, uint i)
{
    return octet0 / UNIT_OCTETS + place_of(i).y;
}

void load_w(uint octet0)
{
    [[unroll]] for (uint i = 0; i < CARRY; i++)
        later_w[i] = load_row_unit(w_at[i], min(unit_of(octet0, i), args.units - 1));
}

void advance_w()
{
    [[unroll]] for (uint i = 0; i < CARRY; i++)
        next_w[i] = later_w[i];
}

uint half_pair(float low, float high)
{
    if (HALF_ROUNDING)
        return packFloat2x16(f16vec2(low, high));
    return packHalf2x16(vec2(near_f16(low), near_f16(high)));
}

/* The products are exact in every format, so that it matters not whether they are fused with the
 * sums. */
uvec4 octet_of(uvec2 codes, float scale, float bias)
{
    vec4 low = scale * code_values(codes.x) + bias;
    vec4 high = scale * code_values(codes.y) + bias;
    return uvec4(half_pair(low.x, low.y), half_pair(low.z, low.w), half_pair(high.x, high.y),
                 half_pair(high.z, high.w));
}

/* next_w, which is of `octet0`. */
void unpack(uint octet0)
{
    [[unroll]] for (uint i = 0; i < CARRY; i++) {
        uint unit = unit_of(octet0, i), at = i * UNIT_OCTETS;
        unit_codes w = decode_row_words(next_w[i], min(unit, args.units - 1));
        bvec2 inside = bvec2(unit < args.units);
        vec2 scale = mix(vec2(0.0), w.scale, inside), bias = mix(vec2(0.0), w.bias, inside);
        next_b[at] = octet_of(w.first.xy, scale.x, bias.x);
        next_b[at + 1] = octet_of(w.first.zw, scale.x, bias.x);
        next_b[at + 2] = octet_of(w.second.xy, scale.y, bias.y);
        next_b[at + 3] = octet_of(w.second.zw, scale.y, bias.y);
    }
}

void store_a()
{
    [[unroll]] for (uint i = 0; i < CARRY_A; i++) {
        uint slot = i * THREADS + gl_LocalInvocationID.x;
        tile_a[slot / OCTETS * PITCH + slot % OCTETS] = next_a[i];
    }
}

void store_b()
{
    [[unroll]] for (uint i = 0; i < CARRY; i++) {
        uvec2 place = place_of(i);
        uint to = place.x * PITCH + place.y * UNIT_OCTETS;
        [[unroll]] for (uint octet = 0; octet < UNIT_OCTETS; octet++)
            tile_b[to + octet] = next_b[i * UNIT_OCTETS + octet];
    }
}

void multiply_alone(uvec2 part)
{
    [[unroll]] for (uint k = 0; k < STEPS; k++) {
        [[unroll]] for (uint j = 0; j < SUMS_N; j++) {
            OPERAND_B right;
            LOAD_B(right, 0, j, k);
            [[unroll]] for (uint i = 0; i < SUMS_M; i++)
                sums[i * SUMS_N + j] =
                    coopMatMulAdd(alone_a[k * SUMS_M + i], right, sums[i * SUMS_N + j]);
        }
    }
}

/* Until all that share the tile have come here. */
void meet()
{
    if (ALONE)
        subgroupBarrier();
    else
        barrier();
}

void write(float value, uint split, uint row, uint column)
{
    if (row < args.m && column < args.n)
        y[args.y_offset + (split * args.m + row) * args.n + column] = value;
}

void main()
{
    uint tiles_m = (args.m + TILE_M - 1) / TILE_M, tiles_n = (args.n + TILE_N - 1) / TILE_N;
    uint group = group_index(), tiles = tiles_m * tiles_n, split = group / tiles;
    if (split >= args.splits)
        return;
    uvec2 tile = tile_place(group % tiles, tiles_m, tiles_n) * uvec2(TILE_M, TILE_N);
    uvec2 part = uvec2(gl_SubgroupID / PARTS_N * PART_M, gl_SubgroupID % PARTS_N * PART_N);
    uint first = split * args.slice_octets;
    uint end = min(first + args.slice_octets, args.k_octets);

    [[unroll]] for (uint i = 0; i < SUMS_M * SUMS_N; i++)
        sums[i] = SUM(0.0);
    fill_levels();
    find_columns(tile.y);
    load_w(first);
    advance_w();
    load_w(first + OCTETS);
    if (!ALONE)
        load_a(tile.x, first);
    [[dont_unroll]] for (uint octet = first; octet < end; octet += OCTETS) {
        if (ALONE)
            load_alone(tile.x, octet);
        unpack(octet);
        advance_w();
        load_w(octet + 2 * OCTETS);
        meet();
        if (!ALONE)
            store_a();
        store_b();
        meet();
        if (!ALONE && octet + OCTETS < end)
            load_a(tile.x, octet + OCTETS);
        if (ALONE)
            multiply_alone(part);
        else
            multiply(0, part);
    }

#define MATRIX_PATCHES                   tile_b
#define MATRIX_WRITE(value, row, column) write(value, split, row, column)
#include "matmul/matrix_leave.glsl"
}
