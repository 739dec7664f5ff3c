/*
 * Decodes packed rows to floats. ORDER selects the rows and the layout of y:
 *   INDEXED     y[i][p] = element p of row index[i]; zeros if index[i] is NaN or no row
 *   TRANSPOSED  y[e][p][j] = element p of row j of matrix e; each matrix has `rows` rows
 *   ALL         y[j][p] = element p of row j, as words or rounded to halves (STORAGE), as vec4s
 *   BLOCKS      as ALL in halves, but y has blocks (matmul/block_place.glsl) as matrix_block_pack
 *               writes them; rows past the last one repeat it
 *
 * For all but INDEXED, a scale whose code is NaN counts as 0, as in products. One invocation
 * decodes one unit. For plain rows (BLOCK_UNITS 0: f32, f16, bf16; only INDEXED and TRANSPOSED) it
 * decodes one element. With ALL and BLOCKS, the units of a workgroup go through shared memory, so
 * that neighbouring invocations store neighbouring elements.
 */
#include "lib/common.glsl"
#include "args/packed.h"
#include "args/matmul.h"
#include "lib/narrow.glsl"

layout(push_constant) uniform block { dequant_gather_args args; };
layout(constant_id = 7) const uint ORDER = DEQUANT_INDEXED;
layout(constant_id = 8) const uint STORAGE = MATMUL_WORDS;
layout(constant_id = 9) const uint BLOCK_ROWS = 16;
layout(constant_id = 10) const uint UNIT_K = 16;
layout(constant_id = 11) const bool BY_LANES = false;
const bool TRANSPOSED = ORDER == DEQUANT_TRANSPOSED;
#define DEQUANT_NAN_SCALE (ORDER == DEQUANT_INDEXED ? NAN_VALUE : 0.0)
#include "packed/dequant.glsl"
layout(set = 0, binding = 1) readonly restrict buffer indices { float index[]; };
layout(set = 0, binding = 2) writeonly restrict buffer target { float y[]; };
layout(set = 0, binding = 2) writeonly restrict buffer target_quads { vec4 y_quads[]; };
layout(set = 0, binding = 2) writeonly restrict buffer target_pairs { uvec2 y_pairs[]; };
layout(set = 0, binding = 2) writeonly restrict buffer target_octets { uvec4 y_octets[]; };
#include "matmul/block_place.glsl"

/* The vec4s of a unit. Those with the same place in their units lie side by side. */
const uint UNIT_FOURS = UNIT_ELEMENTS / 4, RUNS = DISTANCE / RUN_ELEMENTS;
const uint STAGED = ORDER == DEQUANT_ALL ? gl_WorkGroupSize.x : 1;
const bool HALVES = STORAGE != MATMUL_WORDS;
shared vec4 staged_words[HALVES ? 1 : UNIT_FOURS * STAGED];
shared uvec2 staged_halves[HALVES ? UNIT_FOURS * STAGED : 1];

/* BLOCKS: a workgroup has ACROSS units of BLOCK_ROWS rows, in pairs of halves. Each two runs have a
 * word of padding, which avoids bank conflicts. */
const uint ACROSS = gl_WorkGroupSize.x / BLOCK_ROWS;
const uint RUN_PAIRS = RUN_ELEMENTS / 2, PITCH = ACROSS * (2 * RUN_PAIRS + 1);
shared uint staged_pairs[ORDER == DEQUANT_BLOCKS ? BLOCK_ROWS * PITCH : 1];

const uint NO_ROW = 0xffffffff;

/* floor(v + 1/2), without the rounding error of the sum. */
uint row_of(float v)
{
    float below = floor(v);
    float nearest = v - below >= 0.5 ? below + 1 : below;
    if (is_nan(v) || !(nearest >= 0) || nearest >= 4294967296.0)
        return NO_ROW;
    return uint(nearest) < args.rows ? uint(nearest) : NO_ROW;
}

/* The stride in y between the elements of a row. */
uint stride()
{
    return TRANSPOSED ? args.rows : 1;
}

uvec2 narrowed(vec4 v)
{
    if (STORAGE == MATMUL_BF16)
        return uvec2(bf16_pair(v.x, v.y), bf16_pair(v.z, v.w));
    return uvec2(f16_pair(v.x, v.y), f16_pair(v.z, v.w));
}

/* Stages a run as four vec4s, number `first` .. first + 3 of the invocation's unit. */
void stage_run(uint first, uvec4 codes, float scale, float bias)
{
    for (uint i = 0; i < RUN_ELEMENTS / 4; i++) {
        precise vec4 value = scale * code_values(codes[i]) + bias;
        uint at = (first + i) * STAGED + gl_LocalInvocationID.x;
        if (HALVES)
            staged_halves[at] = narrowed(value);
        else
            staged_words[at] = value;
    }
}

/* Units are numbered through all rows. Every row has whole groups of RUNS units, so elements are
 * numbered through all rows, too. */
void store_all()
{
    uint first = group_index() * STAGED;
    barrier();
    for (uint i = gl_LocalInvocationID.x; i < UNIT_FOURS * STAGED; i += STAGED) {
        uint run = i / (RUN_ELEMENTS / 4), second = run / RUNS % 2;
        uint unit = run / (2 * RUNS) * RUNS + run % RUNS;
        uint from = (second * UNIT_FOURS / 2 + i % (RUN_ELEMENTS / 4)) * STAGED + unit;
        uint to = args.y_offset / 4 + first * UNIT_FOURS + i;
        if (first + unit >= args.count)
            continue;
        if (HALVES)
            y_pairs[to] = staged_halves[from];
        else
            y_quads[to] = staged_words[from];
    }
}

uint place_of_pair(uint row, uint pair)
{
    return row * PITCH + pair / (2 * RUN_PAIRS) + pair;
}

/* Stages a run that begins at element `first` of the workgroup's part of a row. */
void stage_pairs(uint row, uint first, uvec4 codes, float scale, float bias)
{
    [[unroll]] for (uint i = 0; i < RUN_ELEMENTS / 4; i++) {
        precise vec4 value = scale * code_values(codes[i]) + bias;
        uvec2 halves = narrowed(value);
        uint at = place_of_pair(row, first / 2 + 2 * i);
        staged_pairs[at] = halves.x;
        staged_pairs[at + 1] = halves.y;
    }
}

/* Decodes ACROSS units of each of BLOCK_ROWS rows, and stores their blocks. */
void store_blocks()
{
    uint parts = (args.units + ACROSS - 1) / ACROSS, band = group_index() / parts;
    uint first = group_index() % parts * ACROSS, inside = gl_LocalInvocationID.x % ACROSS;
    uint row = gl_LocalInvocationID.x / ACROSS, from = min(band * BLOCK_ROWS + row, args.rows - 1);
    unit_codes all = decode_row_unit(args.w_offset + from * args.row_bytes,
                                     min(first + inside, args.units - 1));
    stage_pairs(row, unit_position(inside), all.first, all.scale.x, all.bias.x);
    stage_pairs(row, unit_position(inside) + DISTANCE, all.second, all.scale.y, all.bias.y);
    barrier();
    uint blocks = args.units * UNIT_ELEMENTS / UNIT_K, here = first * UNIT_ELEMENTS / UNIT_K;
    [[unroll]] for (uint n = 0; n < UNIT_ELEMENTS / 8; n++) {
        uint i = n * gl_WorkGroupSize.x + gl_LocalInvocationID.x, across = i / BLOCK;
        uvec4 words;
        [[unroll]] for (uint w = 0; w < 4; w++) {
            uvec2 place = place_of_word(i % BLOCK, w);
            words[w] = staged_pairs[place_of_pair(place.x, across * UNIT_K / 2 + place.y)];
        }
        if (here + across < blocks && band * BLOCK_ROWS < args.count)
            y_octets[args.y_offset / 4 + (band * blocks + here + across) * BLOCK + i % BLOCK] =
                words;
    }
}

void write_run(uint at, uvec4 codes, float scale, float bias)
{
    for (uint i = 0; i < RUN_ELEMENTS; i++) {
        float code = code_at(codes[i >> 2] >> (i & 3) * 8, MASK, 0, CENTER);
        precise float value = scale * code + bias;
        y[at + i * stride()] = value;
    }
}

float plain_value(uint element)
{
    uint at = element * BLOCK_BYTES;
    if (FORMAT == F32)
        return uintBitsToFloat(load4(args.w_offset + at));
    uint bits = load2(args.w_offset + at);
    return FORMAT == F16 ? half_value(bits) : uintBitsToFloat(bits << 16);
}

void main()
{
    uint i = global_index(), length = args.units * (BLOCK_UNITS == 0 ? 1 : UNIT_ELEMENTS);
    if (ORDER == DEQUANT_BLOCKS) {
        store_blocks();
        return;
    }
    if (ORDER == DEQUANT_ALL) {
        uint index = min(i, args.count - 1);
        unit_codes all = decode_row_unit(args.w_offset + index / args.units * args.row_bytes,
                                         index % args.units);
        stage_run(0, all.first, all.scale.x, all.bias.x);
        stage_run(UNIT_FOURS / 2, all.second, all.scale.y, all.bias.y);
        store_all();
        return;
    }
    if (i >= args.count)
        return;
    uint unit, row, at; /* element p of the row goes to y[at + p * stride()] */
    if (TRANSPOSED) {   /* neighbours take neighbouring rows, so their stores coalesce */
        uint j = i % args.rows, matrix = i / args.rows / args.units * args.rows;
        unit = i / args.rows % args.units;
        row = matrix + j;
        at = args.y_offset + matrix * length + j;
    } else {
        unit = i % args.units;
        row = i / args.units;
        if (ORDER == DEQUANT_INDEXED)
            row = row_of(index[args.index_offset + row]);
        at = args.y_offset + i / args.units * length;
    }
    if (BLOCK_UNITS == 0) {
        y[at + unit * stride()] = row == NO_ROW ? 0.0 : plain_value(row * args.units + unit);
        return;
    }
    unit_codes w = unit_codes(uvec4(0), uvec4(0), vec2(0), vec2(0));
    if (row != NO_ROW)
        w = decode_row_unit(args.w_offset + row * args.row_bytes, unit);
    at += unit_position(unit) * stride();
    write_run(at, w.first, w.scale.x, w.bias.x);
    write_run(at + DISTANCE * stride(), w.second, w.scale.y, w.bias.y);
}
