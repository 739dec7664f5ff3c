/*
 * y[r][j] = sum over p of a[r][p] * w[j][p] on the device's matrix units: w packed, n rows of
 * `units` units of 32 elements, a packed as halves by matrix_pack in the order of the units, its
 * rows padded with zeros to k_octets. With several splits y is partial sums, one after the other,
 * each of slice_octets of K.
 *
 * Tiles as in matmul/matrix_tiles.glsl. An invocation brings whole units of w: their words are read
 * into registers, decoded to f32 and rounded to halves exactly as dequant_gather does it, and
 * stored into the tile. With AHEAD that goes on while the units multiply: a step's words are read
 * two steps before it, and unpacked, an octet at a time, between the products of the step before
 * it; else they are read one step before it and unpacked as they are stored.
 *
 * Columns past the last repeat it and are not stored; units past the last are zeros.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#include "lib/common.glsl"
#include "args/packed.h"
#include "lib/narrow.glsl"

layout(push_constant) uniform block { dequant_matrix_args args; };
layout(constant_id = 7) const bool AHEAD = true;
layout(constant_id = 8) const bool HALF_ROUNDING = false; /* f32 to f16 is to nearest even */
layout(constant_id = 9) const uint STAGES = 1;
layout(constant_id = 10) const uint BAND = 8;
/* The formats by number, not by format.def: one more there shall not ask for another compiler. */
#define DEQUANT_GROUP     DEQUANT_COMMON
#define DEQUANT_NAN_SCALE 0.0
const uint Q8_0 = 8, Q4_K = 12, Q5_K = 13, Q6_K = 14;
#include "packed/dequant_unit.glsl"
#include "packed/dequant_common.glsl"
#include "packed/dequant_row.glsl"
layout(set = 0, binding = 1) readonly buffer a_view { uvec4 a[]; };
layout(set = 0, binding = 2) writeonly buffer y_view { float y[]; };

const uint PLANES = 1;
void unpack_between(uint k);
#define MATRIX_BETWEEN(k) unpack_between(k)
#define MATRIX_CONSTANT   16
#include "matmul/matrix_tiles.glsl"
#include "matmul/tile_place.glsl"

const uint UNIT_OCTETS = UNIT_ELEMENTS / 8, TILE_UNITS = TILE_K / UNIT_ELEMENTS;
const uint CARRY = TILE_N * TILE_UNITS / THREADS; /* units that an invocation brings a step */
const uint STEPS = TILE_K / UNIT_K;
const uint SHARE = (CARRY * UNIT_OCTETS + STEPS - 1) / STEPS; /* octets unpacked in each of STEPS */

uvec4 next_a[CARRY_A];
uint w_at[CARRY];                 /* where the columns of its units begin */
unit_words next_w[CARRY];
uvec2 codes[STEPS * SHARE];       /* of its octets, one after the other; */
vec2 factors[STEPS * SHARE];      /* their scales and biases */
uvec4 next_b[STEPS * SHARE];      /* unpacked */

/* Column of the tile and unit of the step of the i-th unit that the invocation brings. */
uvec2 place_of(uint i)
{
    uint slot = i * THREADS + gl_LocalInvocationID.x;
    return uvec2(slot / TILE_UNITS, slot % TILE_UNITS);
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

uint unit_of(uint octet0, uint i)
{
    return octet0 / UNIT_OCTETS + place_of(i).y;
}

void load_w(uint octet0)
{
    [[unroll]] for (uint i = 0; i < CARRY; i++)
        next_w[i] = load_row_unit(w_at[i], min(unit_of(octet0, i), args.units - 1));
}

/* The words read last, which were those of `octet0`. */
void decode_w(uint octet0)
{
    [[unroll]] for (uint i = 0; i < CARRY; i++) {
        uint unit = unit_of(octet0, i), at = i * UNIT_OCTETS;
        unit_codes w = decode_row_words(next_w[i], min(unit, args.units - 1));
        bool inside = unit < args.units;
        codes[at] = w.first.xy;
        codes[at + 1] = w.first.zw;
        codes[at + 2] = w.second.xy;
        codes[at + 3] = w.second.zw;
        factors[at] = factors[at + 1] = inside ? vec2(w.scale.x, w.bias.x) : vec2(0.0);
        factors[at + 2] = factors[at + 3] = inside ? vec2(w.scale.y, w.bias.y) : vec2(0.0);
    }
}

uint half_pair(float low, float high)
{
    if (HALF_ROUNDING)
        return packFloat2x16(f16vec2(low, high));
    return packHalf2x16(vec2(near_f16(low), near_f16(high)));
}

/* The products are exact in every format, so that it matters not whether they are fused with the
 * sums. */
void unpack(uint octet)
{
    vec4 low = factors[octet].x * code_values(codes[octet].x) + factors[octet].y;
    vec4 high = factors[octet].x * code_values(codes[octet].y) + factors[octet].y;
    next_b[octet] = uvec4(half_pair(low.x, low.y), half_pair(low.z, low.w),
                          half_pair(high.x, high.y), half_pair(high.z, high.w));
}

void unpack_all()
{
    [[unroll]] for (uint octet = 0; octet < CARRY * UNIT_OCTETS; octet++)
        unpack(octet);
}

void unpack_between(uint k)
{
    if (AHEAD) {
        [[unroll]] for (uint i = 0; i < SHARE; i++)
            unpack(k * SHARE + i);
    }
}

void store(uint stage)
{
    [[unroll]] for (uint i = 0; i < CARRY_A; i++) {
        uint slot = i * THREADS + gl_LocalInvocationID.x;
        tile_a[stage * STAGE_A + slot / OCTETS * PITCH + slot % OCTETS] = next_a[i];
    }
    [[unroll]] for (uint i = 0; i < CARRY; i++) {
        uvec2 place = place_of(i);
        uint to = stage * STAGE_B + place.x * PITCH + place.y * UNIT_OCTETS;
        [[unroll]] for (uint octet = 0; octet < UNIT_OCTETS; octet++)
            tile_b[to + octet] = next_b[i * UNIT_OCTETS + octet];
    }
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
    find_columns(tile.y);
    load_w(first);
    load_a(tile.x, first);
    if (AHEAD) {
        decode_w(first);
        unpack_all();
        load_w(first + OCTETS);
    }
    uint stage = 0;
    [[dont_unroll]] for (uint octet = first; octet < end; octet += OCTETS) {
        uint next = octet + OCTETS;
        if (!AHEAD) {
            decode_w(octet);
            unpack_all();
        }
        if (STAGES == 1)
            barrier();
        store(stage);
        barrier();
        if (next < end)
            load_a(tile.x, next);
        if (AHEAD)
            decode_w(next);
        load_w(AHEAD ? next + OCTETS : next);
        multiply(stage, part);
        if (STAGES == 2)
            stage ^= 1;
    }

#define MATRIX_PATCHES                   tile_b
#define MATRIX_WRITE(value, row, column) write(value, split, row, column)
#include "matmul/matrix_leave.glsl"
}
