/*
 * Fills leaves with contents. Fills have names and use a small generator, splitmix64. Words of
 * integer and bool leaves are made integral and kept inside the range of the dtype, because kernels
 * rely on it.
 */
#include "conform/cases/table.h"
#include "graph/half.h"
#include "op/packed/quant_format.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct source {
    uint64_t state, index;
    double a, b; /* numbers in the fill's text */
} source;

static uint64_t next(source *s)
{
    uint64_t z = s->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Uniform in [0, n). n is far below 2^64, so the bias does not matter. */
static uint64_t below(source *s, uint64_t n)
{
    return next(s) % n;
}

static double between(source *s, double low, double high)
{
    return low + (high - low) * (double)(next(s) >> 40) * 0x1p-24;
}

/* ---- Fills ---- */

static double fill_uniform(source *s)
{
    return between(s, -3, 3);
}
static double fill_unit(source *s)
{
    return between(s, -1, 1);
}
static double fill_range(source *s)
{
    return between(s, s->a, s->b);
}
static double fill_positive(source *s)
{
    return between(s, 0.1, 3);
}
static double fill_integers(source *s)
{
    return (double)below(s, 17) - 8;
}
/* The kinds of special values. The largest numbers come last: `place_specials` puts one of each
 * into a tensor, and no more are drawn, because sums of many have no value. */
static const float specials[] = {NAN,       INFINITY, -INFINITY, 0.0f,    -0.0f,
                                 0x1p-149f, -3e-42f,  1e-40f,    FLT_MAX, -FLT_MAX};

enum { SPECIAL_KINDS = ARRAY_COUNT(specials), DRAWN_KINDS = SPECIAL_KINDS - 2 };

static double fill_special(source *s)
{
    uint64_t choice = below(s, 6 * DRAWN_KINDS);
    return choice < DRAWN_KINDS ? (double)specials[choice] : fill_uniform(s);
}
/* Puts one value of each kind into the tensor. If it is too small for all kinds, half of its
 * elements become values of different kinds, which the seed chooses. */
static void place_specials(source *s, uint64_t count, float *words)
{
    uint8_t order[SPECIAL_KINDS] = {0};
    uint64_t places = count >= SPECIAL_KINDS ? SPECIAL_KINDS : divide_up(count, 2);
    for (uint64_t i = 0; i < SPECIAL_KINDS; i++) {
        uint64_t k = below(s, i + 1);
        order[i] = order[k];
        order[k] = (uint8_t)i;
    }
    for (uint64_t i = 0; i < places; i++) {
        uint64_t begin = i * count / places, end = (i + 1) * count / places;
        words[begin + below(s, end - begin)] = specials[order[i]];
    }
}
static double fill_large(source *s)
{
    double magnitude = between(s, 0.5, 2) * (next(s) & 1 ? 1e30 : 1e-30);
    return next(s) & 1 ? magnitude : -magnitude;
}
static double fill_outliers(source *s)
{
    return (below(s, 40) ? 1 : 1e4) * fill_uniform(s);
}
static double fill_offset(source *s)
{
    return 1e4 + fill_unit(s);
}
static double fill_zero(source *s)
{
    (void)s;
    return 0;
}
static double fill_one(source *s)
{
    (void)s;
    return 1;
}
static double fill_constant(source *s)
{
    return s->a;
}
static double fill_bool(source *s)
{
    return (double)(next(s) & 1);
}
static double fill_index(source *s)
{
    return (double)below(s, s->a >= 1 ? (uint64_t)s->a : 1);
}
static double fill_badindex(source *s)
{
    double n = s->a, v = fill_index(s);
    const double values[] = {-1,      -n,      n,       n + 7,   NAN,  INFINITY, -INFINITY, 3e20,
                             v + 0.4, v + 0.5, v - 0.4, v - 0.5, -0.5, n - 0.5,  -0.4,      -3e20};
    uint64_t choice = below(s, 2 * ARRAY_COUNT(values));
    return choice < ARRAY_COUNT(values) ? values[choice] : v;
}
static double fill_neginf(source *s)
{
    return below(s, 8) ? -INFINITY : fill_uniform(s);
}
static double fill_iota(source *s)
{
    return (double)s->index;
}
/* Points of a grid [.., a, b, 2] over an image, rotated by 15 degrees. */
static double fill_turned(source *s)
{
    uint64_t rows = (uint64_t)s->a, columns = (uint64_t)s->b, point = s->index / 2;
    if (rows == 0 || columns == 0)
        return 0;
    double x = (2.0 * (double)(point % columns) + 1) / s->b - 1;
    double y = (2.0 * (double)(point / columns % rows) + 1) / s->a - 1;
    return s->index % 2 == 0 ? 0.966 * x - 0.259 * y : 0.259 * x + 0.966 * y;
}
static double fill_byte(source *s)
{
    return (double)below(s, 256);
}

static const struct fill_row {
    const char *name;
    double (*draw)(source *s);
} fill_rows[] = {
    {"uniform", fill_uniform},   {"unit", fill_unit},         {"range", fill_range},
    {"positive", fill_positive}, {"integers", fill_integers}, {"special", fill_special},
    {"large", fill_large},       {"offset", fill_offset},     {"zero", fill_zero},
    {"one", fill_one},           {"constant", fill_constant}, {"bool", fill_bool},
    {"index", fill_index},       {"badindex", fill_badindex}, {"neginf", fill_neginf},
    {"iota", fill_iota},         {"bytes", fill_byte},        {"outliers", fill_outliers},
    {"turned", fill_turned},
};

/* Finds the row for a text like "range:-1:1" and sets a and b. */
static const struct fill_row *find(const char *name, source *s)
{
    size_t length = strcspn(name, ":");
    for (size_t i = 0; i < ARRAY_COUNT(fill_rows); i++) {
        if (strlen(fill_rows[i].name) != length || strncmp(fill_rows[i].name, name, length) != 0)
            continue;
        char *end = NULL;
        s->a = name[length] ? text_to_real(name + length + 1, &end) : 0;
        s->b = end && *end ? text_to_real(end + 1, NULL) : 0;
        return &fill_rows[i];
    }
    return NULL;
}

static rlxvk_status unknown(const char *fill)
{
    return status_fail(RLXVK_E_ATTR,
                       "fill '%s' is not known; tools/conform/cases/cases.h lists the fills", fill);
}

rlxvk_status fill_words(const char *fill, uint64_t seed, uint64_t count, float *out)
{
    source s = {.state = seed};
    const struct fill_row *row = find(*fill ? fill : "uniform", &s);
    if (!row)
        return unknown(fill);
    for (s.index = 0; s.index < count; s.index++)
        out[s.index] = (float)row->draw(&s);
    if (row->draw == fill_special)
        place_specials(&s, count, out);
    return RLXVK_OK;
}

/* ---- Packed blocks ---- */

static void write_little(uint8_t *out, uint32_t value, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> 8 * i);
}

static void write_scale(source *s, uint8_t kind, uint8_t *out)
{
    float scale = (float)between(s, 0.002, 0.02);
    scale = next(s) & 1 ? scale : -scale;
    uint32_t half = f32_to_f16(scale);
    if (kind == QUANT_SCALE_FLOAT)
        write_little(out, f32_bits(scale), 4);
    else if (kind == QUANT_SCALE_HALF)
        write_little(out, half, 2);
    else if (kind == QUANT_SCALE_BRAIN)
        write_little(out, f32_bits(scale) >> 16, 2);
    else if (kind == QUANT_SCALE_E8M0)
        out[0] = (uint8_t)(below(s, 16) ? 118 + below(s, 6) : 255); /* sometimes NaN */
    else
        for (int i = 0; i < 4; i++)
            if (kind == QUANT_SCALE_FOUR_UE4M3)
                out[i] = (uint8_t)(below(s, 16) ? below(s, 64) : 127);
            else
                out[2 * i + 1] = (uint8_t)((out[2 * i + 1] & 15u) | (half >> 4 * i & 15u) << 4);
}

/* Random bits, but with scales that are finite. */
static void fill_block(source *s, const quant_format *format, uint8_t *out)
{
    for (uint32_t i = 0; i < format->block_bytes; i += 8) {
        uint64_t bits = next(s);
        memcpy(out + i, &bits, MIN(8, format->block_bytes - i));
    }
    for (int i = 0; format->scales[i].kind != QUANT_SCALE_NONE; i++)
        write_scale(s, format->scales[i].kind, out + format->scales[i].offset);
}

static rlxvk_status fill_blocks(const char *format_name, source *s, uint64_t count, uint8_t *out)
{
    const quant_format *format = quant_format_find_name(format_name);
    if (!format || !format->weight)
        return status_fail(RLXVK_E_ATTR, "fill quant:%s: no format of weights", format_name);
    for (uint64_t at = 0; at < count; at += format->block_bytes) {
        uint8_t block[QUANT_MAX_BYTES];
        fill_block(s, format, block);
        memcpy(out + at, block, MIN(format->block_bytes, count - at));
    }
    return RLXVK_OK;
}

rlxvk_status fill_bytes(const char *fill, uint64_t seed, uint64_t count, uint8_t *out)
{
    source s = {.state = seed};
    if (strncmp(fill, "quant:", 6) == 0)
        return fill_blocks(fill + 6, &s, count, out);
    const struct fill_row *row = find(*fill ? fill : "bytes", &s);
    if (!row)
        return unknown(fill);
    for (s.index = 0; s.index < count; s.index++)
        out[s.index] = (uint8_t)(int)row->draw(&s);
    return RLXVK_OK;
}

/* ---- Leaves of a case ---- */

bool case_is_raw(const case_input *input)
{
    return input->dtype == RLXVK_U8 || input->dtype == RLXVK_I8;
}

bool case_is_param(const case_input *input)
{
    return case_is_raw(input) || input->dtype == RLXVK_F16 || input->dtype == RLXVK_BF16;
}

uint64_t case_length(const case_input *input)
{
    uint64_t length = input->dtype == RLXVK_C64 ? 2 : 1;
    for (uint32_t i = 0; i < input->shape.rank; i++)
        length *= (uint64_t)input->shape.dims[i];
    return length;
}

/* Limits for words of a dtype. The largest are the f32 values next to the dtype's own limits. */
static const struct limits {
    rlxvk_dtype dtype;
    float lowest, highest;
} limits[] = {
    {RLXVK_I16, -32768, 32767},
    {RLXVK_I32, -0x1p31f, 0x1p31f},
    {RLXVK_I64, -0x1p63f, 0x1p63f},
    {RLXVK_U32, 0, 0x1p32f},
};

static void make_integral(rlxvk_dtype dtype, float *words, uint64_t count)
{
    for (uint64_t i = 0; dtype == RLXVK_BOOL && i < count; i++)
        words[i] = words[i] != 0;
    for (size_t row = 0; row < ARRAY_COUNT(limits); row++)
        for (uint64_t i = 0; limits[row].dtype == dtype && i < count; i++) {
            float value = isnan(words[i]) ? 0 : truncf(words[i]);
            words[i] = MIN(MAX(value, limits[row].lowest), limits[row].highest);
        }
}

/* Half types get their own largest and smallest numbers as special values, not those of f32. */
static void make_half(rlxvk_dtype dtype, float *words, uint64_t count)
{
    float largest = dtype == RLXVK_F16 ? 65504 : 0x1.fep127f;
    float smallest = dtype == RLXVK_F16 ? 0x1p-24f : 0x1p-133f;
    for (uint64_t i = 0; i < count; i++)
        if (isfinite(words[i]) && words[i] != 0)
            words[i] = copysignf(fminf(fmaxf(fabsf(words[i]), smallest), largest), words[i]);
}

static uint64_t hash(uint64_t state, const char *name) /* FNV-1a */
{
    for (; *name; name++)
        state = (state ^ (uint8_t)*name) * 0x100000001b3u;
    return (state ^ 0xff) * 0x100000001b3u;
}

rlxvk_status case_fill(const case_spec *s, size_t input, uint64_t seed, uint64_t number, void *out)
{
    const case_input *leaf = &s->inputs[input];
    uint64_t state = hash(hash(0xcbf29ce484222325u ^ seed, s->row), leaf->name) ^ number << 32;
    if (case_is_raw(leaf))
        return fill_bytes(leaf->fill, state, case_length(leaf), out);
    rlxvk_status status = fill_words(leaf->fill, state, case_length(leaf), out);
    if (status == RLXVK_OK)
        make_integral(leaf->dtype, out, case_length(leaf));
    if (status == RLXVK_OK && strcmp(leaf->fill, "special") == 0 && case_is_param(leaf))
        make_half(leaf->dtype, out, case_length(leaf));
    return status;
}
