/*
 * Encoders of the 256-element formats. Each sub-block has a scale (and a minimum) of its own. These
 * are rounded to a few bits relative to one binary16 value per block. Then the elements are rounded
 * with the scales as a decoder will see them.
 *
 * If a format has a minimum, x is about scale * code - minimum with minimum = max(0, -min x). If it
 * has none, scales have a sign, because the value of largest magnitude gets the lowest code.
 */
#include "op/packed/quant_encode.h"
#include "base/numeric.h"
#include "op/packed/quant_codec.h"

/* ---- Scale and minimum: Q2_K, Q4_K, Q5_K ---- */

typedef struct affine_scales {
    float d, dmin; /* as stored */
    int scale[16], minimum[16];
} affine_scales;

/* Rounds `count` values that are not negative to 0 .. most, relative to the largest. Returns the
 * unit. */
static float round_scales(const float *values, int count, int most, int *codes)
{
    float largest = 0;
    for (int j = 0; j < count; j++)
        largest = values[j] > largest ? values[j] : largest;
    for (int j = 0; j < count; j++)
        codes[j] = largest > 0 ? saturate(rintf(values[j] / largest * (float)most), 0, most) : 0;
    return largest / (float)most;
}

/* Fits `count` sub-blocks with element codes 0 .. top and scale codes 0 .. most. Stores d and dmin
 * at `halves`. */
static void affine_fit(const float *x, int count, int top, int most, uint8_t *halves,
                       affine_scales *s)
{
    float scale[16], minimum[16];
    for (int j = 0; j < count; j++) {
        const float *sub = x + 256 / count * j;
        float low = 0, high = sub[0];
        widen_range(sub, 256 / count, &low, &high);
        scale[j] = (high - low) / (float)top;
        minimum[j] = -low;
    }
    s->d = store_half(halves, round_scales(scale, count, most, s->scale));
    s->dmin = store_half(halves + 2, round_scales(minimum, count, most, s->minimum));
}

static int affine_code(const affine_scales *s, int j, float x, int top)
{
    float step = s->d * (float)s->scale[j], offset = s->dmin * (float)s->minimum[j];
    return step != 0 ? saturate(rintf((x + offset) / step), 0, top) : 0;
}

/* Two-bit codes: bits 2g, 2g + 1 of byte 32H + l. */
static void put_two_bits(uint8_t *qs, int i, int code)
{
    qs[32 * (i / 128) + i % 32] |= (uint8_t)(code << 2 * (i % 128 / 32));
}

/* 0: scales[16], 16: qs[64], 80: d, 82: dmin. */
void quant_encode_q2_k(const float *x, uint8_t *block)
{
    affine_scales s;
    memset(block, 0, 84);
    affine_fit(x, 16, 3, 15, block + 80, &s);
    for (int j = 0; j < 16; j++)
        block[j] = (uint8_t)(s.scale[j] | s.minimum[j] << 4);
    for (int i = 0; i < 256; i++)
        put_two_bits(block + 16, i, affine_code(&s, i / 16, x[i], 3));
}

/* Packs eight 6-bit scales and eight 6-bit minima into 12 bytes. This is the inverse of the
 * decoder's k_scale_min. */
static void pack_scale_min(const affine_scales *a, uint8_t *s)
{
    const int *scale = a->scale, *minimum = a->minimum;
    for (int j = 0; j < 4; j++) {
        s[j] = (uint8_t)(scale[j] | (scale[j + 4] >> 4) << 6);
        s[j + 4] = (uint8_t)(minimum[j] | (minimum[j + 4] >> 4) << 6);
        s[j + 8] = (uint8_t)((scale[j + 4] & 15) | (minimum[j + 4] & 15) << 4);
    }
}

/* 0: d, 2: dmin, 4: scales[12]. The fifth bits of codes are at `high`, which is NULL for Q4_K. */
static void encode_k_affine(const float *x, uint8_t *block, uint8_t *high, uint8_t *qs)
{
    affine_scales s;
    int top = high ? 31 : 15;
    affine_fit(x, 8, top, 63, block, &s);
    pack_scale_min(&s, block + 4);
    for (int i = 0; i < 256; i++) {
        int j = i / 32, l = i % 32, code = affine_code(&s, j, x[i], top);
        qs[32 * (j / 2) + l] |= (uint8_t)((code & 15) << (j % 2 ? 4 : 0));
        if (high)
            high[l] |= (uint8_t)(code >> 4 << j);
    }
}

void quant_encode_q4_k(const float *x, uint8_t *block)
{
    memset(block, 0, 144);
    encode_k_affine(x, block, NULL, block + 16);
}

void quant_encode_q5_k(const float *x, uint8_t *block)
{
    memset(block, 0, 176);
    encode_k_affine(x, block, block + 16, block + 48);
}

/* ---- Signed scales: Q3_K, Q6_K, IQ4_XS ---- */

/* Fits `count` sub-blocks. The extreme of each maps to code `lowest`, and the scale of largest
 * magnitude maps to -bound. Codes of scales are -bound .. bound - 1. Stores d and returns it as
 * stored. */
static float signed_fit(const float *x, int count, float lowest, int bound, uint8_t *half,
                        int *codes)
{
    float scale[16];
    for (int j = 0; j < count; j++)
        scale[j] = extreme(x + 256 / count * j, 256 / count) / lowest;
    float d = extreme(scale, count) / (float)-bound;
    for (int j = 0; j < count; j++)
        codes[j] = d != 0 ? saturate(rintf(scale[j] / d), -bound, bound - 1) : 0;
    return store_half(half, d);
}

static int signed_code(float step, float x, int low, int high)
{
    return step != 0 ? saturate(rintf(x / step), low, high) : 0;
}

/* Packs sixteen 6-bit scales, after adding 32. Low nibbles are in bytes 0 .. 7, the upper two bits
 * in bytes 8 .. 11. */
static void pack_q3_k_scales(const int *codes, uint8_t *s)
{
    for (int j = 0; j < 16; j++) {
        int code = codes[j] + 32;
        s[j % 8] |= (uint8_t)((code & 15) << (j >= 8 ? 4 : 0));
        s[8 + j % 4] |= (uint8_t)(code >> 4 << 2 * (j / 4));
    }
}

/* 0: hmask[32], 32: qs[64], 96: scales[12], 108: d. */
void quant_encode_q3_k(const float *x, uint8_t *block)
{
    int codes[16];
    memset(block, 0, 110);
    float d = signed_fit(x, 16, -4, 32, block + 108, codes);
    pack_q3_k_scales(codes, block + 96);
    for (int i = 0; i < 256; i++) {
        int q = signed_code(d * (float)codes[i / 16], x[i], -4, 3) + 4;
        put_two_bits(block + 32, i, q & 3);
        block[i % 32] |= (uint8_t)(q >> 2 << i / 32);
    }
}

/* 0: ql[128], 128: qh[64], 192: signed scales[16], 208: d. */
void quant_encode_q6_k(const float *x, uint8_t *block)
{
    int codes[16];
    memset(block, 0, 210);
    float d = signed_fit(x, 16, -32, 128, block + 208, codes);
    for (int j = 0; j < 16; j++)
        block[192 + j] = (uint8_t)(int8_t)codes[j];
    for (int i = 0; i < 256; i++) {
        int half = i / 128, group = i % 128 / 32, l = i % 32;
        int q = signed_code(d * (float)codes[i / 16], x[i], -32, 31) + 32;
        block[64 * half + l + 32 * (group & 1)] |= (uint8_t)((q & 15) << (group >= 2 ? 4 : 0));
        put_two_bits(block + 128, i, q >> 4);
    }
}

/* 0: d, 2: upper scale bits, 4: lower scale nibbles[4], 8: qs[128]. */
void quant_encode_iq4_xs(const float *x, uint8_t *block)
{
    int codes[8];
    uint32_t high = 0;
    memset(block, 0, 136);
    float d = signed_fit(x, 8, -127, 32, block, codes);
    for (int j = 0; j < 8; j++) {
        int code = codes[j] + 32;
        block[4 + j / 2] |= (uint8_t)((code & 15) << (j % 2 ? 4 : 0));
        high |= (uint32_t)(code >> 4) << 2 * j;
    }
    store_u16(block + 2, high);
    for (int i = 0; i < 256; i++) {
        float step = d * (float)codes[i / 32];
        put_nibble(block + 8 + 16 * (i / 32), i % 32,
                   quant_iq4_nearest(step != 0 ? x[i] / step : 0));
    }
}

/* ---- One scale: Q8_K, TQ1_0, TQ2_0 ---- */

/* 0: d as f32, 4: q[256], 260: the sum of each 16 of them. */
void quant_encode_q8_k(const float *x, uint8_t *block)
{
    float d = -extreme(x, 256) / 127.0f;
    int sums[16] = {0};
    store_u32(block, f32_bits(d + 0.0f)); /* no -0 if all are 0 */
    for (int i = 0; i < 256; i++) {
        int q = signed_code(d, x[i], -127, 127);
        block[4 + i] = (uint8_t)(int8_t)q;
        sums[i / 16] += q;
    }
    for (int j = 0; j < 16; j++)
        store_u16(block + 260 + 2 * j, (uint32_t)sums[j]);
}

/* 0, 1 or 2 for -d, 0 and d; d is the largest magnitude. */
static int ternary_code(float x, float scale)
{
    return saturate(numeric_roundf(x * scale) + 1, 0, 2);
}

/* Finds the byte of element i of TQ1_0, and its digit in that byte. A byte has five base-3 digits;
 * the last four bytes have four. */
static void find_digit(int i, int *byte, int *digit)
{
    int start = i < 160 ? 0 : i < 240 ? 160 : 240;
    int stride = i < 160 ? 32 : i < 240 ? 16 : 4;
    *byte = (i < 160 ? 0 : i < 240 ? 32 : 48) + (i - start) % stride;
    *digit = (i - start) / stride;
}

/* 0: bytes of digits[52], 52: d. A byte has its digits as a fraction of 3^5, in 256ths, rounded
 * up. */
void quant_encode_tq1_0(const float *x, uint8_t *block)
{
    static const int weights[5] = {81, 27, 9, 3, 1};
    float d = fabsf(extreme(x, 256)), scale = inverse(d);
    int values[52] = {0};
    for (int i = 0; i < 256; i++) {
        int byte, digit;
        find_digit(i, &byte, &digit);
        values[byte] += weights[digit] * ternary_code(x[i], scale);
    }
    for (int i = 0; i < 52; i++)
        block[i] = (uint8_t)((values[i] * 256 + 242) / 243);
    store_half(block + 52, d);
}

/* 0: qs[64], 64: d. */
void quant_encode_tq2_0(const float *x, uint8_t *block)
{
    float d = fabsf(extreme(x, 256)), scale = inverse(d);
    memset(block, 0, 66);
    store_half(block + 64, d);
    for (int i = 0; i < 256; i++)
        put_two_bits(block, i, ternary_code(x[i], scale));
}
