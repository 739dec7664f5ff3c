/*
 * Table of the packed formats, and their exact decoders.
 *
 * Every product and sum is one f32 operation, in the order written, because results are compared
 * bit for bit with other implementations. The scale d and the minimum m are binary16 if a comment
 * does not say otherwise. Inside a 256-element block: H = 128-element half, g = 32-element group in
 * the half, l = position in the group.
 */
#include "args/packed.h"
#include "op/packed/quant_format.h"
#include "op/packed/quant_bytes.h"
#include "op/packed/quant_grid.h"

#include <rlxvk_ops.h>

#include <math.h>

const int8_t quant_iq4_levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};

const float quant_fp4_levels[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                    -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

/* ---- Plain elements ---- */

static uint64_t load_u64(const uint8_t *bytes)
{
    return load_u32(bytes) | (uint64_t)load_u32(bytes + 4) << 32;
}

static void decode_f32(const uint8_t *block, float *y, float *min_term)
{
    (void)min_term;
    y[0] = f32_from_bits(load_u32(block));
}

static void decode_f16(const uint8_t *block, float *y, float *min_term)
{
    (void)min_term;
    y[0] = load_half(block);
}

static void decode_bf16(const uint8_t *block, float *y, float *min_term)
{
    (void)min_term;
    y[0] = bf16_to_f32((uint16_t)load_u16(block));
}

static void decode_f64(const uint8_t *block, float *y, float *min_term)
{
    uint64_t bits = load_u64(block);
    double value;
    (void)min_term;
    memcpy(&value, &bits, sizeof value);
    /* In C it is undefined to convert a value out of range, so this rounds the border as IEEE
     * does. */
    if (fabs(value) >= 0x1.ffffffp127)
        y[0] = value < 0 ? -INFINITY : INFINITY;
    else
        y[0] = (float)value;
}

static void decode_i8(const uint8_t *block, float *y, float *min_term)
{
    (void)min_term;
    y[0] = (float)(int8_t)block[0];
}

static void decode_i16(const uint8_t *block, float *y, float *min_term)
{
    (void)min_term;
    y[0] = (float)(int16_t)load_u16(block);
}

static void decode_i32(const uint8_t *block, float *y, float *min_term)
{
    (void)min_term;
    y[0] = (float)(int32_t)load_u32(block);
}

static void decode_i64(const uint8_t *block, float *y, float *min_term)
{
    (void)min_term;
    y[0] = (float)(int64_t)load_u64(block);
}

/* ---- 32-element blocks: byte i has element i in its low nibble, i + 16 in the high one ---- */

static void decode_q4_0(const uint8_t *block, float *y, float *min_term)
{
    float d = load_half(block);
    (void)min_term;
    for (int i = 0; i < 32; i++)
        y[i] = d * (float)((int)nibble(block[2 + i % 16], i >= 16) - 8);
}

static void decode_q4_1(const uint8_t *block, float *y, float *min_term)
{
    float d = load_half(block), m = load_half(block + 2);
    for (int i = 0; i < 32; i++) {
        y[i] = d * (float)nibble(block[4 + i % 16], i >= 16);
        min_term[i] = m;
    }
}

/* The fifth bit of element i is bit i of qh, in both halves. */
static uint32_t q5_code(const uint8_t *qs, uint32_t qh, int i)
{
    return nibble(qs[i % 16], i >= 16) | (qh >> i & 1u) << 4;
}

static void decode_q5_0(const uint8_t *block, float *y, float *min_term)
{
    float d = load_half(block);
    uint32_t qh = load_u32(block + 2);
    (void)min_term;
    for (int i = 0; i < 32; i++)
        y[i] = d * (float)((int)q5_code(block + 6, qh, i) - 16);
}

static void decode_q5_1(const uint8_t *block, float *y, float *min_term)
{
    float d = load_half(block), m = load_half(block + 2);
    uint32_t qh = load_u32(block + 4);
    for (int i = 0; i < 32; i++) {
        y[i] = d * (float)q5_code(block + 8, qh, i);
        min_term[i] = m;
    }
}

static void decode_q8_0(const uint8_t *block, float *y, float *min_term)
{
    float d = load_half(block);
    (void)min_term;
    for (int i = 0; i < 32; i++)
        y[i] = d * (float)(int8_t)block[2 + i];
}

/* 2: s = d * sum of q, unused here. */
static void decode_q8_1(const uint8_t *block, float *y, float *min_term)
{
    float d = load_half(block);
    (void)min_term;
    for (int i = 0; i < 32; i++)
        y[i] = d * (float)(int8_t)block[4 + i];
}

static void decode_iq4_nl(const uint8_t *block, float *y, float *min_term)
{
    float d = load_half(block);
    (void)min_term;
    for (int i = 0; i < 32; i++)
        y[i] = d * (float)quant_iq4_levels[nibble(block[2 + i % 16], i >= 16)];
}

/* 2^(e - 127): e = 0 is the subnormal 2^-127, e = 255 is NaN. */
float quant_e8m0_to_f32(uint32_t e)
{
    return f32_from_bits(e == 0 ? 0x00400000u : e == 255 ? 0x7fc00000u : e << 23);
}

static void decode_mxfp4(const uint8_t *block, float *y, float *min_term)
{
    float scale = quant_e8m0_to_f32(block[0]);
    (void)min_term;
    for (int i = 0; i < 32; i++)
        y[i] = quant_fp4_levels[nibble(block[1 + i % 16], i >= 16)] * scale;
}

/* ---- Other small blocks ---- */

/* Unsigned E4M3, bias 7. The code of NaN counts as 0, because otherwise one bad scale would spoil a
 * whole product. */
float quant_ue4m3_to_f32(uint32_t code)
{
    uint32_t exponent = code >> 3 & 15u, fraction = code & 7u;
    if ((code & 0x7fu) == 0x7fu)
        return 0.0f;
    if (exponent == 0)
        return (float)fraction * 0x1p-9f;
    return f32_from_bits((exponent + 120u) << 23 | fraction << 20);
}

static void decode_nvfp4(const uint8_t *block, float *y, float *min_term)
{
    (void)min_term;
    for (int i = 0; i < 64; i++) {
        int group = i / 16, j = i % 16;
        uint32_t code = nibble(block[4 + 8 * group + j % 8], j >= 8);
        y[i] = quant_fp4_levels[code] * quant_ue4m3_to_f32(block[group]);
    }
}

static void decode_q1_0(const uint8_t *block, float *y, float *min_term)
{
    float d = load_half(block);
    (void)min_term;
    for (int i = 0; i < 128; i++)
        y[i] = block[2 + i / 8] >> (i % 8) & 1 ? d : -d;
}

static void decode_q2_0(const uint8_t *block, float *y, float *min_term)
{
    float d = load_half(block);
    (void)min_term;
    for (int i = 0; i < 64; i++)
        y[i] = d * (float)((block[2 + i / 4] >> 2 * (i % 4) & 3) - 1);
}

/* ---- 256-element blocks ---- */

/* Two-bit codes: bits 2g, 2g+1 of byte 32H + l. */
static int two_bits(const uint8_t *qs, int i)
{
    return qs[32 * (i / 128) + i % 32] >> 2 * (i % 128 / 32) & 3;
}

/* 0: scales[16], 16: qs[64], 80: d, 82: dmin. */
static void decode_q2_k(const uint8_t *block, float *y, float *min_term)
{
    float d = load_half(block + 80), dmin = load_half(block + 82);
    for (int i = 0; i < 256; i++) {
        uint32_t scale = block[i / 16];
        y[i] = d * (float)(scale & 15u) * (float)two_bits(block + 16, i);
        min_term[i] = -(dmin * (float)(scale >> 4));
    }
}

/* The sixteen 6-bit scales of Q3_K: low nibbles in bytes 0..7, upper two bits in bytes 8..11. */
static int q3_k_scale(const uint8_t *scales, int j)
{
    uint32_t low = nibble(scales[j % 8], j >= 8);
    uint32_t high = scales[8 + j % 4] >> 2 * (j / 4) & 3u;
    return (int)(low | high << 4) - 32;
}

/* 0: hmask[32], 32: qs[64], 96: scales[12], 108: d. If bit 4H + g of hmask[l] is set, 4 is not
 * subtracted. */
static void decode_q3_k(const uint8_t *block, float *y, float *min_term)
{
    float d = load_half(block + 108);
    (void)min_term;
    for (int i = 0; i < 256; i++) {
        int q = two_bits(block + 32, i) - (block[i % 32] >> (i / 32) & 1 ? 0 : 4);
        y[i] = d * (float)q3_k_scale(block + 96, i / 16) * (float)q;
    }
}

/* Scale and minimum (6 bits each) of 32-element sub-block j of Q4_K and Q5_K, from 12 bytes. */
static void k_scale_min(const uint8_t *s, int j, uint32_t *scale, uint32_t *minimum)
{
    if (j < 4) {
        *scale = s[j] & 63u;
        *minimum = s[j + 4] & 63u;
    } else {
        *scale = nibble(s[j + 4], false) | (uint32_t)(s[j - 4] >> 6) << 4;
        *minimum = nibble(s[j + 4], true) | (uint32_t)(s[j] >> 6) << 4;
    }
}

/* The part that Q4_K and Q5_K share: 0: d, 2: dmin, 4: scales[12]. For Q4_K, qh is NULL. */
static void decode_k_affine(const uint8_t *block, const uint8_t *qh, const uint8_t *qs, float *y,
                            float *min_term)
{
    float d = load_half(block), dmin = load_half(block + 2);
    for (int j = 0; j < 8; j++) {
        uint32_t scale, minimum;
        k_scale_min(block + 4, j, &scale, &minimum);
        float ds = d * (float)scale, dm = dmin * (float)minimum;
        for (int l = 0; l < 32; l++) {
            uint32_t q = nibble(qs[32 * (j / 2) + l], j % 2 != 0);
            if (qh != NULL)
                q += 16u * (qh[l] >> j & 1u);
            y[32 * j + l] = ds * (float)q;
            min_term[32 * j + l] = -dm;
        }
    }
}

static void decode_q4_k(const uint8_t *block, float *y, float *min_term)
{
    decode_k_affine(block, NULL, block + 16, y, min_term);
}

static void decode_q5_k(const uint8_t *block, float *y, float *min_term)
{
    decode_k_affine(block, block + 16, block + 48, y, min_term);
}

/* 0: ql[128], 128: qh[64], 192: signed scales[16], 208: d. */
static void decode_q6_k(const uint8_t *block, float *y, float *min_term)
{
    float d = load_half(block + 208);
    (void)min_term;
    for (int i = 0; i < 256; i++) {
        int half = i / 128, group = i % 128 / 32, l = i % 32;
        uint32_t low = nibble(block[64 * half + l + 32 * (group & 1)], group >= 2);
        int q = (int)(low | (uint32_t)two_bits(block + 128, i) << 4) - 32;
        y[i] = d * (float)(int8_t)block[192 + i / 16] * (float)q;
    }
}

/* 0: d as f32, 4: q[256], 260: sums of 16 quants each, unused here. */
static void decode_q8_k(const uint8_t *block, float *y, float *min_term)
{
    float d = f32_from_bits(load_u32(block));
    (void)min_term;
    for (int i = 0; i < 256; i++)
        y[i] = d * (float)(int8_t)block[4 + i];
}

/* 0: d, 2: upper scale bits, 4: lower scale nibbles[4], 8: qs[128]. */
static void decode_iq4_xs(const uint8_t *block, float *y, float *min_term)
{
    float d = load_half(block);
    uint32_t high = load_u16(block + 2);
    (void)min_term;
    for (int i = 0; i < 256; i++) {
        int j = i / 32;
        uint32_t low = nibble(block[4 + j / 2], j % 2 != 0);
        float scale = d * (float)((int)(low | (high >> 2 * j & 3u) << 4) - 32);
        y[i] = scale * (float)quant_iq4_levels[nibble(block[8 + 16 * j + i % 16], i % 32 >= 16)];
    }
}

/* Decodes base-3 digits. A byte is floor(value * 256 / 3^5) rounded up, so digit n is the carry of
 * (byte * 3^n mod 256) * 3. */
static void decode_tq1_0(const uint8_t *block, float *y, float *min_term)
{
    static const uint32_t powers[5] = {1, 3, 9, 27, 81};
    float d = load_half(block + 52);
    (void)min_term;
    for (int i = 0; i < 256; i++) {
        int start = i < 160 ? 0 : i < 240 ? 160 : 240;
        int stride = i < 160 ? 32 : i < 240 ? 16 : 4;
        int base = i < 160 ? 0 : i < 240 ? 32 : 48;
        uint32_t byte = block[base + (i - start) % stride];
        uint32_t rest = byte * powers[(i - start) / stride] & 255u;
        y[i] = d * (float)((int)(rest * 3 >> 8) - 1);
    }
}

static void decode_tq2_0(const uint8_t *block, float *y, float *min_term)
{
    float d = load_half(block + 64);
    (void)min_term;
    for (int i = 0; i < 256; i++)
        y[i] = d * (float)(two_bits(block, i) - 1);
}

/* ---- The table ---- */

/* The scales in a row of format.def. */
#define HALF(offset, name)       {QUANT_SCALE_HALF, offset, #name},
#define FLOAT(offset, name)      {QUANT_SCALE_FLOAT, offset, #name},
#define BRAIN(offset, name)      {QUANT_SCALE_BRAIN, offset, #name},
#define E8M0(offset, name)       {QUANT_SCALE_E8M0, offset, #name},
#define FOUR_UE4M3(offset, name) {QUANT_SCALE_FOUR_UE4M3, offset, #name},
#define NIBBLES(offset, name)    {QUANT_SCALE_NIBBLES, offset, #name},
#define NO_SCALES

static const quant_format formats[] = {
#define BLOCK_FORMAT(type, NAME, elements, bytes, affine, group, distance, integers, scales,       \
                     decode, encode)                                                               \
    [type] = {#NAME,           type,     elements,    bytes, affine, true, integers,               \
              DEQUANT_##group, distance, {scales{0}}, decode},
#define PLAIN_FORMAT(type, NAME, bytes, scales, decode, encode)                                    \
    [type] = {#NAME, type, 1, bytes, false, true, false, DEQUANT_COMMON, 0, {scales{0}}, decode},
#define LOADED_FORMAT(type, NAME, elements, bytes, scales, decode)                                 \
    [type] = {#NAME, type, elements, bytes, false, false, false, 0, 0, {scales{0}}, decode},
#include "args/format.def"
};

#undef HALF
#undef FLOAT
#undef BRAIN
#undef E8M0
#undef FOUR_UE4M3
#undef NIBBLES
#undef NO_SCALES

#define QUANT_FORMAT(type, NAME, elements, bytes, encode)                                          \
    _Static_assert(elements <= QUANT_MAX_BLOCK && bytes <= QUANT_MAX_BYTES, "too large: " #NAME);
#include "args/format.def"
#define BLOCK_FORMAT(type, NAME, ...)                                                              \
    _Static_assert(type == RLXVK_##NAME, "rlxvk_quant_format differs: " #NAME);
#define PLAIN_FORMAT(type, NAME, ...)                                                              \
    _Static_assert(type == RLXVK_QUANT_##NAME, "rlxvk_quant_format differs: " #NAME);
#include "args/format.def"
_Static_assert(ARRAY_COUNT(formats) == QUANT_TYPES, "the rows of format.def go by rising type");

const quant_format *quant_format_find(uint32_t type)
{
    if (type >= ARRAY_COUNT(formats) || formats[type].name == NULL)
        return NULL;
    return &formats[type];
}

const quant_format *quant_format_find_name(const char *name)
{
    for (size_t i = 0; name != NULL && i < ARRAY_COUNT(formats); i++)
        if (formats[i].name != NULL && text_ascii_equal(formats[i].name, name, SIZE_MAX))
            return &formats[i];
    return NULL;
}

uint64_t quant_row_bytes(uint32_t type, uint64_t k)
{
    const quant_format *format = quant_format_find(type);
    uint64_t bytes;
    if (format == NULL || k % format->block_elements != 0 ||
        !size_multiply(k / format->block_elements, format->block_bytes, &bytes))
        return 0;
    return bytes;
}

static rlxvk_status check_decode(uint32_t type, uint64_t k, const quant_format **out)
{
    const quant_format *format = quant_format_find(type);
    if (format == NULL)
        return status_fail(RLXVK_E_UNSUPPORTED, "GGUF tensor type %u is unknown or withdrawn",
                           type);
    if (k % format->block_elements != 0)
        return status_fail(RLXVK_E_SHAPE, "%s: a row of %llu elements is not whole blocks of %u",
                           format->name, (unsigned long long)k, format->block_elements);
    *out = format;
    return RLXVK_OK;
}

/* Decodes a row. Each element is the sum of a product and, if the format is affine, a minimum term.
 * If `magnitude` is set, it is the sum of their magnitudes. */
static rlxvk_status decode_row(uint32_t type, const void *bytes, uint64_t k, bool magnitude,
                               float *out)
{
    const quant_format *format = NULL;
    const uint8_t *block = bytes;
    rlxvk_status status;
    TRY(check_decode(type, k, &format));
    for (uint64_t i = 0; i < k; i += format->block_elements, block += format->block_bytes) {
        float min_term[QUANT_MAX_BLOCK];
        format->decode(block, out + i, min_term);
        for (uint32_t j = 0; magnitude && j < format->block_elements; j++) {
            out[i + j] = fabsf(out[i + j]);
            if (format->affine)
                min_term[j] = fabsf(min_term[j]);
        }
        for (uint32_t j = 0; format->affine && j < format->block_elements; j++)
            out[i + j] += min_term[j];
    }
error:
    return status;
}

rlxvk_status quant_decode_row(uint32_t type, const void *bytes, uint64_t k, float *out)
{
    return decode_row(type, bytes, k, false, out);
}

rlxvk_status quant_decode_row_magnitude(uint32_t type, const void *bytes, uint64_t k, float *out)
{
    return decode_row(type, bytes, k, true, out);
}
