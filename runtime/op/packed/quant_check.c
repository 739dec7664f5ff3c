/*
 * Finds packed bytes that no encoder writes: a scale that is NaN, infinite or, in unsigned formats,
 * negative, and codes that are NaN or infinite. A single one spoils a block or a column. The check
 * is optional (check_packed), because it reads every block.
 *
 * format.def says at which bytes a format has its scales. Plain elements are not checked.
 */
#include "op/packed/quant_bytes.h"
#include "op/packed/quant_codec.h"
#include "op/packed/quant_format.h"
#include "op/packed/quant_scheme.h"

#include <math.h>

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

static const struct scale_type {
    const char *name;
    uint32_t count; /* side by side */
    uint32_t (*load)(const uint8_t *bytes);
    bool (*valid)(uint32_t bits);
} scale_types[] = {
    [QUANT_SCALE_HALF] = {"f16", 1, load_u16, half_valid},
    [QUANT_SCALE_FLOAT] = {"f32", 1, load_u32, float_valid},
    [QUANT_SCALE_E8M0] = {"E8M0", 1, load_byte, quant_e8m0_valid},
    [QUANT_SCALE_FOUR_UE4M3] = {"UE4M3", 4, load_byte, quant_ue4m3_valid},
    [QUANT_SCALE_NIBBLES] = {"f16", 1, load_top_nibbles, half_valid},
};

/* ---- Blocks ---- */

static rlxvk_status check_scale(const quant_format *format, const quant_scale *s,
                                const uint8_t *block, uint64_t index)
{
    const struct scale_type *type = &scale_types[s->kind];
    for (uint32_t i = 0; i < type->count; i++) {
        uint32_t bits = type->load(block + s->offset + i);
        if (!type->valid(bits))
            return status_fail(
                RLXVK_E_RANGE,
                "%s block %llu (byte %llu): scale %s at byte %u is 0x%x, no finite %s "
                "number; pack the tensor again, or compile without check_packed",
                format->name, (unsigned long long)index,
                (unsigned long long)(index * format->block_bytes), s->name, s->offset + i, bits,
                type->name);
    }
    return RLXVK_OK;
}

rlxvk_status quant_check_blocks(uint32_t type, const uint8_t *bytes, uint64_t size)
{
    const quant_format *format = quant_format_find(type);
    rlxvk_status status = RLXVK_OK;
    if (!format || format->block_elements == 1)
        return RLXVK_OK;
    for (uint64_t i = 0; i < size / format->block_bytes; i++)
        for (int s = 0; format->scales[s].kind != QUANT_SCALE_NONE; s++)
            TRY(check_scale(format, &format->scales[s], bytes + i * format->block_bytes, i));
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
