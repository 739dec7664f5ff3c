#version 450
/*
 * Packs an operand for the matrix units, from f32 words or packed halves. Rows of K become 16-bit
 * floats, eight to a uvec4, or f32 words, four to a uvec4. K is padded with zeros to round_k. Rows
 * beyond the operand are not written, because they only affect results that nobody stores.
 *
 * TO = MATRIX_SPLIT makes two planes of the values times 2^-exponent[row]: the nearest f16, and the
 * f16 nearest to the remainder. If DISTANCE is not 16, K is in the order of the units of a packed
 * format. With BY_LANES it is in the order of lane_element.
 *
 * If the rows of the operand are neighbours in memory (TRANSPOSED), a workgroup transposes a tile
 * of 32 rows x 64 elements in shared memory. Otherwise an invocation packs eight neighbours.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/matmul.h"
#include "args/matrix.h"
#include "lib/narrow.glsl"

layout(constant_id = 1) const uint STORAGE = MATMUL_WORDS;
layout(constant_id = 2) const uint TO = MATRIX_F16;
layout(constant_id = 3) const bool TRANSPOSED = false;
layout(constant_id = 4) const bool QUADS = false; /* x can be read four elements at a time */
layout(constant_id = 5) const uint DISTANCE = 16; /* unless TRANSPOSED; see packed/units.glsl */
layout(constant_id = 6) const bool BY_LANES = false;
#include "packed/units.glsl"

layout(push_constant) uniform block { matrix_pack_args args; };
layout(set = 0, binding = 0) readonly buffer x_view { uint x_words[]; };
layout(set = 0, binding = 0) readonly buffer x_view2 { uvec2 x_pairs[]; };
layout(set = 0, binding = 0) readonly buffer x_view4 { uvec4 x_quads[]; };
layout(set = 0, binding = 1) readonly buffer scale_view { int exponent[]; };
layout(set = 0, binding = 2) writeonly buffer packed_view { uvec4 packed[]; };

const uint ROWS = 32, DEPTH = 64;
shared float turned[DEPTH * (ROWS + 1)];

#include "matmul/stored_half.glsl"

float read(uint i)
{
    return STORAGE == MATMUL_WORDS ? uintBitsToFloat(x_words[i]) : half_of(x_words[i >> 1], i);
}

vec4 read4(uint i)
{
    if (STORAGE == MATMUL_WORDS)
        return uintBitsToFloat(x_quads[i >> 2]);
    uvec2 two = x_pairs[i >> 2];
    return vec4(half_of(two.x, 0), half_of(two.x, 1), half_of(two.y, 0), half_of(two.y, 1));
}

uint pack_pair(float low, float high)
{
    return TO == MATRIX_BF16 ? bf16_pair(low, high) : f16_pair(low, high);
}

uvec4 pack_octet(float v[8])
{
    return uvec4(pack_pair(v[0], v[1]), pack_pair(v[2], v[3]), pack_pair(v[4], v[5]),
                 pack_pair(v[6], v[7]));
}

/* x 2^-e, in two steps because both factors must be normal numbers. */
float scaled(float x, int e)
{
    int first = clamp(-e, -126, 127), rest = clamp(-e - first, -126, 127);
    return x * uintBitsToFloat(uint(first + 127) << 23) * uintBitsToFloat(uint(rest + 127) << 23);
}

void write(uint matrix, uint row, uint octet, float v[8])
{
    uint at = (matrix * args.round_rows + row) * (args.round_k / 8) + octet;
    if (TO == MATRIX_SPLIT) {
        int e = exponent[matrix * args.rows + row];
        [[unroll]] for (uint i = 0; i < 8; i++)
            v[i] = scaled(v[i], e);
    }
    if (TO == MATRIX_F32) {
        packed[at * 2] = floatBitsToUint(vec4(v[0], v[1], v[2], v[3]));
        packed[at * 2 + 1] = floatBitsToUint(vec4(v[4], v[5], v[6], v[7]));
        return;
    }
    packed[at] = pack_octet(v);
    if (TO == MATRIX_SPLIT) {
        [[unroll]] for (uint i = 0; i < 8; i++)
            v[i] = remainder_of(v[i]);
        packed[at + args.plane_step] = pack_octet(v);
    }
}

/* The first element of an octet. Units follow one another, and so do the two runs of each unit.
 * With DISTANCE 16 this is the order of the elements. */
uint element_of(uint octet)
{
    uint unit = octet / (UNIT_ELEMENTS / 8), run = octet / (RUN_ELEMENTS / 8) % 2;
    return unit_position(unit) + run * DISTANCE + octet % (RUN_ELEMENTS / 8) * 8;
}

void pack_neighbours()
{
    uint index = global_index(), octets = args.round_k / 8;
    uint octet = index % octets, row = index / octets % args.rows;
    uint matrix = index / octets / args.rows;
    if (matrix >= args.matrices)
        return;
    uint base = args.x_offset + matrix * args.matrix_step + row * args.k, k = element_of(octet);
    float v[8];
    if (BY_LANES) {
        const uint octets_of_group = GROUP_ELEMENTS / 8; /* each has a pair from every lane */
        [[unroll]] for (uint i = 0; i < 8; i++) {
            k = lane_element(octet / octets_of_group, octet % octets_of_group, i / 2) + i % 2 * 2;
            v[i] = k < args.k ? read(base + k) : 0.0;
        }
    } else if (QUADS && k + 8 <= args.k) {
        vec4 low = read4(base + k), high = read4(base + k + 4);
        v = float[8](low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w);
    } else {
        [[unroll]] for (uint i = 0; i < 8; i++)
            v[i] = k + i < args.k ? read(base + k + i) : 0.0;
    }
    write(matrix, row, octet, v);
}

void pack_turned()
{
    uint blocks_k = (args.round_k + DEPTH - 1) / DEPTH, blocks_row = (args.rows + ROWS - 1) / ROWS;
    uint group = group_index(), matrix = group / blocks_k / blocks_row;
    uint row0 = group % blocks_row * ROWS, k0 = group / blocks_row % blocks_k * DEPTH;
    if (matrix >= args.matrices)
        return;
    uint base = args.x_offset + matrix * args.matrix_step;
    for (uint i = gl_LocalInvocationID.x; i < ROWS * DEPTH; i += gl_WorkGroupSize.x) {
        uint row = row0 + i % ROWS, k = k0 + i / ROWS;
        bool inside = row < args.rows && k < args.k;
        turned[i / ROWS * (ROWS + 1) + i % ROWS] = inside ? read(base + k * args.rows + row) : 0.0;
    }
    barrier();
    for (uint i = gl_LocalInvocationID.x; i < ROWS * DEPTH / 8; i += gl_WorkGroupSize.x) {
        uint octet = i % (DEPTH / 8), row = i / (DEPTH / 8);
        float v[8];
        [[unroll]] for (uint j = 0; j < 8; j++)
            v[j] = turned[(octet * 8 + j) * (ROWS + 1) + row];
        if (row0 + row < args.rows && k0 + octet * 8 < args.round_k)
            write(matrix, row0 + row, k0 / 8 + octet, v);
    }
}

void main()
{
    if (TRANSPOSED)
        pack_turned();
    else
        pack_neighbours();
}
