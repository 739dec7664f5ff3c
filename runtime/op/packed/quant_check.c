/*
 * Which packed bytes no encoder writes: a scale that is NaN, infinite or, of unsigned formats,
 * negative; codes that are NaN or infinite. One of them spoils a block or a column; looking for
 * them is an option (check_packed) because it reads every block.
 *
 * The table says where a format keeps its scales; formats of plain elements have none.
 */
#include "op/packed/quant_bytes.h"
#include "op/packed/quant_codec.h"
#include "op/packed/quant_format.h"
#include "op/packed/quant_scheme.h"

#include <math.h>

typedef enum field_kind {
    FIELD_NONE,
    FIELD_HALF,
    FIELD_FLOAT,
    FIELD_E8M0,
    FIELD_UE4M3,
    FIELD_NIBBLES
} field_kind;

/* `count` scales side by side from byte `offset` of a block on. */
typedef struct scale_field {
    uint8_t kind, offset, count;
    const char *name;
} scale_field;

#define HALF_AT(offset, name)                                                                      \
    {                                                                                              \
        FIELD_HALF, offset, 1, name                                                                \
    }
#define SCALE_AT(offset)                                                                           \
    {                                                                                              \
        HALF_AT(offset, "d")                                                                       \
    }

static const scale_field fields[][2] = {
    [QUANT_Q4_0] = SCALE_AT(0),
    [QUANT_Q4_1] = {HALF_AT(0, "d"), HALF_AT(2, "m")},
    [QUANT_Q5_0] = SCALE_AT(0),
    [QUANT_Q5_1] = {HALF_AT(0, "d"), HALF_AT(2, "m")},
    [QUANT_Q8_0] = SCALE_AT(0),
    [QUANT_Q8_1] = {HALF_AT(0, "d"), HALF_AT(2, "s")},
    [QUANT_Q2_K] = {HALF_AT(80, "d"), HALF_AT(82, "dmin")},
    [QUANT_Q3_K] = SCALE_AT(108),
    [QUANT_Q4_K] = {HALF_AT(0, "d"), HALF_AT(2, "dmin")},
    [QUANT_Q5_K] = {HALF_AT(0, "d"), HALF_AT(2, "dmin")},
    [QUANT_Q6_K] = SCALE_AT(208),
    [QUANT_Q8_K] = {{FIELD_FLOAT, 0, 1, "d"}},
    [QUANT_IQ2_XXS] = SCALE_AT(0),
    [QUANT_IQ2_XS] = SCALE_AT(0),
    [QUANT_IQ2_S] = SCALE_AT(0),
    [QUANT_IQ3_XXS] = SCALE_AT(0),
    [QUANT_IQ3_S] = SCALE_AT(0),
    [QUANT_IQ1_S] = SCALE_AT(0),
    [QUANT_IQ1_M] = {{FIELD_NIBBLES, 48, 1, "d"}},
    [QUANT_IQ4_NL] = SCALE_AT(0),
    [QUANT_IQ4_XS] = SCALE_AT(0),
    [QUANT_TQ1_0] = SCALE_AT(52),
    [QUANT_TQ2_0] = SCALE_AT(64),
    [QUANT_MXFP4] = {{FIELD_E8M0, 0, 1, "e"}},
    [QUANT_NVFP4] = {{FIELD_UE4M3, 0, 4, "s"}},
    [QUANT_Q1_0] = SCALE_AT(0),
    [QUANT_Q2_0] = SCALE_AT(0),
};

/* ---- How the bits of a scale are read ---- */

static uint32_t load_byte(const uint8_t *bytes)
{
    return bytes[0];
}

static bool half_valid(uint32_t bits)
{
    return (bits & 0x7c00u) != 0x7c00u;
}

static bool float_valid(uint32_t bits)
{
    return (bits & 0x7f800000u) != 0x7f800000u;
}

static const struct field_type {
    const char *name;
    uint32_t (*load)(const uint8_t *bytes);
    bool (*valid)(uint32_t bits);
} field_types[] = {
    [FIELD_HALF] = {"f16", load_u16, half_valid},
    [FIELD_FLOAT] = {"f32", load_u32, float_valid},
    [FIELD_E8M0] = {"E8M0", load_byte, quant_e8m0_valid},
    [FIELD_UE4M3] = {"UE4M3", load_byte, quant_ue4m3_valid},
    [FIELD_NIBBLES] = {"f16", load_top_nibbles, half_valid},
};

/* ---- Blocks ---- */

static rlxvk_status check_field(const quant_format *format, const scale_field *f,
                                const uint8_t *block, uint64_t index)
{
    const struct field_type *type = &field_types[f->kind];
    for (uint32_t i = 0; i < f->count; i++) {
        uint32_t bits = type->load(block + f->offset + i);
        if (!type->valid(bits))
            return status_fail(
                RLXVK_E_RANGE,
                "%s block %llu (byte %llu): scale %s at byte %u is 0x%x, no finite %s "
                "number; pack the tensor again, or compile without check_packed",
                format->name, (unsigned long long)index,
                (unsigned long long)(index * format->block_bytes), f->name, f->offset + i, bits,
                type->name);
    }
    return RLXVK_OK;
}

rlxvk_status quant_check_blocks(uint32_t type, const uint8_t *bytes, uint64_t size)
{
    const quant_format *format = quant_format_find(type);
    rlxvk_status status = RLXVK_OK;
    if (type >= ARRAY_COUNT(fields) || fields[type][0].kind == FIELD_NONE)
        return RLXVK_OK;
    for (uint64_t i = 0; i < size / format->block_bytes; i++)
        for (int f = 0; f < 2 && fields[type][f].kind != FIELD_NONE; f++)
            TRY(check_field(format, &fields[type][f], bytes + i * format->block_bytes, i));
error:
    return status;
}

/* ---- Side scales ---- */

static rlxvk_status check_bytes(const quant_scheme_traits *t, const uint8_t *bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (!t->scale_valid(bytes[i]))
            return status_fail(
                RLXVK_E_RANGE,
                "%s scale %llu is 0x%02x, no finite number of the scale's type; pack the "
                "tensor again, or compile without check_packed",
                t->name, (unsigned long long)i, bytes[i]);
    return RLXVK_OK;
}

static rlxvk_status check_words(const quant_scheme_traits *t, const char *what, const void *words,
                                uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        float value; /* callers' data need not be aligned */
        memcpy(&value, (const uint8_t *)words + 4 * i, sizeof value);
        if (!isfinite(value))
            return status_fail(
                RLXVK_E_RANGE,
                "%s %s %llu is %g; it must be finite: pack the tensor again, or compile "
                "without check_packed",
                t->name, what, (unsigned long long)i, (double)value);
    }
    return RLXVK_OK;
}

static rlxvk_status check_codes(const quant_scheme_traits *t, const uint8_t *codes, uint64_t count)
{
    for (uint64_t i = 0; i < count && t->scale == SCALE_COLUMN; i++)
        if (!isfinite(t->code(codes[i])))
            return status_fail(
                RLXVK_E_RANGE,
                "%s code %llu is 0x%02x, NaN or infinite: it counts as 0; pack the tensor "
                "again, or compile without check_packed",
                t->name, (unsigned long long)i, codes[i]);
    return RLXVK_OK;
}

rlxvk_status quant_check_part(const quant_scheme_traits *t, enum quant_part part, const void *data,
                              uint64_t count)
{
    if (part == QUANT_CODES)
        return check_codes(t, data, count);
    if (part == QUANT_SCALES)
        return t->scale == SCALE_BYTE ? check_bytes(t, data, count)
                                      : check_words(t, "scale", data, count);
    if (t->zero_point || t->global)
        return check_words(t, t->global ? "global factor" : "zero point", data, count);
    return RLXVK_OK;
}
