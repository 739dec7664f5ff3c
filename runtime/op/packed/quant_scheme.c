/*
 * Table and exact decoders of the schemes with side scales. Element (p, j) has number p * n + j. It
 * is a byte, or a nibble; the even element is the low one. Evaluation is the difference (q - zero)
 * first, and then products from left to right, each one f32 operation.
 */
#include "base/sized.h"
#include "op/packed/quant_scheme.h"
#include "graph/half.h"
#include "op/packed/quant_codec.h"
#include "op/packed/quant_format.h"

#include <rlxvk_ops.h>

#include <math.h>
#include <stdio.h>

static float signed_byte(uint32_t bits)
{
    return (float)(int8_t)bits;
}

static float signed_nibble(uint32_t bits)
{
    return (float)bits - (bits >= 8 ? 16.0f : 0.0f);
}

static float unsigned_nibble(uint32_t bits)
{
    return (float)bits;
}

static float fp4(uint32_t bits)
{
    return quant_fp4_levels[bits];
}

/* Sign, 4 bits of exponent (bias 7), 3 of mantissa. Only 0x7f and 0xff are not finite. */
static float e4m3(uint32_t bits)
{
    int exponent = (int)(bits >> 3 & 15), mantissa = (int)(bits & 7);
    if ((bits & 0x7f) == 0x7f)
        return NAN;
    float value =
        exponent ? ldexpf((float)(8 + mantissa), exponent - 10) : ldexpf((float)mantissa, -9);
    return bits & 0x80 ? -value : value;
}

/* The upper byte of a binary16. */
static float e5m2(uint32_t bits)
{
    return f16_to_f32((uint16_t)(bits << 8));
}

#define SCHEME(KIND, name, ...) [RLXVK_QUANT_##KIND] = {name, RLXVK_QUANT_##KIND, __VA_ARGS__}
static const quant_scheme_traits schemes[] = {
    SCHEME(INT8, "int8", 8, 0, SCALE_BLOCK, false, false, true, signed_byte, NULL, NULL),
    SCHEME(INT8_ASYM, "int8a", 8, 0, SCALE_BLOCK, true, false, false, signed_byte, NULL, NULL),
    SCHEME(INT4, "int4", 4, 0, SCALE_BLOCK, false, false, true, signed_nibble, NULL, NULL),
    SCHEME(FP8_E4M3, "fp8e4m3", 8, 0, SCALE_COLUMN, false, false, true, e4m3, NULL, NULL),
    SCHEME(FP8_E5M2, "fp8e5m2", 8, 0, SCALE_COLUMN, false, false, true, e5m2, NULL, NULL),
    SCHEME(NVFP4, "nvfp4", 4, 16, SCALE_BYTE, false, true, false, fp4, quant_ue4m3_to_f32,
           quant_ue4m3_valid),
    SCHEME(MXFP4, "mxfp4", 4, 32, SCALE_BYTE, false, false, false, fp4, quant_e8m0_to_f32,
           quant_e8m0_valid),
    SCHEME(INT4_ASYM, "int4a", 4, 0, SCALE_BLOCK, true, false, false, unsigned_nibble, NULL, NULL),
};

const quant_scheme_traits *quant_scheme_find(uint32_t kind)
{
    return kind < ARRAY_COUNT(schemes) ? &schemes[kind] : NULL;
}

bool quant_scheme_resolve(uint32_t kind, int64_t *block, int64_t n, text *problem)
{
    const quant_scheme_traits *t = quant_scheme_find(kind);
    if (t && *block == 0)
        *block = t->block;
    if (!t)
        text_append(problem, "kind %u is no side-scale scheme; there are 0 .. 7", kind);
    else if (n < 0 || n > INT32_MAX)
        text_append(problem, "%s: n is %lld; a matrix has 0 .. 2^31 - 1 columns", t->name,
                    (long long)n);
    else if (t->scale != SCALE_COLUMN && (*block < 1 || *block > INT32_MAX))
        text_append(problem, "%s: block is %lld; give 1 .. 2^31 - 1", t->name, (long long)*block);
    else if (t->block && *block != t->block)
        text_append(problem, "%s: block is %lld; it is always %u (or 0)", t->name,
                    (long long)*block, t->block);
    return problem->length == 0;
}

bool quant_scheme_bytes(const quant_scheme_traits *t, uint64_t k, uint64_t n, uint64_t *out)
{
    uint64_t count, bits;
    if (!size_multiply(k, n, &count) || !size_multiply(count, t->code_bits, &bits))
        return false;
    *out = bits / 8 + (bits % 8 != 0);
    return true;
}

static float scale_of(const quant_matrix *m, uint64_t row, uint64_t j)
{
    if (m->traits->scale == SCALE_COLUMN)
        return m->scales[m->one_scale ? 0 : j];
    if (m->traits->scale == SCALE_BYTE)
        return m->traits->scale_code(m->scale_bytes[row * m->n + j]);
    return m->scales[row * m->n + j];
}

void quant_decode_column(const quant_matrix *m, uint64_t j, float *out, float *magnitude)
{
    const quant_scheme_traits *t = m->traits;
    for (uint64_t p = 0; p < m->k; p++) {
        uint64_t element = p * m->n + j, row = p / m->block;
        uint32_t byte = m->codes[t->code_bits == 8 ? element : element / 2];
        uint32_t bits = t->code_bits == 8 ? byte : element % 2 ? byte >> 4 : byte & 15u;
        float code = t->code(bits), scale = scale_of(m, row, j);
        float zero = t->zero_point ? m->extra[row * m->n + j] : 0.0f;
        bool none = !isfinite(code) || (t->scale == SCALE_BYTE && isnan(scale));
        out[p] = none ? 0.0f : (code - zero) * scale;
        magnitude[p] = none ? 0.0f : fabsf(code * scale) + fabsf(zero * scale);
        if (t->global && !none) {
            out[p] *= m->extra[0];
            magnitude[p] *= fabsf(m->extra[0]);
        }
    }
}

/* ---- Traits ---- */

static void describe_format(const quant_format *format, rlxvk_quant_traits *out)
{
    snprintf(out->name, sizeof out->name, "gguf_%s", format->name);
    for (char *c = out->name; *c; c++)
        *c = ascii_lower(*c);
    out->is_gguf = true;
    out->block_elements = format->block_elements;
    out->block_bytes = format->block_bytes;
}

static void describe_scheme(const quant_scheme_traits *t, rlxvk_quant_traits *out)
{
    if (t->block)
        snprintf(out->name, sizeof out->name, "%s/%u", t->name, t->block);
    else
        snprintf(out->name, sizeof out->name, "%s", t->name);
    out->has_side_scale = true;
    out->scale_is_byte = t->scale == SCALE_BYTE;
    out->has_zero_point = t->zero_point;
    out->block_elements = t->block;
}

rlxvk_status rlxvk_quant_query(uint32_t scheme, rlxvk_quant_traits *out)
{
    const quant_scheme_traits *t = quant_scheme_find(scheme);
    const quant_format *format = scheme >= 256 ? quant_format_find(scheme - 256) : NULL;
    rlxvk_quant_traits traits = {.name = ""};
    rlxvk_status status;
    TRY(status_require(out, "quant_query", "out"));
    sized_write(SIZED(rlxvk_quant_traits), &traits, out);
    if (!t && !(format && format->weight))
        return status_fail(
            RLXVK_E_UNSUPPORTED,
            "quant_query: scheme %u is no weight scheme; there are 0 .. 7 and 256 + a GGUF "
            "type",
            scheme);
    if (t)
        describe_scheme(t, &traits);
    else
        describe_format(format, &traits);
    sized_write(SIZED(rlxvk_quant_traits), &traits, out);
error:
    return status;
}
