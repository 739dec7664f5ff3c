/*
 * Encoders of the packed formats, for tests, benchmarks and tools. The decoders are normative;
 * these are plain round-to-nearest encoders without a search for better scales.
 *
 * K formats: a sub-block gets a scale (and a minimum) of its own, those are rounded to 6 or 8 bits
 * relative to one binary16 value a block, and the elements are then rounded again with the scales
 * as a decoder will see them.
 */
#include "op/quant_format.h"
#include "graph/half.h"

#include <math.h>

static void store_u16(uint8_t *out, uint32_t value)
{
    out[0] = (uint8_t)value;
    out[1] = (uint8_t)(value >> 8);
}

/* Stores a binary16 and returns it as the decoder will read it. */
static float store_half(uint8_t *out, float value)
{
    uint16_t half = f32_to_f16(value);
    store_u16(out, half);
    return f16_to_f32(half);
}

static float inverse(float scale)
{
    return scale != 0 ? 1.0f / scale : 0.0f;
}

static int saturate(float value, int low, int high)
{
    return value <= (float)low ? low : value >= (float)high ? high : (int)value;
}

static void encode_f32(const float *x, uint8_t *block)
{
    uint32_t bits = f32_bits(x[0]);
    store_u16(block, bits);
    store_u16(block + 2, bits >> 16);
}

static void encode_f16(const float *x, uint8_t *block)
{
    store_u16(block, f32_to_f16(x[0]));
}

static void encode_bf16(const float *x, uint8_t *block)
{
    store_u16(block, f32_to_bf16(x[0]));
}

/* d = max |x| / 127; codes round half away from zero. */
static void encode_q8_0(const float *x, uint8_t *block)
{
    float largest = 0;
    for (int i = 0; i < 32; i++)
        largest = fmaxf(largest, fabsf(x[i]));
    float d = largest / 127.0f, scale = inverse(d);
    store_half(block, d);
    for (int i = 0; i < 32; i++)
        block[2 + i] = (uint8_t)(int8_t)saturate(roundf(x[i] * scale), -127, 127);
}

/* The 12 bytes that hold eight 6-bit scales and eight 6-bit minima: the inverse of the decoder's
 * k_scale_min. */
static void pack_scale_min(const int *scale, const int *minimum, uint8_t *s)
{
    for (int j = 0; j < 4; j++) {
        s[j] = (uint8_t)(scale[j] | (scale[j + 4] >> 4) << 6);
        s[j + 4] = (uint8_t)(minimum[j] | (minimum[j + 4] >> 4) << 6);
        s[j + 8] = (uint8_t)((scale[j + 4] & 15) | (minimum[j + 4] & 15) << 4);
    }
}

/* Scale and minimum of eight sub-blocks, so that x is about scale * 0..15 - minimum. */
static void q4_k_ranges(const float *x, float *scale, float *minimum)
{
    for (int j = 0; j < 8; j++) {
        float low = 0, high = x[32 * j];
        for (int l = 0; l < 32; l++) {
            low = fminf(low, x[32 * j + l]);
            high = fmaxf(high, x[32 * j + l]);
        }
        scale[j] = fmaxf(high - low, 0) / 15.0f;
        minimum[j] = -low;
    }
}

/* Rounds eight non-negative values to 0..63 relative to the largest; returns the value of one unit.
 */
static float six_bits(const float *values, int *codes)
{
    float largest = 0;
    for (int j = 0; j < 8; j++)
        largest = fmaxf(largest, values[j]);
    for (int j = 0; j < 8; j++)
        codes[j] = saturate(rintf(values[j] * inverse(largest) * 63.0f), 0, 63);
    return largest / 63.0f;
}

/* 0: d, 2: dmin, 4: scales[12], 16: qs[128]. */
static void encode_q4_k(const float *x, uint8_t *block)
{
    float scale[8], minimum[8];
    int scale_code[8], minimum_code[8];
    q4_k_ranges(x, scale, minimum);
    float d = store_half(block, six_bits(scale, scale_code));
    float dmin = store_half(block + 2, six_bits(minimum, minimum_code));
    pack_scale_min(scale_code, minimum_code, block + 4);
    memset(block + 16, 0, 128);
    for (int i = 0; i < 256; i++) {
        int j = i / 32;
        float step = d * (float)scale_code[j], offset = dmin * (float)minimum_code[j];
        int q = saturate(rintf((x[i] + offset) * inverse(step)), 0, 15);
        block[16 + 32 * (j / 2) + i % 32] |= (uint8_t)(q << (j % 2 ? 4 : 0));
    }
}

/* Signed scales of sixteen sub-blocks (the value of largest magnitude maps to -32); returns the
 * unit of their i8 codes. */
static float q6_k_scales(const float *x, float *scale)
{
    float largest = 0;
    for (int j = 0; j < 16; j++) {
        float extreme = 0;
        for (int l = 0; l < 16; l++)
            if (fabsf(x[16 * j + l]) > fabsf(extreme))
                extreme = x[16 * j + l];
        scale[j] = extreme / -32.0f;
        if (fabsf(scale[j]) > fabsf(largest))
            largest = scale[j];
    }
    return largest / -128.0f;
}

/* 0: ql[128], 128: qh[64], 192: signed scales[16], 208: d. */
static void encode_q6_k(const float *x, uint8_t *block)
{
    float scale[16];
    int code[16];
    memset(block, 0, 210);
    float unit = q6_k_scales(x, scale);
    float d = store_half(block + 208, unit);
    for (int j = 0; j < 16; j++) {
        code[j] = saturate(rintf(scale[j] * inverse(unit)), -128, 127);
        block[192 + j] = (uint8_t)(int8_t)code[j];
    }
    for (int i = 0; i < 256; i++) {
        int half = i / 128, group = i % 128 / 32, l = i % 32;
        int q = saturate(rintf(x[i] * inverse(d * (float)code[i / 16])), -32, 31) + 32;
        block[64 * half + l + 32 * (group & 1)] |= (uint8_t)((q & 15) << (group >= 2 ? 4 : 0));
        block[128 + 32 * half + l] |= (uint8_t)((q >> 4) << 2 * group);
    }
}

static const struct encoder {
    uint32_t type;
    void (*encode)(const float *x, uint8_t *block);
} encoders[] = {
    {QUANT_F32, encode_f32},   {QUANT_F16, encode_f16},   {QUANT_BF16, encode_bf16},
    {QUANT_Q8_0, encode_q8_0}, {QUANT_Q4_K, encode_q4_k}, {QUANT_Q6_K, encode_q6_k},
};

rlxvk_status quant_encode_row(uint32_t type, const float *values, uint64_t k, void *out)
{
    const quant_format *format = quant_format_find(type);
    const struct encoder *encoder = NULL;
    uint8_t *block = out;
    for (size_t i = 0; i < ARRAY_COUNT(encoders); i++)
        if (encoders[i].type == type)
            encoder = &encoders[i];
    if (encoder == NULL)
        return fail(RLXVK_E_UNSUPPORTED, "%s: no encoder for this type (%u)",
                    format ? format->name : "unknown format", type);
    if (k % format->block_elements != 0)
        return fail(RLXVK_E_SHAPE, "%s: a row of %llu elements is not whole blocks of %u",
                    format->name, (unsigned long long)k, format->block_elements);
    for (uint64_t i = 0; i < k; i += format->block_elements, block += format->block_bytes)
        encoder->encode(values + i, block);
    return RLXVK_OK;
}
