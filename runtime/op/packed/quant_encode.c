/*
 * Encoders of the packed formats: single elements, and blocks of up to 128. Those of 256 are in
 * quant_encode_k.c. The decoders define the formats. These encoders round to nearest with the plain
 * scale of the block's extremes; they do not search for better scales.
 *
 * In the small formats, codes are rounded with the scale in f32, before it is stored as binary16.
 * Grid formats (IQ1, IQ2, IQ3) have no encoder, because their few levels are useless if it is not
 * known which weights matter.
 */
#include "op/packed/quant_encode.h"
#include "base/numeric.h"
#include "op/packed/quant_codec.h"

static void encode_f32(const float *x, uint8_t *block)
{
    store_u32(block, f32_bits(x[0]));
}

static void encode_f16(const float *x, uint8_t *block)
{
    store_u16(block, f32_to_f16(x[0]));
}

static void encode_bf16(const float *x, uint8_t *block)
{
    store_u16(block, f32_to_bf16(x[0]));
}

/* ---- 32 elements ---- */

static void encode_q4_0(const float *x, uint8_t *block)
{
    float d = extreme(x, 32) / -8.0f, scale = inverse(d);
    memset(block, 0, 18);
    store_half(block, d);
    for (int i = 0; i < 32; i++)
        put_nibble(block + 2, i, saturate(x[i] * scale + 8.5f, 0, 15));
}

/* Divides the range of 32 elements into `steps` steps. It writes their size and the least element
 * to the start of the block's `bytes` bytes, and clears the rest. Returns the inverse of the
 * size. */
static float store_range(const float *x, uint8_t *block, size_t bytes, float steps, float *out_low)
{
    float low = x[0], high = x[0];
    widen_range(x, 32, &low, &high);
    float d = (high - low) / steps;
    memset(block, 0, bytes);
    store_half(block, d);
    store_half(block + 2, low);
    *out_low = low;
    return inverse(d);
}

static void encode_q4_1(const float *x, uint8_t *block)
{
    float low, scale = store_range(x, block, 20, 15, &low);
    for (int i = 0; i < 32; i++)
        put_nibble(block + 4, i, saturate((x[i] - low) * scale + 0.5f, 0, 15));
}

/* Stores a five-bit code. Its fifth bit is bit i of the word at `high`. */
static void put_five(uint8_t *high, uint8_t *qs, int i, int code)
{
    put_nibble(qs, i, code & 15);
    high[i / 8] |= (uint8_t)(code >> 4 << i % 8);
}

static void encode_q5_0(const float *x, uint8_t *block)
{
    float d = extreme(x, 32) / -16.0f, scale = inverse(d);
    memset(block, 0, 22);
    store_half(block, d);
    for (int i = 0; i < 32; i++)
        put_five(block + 2, block + 6, i, saturate(x[i] * scale + 16.5f, 0, 31));
}

static void encode_q5_1(const float *x, uint8_t *block)
{
    float low, scale = store_range(x, block, 24, 31, &low);
    for (int i = 0; i < 32; i++)
        put_five(block + 4, block + 8, i, saturate((x[i] - low) * scale + 0.5f, 0, 31));
}

static void encode_q8_0(const float *x, uint8_t *block)
{
    float d = fabsf(extreme(x, 32)) / 127.0f, scale = inverse(d);
    store_half(block, d);
    for (int i = 0; i < 32; i++)
        block[2 + i] = (uint8_t)(int8_t)saturate(numeric_roundf(x[i] * scale), -127, 127);
}

static void encode_iq4_nl(const float *x, uint8_t *block)
{
    float d = extreme(x, 32) / -127.0f, scale = inverse(d);
    memset(block, 0, 18);
    store_half(block, d);
    for (int i = 0; i < 32; i++)
        put_nibble(block + 2, i, quant_iq4_nearest(x[i] * scale));
}

static void encode_mxfp4(const float *x, uint8_t *block)
{
    memset(block, 0, 17);
    block[0] = quant_e8m0_for_fp4(fabsf(extreme(x, 32)));
    for (int i = 0; i < 32; i++)
        put_nibble(block + 1, i, quant_fp4_nearest(x[i], quant_e8m0_to_f32(block[0])));
}

/* ---- 64 and 128 elements ---- */

/* Groups of 16: elements j and j + 8 of a group share a byte. */
static void encode_nvfp4(const float *x, uint8_t *block)
{
    memset(block, 0, 36);
    for (int group = 0; group < 4; group++)
        block[group] = quant_ue4m3_from_f32(fabsf(extreme(x + 16 * group, 16)) / 6.0f);
    for (int i = 0; i < 64; i++) {
        int group = i / 16, j = i % 16;
        uint32_t code = quant_fp4_nearest(x[i], quant_ue4m3_to_f32(block[group]));
        block[4 + 8 * group + j % 8] |= (uint8_t)(code << (j >= 8 ? 4 : 0));
    }
}

static void encode_q1_0(const float *x, uint8_t *block)
{
    double sum = 0;
    memset(block, 0, 18);
    for (int i = 0; i < 128; i++) {
        sum += fabsf(x[i]);
        block[2 + i / 8] |= (uint8_t)((x[i] >= 0) << i % 8);
    }
    store_half(block, (float)(sum / 128));
}

/* The levels are -d, 0, d, 2d. It takes the smallest |d| of either sign whose levels enclose the
 * block. */
static void encode_q2_0(const float *x, uint8_t *block)
{
    float low = 0, high = 0;
    widen_range(x, 64, &low, &high);
    float plus = fmaxf(high / 2, -low), minus = fmaxf(-low / 2, high);
    float d = plus <= minus ? plus : -minus, scale = inverse(d);
    memset(block, 0, 18);
    store_half(block, d);
    for (int i = 0; i < 64; i++)
        block[2 + i / 4] |=
            (uint8_t)(saturate(numeric_roundf(x[i] * scale) + 1, 0, 3) << 2 * (i % 4));
}

/* ---- Rows ---- */

static const quant_encode_block encoders[] = {
#define QUANT_FORMAT(type, NAME, elements, bytes, encode) [type] = encode,
#include "args/format.def"
};

bool quant_can_encode(uint32_t type)
{
    return type < ARRAY_COUNT(encoders) && encoders[type] != NULL;
}

static rlxvk_status fail_no_encoder(uint32_t type)
{
    const quant_format *format = quant_format_find(type);
    char names[256] = "";
    text t = {names, sizeof names, 0};
    for (uint32_t i = 0; i < ARRAY_COUNT(encoders); i++)
        if (quant_can_encode(i))
            text_append(&t, "%s%s", t.length ? ", " : "", quant_format_find(i)->name);
    return status_fail(RLXVK_E_UNSUPPORTED,
                       "quant_encode_row: no encoder for type %u (%s); there are %s", type,
                       format ? format->name : "unknown", names);
}

/* Blocks take only finite values, because many of them share one scale. *out_largest is the largest
 * magnitude. */
static rlxvk_status check_finite(const quant_format *format, const float *values, uint64_t k,
                                 float *out_largest)
{
    *out_largest = 0;
    for (uint64_t i = 0; i < k; i++) {
        if (!isfinite(values[i]))
            return status_fail(
                RLXVK_E_RANGE,
                "quant_encode_row: %s: value %llu of %llu is %g; blocks hold finite values "
                "only, replace it first",
                format->name, (unsigned long long)i, (unsigned long long)k, (double)values[i]);
        *out_largest = fmaxf(*out_largest, fabsf(values[i]));
    }
    return RLXVK_OK;
}

/* Encodes to a scratch block to find out whether a scale overflows. */
static rlxvk_status check_scales(const quant_format *format, const float *values, uint64_t k)
{
    rlxvk_status status = RLXVK_OK;
    uint8_t block[QUANT_MAX_BYTES];
    for (uint64_t i = 0; i < k; i += format->block_elements) {
        encoders[format->type](values + i, block);
        if (quant_check_blocks(format->type, block, format->block_bytes) != RLXVK_OK)
            TRY(status_fail(
                RLXVK_E_RANGE,
                "quant_encode_row: %s: values %llu .. %llu reach %g, so that their scale "
                "overflows binary16 (65504); scale the row down",
                format->name, (unsigned long long)i,
                (unsigned long long)(i + format->block_elements - 1),
                (double)extreme(values + i, (int)format->block_elements)));
    }
error:
    return status;
}

rlxvk_status quant_encode_row(uint32_t type, const float *values, uint64_t k, void *out)
{
    const quant_format *format = quant_format_find(type);
    rlxvk_status status = RLXVK_OK;
    float largest = 0;
    uint8_t *block = out;
    if (!quant_can_encode(type))
        return fail_no_encoder(type);
    if (k % format->block_elements != 0)
        return status_fail(
            RLXVK_E_SHAPE,
            "quant_encode_row: a row of %llu elements is not whole blocks of %u (%s)",
            (unsigned long long)k, format->block_elements, format->name);
    if (format->block_elements > 1)
        TRY(check_finite(format, values, k, &largest));
    if (largest > 65504) /* no scale exceeds the largest value */
        TRY(check_scales(format, values, k));
    for (uint64_t i = 0; i < k; i += format->block_elements, block += format->block_bytes)
        encoders[type](values + i, block);
error:
    return status;
}
