/*
 * Weights computed in f16. If HALVES, take_halves takes a unit and half_pair returns its weights.
 * The includer declares OWN_ROWS and, except for bf16, NEAREST.
 *
 * Group common: d times a product that is exact as a half (for Q6_K rounded once), minus a rounded
 * min. In bf16 this is used only if codes have mins; there the last step is in f32 and subtracts an
 * exact min.
 *
 * Formats of group small without a table: d times the code, plus the min.
 *
 * If there is a min, the last step is an fma. It rounds once, or twice if the device has no fma.
 */
#if DEQUANT_GROUP == DEQUANT_COMMON
#include "packed/half_codes.glsl"
#ifdef IN_BF16
const bool HALVES = FORMAT == Q4_K || FORMAT == Q5_K;
#define FACTOR      float
#define FACTOR_PAIR vec2
#else
const bool HALVES = NEAREST;
#define FACTOR      float16_t
#define FACTOR_PAIR f16vec2
#endif
FACTOR_PAIR least[OWN_ROWS]; /* -dmin m of both runs */
FACTOR d[OWN_ROWS];

/* Unit `index` of the row. It becomes zeros if it is not `inside` the row. */
void take_halves(uint i, unit_raw raw, uint row, uint index, bool inside)
{
    uint unit = place_in_block(index);
    unit_words words = finish(raw, block_at(row, index), unit);
    FACTOR_PAIR mins = FACTOR_PAIR(take_codes(i, words, unit, inside));
    FACTOR_PAIR factors = FACTOR_PAIR(unpackFloat2x16(inside ? words.head.x : 0));
    d[i] = factors.x;
    least[i] = -factors.yy * mins;
#ifdef IN_BF16
    rounding[i] = bf16_rounding(factors.xyxy);
#endif
}

GIVEN_PAIR half_pair(uint i, uint pair)
{
    FACTOR_PAIR w = FACTOR_PAIR(scaled_pair(i, pair));
    if (FORMAT != Q8_0)
        w = fma(w, FACTOR_PAIR(d[i]), is_second(pair) ? least[i].yy : least[i].xx);
#ifdef IN_BF16
    return rounded(i, w);
#else
    return w;
#endif
}
#elif DEQUANT_GROUP == DEQUANT_SMALL && !defined(IN_BF16)
#include "packed/unit_pairs.glsl"
const bool HALVES = NEAREST && !TABLE;
f16vec2 factors[OWN_ROWS]; /* scale and min */

void take_halves(uint i, unit_raw raw, uint row, uint index, bool inside)
{
    unit_codes w = decode_row_raw(raw, row, index);
    set_codes(i, w.first, w.second);
    factors[i] = inside ? f16vec2(w.scale.x, w.bias.x) : f16vec2(0.0);
}

f16vec2 half_pair(uint i, uint pair)
{
    f16vec2 code = unpackFloat2x16(half_codes(i, pair)), center = f16vec2(1024.0 + float(CENTER));
    if (UPPER != 0 && is_second(pair)) /* the code counts 16 times */
        code = fma(code, f16vec2(0.0625), f16vec2(-64.0 - float(CENTER)));
    else
        code -= center;
    return AFFINE ? fma(code, factors[i].xx, factors[i].yy) : code * factors[i].xx;
}
#else
#include "packed/unit_pairs.glsl"
const bool HALVES = false;
#define take_halves(i, raw, row, index, inside)
#define half_pair(i, pair) GIVEN_PAIR(vec2(0.0))
#endif
