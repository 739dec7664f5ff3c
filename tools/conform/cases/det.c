/*
 * Cases of det, slogdet, cofactor and inverse (in=a).
 *   dominant=V   adds V to the diagonal of every matrix first
 *   rows=V       multiplies row i by V^i
 *   same=n       the last n rows become equal to the row before them
 *   permuted=1   reverses the rows
 *   shift=n      drops the first n matrices by a view
 *   sign=1       of slogdet: takes the sign; otherwise the logarithm is taken
 */
#include "conform/cases/cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const rows[] = {"det", "slogdet", "cofactor", "inverse", NULL};

/* The constant [n, 1] with V^i in element i. */
static rlxvk_tensor powers(rlxvk_graph *g, int64_t n, double value)
{
    rlxvk_tensor result = RLXVK_NONE;
    float *words = calloc((size_t)n + 1, sizeof *words);
    for (int64_t i = 0; words && i < n; i++)
        words[i] = (float)pow(value, (double)i);
    if (words)
        result = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(n, 1), words, (size_t)n * sizeof *words);
    free(words);
    return result;
}

/* Replaces the last `count` rows by the row before them. */
static rlxvk_tensor repeat_row(rlxvk_graph *g, rlxvk_tensor a, int64_t count)
{
    rlxvk_shape s = rlxvk_tensor_shape(g, a);
    int64_t kept = s.dims[s.rank - 2] - count;
    rlxvk_tensor first = rlxvk_narrow(g, a, -2, 0, kept);
    s.dims[s.rank - 2] = count;
    rlxvk_tensor last = rlxvk_expand(g, rlxvk_narrow(g, a, -2, kept - 1, 1), s);
    return rlxvk_concat(g, (rlxvk_tensor[]){first, last}, 2, -2);
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor a = case_shifted(g, s, "shift", case_tensor(s, inputs, "a")), log_abs;
    rlxvk_shape shape = rlxvk_tensor_shape(g, a);
    double dominant = case_real(s, "dominant", 0), rows = case_real(s, "rows", 0);
    int64_t n = shape.rank ? shape.dims[shape.rank - 1] : 0, same = case_integer(s, "same", 0);
    if (dominant != 0)
        a = rlxvk_add(g, a, case_diagonal(g, n, (float)dominant));
    if (rows != 0)
        a = rlxvk_mul(g, a, powers(g, n, rows));
    if (same > 0)
        a = repeat_row(g, a, same);
    if (case_integer(s, "permuted", 0))
        a = rlxvk_reverse(g, a, (const int32_t[]){-2}, 1);
    if (strcmp(s->row, "det") == 0)
        return rlxvk_det(g, a);
    if (strcmp(s->row, "cofactor") == 0)
        return rlxvk_cofactor(g, a);
    if (strcmp(s->row, "inverse") == 0)
        return rlxvk_inverse(g, a);
    rlxvk_tensor sign = rlxvk_slogdet(g, a, &log_abs);
    return case_integer(s, "sign", 0) ? sign : log_abs;
}

/* A fill with which determinants of this size are about 1. */
static const char *fill_of(int n, char buffer[40])
{
    double most = 2.86 / sqrt(n < 8 ? 8.0 : n);
    snprintf(buffer, 40, "range:%.3f:%.3f", -most, most);
    return buffer;
}

static void generate_sizes(case_list *list)
{
    static const int sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 64, 65, 130};
    char fill[40];
    for (size_t i = 0; i < COUNT(sizes); i++) {
        int n = sizes[i], batch = n > 60 ? 1 : n > 16 ? 2 : 7;
        fill_of(n, fill);
        case_add(list, "det in=a:f32:%dx%dx%d:%s", batch, n, n, fill);
        case_add(list, "det permuted=1 dominant=2 in=a:f32:%dx%d:%s", n, n, fill);
        case_add(list, "slogdet dominant=%d in=a:f32:%dx%dx%d:unit", 2 + n / 4, batch, n, n);
        case_add(list, "slogdet sign=1 dominant=-1 in=a:f32:%dx%dx%d:unit", batch, n, n);
        case_add(list, "cofactor in=a:f32:%dx%dx%d:%s", batch, n, n, fill);
        case_add(list, "inverse dominant=%d in=a:f32:%dx%dx%d:unit", 2 + n / 4, batch, n, n);
        if (n < 2)
            continue;
        case_add(list, "slogdet rows=%g dominant=3 in=a:f32:%dx%d:unit", n > 60 ? 0.7 : 0.25, n, n);
        case_add(list, "inverse rows=%g dominant=3 permuted=1 in=a:f32:%dx%d:unit",
                 n > 60 ? 0.7 : 0.25, n, n);
        case_add(list, "cofactor permuted=1 dominant=1.5 in=a:f32:%dx%d:%s", n, n, fill);
        case_add(list, "det same=1 in=a:f32:%dx%dx%d:%s", batch, n, n, fill);
        case_add(list, "cofactor same=1 in=a:f32:%dx%dx%d:%s", batch, n, n, fill);
        if (n > 2)
            case_add(list, "cofactor same=2 in=a:f32:%dx%dx%d:%s", batch, n, n, fill);
    }
}

static void generate(case_list *list)
{
    static const char *const lines[] = {
        "in=a:f32:500x4x4:unit",
        "in=a:f32:3x2x5x5:unit",
        "in=a:f32:300x3x3:integers",
        "in=a:f32:40x4x4:integers",
        "in=a:f32:9x6x6:integers",
        "in=a:f32:5x5:zero",
        "in=a:f32:70x70:zero",
        "in=a:f32:3x3:zero",
        "rows=1e-3 in=a:f32:12x12:unit",
        "rows=3 in=a:f32:3x12x12:unit",
        "rows=1e30 in=a:f32:2x2:unit",
        "dominant=1e30 in=a:f32:3x3:unit",
        "dominant=1e-30 in=a:f32:9x9:zero",
        "dominant=1e30 in=a:f32:9x9:zero",
        "in=a:f32:30x1x1:special",
        "in=a:f32:40x2x2:special",
        "in=a:f32:12x5x5:special",
        "in=a:f32:12x5x5:outliers",
        "in=a:f32:70x70:special",
        "dominant=1e-3 in=a:f32:70x70:zero",
        "permuted=1 dominant=1 in=a:f32:6x6:zero",
        "permuted=1 dominant=1 in=a:f32:67x67:zero",
        "in=a:f32:4x4:constant:nan",
        "in=a:f32:6x6:constant:inf",
        "in=a:f32:1x1:constant:nan",
        "in=a:f32:1x1:constant:-inf",
        "shift=2 in=a:f32:7x3x3:unit",
        "shift=1 in=a:f32:3x9x9:unit",
        "shift=1 in=a:f32:2x70x70:unit",
        "in=a:f16:2x5x5:unit",
        "in=a:f32:0x3x3",
        "in=a:f32:0x9x9",
        "in=a:f32:3x0x0",
        "expect=E_SHAPE in=a:f32:5",
        "expect=E_SHAPE in=a:f32:scalar",
        "expect=E_SHAPE in=a:f32:5x6",
        "expect=E_SHAPE in=a:f32:3x5x6",
        "expect=E_DTYPE in=a:u8:5x5:bytes",
        "expect=E_DTYPE in=a:c64:5x5",
    };
    static const char *const wide[] = {"in=a:f32:20x2x2:large", "in=a:f32:20x4x4:large",
                                       "in=a:f32:6x7x7:large"};
    /* Integers have no gradient, so singular matrices fail no run. */
    static const char *const signs[] = {"in=a:f32:500x4x4:unit",
                                        "in=a:f32:3x2x5x5:unit",
                                        "in=a:i32:300x3x3:integers",
                                        "in=a:i32:5x5:zero",
                                        "in=a:i32:3x3:zero",
                                        "in=a:f32:30x1x1:special",
                                        "in=a:f32:12x5x5:special",
                                        "in=a:f32:6x6:constant:inf",
                                        "in=a:f32:1x1:constant:nan",
                                        "shift=1 in=a:f32:3x9x9:unit",
                                        "permuted=1 in=a:f32:40x9x9:unit"};
    generate_sizes(list);
    /* Rounding may hide that a matrix is singular, so its inverse has no bound. */
    for (size_t i = 0; i < 3; i++)
        case_add(list, "%s in=a:f32:70x70:one", rows[i]);
    case_add_all(list, "det", lines, COUNT(lines));
    case_add_all(list, "det", wide, COUNT(wide));
    case_add_all(list, "slogdet", lines, COUNT(lines));
    case_add_all(list, "slogdet", wide, COUNT(wide));
    case_add_all(list, "inverse", lines, COUNT(lines));
    case_add_all(list, "inverse", wide, COUNT(wide));
    case_add_all(list, "slogdet sign=1", signs, COUNT(signs));
    case_add_all(list, "cofactor", lines, COUNT(lines));
    case_add_all(list, "cofactor", wide, COUNT(wide));
    /* More rows than a workgroup has lanes. */
    case_add(list, "det in=a:f32:521x521:range:-0.125:0.125");
    case_add(list, "slogdet dominant=100 permuted=1 in=a:f32:521x521:unit");
    case_add(list, "cofactor in=a:f32:180x180:range:-0.213:0.213");
    case_add(list, "inverse dominant=30 in=a:f32:180x180:unit");
}

const case_family det_cases = {rows, build, generate};
