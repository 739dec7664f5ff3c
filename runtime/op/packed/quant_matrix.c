/*
 * Packing on the host: the public calls, and the encoders of matrices with side scales.
 *
 * A matrix is cut into pieces: `count` elements of one column that share a scale. A piece is a
 * block of k, or all of k if each column has one scale. A kind has two functions. One fits scale
 * and zero point to a piece, the other rounds an element. If a scale is 0, quotients by it are 0.
 * It is 0 if a piece is zeros, or if its values are below the least f32 scale.
 */
#include <rlxvk_quant.h>

#include "base/numeric.h"
#include "base/sized.h"
#include "op/packed/quant_codec.h"
#include "op/packed/quant_format.h"
#include "op/packed/quant_scheme.h"

#include <math.h>
#include <string.h>

/* ---- Rows ---- */

uint64_t rlxvk_quant_row_bytes(rlxvk_quant_format format, uint64_t k)
{
    return quant_row_bytes((uint32_t)format, k);
}

rlxvk_status rlxvk_quant_encode_row(rlxvk_quant_format format, const float *values, uint64_t k,
                                    void *out_bytes)
{
    rlxvk_status status;
    TRY(status_require_items(values, k, "quant_encode_row", "values"));
    TRY(status_require_items(out_bytes, k, "quant_encode_row", "out_bytes"));
    TRY(quant_encode_row((uint32_t)format, values, k, out_bytes));
error:
    return status;
}

rlxvk_status rlxvk_quant_decode_row(rlxvk_quant_format format, const void *bytes, uint64_t k,
                                    float *out_values)
{
    rlxvk_status status;
    TRY(status_require_items(bytes, k, "quant_decode_row", "bytes"));
    TRY(status_require_items(out_values, k, "quant_decode_row", "out_values"));
    TRY(quant_decode_row((uint32_t)format, bytes, k, out_values));
error:
    return status;
}

/* ---- Pieces ---- */

typedef struct piece {
    const float *first;
    uint64_t count, stride;
    float global; /* NVFP4 */
} piece;

/* The values that a decoder will see. If scales are bytes, the code is in `byte`. */
typedef struct piece_scale {
    float scale, zero;
    uint8_t byte;
} piece_scale;

static float piece_extreme(const piece *p)
{
    float found = 0;
    for (uint64_t i = 0; i < p->count; i++)
        if (fabsf(p->first[i * p->stride]) > fabsf(found))
            found = p->first[i * p->stride];
    return found;
}

static float quotient(float x, float scale)
{
    return scale != 0 ? x / scale : 0.0f;
}

static int saturate_code(float value, int low, int high)
{
    return value <= (float)low ? low : value >= (float)high ? high : (int)value;
}

static piece_scale fit_int8(const piece *p)
{
    return (piece_scale){.scale = fabsf(piece_extreme(p)) / 127.0f};
}

static piece_scale fit_int4(const piece *p)
{
    return (piece_scale){.scale = piece_extreme(p) / -8.0f};
}

/* Fits codes lowest .. lowest + steps to a range that includes 0. */
static piece_scale fit_range(const piece *p, float lowest, float steps)
{
    float low = 0, high = 0;
    for (uint64_t i = 0; i < p->count; i++) {
        low = fminf(low, p->first[i * p->stride]);
        high = fmaxf(high, p->first[i * p->stride]);
    }
    float scale = high / steps - low / steps; /* the difference itself might overflow */
    return (piece_scale){.scale = scale, .zero = rintf(lowest - quotient(low, scale))};
}

static piece_scale fit_int8_range(const piece *p)
{
    return fit_range(p, -128, 255);
}

static piece_scale fit_int4_range(const piece *p)
{
    return fit_range(p, 0, 15);
}

static piece_scale fit_e4m3(const piece *p)
{
    return (piece_scale){.scale = fabsf(piece_extreme(p)) / 448.0f};
}

static piece_scale fit_e5m2(const piece *p)
{
    return (piece_scale){.scale = fabsf(piece_extreme(p)) / 57344.0f};
}

static piece_scale fit_nvfp4(const piece *p)
{
    float wanted = quotient(fabsf(piece_extreme(p)) / 6.0f, p->global);
    uint8_t byte = quant_ue4m3_from_f32(wanted);
    return (piece_scale){.scale = quant_ue4m3_to_f32(byte) * p->global, .byte = byte};
}

static piece_scale fit_mxfp4(const piece *p)
{
    uint8_t byte = quant_e8m0_for_fp4(fabsf(piece_extreme(p)));
    return (piece_scale){.scale = quant_e8m0_to_f32(byte), .byte = byte};
}

static uint32_t round_int8(float x, const piece_scale *s)
{
    return (uint8_t)saturate_code(numeric_roundf(quotient(x, s->scale)) + s->zero, -128, 127);
}

static uint32_t round_int4(float x, const piece_scale *s)
{
    return (uint32_t)saturate_code(numeric_roundf(quotient(x, s->scale)), -8, 7) & 15u;
}

static uint32_t round_unsigned_int4(float x, const piece_scale *s)
{
    return (uint32_t)saturate_code(numeric_roundf(quotient(x, s->scale)) + s->zero, 0, 15);
}

static uint32_t round_e4m3(float x, const piece_scale *s)
{
    return quant_e4m3_from_f32(quotient(x, s->scale));
}

static uint32_t round_e5m2(float x, const piece_scale *s)
{
    return quant_e5m2_from_f32(quotient(x, s->scale));
}

static uint32_t round_fp4(float x, const piece_scale *s)
{
    return quant_fp4_from_f32(quotient(x, s->scale));
}

static const struct matrix_encoder {
    piece_scale (*fit)(const piece *p);
    uint32_t (*round)(float x, const piece_scale *s);
} encoders[] = {
    [RLXVK_QUANT_INT8] = {fit_int8, round_int8},
    [RLXVK_QUANT_INT8_ASYM] = {fit_int8_range, round_int8},
    [RLXVK_QUANT_INT4] = {fit_int4, round_int4},
    [RLXVK_QUANT_FP8_E4M3] = {fit_e4m3, round_e4m3},
    [RLXVK_QUANT_FP8_E5M2] = {fit_e5m2, round_e5m2},
    [RLXVK_QUANT_NVFP4] = {fit_nvfp4, round_fp4},
    [RLXVK_QUANT_MXFP4] = {fit_mxfp4, round_fp4},
    [RLXVK_QUANT_INT4_ASYM] = {fit_int4_range, round_unsigned_int4},
};

/* ---- Matrices ---- */

/* Describes a scheme as a matrix without data. */
static rlxvk_status describe_matrix(const char *call, const rlxvk_quant_scheme *scheme, uint64_t k,
                                    quant_matrix *out)
{
    char buffer[160] = "";
    rlxvk_quant_scheme s;
    rlxvk_status status;
    TRY(status_require(scheme, call, "scheme"));
    TRY(sized_read(SIZED(rlxvk_quant_scheme), scheme, &s));
    text problem = {buffer, sizeof buffer, 0};
    if (!quant_scheme_resolve((uint32_t)s.kind, &s.block, s.n, &problem))
        return status_fail(RLXVK_E_ATTR, "%s: %s", call, buffer);
    const quant_scheme_traits *t = quant_scheme_find((uint32_t)s.kind);
    *out = (quant_matrix){.traits = t,
                          .k = k,
                          .n = (uint64_t)s.n,
                          .block = t->scale == SCALE_COLUMN ? MAX(k, 1) : (uint64_t)s.block};
error:
    return status;
}

static rlxvk_status measure(const char *call, const quant_matrix *m, rlxvk_quant_sizes *out)
{
    rlxvk_quant_sizes sizes = {0};
    uint64_t pieces = m->traits->scale == SCALE_COLUMN ? 1 : divide_up(m->k, m->block);
    if (!quant_scheme_bytes(m->traits, m->k, m->n, &sizes.code_bytes) ||
        !size_multiply(pieces, m->n, &sizes.scale_count))
        return status_fail(RLXVK_E_TOO_LARGE, "%s: %s: a matrix of %llux%llu does not fit 64 bits",
                           call, m->traits->name, (unsigned long long)m->k,
                           (unsigned long long)m->n);
    sizes.extra_count = m->traits->zero_point ? sizes.scale_count : m->traits->global;
    *out = sizes;
    return RLXVK_OK;
}

rlxvk_status rlxvk_quant_matrix_sizes(const rlxvk_quant_scheme *scheme, uint64_t k,
                                      rlxvk_quant_sizes *out_sizes)
{
    quant_matrix m = {0};
    rlxvk_quant_sizes sizes;
    rlxvk_status status;
    TRY(status_require(out_sizes, "quant_matrix_sizes", "out_sizes"));
    TRY(describe_matrix("quant_matrix_sizes", scheme, k, &m));
    TRY(measure("quant_matrix_sizes", &m, &sizes));
    sized_write(SIZED(rlxvk_quant_sizes), &sizes, out_sizes);
error:
    return status;
}

/* Checks that values are finite and not too large. If zero points are rounded to whole codes, a
 * range moves by up to half a step. That must not overflow, so the limit is lower. */
static rlxvk_status check_values(const quant_matrix *m, const float *w, float *out_largest)
{
    float largest = 0, limit = m->traits->zero_point ? 0x1p126f : 0x1.fffffep127f;
    for (uint64_t i = 0; i < m->k * m->n; i++) {
        if (!(fabsf(w[i]) <= limit)) /* also if NaN */
            return status_fail(
                RLXVK_E_RANGE,
                "quant_encode_matrix: %s: w[%llu][%llu] is %g; blocks hold finite values "
                "up to %g, replace it first",
                m->traits->name, (unsigned long long)(i / m->n), (unsigned long long)(i % m->n),
                (double)w[i], (double)limit);
        largest = fmaxf(largest, fabsf(w[i]));
    }
    *out_largest = largest;
    return RLXVK_OK;
}

static void put_code(const quant_matrix *m, uint8_t *codes, uint64_t element, uint32_t code)
{
    if (m->traits->code_bits == 8)
        codes[element] = (uint8_t)code;
    else
        codes[element / 2] |= (uint8_t)(code << (element % 2 ? 4 : 0));
}

/* Piece number `row` of column j. */
static piece_scale encode_piece(const quant_matrix *m, const float *w, uint64_t row, uint64_t j,
                                float global, uint8_t *codes)
{
    const struct matrix_encoder *encoder = &encoders[m->traits->kind];
    uint64_t start = row * m->block, count = MIN(m->block, m->k - start);
    piece p = {w + start * m->n + j, count, m->n, global};
    piece_scale s = encoder->fit(&p);
    for (uint64_t i = 0; i < count; i++)
        put_code(m, codes, (start + i) * m->n + j, encoder->round(p.first[i * m->n], &s));
    return s;
}

rlxvk_status rlxvk_quant_encode_matrix(const rlxvk_quant_scheme *scheme, uint64_t k, const float *w,
                                       void *out_codes, void *out_scales, float *out_extra)
{
    quant_matrix m = {0};
    rlxvk_quant_sizes sizes;
    float largest = 0;
    rlxvk_status status;
    TRY(describe_matrix("quant_encode_matrix", scheme, k, &m));
    TRY(measure("quant_encode_matrix", &m, &sizes));
    TRY(status_require_items(w, sizes.code_bytes, "quant_encode_matrix", "w"));
    TRY(status_require_items(out_codes, sizes.code_bytes, "quant_encode_matrix", "out_codes"));
    TRY(status_require_items(out_scales, sizes.scale_count, "quant_encode_matrix", "out_scales"));
    TRY(status_require_items(out_extra, sizes.extra_count, "quant_encode_matrix", "out_extra"));
    TRY(check_values(&m, w, &largest));
    float global = largest / (6.0f * 448.0f);
    if (m.traits->global)
        out_extra[0] = global;
    if (sizes.code_bytes)
        memset(out_codes, 0, sizes.code_bytes);
    for (uint64_t i = 0; i < sizes.scale_count; i++) {
        piece_scale s = encode_piece(&m, w, i / m.n, i % m.n, global, out_codes);
        if (m.traits->scale == SCALE_BYTE)
            ((uint8_t *)out_scales)[i] = s.byte;
        else
            ((float *)out_scales)[i] = s.scale;
        if (m.traits->zero_point)
            out_extra[i] = s.zero;
    }
error:
    return status;
}

rlxvk_status rlxvk_quant_decode_matrix(const rlxvk_quant_scheme *scheme, uint64_t k,
                                       const void *codes, const void *scales, const float *extra,
                                       float *out_w)
{
    quant_matrix m = {0};
    rlxvk_quant_sizes sizes;
    float *column = NULL;
    rlxvk_status status;
    TRY(describe_matrix("quant_decode_matrix", scheme, k, &m));
    TRY(measure("quant_decode_matrix", &m, &sizes));
    TRY(status_require_items(codes, sizes.code_bytes, "quant_decode_matrix", "codes"));
    TRY(status_require_items(scales, sizes.scale_count, "quant_decode_matrix", "scales"));
    TRY(status_require_items(extra, sizes.extra_count, "quant_decode_matrix", "extra"));
    TRY(status_require_items(out_w, sizes.code_bytes, "quant_decode_matrix", "out_w"));
    m.codes = codes;
    m.scale_bytes = m.traits->scale == SCALE_BYTE ? scales : NULL;
    m.scales = m.traits->scale == SCALE_BYTE ? NULL : scales;
    m.extra = extra;
    if (m.n && !(column = memory_zeroed(MAX(k, 1), 2 * sizeof *column)))
        TRY(status_fail_memory("decoded column"));
    for (uint64_t j = 0; j < m.n; j++) {
        quant_decode_column(&m, j, column, column + k);
        for (uint64_t p = 0; p < k; p++)
            out_w[p * m.n + j] = column[p];
    }
error:
    memory_free(column);
    return status;
}
