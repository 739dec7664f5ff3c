#version 450
/*
 * Packs an operand of matrix_direct.glsl as blocks (block_place.glsl), from f32 words or packed
 * halves. Blocks of the same rows follow one another along K. Rows and elements past the last ones
 * are zeros.
 *
 * A workgroup packs a tile of 32 rows x 64 elements, which goes through shared memory. If the rows
 * of the operand are neighbours in memory (TRANSPOSED), quads run along the rows.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/matmul.h"
#include "args/matrix.h"
#include "lib/narrow.glsl"

layout(constant_id = 1) const uint STORAGE = MATMUL_WORDS;
layout(constant_id = 2) const bool TO_BF16 = false;
layout(constant_id = 3) const bool TRANSPOSED = false;
layout(constant_id = 4) const bool QUADS = false; /* x can be read four elements at a time */
layout(constant_id = 5) const bool BY_LANES = false;
layout(constant_id = 6) const uint BLOCK_ROWS = 16;
layout(constant_id = 7) const uint UNIT_K = 16;

layout(push_constant) uniform block { matrix_pack_args args; };
layout(set = 0, binding = 0) readonly buffer x_view { uint x_words[]; };
layout(set = 0, binding = 0) readonly buffer x_view2 { uvec2 x_pairs[]; };
layout(set = 0, binding = 0) readonly buffer x_view4 { uvec4 x_quads[]; };
layout(set = 0, binding = 1) writeonly buffer packed_view { uvec4 packed[]; };

const uint ROWS = MATRIX_BLOCK_ROWS, DEPTH = MATRIX_BLOCK_K;
const bool AS_IT_IS = STORAGE == (TO_BF16 ? MATMUL_BF16 : MATMUL_F16); /* no conversion */
/* A row of the tile: pairs of halves along K. The pitch avoids bank conflicts. */
const uint PITCH = DEPTH / 2 + 5;
shared uint tile[ROWS * PITCH];

/* ---- One element, or four that are neighbours in memory, as floats or halves ---- */

#include "matmul/stored_half.glsl"

/* A half AS_IT_IS is in the lower bits. */
uint read(uint i)
{
    if (STORAGE == MATMUL_WORDS)
        return x_words[i];
    uint word = x_words[i >> 1];
    return AS_IT_IS ? ((i & 1) != 0 ? word >> 16 : word & 0xffff)
                    : floatBitsToUint(half_of(word, i));
}

uvec4 read4(uint i)
{
    if (STORAGE == MATMUL_WORDS)
        return x_quads[i >> 2];
    uvec2 two = x_pairs[i >> 2];
    if (AS_IT_IS)
        return uvec4(two.x & 0xffff, two.x >> 16, two.y & 0xffff, two.y >> 16);
    return floatBitsToUint(vec4(half_of(two.x, 0), half_of(two.x, 1), half_of(two.y, 0),
                                half_of(two.y, 1)));
}

uint pair_of(uint low, uint high)
{
    if (AS_IT_IS)
        return low | high << 16;
    vec2 v = uintBitsToFloat(uvec2(low, high));
    return TO_BF16 ? bf16_pair(v.x, v.y) : f16_pair(v.x, v.y);
}

/* Four elements from (row, k), along the rows if TRANSPOSED, else along K. */
uvec4 read_quad(uint base, uint row, uint k)
{
    uint count = TRANSPOSED ? args.rows : args.k, first = TRANSPOSED ? row : k;
    if (TRANSPOSED ? k >= args.k : row >= args.rows)
        return uvec4(0);
    uint at = base + (TRANSPOSED ? k * args.rows + row : row * args.k + k);
    if (QUADS && first + 4 <= count)
        return read4(at);
    uvec4 v;
    [[unroll]] for (uint i = 0; i < 4; i++)
        v[i] = first + i < count ? read(at + i) : 0;
    return v;
}

/* ---- The tile ---- */

/* Every invocation loads all of its quads before it stores one. */
const uint SHARE = ROWS * DEPTH / 8 / gl_WorkGroupSize.x; /* pairs of quads */
uvec4 quads[2 * SHARE];

/* Two quads, either of two neighbours in K (TRANSPOSED), or eight neighbours of a row. */
uvec2 place_of_quads(uint i)
{
    uint n = i * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    return TRANSPOSED ? uvec2(n % (ROWS / 4) * 4, n / (ROWS / 4) * 2)
                      : uvec2(n / (DEPTH / 8), n % (DEPTH / 8) * 8);
}

/* If rows do not begin at quads, neighbours read neighbouring pairs of a row. */
void fill_pairs(uint base, uint row0, uint k0)
{
    [[unroll]] for (uint i = 0; i < 4 * SHARE; i++) {
        uint n = i * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
        uint row = n / (DEPTH / 2), k = n % (DEPTH / 2) * 2, at = row0 + row;
        uint from = base + at * args.k + k0 + k;
        bool live = at < args.rows;
        quads[i / 2][i % 2 * 2] = live && k0 + k < args.k ? read(from) : 0;
        quads[i / 2][i % 2 * 2 + 1] = live && k0 + k + 1 < args.k ? read(from + 1) : 0;
    }
    [[unroll]] for (uint i = 0; i < 4 * SHARE; i++) {
        uint n = i * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
        tile[n / (DEPTH / 2) * PITCH + n % (DEPTH / 2)] =
            pair_of(quads[i / 2][i % 2 * 2], quads[i / 2][i % 2 * 2 + 1]);
    }
}

void fill(uint base, uint row0, uint k0)
{
    [[unroll]] for (uint i = 0; i < SHARE; i++) {
        uvec2 at = place_of_quads(i);
        quads[2 * i] = read_quad(base, row0 + at.x, k0 + at.y);
        quads[2 * i + 1] = read_quad(base, row0 + at.x, k0 + at.y + (TRANSPOSED ? 1 : 4));
    }
    [[unroll]] for (uint i = 0; i < SHARE; i++) {
        uvec2 at = place_of_quads(i);
        uvec4 first = quads[2 * i], second = quads[2 * i + 1];
        if (TRANSPOSED) {
            [[unroll]] for (uint r = 0; r < 4; r++)
                tile[(at.x + r) * PITCH + at.y / 2] = pair_of(first[r], second[r]);
        } else {
            uint to = at.x * PITCH + at.y / 2;
            tile[to] = pair_of(first.x, first.y);
            tile[to + 1] = pair_of(first.z, first.w);
            tile[to + 2] = pair_of(second.x, second.y);
            tile[to + 3] = pair_of(second.z, second.w);
        }
    }
}

#include "matmul/block_place.glsl"

void main()
{
    uint tiles_k = args.round_k / DEPTH, tiles_row = args.round_rows / ROWS;
    uint group = group_index(), matrix = group / tiles_k / tiles_row;
    uint row0 = group / tiles_k % tiles_row * ROWS, k0 = group % tiles_k * DEPTH;
    if (matrix >= args.matrices)
        return;
    uint base = args.x_offset + matrix * args.matrix_step;
    if (QUADS || TRANSPOSED)
        fill(base, row0, k0);
    else
        fill_pairs(base, row0, k0);
    barrier();
    uint bands = args.round_rows / BLOCK_ROWS, blocks_k = args.round_k / UNIT_K;
    [[unroll]] for (uint n = 0; n < SHARE; n++) {
        uint i = n * gl_WorkGroupSize.x + gl_LocalInvocationID.x, inside = i % BLOCK;
        uint across = i / BLOCK % (DEPTH / UNIT_K), down = i / BLOCK / (DEPTH / UNIT_K);
        uvec4 words;
        [[unroll]] for (uint w = 0; w < 4; w++) {
            uvec2 place = place_of_word(inside, w);
            words[w] = tile[(down * BLOCK_ROWS + place.x) * PITCH + across * UNIT_K / 2 + place.y];
        }
        uint band = matrix * bands + row0 / BLOCK_ROWS + down;
        packed[(band * blocks_k + k0 / UNIT_K + across) * BLOCK + inside] = words;
    }
}
