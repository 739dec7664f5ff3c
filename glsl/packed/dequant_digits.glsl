/*
 * x in integers, for dequant_matvec.glsl with Q4_K and Q5_K, where hardware adds the products of
 * four bytes in one instruction and lanes of a subgroup can shuffle.
 *
 * A group of 32 consecutive elements is multiplied by the power of two that brings the largest to
 * 31 bits, and cut to integers: what is at least 2^-7 of the largest stays exact, the rest loses
 * less than 2^-30 of it. The four bytes of an integer are its digits, the highest signed. Codes
 * times digits add up exactly, in the mantissa of a float, which needs no conversion then; only the
 * four sums of a group are rounded. A group that holds an infinity or NaN gives NaN.
 *
 * An invocation takes a span at a time: two units of each column, which share scales and hold the
 * codes of two groups. It loads the next span's words before it works on this one's. In shared
 * memory, vectors of the same place in their spans lie side by side, in two buffers: a chunk is
 * stored while others work on the one before.
 */
#define SPAN     2 /* units */
#define DIGITS   4
#define PACKED   0          /* PackedVectorFormat4x8Bit */
#define SUM_ZERO 0x4b400000 /* the bits of 1.5 * 2^23 */

spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019],
                  id = 4451) uint dot_unsigned(uint a, uint b, spirv_literal int format);
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019],
                  id = 4452) int dot_mixed(int a, uint b, spirv_literal int format);

/* The second group's codes are upper nibbles: left where they are, they count 16 times. */
const bool UPPER_IN_PLACE = MASK == 15;
const uint BUFFER = CHUNK / SPAN;
const uint STAGE_STEP = 2 * BUFFER + 1;         /* odd, for the banks */
shared uvec4 stage[4 * DIGITS * STAGE_STEP];    /* of a span's four runs, group by group */
shared vec4 factors[CHUNK == 0 ? 1 : 2 * BUFFER]; /* of a span's groups: the worth of 2^24 in
                                                     integers; the sum of the elements */

/* ---- x ---- */

struct run {
    vec4 x[RUN_ELEMENTS / 4];
};

float run_sum(run a)
{
    vec4 part = (a.x[0] + a.x[1]) + (a.x[2] + a.x[3]);
    return (part.x + part.y) + (part.z + part.w);
}

/* Of the x that each subgroup brought. */
shared float square_sums[NORMALIZED ? gl_WorkGroupSize.x : 1];

/* The runs that the invocation brings of the next chunk. */
run ahead[CHUNK == 0 ? 1 : (2 * CHUNK + gl_WorkGroupSize.x - 1) / gl_WorkGroupSize.x];

run load_run_from(uint element)
{
    return run(vec4[](load_x(element), load_x(element + 4), load_x(element + 8),
                      load_x(element + 12)));
}

/* Of the units from `first` on; past the last, its runs again. They are used in store_chunk. */
void load_ahead(uint row, uint first)
{
    uint last = 2 * args.units - 1;
    [[unroll]] for (uint v = 0; v < ahead.length(); v++) {
        uint i = v * gl_WorkGroupSize.x + thread();
        ahead[v] = load_run_from(row_start(row) + RUN_ELEMENTS * min(2 * first + i, last));
    }
}

/* Where the spans lie of the chunk from `first` on. */
uint buffer_of(uint first)
{
    return first / CHUNK % 2 * BUFFER;
}

/* Digit d of four integers -> word d. */
uvec4 split_digits(uvec4 v)
{
    uvec2 even = v.xz & 0x00ff00ff | (v.yw & 0x00ff00ff) << 8;
    uvec2 odd = v.xz >> 8 & 0x00ff00ff | v.yw & 0xff00ff00;
    uvec2 low = uvec2(even.x & 0xffff | even.y << 16, odd.x & 0xffff | odd.y << 16);
    uvec2 high = uvec2(even.x >> 16 | even.y & 0xffff0000, odd.x >> 16 | odd.y & 0xffff0000);
    return uvec4(low, high);
}

/* The exponent bits of the largest. By integers: NaN must count as largest. */
uint run_exponent(run a)
{
    uvec4 largest = uvec4(0);
    [[unroll]] for (uint i = 0; i < RUN_ELEMENTS / 4; i++)
        largest = max(largest, floatBitsToUint(a.x[i]) & 0x7fffffff);
    return max(max(largest.x, largest.y), max(largest.z, largest.w)) >> 23;
}

/* What 2^24 in integers is worth where the group's largest element has this exponent. */
float worth_of(uint exponent, uint second)
{
    float worth = uintBitsToFloat(exponent - 6 << 23);
    return UPPER_IN_PLACE && second != 0 ? worth * 0.0625 : worth;
}

/* `place`: of the run in the span. */
void store_run(run a, uint exponent, uint span, uint place)
{
    uint power = 411 - exponent; /* 2^(30 - (exponent - 127)) by the exponents of two floats */
    float multiplier = uintBitsToFloat(power / 2 << 23);
    float rest = uintBitsToFloat(power - power / 2 << 23);
    uvec4 digits[DIGITS];
    [[unroll]] for (uint i = 0; i < RUN_ELEMENTS / 4; i++) {
        uvec4 words = split_digits(uvec4(ivec4(a.x[i] * multiplier * rest)));
        [[unroll]] for (uint d = 0; d < DIGITS; d++)
            digits[d][i] = words[d];
    }
    [[unroll]] for (uint d = 0; d < DIGITS; d++)
        stage[(place * DIGITS + d) * STAGE_STEP + span] = digits[d];
}

void normalize_run(inout run a, uint element)
{
    [[unroll]] for (uint i = 0; i < RUN_ELEMENTS / 4; i++)
        a.x[i] = normalized(a.x[i], element + 4 * i, true);
}

/* Adds this chunk's to what the subgroup had before, which its first lane alone knows. */
void count_squares(uint first)
{
    for (uint reach = gl_SubgroupSize / 2; reach > 0; reach /= 2)
        squares += subgroupShuffleXor(squares, reach);
    if (gl_SubgroupInvocationID == 0)
        square_sums[gl_SubgroupID] = first == 0 ? squares : square_sums[gl_SubgroupID] + squares;
}

/* The chunk from `first` on, which was loaded last. Neighbours store the two runs of a group. */
void store_chunk(uint first)
{
    squares = 0;
    [[unroll]] for (uint v = 0; v < ahead.length(); v++) {
        uint i = v * gl_WorkGroupSize.x + thread(), place = i % 4, span = buffer_of(first) + i / 4;
        if (NORMALIZED && i < 2 * CHUNK && 2 * first + i < 2 * args.units)
            normalize_run(ahead[v], RUN_ELEMENTS * (2 * first + i));
        uint exponent = run_exponent(ahead[v]);
        float total = run_sum(ahead[v]);
        exponent = max(exponent, subgroupShuffleXor(exponent, 1));
        total += subgroupShuffleXor(total, 1);
        uint bounded = max(exponent, 11); /* so that its worth is no denormal */
        if (i < 2 * CHUNK) {
            store_run(ahead[v], bounded, span, place);
            if (place % 2 == 0) {
                factors[span][place / 2] =
                    exponent == 255 ? uintBitsToFloat(0x7fc00000) : worth_of(bounded, place / 2);
                factors[span][2 + place / 2] = total;
            }
        }
    }
    if (NORMALIZED)
        count_squares(first);
}

/* ---- Codes ---- */

unit_words next_words[COLUMNS][SPAN];

/* Of the two units from `unit` on, or of the last. */
void load_words(uint packed, uint first_column, uint unit)
{
    uint index = min(unit, args.units - SPAN);
    [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
        uint block = column_start(packed, first_column, c) + index / BLOCK_UNITS * BLOCK_BYTES;
        next_words[c] = unit_words[](load_k_unit(block, index % BLOCK_UNITS),
                                     load_k_unit(block, index % BLOCK_UNITS | 1));
    }
}

/* A byte each. */
uvec4 run_codes(unit_codes w, uint second)
{
    if (UPPER_IN_PLACE)
        return w.first & (second != 0 ? NIBBLES << 4 : NIBBLES);
    return second != 0 ? w.second : w.first;
}

/* ---- Products ---- */

/* The products of 16 codes with each digit of 16 elements. */
ivec4 add_run(ivec4 sums, uvec4 codes, uvec4 digits[DIGITS])
{
    [[unroll]] for (uint i = 0; i < 4; i++) {
        [[unroll]] for (uint d = 0; d < DIGITS - 1; d++)
            sums[d] += int(dot_unsigned(codes[i], digits[d][i], PACKED));
        sums[DIGITS - 1] += dot_mixed(int(digits[DIGITS - 1][i]), codes[i], PACKED);
    }
    return sums;
}

/* In units of 2^24. */
float value_of(ivec4 sums)
{
    precise vec4 digit = intBitsToFloat(sums);
    digit -= intBitsToFloat(SUM_ZERO);
    const float next = 0.00390625; /* 1 / 256 */
    return ((digit.x * next + digit.y) * next + digit.z) * next + digit.w;
}

/* Adds the products of the span of every column whose first unit is `unit`; `span`: where its x
 * lies. */
void add_span(uint packed, uint first_column, uint unit, uint span, inout float sum[SUMS])
{
    unit_codes w[COLUMNS][SPAN];
    [[unroll]] for (uint i = 0; i < COLUMNS * SPAN; i++)
        w[i / SPAN][i % SPAN] =
            decode_k_unit(next_words[i / SPAN][i % SPAN], unit % BLOCK_UNITS | i % SPAN);
    load_words(packed, first_column, unit + SPAN * TEAM);
    vec4 factor = factors[span];
    [[unroll]] for (uint second = 0; second < 2; second++) {
        ivec4 sums[COLUMNS];
        [[unroll]] for (uint c = 0; c < COLUMNS; c++)
            sums[c] = ivec4(SUM_ZERO);
        [[unroll]] for (uint run = 0; run < 2; run++) {
            uvec4 digits[DIGITS];
            [[unroll]] for (uint d = 0; d < DIGITS; d++)
                digits[d] = stage[((2 * second + run) * DIGITS + d) * STAGE_STEP + span];
            [[unroll]] for (uint c = 0; c < COLUMNS; c++)
                sums[c] = add_run(sums[c], run_codes(w[c][run], second), digits);
        }
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
            sum[c] += w[c][0].scale[second] * (factor[second] * value_of(sums[c]));
            sum[c] += w[c][0].bias[second] * factor[2 + second];
        }
    }
}

void add_units(uint packed, uint first_column, uint row, uint units, uint lane,
               inout float sum[SUMS])
{
    if (units == 0)
        return;
    load_words(packed, first_column, SPAN * lane);
    load_ahead(row, 0);
    [[dont_unroll]] for (uint first = 0; first < units; first += CHUNK) {
        store_chunk(first);
        barrier();
        if (first + CHUNK < units)
            load_ahead(row, first + CHUNK);
        uint end = min(first + CHUNK, units);
        [[dont_unroll]] for (uint unit = first + SPAN * lane; unit < end; unit += SPAN * TEAM)
            add_span(packed, first_column, unit, buffer_of(first) + (unit - first) / SPAN, sum);
    }
}

/* The team is within a subgroup. The last chunk was stored before the last barrier. */
void store_sums(uint first_column, uint row, uint team, uint lane, float sum[SUMS])
{
    float square_sum = 0;
    for (uint i = 0; NORMALIZED && i < gl_NumSubgroups; i++)
        square_sum += square_sums[i];
    if (NORMALIZED)
        set_factor(square_sum, args.units * UNIT_ELEMENTS, args.parts.epsilon);
    [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
        for (uint reach = TEAM / 2; reach > 0; reach /= 2)
            sum[c] += subgroupShuffleXor(sum[c], reach);
    }
    [[unroll]] for (uint c = 0; c < OUTPUTS; c++)
        if (lane == c % TEAM)
            store_sum(first_column, row, c, sum[c], GATED ? sum[c + OUTPUTS] : 0.0);
}
