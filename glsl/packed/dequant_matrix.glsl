/*
 * y[r][j] = sum over p of a[r][p] * w[j][p] with cooperative matrices. w is packed, n rows of
 * `units` units of 32 elements. a is packed to 16 bits by matrix_pack in the order of the units,
 * and its rows are padded with zeros to k_octets. With several splits, y holds the partial sums of
 * one split after another, each over slice_octets of K.
 *
 * The includer defines DEQUANT_GROUP and ELEMENT, the 16-bit type of the operands. If ELEMENT is
 * bfloat16_t, it also defines IN_BF16.
 *
 * The tiles are those of matmul/matrix_tiles.glsl. An invocation loads whole units of w. Their
 * words go to registers, are decoded to f32, rounded to ELEMENT exactly as dequant_gather does it,
 * and stored to the tile.
 *
 * With AHEAD, this overlaps the matrix products. The words of a step are loaded two steps ahead.
 * They are unpacked one step ahead, an octet at a time, between the products. Without AHEAD they
 * are loaded one step ahead and unpacked when they are stored.
 *
 * Loops that a driver would have to unroll to keep values in registers are unrolled in the source
 * (matrix_sums.glsl). An invocation loads at most eight octets of a and two units of w.
 *
 * Columns past the last one repeat it and are not stored. Units past the last one are zeros.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#include "lib/common.glsl"
#include "lib/parts.glsl"
#include "args/packed.h"
#include "lib/narrow.glsl"

layout(push_constant) uniform block { dequant_matrix_args args; };
layout(constant_id = 7) const bool AHEAD = true;
#ifndef IN_BF16
layout(constant_id = 8) const bool HALF_ROUNDING = false; /* f32 to f16 rounds to nearest even */
#endif
layout(constant_id = 10) const uint BAND = 8;
#define MATRIX_FORMAT(type, NAME) const uint NAME = type;
#include "args/matrix_format.def"
#define DEQUANT_NAN_SCALE    0.0
#define DEQUANT_LOOKUP       true
#define DEQUANT_GRID_BINDING 3
#include "packed/dequant_group.glsl"
#include "packed/dequant_row.glsl"
layout(set = 0, binding = 1) readonly buffer a_view { uvec4 a[]; };
layout(set = 0, binding = 2) writeonly buffer y_view { float y[]; };

const uint STAGES = 1, PLANES = 1;
#define MATRIX_CONSTANT 16
#include "matmul/matrix_tiles.glsl"
#include "matmul/matrix_sums.glsl"
#include "matmul/tile_place.glsl"

const uint UNIT_OCTETS = UNIT_ELEMENTS / 8, TILE_UNITS = TILE_K / UNIT_ELEMENTS;
const uint CARRY = TILE_N * TILE_UNITS / THREADS; /* units that an invocation loads in each step */

#define EACH_OCTET(X)                                                                              \
    X(next_a0, 0)                                                                                  \
    X(next_a1, 1)                                                                                  \
    X(next_a2, 2)                                                                                  \
    X(next_a3, 3)                                                                                  \
    X(next_a4, 4)                                                                                  \
    X(next_a5, 5)                                                                                  \
    X(next_a6, 6)                                                                                  \
    X(next_a7, 7)
uvec4 next_a0, next_a1, next_a2, next_a3, next_a4, next_a5, next_a6, next_a7;

/* The state of one unit: the start of its column of w, its loaded words of a later step, its
 * decoded codes, and its octets. */
#define EACH_UNIT(X)                                                                               \
    X(w_at0, next_w0, now_w0, octets0, 0)                                                          \
    X(w_at1, next_w1, now_w1, octets1, 1)
uint w_at0, w_at1;
unit_raw next_w0, next_w1;
unit_codes now_w0, now_w1;
struct unit_octets {
    uvec4 first, second, third, fourth;
} octets0, octets1;

/* The column of the tile and the unit of the step, for the i-th unit that the invocation loads. */
uvec2 place_of(uint i)
{
    uint slot = i * THREADS + gl_LocalInvocationID.x;
    return uvec2(slot / TILE_UNITS, slot % TILE_UNITS);
}

void find_columns(uint first_column)
{
#define FIND_COLUMN(at, next, now, octets, i)                                                      \
    at = args.w_offset + min(first_column + place_of(i).x, args.n - 1) * args.row_bytes;
    EACH_UNIT(FIND_COLUMN)
}

void load_a(uint first_row, uint octet0)
{
#define LOAD_OCTET(next, i)                                                                        \
    if (i < CARRY_A) {                                                                             \
        uint slot = i * THREADS + gl_LocalInvocationID.x;                                          \
        next = a[(first_row + slot / OCTETS) * args.k_octets + octet0 + slot % OCTETS];            \
    }
    EACH_OCTET(LOAD_OCTET)
}

uint unit_of(uint octet0, uint i)
{
    return octet0 / UNIT_OCTETS + place_of(i).y;
}

void load_w(uint octet0)
{
#define LOAD_UNIT(at, next, now, octets, i)                                                        \
    if (i < CARRY)                                                                                 \
        next = load_row_raw(at, min(unit_of(octet0, i), args.units - 1));
    EACH_UNIT(LOAD_UNIT)
}

unit_codes decoded(unit_raw raw, uint row, uint unit)
{
    unit_codes w = decode_row_raw(raw, row, min(unit, args.units - 1));
    bool inside = unit < args.units;
    w.scale = mix(vec2(0.0), w.scale, bvec2(inside));
    w.bias = mix(vec2(0.0), w.bias, bvec2(inside));
    return w;
}

/* Decodes the words that were loaded last. They belong to `octet0`. */
void decode_w(uint octet0)
{
#define DECODE_UNIT(at, next, now, octets, i)                                                      \
    if (i < CARRY)                                                                                 \
        now = decoded(next, at, unit_of(octet0, i));
    EACH_UNIT(DECODE_UNIT)
}

uint element_pair(float low, float high)
{
#ifdef IN_BF16
    return bf16_pair(low, high);
#else
    if (HALF_ROUNDING)
        return packFloat2x16(f16vec2(low, high));
    return f16_pair(low, high);
#endif
}

/* If there is a bias, the products are exact. So it does not matter whether the compiler fuses them
 * with the sums. */
uvec4 unpacked(uvec2 codes, float scale, float bias)
{
    vec4 low = scale * code_values(codes.x) + bias, high = scale * code_values(codes.y) + bias;
    return uvec4(element_pair(low.x, low.y), element_pair(low.z, low.w),
                 element_pair(high.x, high.y), element_pair(high.z, high.w));
}

/* One octet of each unit. */
#define UNPACK_FIRST(at, next, now, octets, i)                                                     \
    if (i < CARRY)                                                                                 \
        octets.first = unpacked(now.first.xy, now.scale.x, now.bias.x);
#define UNPACK_SECOND(at, next, now, octets, i)                                                    \
    if (i < CARRY)                                                                                 \
        octets.second = unpacked(now.first.zw, now.scale.x, now.bias.x);
#define UNPACK_THIRD(at, next, now, octets, i)                                                     \
    if (i < CARRY)                                                                                 \
        octets.third = unpacked(now.second.xy, now.scale.y, now.bias.y);
#define UNPACK_FOURTH(at, next, now, octets, i)                                                    \
    if (i < CARRY)                                                                                 \
        octets.fourth = unpacked(now.second.zw, now.scale.y, now.bias.y);

void unpack_all()
{
    EACH_UNIT(UNPACK_FIRST)
    EACH_UNIT(UNPACK_SECOND)
    EACH_UNIT(UNPACK_THIRD)
    EACH_UNIT(UNPACK_FOURTH)
}

void store()
{
#define STORE_OCTET(next, i)                                                                       \
    if (i < CARRY_A) {                                                                             \
        uint slot = i * THREADS + gl_LocalInvocationID.x;                                          \
        tile_a[slot / OCTETS * PITCH + slot % OCTETS] = next;                                      \
    }
    EACH_OCTET(STORE_OCTET)
#define STORE_UNIT(at, next, now, octets, i)                                                       \
    if (i < CARRY) {                                                                               \
        uint to = place_of(i).x * PITCH + place_of(i).y * UNIT_OCTETS;                             \
        tile_b[to] = octets.first;                                                                 \
        tile_b[to + 1] = octets.second;                                                            \
        tile_b[to + 2] = octets.third;                                                             \
        tile_b[to + 3] = octets.fourth;                                                            \
    }
    EACH_UNIT(STORE_UNIT)
}

void write(float value, uint split, uint row, uint column)
{
    if (row < args.m && column < args.n)
        y[args.y_offset + split * args.m * args.n +
          place_in_parts(row, column, args.m, args.n, args.ends)] = value;
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

    fill_levels();
    EACH_SUM(CLEAR_SUM)
    find_columns(tile.y);
    load_w(first);
    load_a(tile.x, first);
    if (AHEAD) {
        decode_w(first);
        unpack_all();
        load_w(first + OCTETS);
    }
    [[dont_unroll]] for (uint octet = first; octet < end; octet += OCTETS) {
        uint next = octet + OCTETS;
        if (!AHEAD) {
            decode_w(octet);
            unpack_all();
        }
        barrier();
        store();
        barrier();
        if (AHEAD)
            decode_w(next);
        if (next < end) { /* a branch keeps the loads from sinking to their use */
            load_a(tile.x, next);
            load_w(AHEAD ? next + OCTETS : next);
        }
        MULTIPLY(0, 0)
        if (AHEAD) {
            EACH_UNIT(UNPACK_FIRST)
        }
        MULTIPLY(0, 1)
        if (AHEAD) {
            EACH_UNIT(UNPACK_SECOND)
        }
        MULTIPLY(0, 2)
        if (AHEAD) {
            EACH_UNIT(UNPACK_THIRD)
        }
        MULTIPLY(0, 3)
        if (AHEAD) {
            EACH_UNIT(UNPACK_FOURTH)
        }
        MULTIPLY(0, 4)
        MULTIPLY(0, 5)
        MULTIPLY(0, 6)
        MULTIPLY(0, 7)
    }

    uint patch_start = gl_SubgroupID * UNIT_M * UNIT_N / 4;
    barrier();
#define MATRIX_PATCHES                   tile_b
#define MATRIX_WRITE(value, row, column) write(value, split, row, column)
    EACH_SUM(LEAVE_SUM)
}
