/*
 * Determinants, cofactors and their gradients, whose values are known: products of pivots far
 * outside of the range of F32, permutations, singular matrices.
 */
#include "support/harness.h"

#include <rlxvk_ops_domain.h>
#include <rlxvk_train.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define MOST         160
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Compiles the graph for the shared context, and runs it on input "a". */
static rlxvk_status run(rlxvk_graph *g, const float *a, size_t a_count, float *y, size_t y_count)
{
    rlxvk_executable *e = NULL;
    const rlxvk_run_input in = {"a", a, a_count, RLXVK_F32};
    const rlxvk_run_output out = {0, y, y_count, RLXVK_F32};
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    rlxvk_status status = rlxvk_run(e, &in, 1, &out, 1);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    return status;
}

static rlxvk_graph *begin(int64_t n, rlxvk_tensor *out_a)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    *out_a = rlxvk_input(g, "a", RLXVK_F32, RLXVK_SHAPE(n, n));
    return g;
}

/* det, sign and ln |det|. */
static void determine(const float *a, int64_t n, float out[3])
{
    rlxvk_tensor m, log_abs, parts[3];
    rlxvk_graph *g = begin(n, &m);
    parts[0] = rlxvk_det(g, m);
    parts[1] = rlxvk_slogdet(g, m, &log_abs);
    parts[2] = log_abs;
    for (int i = 0; i < 3; i++)
        parts[i] = rlxvk_reshape(g, parts[i], RLXVK_SHAPE(1));
    rlxvk_graph_output(g, rlxvk_concat(g, parts, 3, 0));
    expect_ok(run(g, a, (size_t)(n * n), out, 3));
}

static void expect_determinant(const float *a, int64_t n, double wanted, double logarithm)
{
    float got[3];
    determine(a, n, got);
    if (!(fabs(got[0] - wanted) <= 1e-5 * fabs(wanted)) && !(isinf(wanted) && got[0] == wanted))
        fail_msg("n %d: det %g instead of %g", (int)n, (double)got[0], wanted);
    assert_true(got[1] == (wanted > 0) - (wanted < 0));
    if (!(fabs(got[2] - logarithm) <= 1e-5 * fmax(1, fabs(logarithm))) && got[2] != logarithm)
        fail_msg("n %d: ln %g instead of %g", (int)n, (double)got[2], logarithm);
}

/* ---- Products of pivots ---- */

static void products_do_not_leave_the_range(void **state)
{
    static float a[MOST * MOST];
    const float three[] = {1e30f, 0, 0, 0, 1e-30f, 0, 0, 0, 2};
    (void)state;
    expect_determinant(three, 3, 2, log(2));
    const int64_t sizes[] = {4, 6, 64, 128};
    for (size_t k = 0; k < COUNT(sizes); k++) {
        int64_t n = sizes[k];
        memset(a, 0, sizeof a);
        for (int64_t i = 0; i < n; i++)
            a[i * n + i] = i < n / 2 ? 1e3f : 1e-3f;
        expect_determinant(a, n, 1, 0);
        for (int64_t i = 0; i < n; i++)
            a[i * n + i] = 1e30f;
        expect_determinant(a, n, INFINITY, (double)n * 30 * log(10));
        for (int64_t i = 0; i < n; i++)
            a[i * n + i] = -1e-30f;
        float got[3];
        determine(a, n, got);
        assert_true(fabsf(got[0]) < 1e-38f && got[1] == 1);
        assert_true(fabs(got[2] + (double)n * 30 * log(10)) < 1e-3 * (double)n);
    }
}

/* Rows and columns of units that differ by more than F32 has range. */
static void units_do_not_matter(void **state)
{
    const float rows[] = {1e30f, 1e30f, 1e-30f, 2e-30f};
    const float columns[] = {1e30f, 1e-30f, 1e30f, 2e-30f};
    float a[36] = {0};
    (void)state;
    expect_determinant(rows, 2, 1, 0);
    expect_determinant(columns, 2, 1, 0);
    for (int i = 0; i < 6; i++)
        a[7 * i] = 1;
    a[0] = a[1] = 1e30f;
    a[6] = 1e-30f;
    a[7] = 3e-30f; /* the block of rows[], with 3 - 1 */
    expect_determinant(a, 6, 2, log(2));
}

/* Ones on the diagonal and 1e30 above it: no scale of rows and columns makes all products of
 * elements ordinary numbers. */
static void chains_of_large_numbers(void **state)
{
    (void)state;
    for (int64_t n = 2; n <= 8; n++) {
        float a[64] = {0};
        for (int64_t i = 0; i < n; i++) {
            a[i * n + i] = 1;
            if (i + 1 < n)
                a[i * n + i + 1] = 1e30f;
        }
        expect_determinant(a, n, 1, 0);
    }
}

/* The permutation i -> 5 i mod n, as a matrix. */
static void permutations_have_their_sign(void **state)
{
    static float a[MOST * MOST];
    (void)state;
    for (int64_t n = 1; n < 140; n = n < 9 ? n + 1 : 2 * n - 1) {
        int64_t wrong = 0;
        if (n % 5 == 0)
            continue;
        memset(a, 0, sizeof a);
        for (int64_t i = 0; i < n; i++)
            a[i * n + 5 * i % n] = 1;
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = i + 1; k < n; k++)
                wrong += 5 * i % n > 5 * k % n;
        float got[3];
        determine(a, n, got);
        assert_true(got[0] == (wrong % 2 ? -1 : 1) && got[1] == got[0] && got[2] == 0);
    }
}

/* ---- Exact results and special values ---- */

static void small_integers_are_exact(void **state)
{
    const float two[] = {1, 2, 3, 4}, three[] = {3, 1, 4, 1, 5, 9, 2, 6, 5};
    const float four[] = {2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4, 5, 9, 0, 4, 5};
    const float flat[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    float got[3];
    (void)state;
    determine(two, 2, got);
    assert_true(got[0] == -2);
    determine(three, 3, got);
    assert_true(got[0] == -90);
    determine(four, 4, got);
    assert_true(got[0] == -189);
    determine(flat, 3, got);
    assert_true(got[0] == 0 && got[1] == 0 && got[2] == -INFINITY);
}

static void special_values(void **state)
{
    float a[36] = {0}, got[3];
    (void)state;
    for (int64_t n = 1; n <= 6; n++) {
        for (int64_t i = 0; i < n * n; i++)
            a[i] = (float)(i * i % 7);
        for (int64_t i = 0; i < n; i++)
            a[i * n] = 0; /* a column of zeros */
        determine(a, n, got);
        assert_true(got[0] == 0 && got[1] == 0 && got[2] == -INFINITY);
        a[n * n - 1] = INFINITY;
        determine(a, n, got);
        if (n == 1)
            assert_true(got[0] == INFINITY && got[1] == 1 && got[2] == INFINITY);
        else
            assert_true(isnan(got[0]) && isnan(got[1]) && isnan(got[2]));
        a[0] = NAN;
        determine(a, n, got);
        assert_true(isnan(got[0]) && isnan(got[1]) && isnan(got[2]));
    }
}

/* ---- Gradients ---- */

/* The gradient of the determinant, or of ln |det| if `logarithm`. */
static rlxvk_status differentiate(const float *a, int64_t n, bool logarithm, float *out)
{
    rlxvk_tensor m, loss, log_abs, da;
    rlxvk_graph *g = begin(n, &m);
    loss = rlxvk_det(g, m);
    if (logarithm) {
        rlxvk_slogdet(g, m, &log_abs);
        loss = log_abs;
    }
    rlxvk_grad(g, loss, RLXVK_NONE, &m, 1, &da);
    rlxvk_graph_output(g, da);
    return run(g, a, (size_t)(n * n), out, (size_t)(n * n));
}

/* A cycle of 2s in which one is missing has one cofactor that is not 0. If two are missing, it has
 * none. */
static void singular_matrices_have_cofactors(void **state)
{
    static float a[MOST * MOST], d[MOST * MOST];
    const int64_t sizes[] = {2, 3, 4, 5, 9, 64, 65, 140};
    (void)state;
    for (size_t k = 0; k < COUNT(sizes); k++) {
        int64_t n = sizes[k], zero = n / 2;
        for (int missing = 1; missing <= 2; missing++) {
            memset(a, 0, sizeof a);
            for (int64_t i = 0; i < n; i++)
                a[i * n + (i + 1) % n] = (i + n - zero) % n < missing ? 0 : 2;
            expect_ok(differentiate(a, n, false, d));
            double sign = n % 2 ? 1 : -1; /* of the cycle i -> i + 1 */
            for (int64_t i = 0; i < n * n; i++) {
                bool here = missing == 1 && i == zero * n + (zero + 1) % n;
                double wanted = here ? sign * exp2((double)n - 1) : 0;
                if (d[i] != (float)wanted)
                    fail_msg("n %d, element %d: %g instead of %g", (int)n, (int)i, (double)d[i],
                             wanted);
            }
        }
    }
}

static void a_singular_logarithm_has_no_gradient(void **state)
{
    const float regular[] = {2, 1, 0, 4}, singular[] = {1, 2, 2, 4};
    float d[4];
    (void)state;
    expect_ok(differentiate(regular, 2, true, d));
    assert_true(fabsf(d[0] - .5f) < 1e-6f && fabsf(d[1]) < 1e-6f);
    assert_true(fabsf(d[2] + .125f) < 1e-6f && fabsf(d[3] - .25f) < 1e-6f);
    expect_ok(differentiate(singular, 2, true, d));
    assert_true(isnan(d[0]));
}

/* Elements whose ratios F32 does not hold: the inverse of rows and columns of other units. */
static void units_do_not_matter_to_gradients(void **state)
{
    const float a[] = {3e30f, 2e10f, 1e-10f, 1e-30f}; /* 3 and 2, 1 and 1, in four units */
    float d[4];
    (void)state;
    expect_ok(differentiate(a, 2, true, d)); /* the transposed inverse; the determinant is 1 */
    assert_true(fabsf(d[0] / 1e-30f - 1) < 1e-5f && fabsf(d[1] / -1e-10f - 1) < 1e-5f);
    assert_true(fabsf(d[2] / -2e10f - 1) < 1e-5f && fabsf(d[3] / 3e30f - 1) < 1e-5f);
}

/* The second derivative of ln |det| at a diagonal matrix: -1 / (a_i a_j) at (j, i) for (i, j). */
static void logarithms_have_second_derivatives(void **state)
{
    const float a[] = {2, 0, 0, 4};
    float d[4];
    rlxvk_tensor m, log_abs, da, again;
    rlxvk_graph *g = begin(2, &m);
    (void)state;
    rlxvk_slogdet(g, m, &log_abs);
    rlxvk_grad(g, log_abs, RLXVK_NONE, &m, 1, &da);
    rlxvk_tensor loss = rlxvk_reduce_sum(g, da, (int32_t[]){0, 1}, 2, false);
    rlxvk_grad(g, loss, RLXVK_NONE, &m, 1, &again);
    rlxvk_graph_output(g, again);
    expect_ok(run(g, a, 4, d, 4));
    assert_true(d[0] == -.25f && d[1] == -.125f && d[2] == -.125f && d[3] == -.0625f);
}

static void signs_are_constant(void **state)
{
    const float a[] = {2, 1, 0, 4};
    float d[4];
    rlxvk_tensor m, da;
    rlxvk_graph *g = begin(2, &m);
    (void)state;
    rlxvk_grad(g, rlxvk_slogdet(g, m, NULL), RLXVK_NONE, &m, 1, &da);
    rlxvk_graph_output(g, da);
    expect_ok(run(g, a, 4, d, 4));
    for (int i = 0; i < 4; i++)
        assert_true(d[i] == 0);
}

static void second_derivatives_are_refused(void **state)
{
    rlxvk_tensor m, da, again;
    rlxvk_graph *g = begin(3, &m);
    (void)state;
    rlxvk_grad(g, rlxvk_det(g, m), RLXVK_NONE, &m, 1, &da);
    rlxvk_tensor loss = rlxvk_reduce_sum(g, da, (int32_t[]){0, 1}, 2, false);
    rlxvk_grad(g, loss, RLXVK_NONE, &m, 1, &again);
    expect_error(rlxvk_graph_status(g), RLXVK_E_UNSUPPORTED, "cofactor");
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_do_not_leave_the_range),
        cmocka_unit_test(units_do_not_matter),
        cmocka_unit_test(chains_of_large_numbers),
        cmocka_unit_test(permutations_have_their_sign),
        cmocka_unit_test(small_integers_are_exact),
        cmocka_unit_test(special_values),
        cmocka_unit_test(singular_matrices_have_cofactors),
        cmocka_unit_test(a_singular_logarithm_has_no_gradient),
        cmocka_unit_test(units_do_not_matter_to_gradients),
        cmocka_unit_test(logarithms_have_second_derivatives),
        cmocka_unit_test(signs_are_constant),
        cmocka_unit_test(second_derivatives_are_refused),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
