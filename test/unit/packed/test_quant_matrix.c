/*
 * Matrices with side scales. The chosen code must be the nearest that scale and zero point allow,
 * and scales may not be larger than needed. Also tests sizes, padding and refusals.
 */
#include "op/packed/quant_scheme.h"
#include <rlxvk_quant.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

enum { MOST = 4096 };

/* `error`: the largest |w - decoded|, in units of the block's largest |w|. If the kind has zero
 * points, the unit is the range of the block, including 0. */
static const struct kind {
    rlxvk_quant_scheme scheme;
    uint64_t k;
    float error;
} kinds[] = {
    {{RLXVK_QUANT_INT8, 32, 7}, 100, 0.501f / 127},
    {{RLXVK_QUANT_INT8, 1, 5}, 3, 1e-6f},
    {{RLXVK_QUANT_INT8_ASYM, 32, 7}, 100, 0.501f / 255},
    {{RLXVK_QUANT_INT4, 16, 3}, 33, 1.001f / 8},
    {{RLXVK_QUANT_INT4, 64, 31}, 128, 1.001f / 8},
    {{RLXVK_QUANT_INT4_ASYM, 16, 3}, 33, 0.501f / 15},
    {{RLXVK_QUANT_FP8_E4M3, 0, 9}, 200, 1.0f / 16},
    {{RLXVK_QUANT_FP8_E5M2, 0, 9}, 200, 1.0f / 8},
    {{RLXVK_QUANT_NVFP4, 0, 5}, 47, 0.22f},
    {{RLXVK_QUANT_NVFP4, 16, 4}, 64, 0.22f},
    {{RLXVK_QUANT_MXFP4, 0, 5}, 63, 0.251f},
    {{RLXVK_QUANT_MXFP4, 32, 1}, 1, 0.251f},
};

typedef struct packed {
    rlxvk_quant_sizes sizes;
    uint8_t codes[MOST + 1];
    union {
        uint8_t bytes[MOST];
        float words[MOST];
    } scales;
    float extra[MOST];
} packed;

static void pack(const struct kind *c, const float *w, packed *out)
{
    memset(out, 0xa5, sizeof *out);
    assert_int_equal(rlxvk_quant_matrix_sizes(&c->scheme, c->k, &out->sizes), RLXVK_OK);
    assert_true(out->sizes.code_bytes <= MOST && out->sizes.scale_count <= MOST);
    assert_int_equal(rlxvk_quant_encode_matrix(&c->scheme, c->k, w, out->codes, &out->scales,
                                               out->sizes.extra_count ? out->extra : NULL),
                     RLXVK_OK);
    assert_int_equal(out->codes[out->sizes.code_bytes], 0xa5);
}

static void unpack(const struct kind *c, const packed *p, float *w)
{
    assert_int_equal(rlxvk_quant_decode_matrix(&c->scheme, c->k, p->codes, &p->scales, p->extra, w),
                     RLXVK_OK);
}

static void fill(float *w, uint64_t count)
{
    uint32_t seed = 3;
    for (uint64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        w[i] = ((float)(seed >> 8) * 0x1p-23f - 0.7f) * (i % 11 ? 1.0f : 3.0f);
    }
}

/* least[i]: distance to the nearest value under the scales of `p`, found by trying all codes. */
static void nearest_distances(const struct kind *c, const packed *p, const float *w, double *least)
{
    uint64_t numel = c->k * (uint64_t)c->scheme.n;
    float values[MOST];
    packed tried = *p;
    for (uint64_t i = 0; i < numel; i++)
        least[i] = INFINITY;
    for (int byte = 0; byte < 256; byte++) {
        memset(tried.codes, byte, p->sizes.code_bytes);
        unpack(c, &tried, values);
        for (uint64_t i = 0; i < numel; i++)
            least[i] = fmin(least[i], fabs((double)w[i] - values[i]));
    }
}

/* The largest |w| of the elements that share a scale with element i. If the kind has a zero point,
 * it is their range, including 0. */
static float block_size(const struct kind *c, const float *w, uint64_t i)
{
    const quant_scheme_traits *t = quant_scheme_find((uint32_t)c->scheme.kind);
    uint64_t n = (uint64_t)c->scheme.n, block = t->block ? t->block : (uint64_t)c->scheme.block;
    float low = 0, high = 0;
    if (t->scale == SCALE_COLUMN)
        block = c->k;
    for (uint64_t p = i / n / block * block; p < c->k && p < (i / n / block + 1) * block; p++) {
        low = fminf(low, w[p * n + i % n]);
        high = fmaxf(high, w[p * n + i % n]);
    }
    return t->zero_point ? high - low : fmaxf(high, -low);
}

static void test_nearest(void **state)
{
    float w[MOST], values[MOST];
    double least[MOST];
    packed p;
    (void)state;
    for (size_t c = 0; c < ARRAY_COUNT(kinds); c++) {
        uint64_t numel = kinds[c].k * (uint64_t)kinds[c].scheme.n;
        fill(w, numel);
        pack(&kinds[c], w, &p);
        unpack(&kinds[c], &p, values);
        nearest_distances(&kinds[c], &p, w, least);
        for (uint64_t i = 0; i < numel; i++) {
            double distance = fabs((double)w[i] - values[i]);
            float size = block_size(&kinds[c], w, i);
            assert_true(distance <= least[i] + 1e-6 * size);
            assert_true(distance <= (double)kinds[c].error * size);
        }
    }
}

/* If decoded values are encoded again, they must stay the same. */
static void test_fixed_points(void **state)
{
    float w[MOST], values[MOST], again[MOST];
    packed p;
    (void)state;
    for (size_t c = 0; c < ARRAY_COUNT(kinds); c++) {
        uint64_t numel = kinds[c].k * (uint64_t)kinds[c].scheme.n;
        fill(w, numel);
        pack(&kinds[c], w, &p);
        unpack(&kinds[c], &p, values);
        if (kinds[c].scheme.kind == RLXVK_QUANT_NVFP4)
            continue; /* its group scales are rounded relative to the global one */
        pack(&kinds[c], values, &p);
        unpack(&kinds[c], &p, again);
        for (uint64_t i = 0; i < numel; i++)
            assert_true(fabsf(values[i] - again[i]) <= 4e-7f * fabsf(values[i]));
    }
}

static void test_zeros(void **state)
{
    float w[MOST] = {0}, values[MOST];
    packed p;
    (void)state;
    for (size_t c = 0; c < ARRAY_COUNT(kinds); c++) {
        uint64_t numel = kinds[c].k * (uint64_t)kinds[c].scheme.n;
        pack(&kinds[c], w, &p);
        unpack(&kinds[c], &p, values);
        for (uint64_t i = 0; i < numel; i++)
            assert_true(values[i] == 0);
        fill(w, numel); /* a 0 among others stays 0 */
        w[numel / 2] = 0;
        pack(&kinds[c], w, &p);
        unpack(&kinds[c], &p, values);
        assert_true(values[numel / 2] == 0);
        memset(w, 0, sizeof w);
    }
}

/* The extremes of f32 must fit or saturate. No result may be infinite or NaN. */
static void test_extremes(void **state)
{
    static const float sizes[] = {0x1p-149f, 0x1p-130f, 1e38f, 3.4e38f};
    float w[MOST], values[MOST];
    packed p;
    (void)state;
    for (size_t c = 0; c < ARRAY_COUNT(kinds); c++)
        for (size_t s = 0; s < ARRAY_COUNT(sizes); s++) {
            uint64_t numel = kinds[c].k * (uint64_t)kinds[c].scheme.n;
            bool zero_point = quant_scheme_find((uint32_t)kinds[c].scheme.kind)->zero_point;
            float size = zero_point ? fminf(sizes[s], 0x1p126f) : sizes[s];
            for (uint64_t i = 0; i < numel; i++)
                w[i] = size * (i % 3 == 0 ? 1.0f : i % 3 == 1 ? -1.0f : 0.0f);
            pack(&kinds[c], w, &p);
            unpack(&kinds[c], &p, values);
            for (uint64_t i = 0; i < numel; i++)
                assert_true(isfinite(values[i]));
        }
}

static void test_sizes(void **state)
{
    rlxvk_quant_sizes s;
    (void)state;
    assert_int_equal(rlxvk_quant_matrix_sizes(&(rlxvk_quant_scheme){RLXVK_QUANT_INT4_ASYM, 32, 3},
                                              33, &s),
                     RLXVK_OK);
    assert_true(s.code_bytes == 50 && s.scale_count == 6 && s.extra_count == 6);
    assert_int_equal(rlxvk_quant_matrix_sizes(&(rlxvk_quant_scheme){RLXVK_QUANT_NVFP4, 0, 3}, 33,
                                              &s),
                     RLXVK_OK);
    assert_true(s.code_bytes == 50 && s.scale_count == 9 && s.extra_count == 1);
    assert_int_equal(rlxvk_quant_matrix_sizes(&(rlxvk_quant_scheme){RLXVK_QUANT_FP8_E4M3, 0, 3}, 33,
                                              &s),
                     RLXVK_OK);
    assert_true(s.code_bytes == 99 && s.scale_count == 3 && s.extra_count == 0);
    assert_int_equal(rlxvk_quant_matrix_sizes(&(rlxvk_quant_scheme){RLXVK_QUANT_INT8, 1, 1 << 30},
                                              UINT64_MAX / 2, &s),
                     RLXVK_E_TOO_LARGE);
}

/* A byte has two values, also across rows. If the count is odd, the last high nibble is 0. */
static void test_packing(void **state)
{
    const float w[] = {7, -8, -1, 3, 0, 5, -4, 2, -8};
    float scale, values[9];
    uint8_t codes[5];
    rlxvk_quant_scheme scheme = {RLXVK_QUANT_INT4, 9, 1};
    (void)state;
    assert_int_equal(rlxvk_quant_encode_matrix(&scheme, 9, w, codes, &scale, NULL), RLXVK_OK);
    assert_true(scale == 1);
    assert_memory_equal(codes, ((uint8_t[]){0x87, 0x3f, 0x50, 0x2c, 0x08}), 5);
    assert_int_equal(rlxvk_quant_decode_matrix(&scheme, 9, codes, &scale, NULL, values), RLXVK_OK);
    assert_memory_equal(values, w, sizeof w);
}

static void test_refusals(void **state)
{
    static const struct {
        rlxvk_quant_scheme scheme;
        const char *words;
    } bad[] = {
        {{(rlxvk_quant_kind)8, 32, 4}, "kind 8"},   {{RLXVK_QUANT_INT8, 0, 4}, "block is 0"},
        {{RLXVK_QUANT_INT4, -1, 4}, "block is -1"}, {{RLXVK_QUANT_NVFP4, 32, 4}, "always 16"},
        {{RLXVK_QUANT_MXFP4, 16, 4}, "always 32"},  {{RLXVK_QUANT_INT8, 32, -4}, "n is -4"},
    };
    float w[MOST];
    packed p;
    rlxvk_quant_sizes s;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_int_equal(rlxvk_quant_matrix_sizes(&bad[i].scheme, 32, &s), RLXVK_E_ATTR);
        assert_non_null(strstr(rlxvk_last_error(), bad[i].words));
        assert_int_equal(rlxvk_quant_encode_matrix(&bad[i].scheme, 32, w, p.codes, &p.scales,
                                                   p.extra),
                         RLXVK_E_ATTR);
    }
    for (size_t c = 0; c < ARRAY_COUNT(kinds); c++) {
        fill(w, kinds[c].k * (uint64_t)kinds[c].scheme.n);
        w[kinds[c].k * (uint64_t)kinds[c].scheme.n - 1] = c % 2 ? NAN : -INFINITY;
        memset(&p, 0xa5, sizeof p);
        assert_int_equal(rlxvk_quant_encode_matrix(&kinds[c].scheme, kinds[c].k, w, p.codes,
                                                   &p.scales, p.extra),
                         RLXVK_E_RANGE);
        assert_non_null(strstr(rlxvk_last_error(), c % 2 ? "is nan" : "is -inf"));
        assert_true(p.codes[0] == 0xa5 && p.scales.bytes[0] == 0xa5);
    }
}

/* No rows or no columns. */
static void test_empty(void **state)
{
    packed p;
    float w[1] = {0};
    (void)state;
    for (size_t c = 0; c < ARRAY_COUNT(kinds); c++) {
        struct kind rows = kinds[c], columns = kinds[c];
        rows.k = 0;
        columns.scheme.n = 0;
        pack(&rows, w, &p);
        unpack(&rows, &p, w);
        pack(&columns, w, &p);
        unpack(&columns, &p, w);
        assert_true(w[0] == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nearest), cmocka_unit_test(test_fixed_points),
        cmocka_unit_test(test_zeros),   cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_sizes),   cmocka_unit_test(test_packing),
        cmocka_unit_test(test_empty),   cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
