#version 450
/*
 * dequant_matvec.glsl in integer arithmetic, for one row of x: Q8_0, Q4_K, Q5_K, Q6_K. x stays in
 * registers while the workgroup goes through many columns.
 *
 * Each group of 32 consecutive elements of x is multiplied by the power of two that brings its
 * largest element to 31 bits, and truncated to integers. Elements of at least 2^-7 of the largest
 * one stay exact; others lose less than 2^-30 of the largest. The four bytes of an integer are its
 * digits; only the highest one is signed. DIGITS 3 is for one row if 16-bit precision is allowed.
 * It has 23 bits in three bytes, and the loss is less than 2^-22.
 *
 * Products of codes and digits are summed exactly in the mantissa of a float, so that no conversion
 * is needed afterwards. Only the sums of a group are rounded. A group that contains an infinity or
 * NaN gives NaN.
 *
 * A team of TEAM invocations, which are whole subgroups, holds the whole row. Each invocation holds
 * a span of 64 elements: four runs of 16 whose codes lie together. The team computes COLUMNS
 * outputs in each round, and loads their words one round ahead. The sums of each subgroup stay in
 * shared memory until all rounds are done. Blocks that are not aligned to 16 bytes are also loaded
 * as aligned vectors of 16 bytes, side by side, and put together in shared memory.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_spirv_intrinsics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "lib/common.glsl"
#include "lib/parts.glsl"
#include "args/packed.h"
#include "matmul/experts.glsl"

layout(push_constant) uniform block { dequant_product_args args; };
layout(constant_id = 7) const bool X_ALIGNED = false;
layout(constant_id = 11) const bool EXPERTS = false;
layout(constant_id = 12) const uint DIGITS = 4; /* 4 or 3 */
layout(constant_id = 13) const uint CHUNK = 8;  /* units of x staged at a time */
layout(constant_id = 14) const uint PARTS = 0;  /* PROJECTION_... */
#define DEQUANT_GROUP DEQUANT_COMMON
#include "packed/dequant.glsl"
#include "packed/dequant_source.glsl"
layout(set = 0, binding = 2) writeonly restrict buffer target { float y[]; };
layout(set = 0, binding = 3) readonly restrict buffer indices { float index[]; };
layout(set = 0, binding = 3) readonly restrict buffer gammas { float gamma[]; };
layout(set = 0, binding = 3) readonly restrict buffer gamma_vectors { vec4 gamma4[]; };
layout(set = 0, binding = 4) readonly restrict buffer residuals { float residual[]; };
#include "lib/projection.glsl"
#include "lib/teams.glsl"

vec4 projected_x(uint element)
{
    return load_x(args.x_offset + element);
}

#define RUNS     4          /* in a span */
#define PACKED   0          /* PackedVectorFormat4x8Bit */
#define SUM_ZERO 0x4b400000 /* the bits of 1.5 * 2^23 */
#define OCTET    8          /* elements of x that an invocation loads at a time */

spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019],
                  id = 4450) int dot_signed(int a, int b, spirv_literal int format);
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019],
                  id = 4451) uint dot_unsigned(uint a, uint b, spirv_literal int format);
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019],
                  id = 4452) int dot_mixed(int a, uint b, spirv_literal int format);

/* OpControlBarrier of the subgroup for shared memory only, because pending global loads need not be
 * finished. */
spirv_instruction(id = 224) void control_barrier(uint execution, uint memory, uint semantics);
#define SCOPE_SUBGROUP 3
#define SHARED_MEMORY  0x108 /* AcquireRelease, WorkgroupMemory */

const uint SPAN_ELEMENTS = RUNS * RUN_ELEMENTS;
const bool PIECES = FORMAT == Q6_K || FORMAT == Q8_0;
/* The most vectors that an invocation loads for one column. */
#define MOST_WORDS 5
const uint WORDS = FORMAT == Q4_K ? 3 : FORMAT == Q6_K ? 4 : MOST_WORDS;
/* The codes of the second group of Q4_K are upper nibbles. They stay in place and so count 16
 * times. The codes of Q6_K are moved to the top of their bytes. */
const bool UPPER_IN_PLACE = FORMAT == Q4_K;
const bool SIGNED_CODES = PIECES;
/* Separate sums: one for each set of runs that share a scale and 32 elements of x. */
const uint GROUPS = FORMAT == Q6_K ? 4 : 2, GROUP_RUNS = RUNS / GROUPS;

const uint SPANS = CHUNK * UNIT_ELEMENTS / SPAN_ELEMENTS;
const uint STAGE_STEP = SPANS + 1; /* odd, to avoid bank conflicts */
const uint X_SIZE = RUNS * DIGITS * STAGE_STEP;
const uint PIECES_SIZE = PIECES ? WORDS * gl_WorkGroupSize.x : 1;
shared uvec4 stage[X_SIZE > PIECES_SIZE ? X_SIZE : PIECES_SIZE];
shared float worths[2 * SPANS], totals[2 * SPANS]; /* of 32 elements: unit of the top digit; sum */

/* ---- Addresses ---- */

uint packed; /* first byte of the matrix */

uint row_start(uint batch, uint c)
{
    return packed + column_of(batch, c, args.n) * args.row_bytes;
}

/* For a run of 16 elements of x: its span, and its run within the span. */
uvec2 place_of(uint run)
{
    if (FORMAT == Q6_K)
        return uvec2(run / 8 * 2 + run % 2, run % 8 / 2);
    return uvec2(run / RUNS, run % RUNS);
}

/* ---- x ---- */

uvec4 held[RUNS][DIGITS];
vec4 worth, total;

const uint SHARE = (CHUNK * UNIT_ELEMENTS / OCTET + gl_WorkGroupSize.x - 1) / gl_WorkGroupSize.x;
vec4 ahead[SHARE][2];

uint octet_element(uint first, uint i)
{
    return first * UNIT_ELEMENTS + OCTET * (i * gl_WorkGroupSize.x + thread());
}

void load_ahead(uint row, uint first)
{
    uint start = args.x_offset + row * args.units * UNIT_ELEMENTS;
    uint last = args.units * UNIT_ELEMENTS - OCTET;
    [[unroll]] for (uint i = 0; i < SHARE; i++) {
        uint element = min(octet_element(first, i), last);
        ahead[i][0] = load_x(start + element);
        ahead[i][1] = load_x(start + element + 4);
    }
}

/* Word d of the result holds digit d of the four integers. */
uvec4 split_digits(uvec4 v)
{
    uvec2 even = v.xz & 0x00ff00ff | (v.yw & 0x00ff00ff) << 8;
    uvec2 odd = v.xz >> 8 & 0x00ff00ff | v.yw & 0xff00ff00;
    uvec2 low = uvec2(even.x & 0xffff | even.y << 16, odd.x & 0xffff | odd.y << 16);
    uvec2 high = uvec2(even.x >> 16 | even.y & 0xffff0000, odd.x >> 16 | odd.y & 0xffff0000);
    return uvec4(low, high);
}

/* The bits of the largest magnitude. Compared as integers, because NaN must count as the
 * largest. */
uint largest_bits(vec4 v)
{
    uvec4 m = floatBitsToUint(v) & 0x7fffffff;
    return max(max(m.x, m.y), max(m.z, m.w));
}

void store_chunk(uint first)
{
    [[unroll]] for (uint i = 0; i < SHARE; i++) {
        uint element = octet_element(first, i), inside = element - first * UNIT_ELEMENTS;
        bool some = inside < CHUNK * UNIT_ELEMENTS && element < args.units * UNIT_ELEMENTS;
        if (NORMALIZED && some) {
            [[unroll]] for (uint h = 0; h < 2; h++) {
                add_squares(ahead[i][h]);
                ahead[i][h] *= load_gamma(args.parts.gamma_offset + element + 4 * h, X_ALIGNED);
            }
        }
        uint exponent = max(largest_bits(ahead[i][0]), largest_bits(ahead[i][1])) >> 23;
        vec4 both = ahead[i][0] + ahead[i][1];
        float sum = (both.x + both.y) + (both.z + both.w);
        exponent = max(exponent, subgroupShuffleXor(exponent, 1));
        exponent = max(exponent, subgroupShuffleXor(exponent, 2));
        sum += subgroupShuffleXor(sum, 1);
        sum += subgroupShuffleXor(sum, 2);
        uint bounded = max(exponent, 11); /* so that `worths` is never subnormal */
        /* 2^(30 or 22 - (exponent - 127)), built from the exponents of two floats. */
        uint power = 379 + 8 * DIGITS - bounded;
        float multiplier = uintBitsToFloat(power / 2 << 23);
        float rest = uintBitsToFloat(power - power / 2 << 23);
        if (some) {
            uvec2 place = place_of(inside / RUN_ELEMENTS);
            [[unroll]] for (uint h = 0; h < 2; h++) {
                uvec4 words = split_digits(uvec4(ivec4(ahead[i][h] * multiplier * rest)));
                [[unroll]] for (uint d = 0; d < DIGITS; d++)
                    stage[(place.y * DIGITS + d) * STAGE_STEP + place.x]
                         [inside / 4 % 4 / 2 * 2 + h] = words[d];
            }
            if (inside % UNIT_ELEMENTS == 0) {
                worths[inside / UNIT_ELEMENTS] =
                    exponent == 255 ? uintBitsToFloat(0x7fc00000)
                                    : uintBitsToFloat(bounded - 6 << 23);
                totals[inside / UNIT_ELEMENTS] = sum;
            }
        }
    }
}

void hold(uint first)
{
    uint span = lane - first / 2;
    if (span >= SPANS || lane * 2 >= args.units)
        return;
    [[unroll]] for (uint r = 0; r < RUNS; r++)
        [[unroll]] for (uint d = 0; d < DIGITS; d++)
            held[r][d] = stage[(r * DIGITS + d) * STAGE_STEP + span];
    [[unroll]] for (uint g = 0; g < GROUPS; g++) {
        uint unit = FORMAT == Q6_K ? span / 2 * 4 + g : 2 * span + g;
        worth[g] = worths[unit];
        total[g] = totals[unit];
    }
    if (UPPER_IN_PLACE)
        worth[1] *= 0.0625;
    if (FORMAT == Q6_K)
        worth *= 0.25;
}

void bring_x(uint row)
{
    [[unroll]] for (uint r = 0; r < RUNS; r++)
        [[unroll]] for (uint d = 0; d < DIGITS; d++)
            held[r][d] = uvec4(0);
    worth = vec4(0);
    total = vec4(0);
    load_ahead(row, 0);
    [[dont_unroll]] for (uint first = 0; first < args.units; first += CHUNK) {
        if (first != 0)
            barrier();
        store_chunk(first);
        barrier();
        if (first + CHUNK < args.units)
            load_ahead(row, first + CHUNK);
        hold(first);
    }
    if (NORMALIZED)
        put_squares(squares);
    if (PIECES)
        barrier();
}

/* ---- Codes ---- */

uvec4 next_words[COLUMNS][MOST_WORDS];

/* The bytes of a row that a subgroup reads, and their start within the bytes of the team. */
uint share_bytes()
{
    return gl_SubgroupSize * (FORMAT == Q8_0 ? 68 : 210) / (FORMAT == Q8_0 ? 1 : 4);
}
uint share_start()
{
    return (lane / gl_SubgroupSize) * share_bytes();
}

void load_words(uint batch, uint c)
{
    uint row = row_start(batch, c);
    if (PIECES) {
        uint first = share_start() / 16;
        uint last = min((share_start() + share_bytes() + 15) / 16, args.row_bytes / 16) - 1;
        [[unroll]] for (uint i = 0; i < WORDS; i++)
            next_words[c][i] = packed4[row / 16 + min(first + i * gl_SubgroupSize +
                                                      gl_SubgroupInvocationID, last)];
        return;
    }
    uint span = min(lane, args.units / 2 - 1);
    uint block = row + span / 4 * BLOCK_BYTES, codes = block + (FORMAT == Q5_K ? 48 : 16);
    next_words[c][0] = load16(block);
    next_words[c][1] = load16(codes + span % 4 * 32);
    next_words[c][2] = load16(codes + span % 4 * 32 + 16);
    if (FORMAT == Q5_K) {
        next_words[c][3] = load16(block + 16);
        next_words[c][4] = load16(block + 32);
    }
}

struct span_codes {
    uvec4 runs[RUNS];
    vec4 scale, bias; /* for each group */
};

span_codes decode_k(uvec4 w[MOST_WORDS])
{
    span_codes s;
    vec2 scale, bias;
    uint pair = lane % 4;
    decode_scale_min(w[0], 2 * pair, scale, bias);
    s.scale = vec4(scale, 0, 0);
    s.bias = vec4(bias, 0, 0);
    [[unroll]] for (uint i = 0; i < 2; i++) {
        s.runs[i] = w[1 + i] & NIBBLES;
        s.runs[2 + i] = UPPER_IN_PLACE ? w[1 + i] & NIBBLES << 4 : w[1 + i] >> 4 & NIBBLES;
        if (FORMAT == Q5_K) {
            uvec4 fifth = w[3 + i] >> 2 * pair;
            s.runs[i] |= (fifth & BITS) << 4;
            s.runs[2 + i] |= (fifth >> 1 & BITS) << 4;
        }
    }
    return s;
}

/* Words of the pieces, starting at word `at`. If `upper`, the first byte is that of the upper half
 * of a word. */
uint piece_word(uint at)
{
    return stage[at >> 2][at & 3];
}
uvec4 piece_words(uint at, bool upper)
{
    uvec4 a = uvec4(piece_word(at), piece_word(at + 1), piece_word(at + 2), piece_word(at + 3));
    uvec4 b = uvec4(a.yzw, piece_word(at + 4));
    return upper ? a >> 16 | b << 16 : a;
}

span_codes decode_q8_0(uint at)
{
    span_codes s;
    uint w[17];
    [[unroll]] for (uint i = 0; i < 17; i++)
        w[i] = piece_word(at + i);
    [[unroll]] for (uint i = 0; i < 4; i++) {
        s.runs[0][i] = w[i] >> 16 | w[i + 1] << 16;
        s.runs[1][i] = w[i + 4] >> 16 | w[i + 5] << 16;
        s.runs[2][i] = w[i + 9];
        s.runs[3][i] = w[i + 13];
    }
    s.scale = vec4(half_value(w[0] & 0xffff), half_value(w[8] >> 16), 0, 0);
    s.bias = vec4(0);
    return s;
}

span_codes decode_q6_k(uint block)
{
    span_codes s;
    uint part = lane % 4, at = block / 4, half_words = part / 2 * 16, run_words = part % 2 * 4;
    bool upper = (block & 2) != 0;
    uvec4 a = piece_words(at + half_words + run_words, upper);
    uvec4 b = piece_words(at + half_words + 8 + run_words, upper);
    uvec4 high = piece_words(at + 32 + half_words / 2 + run_words, upper);
    const uint LOW = 0x3c3c3c3c, HIGH = 0xc0c0c0c0, SIGN = 0x80808080;
    s.runs[0] = a << 2 & LOW | (high << 6 & HIGH ^ SIGN);
    s.runs[1] = b << 2 & LOW | (high << 4 & HIGH ^ SIGN);
    s.runs[2] = a >> 2 & LOW | (high << 2 & HIGH ^ SIGN);
    s.runs[3] = b >> 2 & LOW | (high & HIGH ^ SIGN);
    uint scales = at + 48 + part / 2 * 2;
    uint w0 = piece_word(scales), w1 = piece_word(scales + 1), w2 = piece_word(scales + 2);
    uvec2 eight = upper ? uvec2(w0 >> 16 | w1 << 16, w1 >> 16 | w2 << 16) : uvec2(w0, w1);
    eight = eight >> part % 2 * 8;
    uint end = piece_word(at + 52);
    float d = half_value(upper ? end >> 16 : end & 0xffff);
    s.scale = d * vec4(signed_byte(eight.x), signed_byte(eight.x >> 16), signed_byte(eight.y),
                       signed_byte(eight.y >> 16));
    s.bias = vec4(0);
    return s;
}

/* Decodes the words of column c. Afterwards their registers are free. */
span_codes decode(uint c)
{
    if (!PIECES)
        return decode_k(next_words[c]);
    uint scratch = gl_SubgroupID * gl_SubgroupSize * WORDS;
    control_barrier(SCOPE_SUBGROUP, SCOPE_SUBGROUP, SHARED_MEMORY);
    [[unroll]] for (uint i = 0; i < WORDS; i++)
        stage[scratch + i * gl_SubgroupSize + gl_SubgroupInvocationID] = next_words[c][i];
    control_barrier(SCOPE_SUBGROUP, SCOPE_SUBGROUP, SHARED_MEMORY);
    uint mine = min(lane, args.units / 2 - 1) % gl_SubgroupSize;
    uint start = 16 * scratch + share_start() % 16;
    if (FORMAT == Q8_0)
        return decode_q8_0((start + 68 * mine) / 4);
    return decode_q6_k(start + 210 * (mine / 4));
}

/* ---- Products ---- */

/* Adds the products of 16 codes with each digit of 16 elements. */
ivec4 add_run(ivec4 sums, uvec4 codes, uvec4 digits[DIGITS])
{
    [[unroll]] for (uint i = 0; i < 4; i++) {
        [[unroll]] for (uint d = 0; d < DIGITS - 1; d++) {
            if (SIGNED_CODES)
                sums[d] += dot_mixed(int(codes[i]), digits[d][i], PACKED);
            else
                sums[d] += int(dot_unsigned(codes[i], digits[d][i], PACKED));
        }
        int top = int(digits[DIGITS - 1][i]);
        if (SIGNED_CODES)
            sums[DIGITS - 1] += dot_signed(int(codes[i]), top, PACKED);
        else
            sums[DIGITS - 1] += dot_mixed(top, codes[i], PACKED);
    }
    return sums;
}

/* The sums of all digits as one value, in units of the highest digit. */
float value_of(ivec4 sums)
{
    precise vec4 digit = intBitsToFloat(sums);
    digit -= intBitsToFloat(SUM_ZERO);
    float value = digit.x;
    [[unroll]] for (uint d = 1; d < DIGITS; d++)
        value = value * 0.00390625 + digit[d]; /* 1 / 256 */
    return value;
}

float product(span_codes s)
{
    float sum = 0;
    [[unroll]] for (uint g = 0; g < GROUPS; g++) {
        ivec4 sums = ivec4(SUM_ZERO);
        [[unroll]] for (uint r = g * GROUP_RUNS; r < (g + 1) * GROUP_RUNS; r++)
            sums = add_run(sums, s.runs[r], held[r]);
        sum += s.scale[g] * (worth[g] * value_of(sums));
        if (AFFINE)
            sum += s.bias[g] * total[g];
    }
    return 2 * lane < args.units ? sum : 0;
}

uint row; /* of x */

uint place_output(uint column)
{
    return args.y_offset +
           place_in_parts(row, column, args.m, GATED ? args.n / 2 : args.n, args.ends);
}

void main()
{
    row = find_team(args.n);
    if (row >= args.m)
        return;
    uint expert = EXPERTS ? expert_of(index[args.index_offset + row], args.experts) : 0;
    bool none = EXPERTS && expert >= args.experts;
    packed = args.w_offset + (none ? 0 : expert) * args.n * args.row_bytes;

    [[unroll]] for (uint c = 0; c < COLUMNS; c++)
        load_words(min(batch_of(team, 0), batches - 1), c);
    bring_x(row);
    [[dont_unroll]] for (uint round = 0; round < ROUNDS; round++) {
        /* If there are barriers, all subgroups must run every round, because a software driver
         * makes subgroup barriers workgroup barriers. */
        if (!PIECES && batch_of(team, round) >= batches)
            break;
        uint following = following_batch(round);
        float sum[COLUMNS];
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
            span_codes s = decode(c);
            load_words(following, c);
            sum[c] = none ? 0.0 : product(s);
        }
        put_partial(round, sum);
    }
    barrier();
    store_outputs(args.n, args.units * UNIT_ELEMENTS,
                  args.parts.residual_offset + row * (GATED ? args.n / 2 : args.n),
                  args.parts.epsilon);
}
