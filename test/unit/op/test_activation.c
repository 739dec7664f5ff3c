/*
 * Compares the table of activations with two lists written by hand: rlxvk_activation and the op
 * table. Compares the host's formulas with published values and at the ends of their domains.
 */
#include "op/activation.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const struct row {
    uint32_t code;
    const char *name, *host, *kernel;
    double atol, rtol;
    uint32_t kind;
    rlxvk_activation activation;
    rlxvk_tensor (*builder)(rlxvk_graph *, rlxvk_tensor);
} rows[] = {
#define ACTIVATION(code, NAME, row, atol, rtol, more, host, kernel, slope, slope_kernel, kind)     \
    {code, #row, #host, #kernel, atol, rtol, kind, RLXVK_ACTIVATION_##NAME, rlxvk_##row},
#include "args/activation.def"
};

static void every_row_is_an_op_and_an_id(void **state)
{
    (void)state;
    assert_int_equal(ARRAY_COUNT(rows), UNARY_COUNT);
    for (uint32_t i = 0; i < UNARY_COUNT; i++) {
        const struct row *r = &rows[i];
        const op_row *op = &op_table[activation_op(r->code)];
        assert_int_equal(r->code, i);
        assert_string_equal(op->name, r->name);
        assert_string_equal(op->family->name, "unary");
        assert_int_equal(op->code, r->code);
        assert_true(op->atol == r->atol && op->rtol == r->rtol);
        assert_int_equal(activation_code(r->activation), r->code);
        assert_int_equal(activation_of(r->code), r->activation);
        assert_string_equal(activation_name(r->activation), r->name);
        assert_non_null(strchr(r->host, 'x'));
        assert_non_null(strchr(r->kernel, 'x'));
    }
    assert_int_equal(activation_code(RLXVK_ACTIVATION_NONE), UNARY_NONE);
    assert_int_equal(activation_of(UNARY_NONE), RLXVK_ACTIVATION_NONE);
    assert_string_equal(activation_name(RLXVK_ACTIVATION_NONE), "none");
}

/* If an id had no row, no call would accept it. */
static void every_id_has_a_row(void **state)
{
    char line[256];
    uint32_t ids = 0;
    FILE *header = fopen("include/rlxvk_ops.h", "r");
    (void)state;
    assert_non_null(header);
    while (fgets(line, sizeof line, header))
        ids += strncmp(line, "    RLXVK_ACTIVATION_", 21) == 0;
    fclose(header);
    assert_int_equal(ids, UNARY_COUNT + 1);
}

static void kernels_of_a_kind_take_every_row(void **state)
{
    uint32_t counts[8] = {0};
    (void)state;
    for (uint32_t i = 0; i < UNARY_COUNT; i++)
        counts[rows[i].kind]++;
    assert_int_equal(counts[REGION_ACTIVATION] + counts[REGION_CURVE] + counts[REGION_ROOT] +
                         counts[REGION_ANGLE],
                     UNARY_COUNT);
}

/* Published values, and arguments at which a formula would fail if it cancels or overflows. */
static void host_formulas_give_known_values(void **state)
{
    static const struct {
        uint32_t code;
        double x, y, tolerance;
    } values[] = {
        {UNARY_GELU, 1, 0.84134474606854293, 1e-15},
        {UNARY_GELU, -10, -7.6198530241605e-23, 1e-35},
        {UNARY_GELU, -INFINITY, 0, 0},
        {UNARY_GELU_APPROX, 1, 0.84119199060827676, 1e-15},
        {UNARY_GELU_APPROX, -1, -0.15880800939172324, 1e-15},
        {UNARY_GELU_APPROX, -8, -3.1077829375011135e-21, 1e-33},
        {UNARY_GELU_APPROX, -INFINITY, 0, 0},
        {UNARY_GELU_APPROX, INFINITY, INFINITY, 0},
        {UNARY_SILU, 1, 0.73105857863000488, 1e-15},
        {UNARY_SILU, -INFINITY, 0, 0},
        {UNARY_RELU, -3, 0, 0},
        {UNARY_RELU, 3, 3, 0},
        {UNARY_SIGMOID, 2, 0.88079707797788243, 1e-15},
        {UNARY_TANH, 0.5, 0.46211715726000976, 1e-15},
        {UNARY_EXP, 1, 2.7182818284590452, 1e-15},
        {UNARY_LOG, 10, 2.3025850929940457, 1e-15},
        {UNARY_SQRT, 2, 1.4142135623730950, 1e-15},
        {UNARY_RSQRT, 2, 0.70710678118654752, 1e-15},
        {UNARY_RSQRT, -0.0, INFINITY, 0},
        {UNARY_NEG, 2, -2, 0},
        {UNARY_ABS, -2, 2, 0},
        {UNARY_SIN, 1, 0.84147098480789651, 1e-15},
        {UNARY_COS, 1, 0.54030230586813972, 1e-15},
        {UNARY_TAN, 1, 1.5574077246549022, 1e-15},
        {UNARY_ATAN, 1, 0.78539816339744831, 1e-15},
        {UNARY_ROUND, 2.5, 2, 0},
        {UNARY_ROUND, -3.5, -4, 0},
    };
    bool seen[UNARY_COUNT] = {false};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(values); i++) {
        double y = activation_host(values[i].code, values[i].x);
        seen[values[i].code] = true;
        if (!(y == values[i].y || fabs(y - values[i].y) <= values[i].tolerance))
            fail_msg("%s(%g) is %.17g, not %.17g", rows[values[i].code].name, values[i].x, y,
                     values[i].y);
    }
    for (uint32_t i = 0; i < UNARY_COUNT; i++)
        if (!seen[i])
            print_message("%s: no value to compare with\n", rows[i].name);
    for (uint32_t i = 0; i < UNARY_COUNT; i++)
        if (!isnan(activation_host(i, NAN)))
            fail_msg("%s(NaN) is a number", rows[i].name);
}

static void tolerances_grow_where_slopes_do(void **state)
{
    double more;
    (void)state;
    assert_true(activation_tolerance(UNARY_SILU, 3, 2, &more) == 1e-7 + 2e-6 * 2 && more == 0);
    assert_true(activation_tolerance(UNARY_EXP, 0, 1, &more) == 1e-6 && more == 0);
    assert_true(activation_tolerance(UNARY_EXP, -4, 2, &more) == 2e-6 + more);
    assert_true(more == 1.2e-7 * 4 * 2);
    assert_true(activation_tolerance(UNARY_TAN, 1.5, 14, &more) == 4e-6 + more);
    assert_true(more == 4e-6 * 14 * 14);
}

/* The error bound after the activation of an inexact product, at the end of the domain and
 * elsewhere. */
static void operands_that_are_not_exact(void **state)
{
    double bound;
    (void)state;
    assert_true(isfinite(activation_carry(UNARY_ATANH, 0.5, 0.01, &bound)));
    assert_true(bound > 0.01 && bound < 0.02);
    assert_true(isfinite(activation_carry(UNARY_ATANH, 0.995, 0.01, &bound)) && isinf(bound));
    assert_true(isnan(activation_carry(UNARY_ATANH, -1.005, 0.01, &bound)) && isinf(bound));
    assert_true(isnan(activation_carry(UNARY_ATANH, 1.5, 0.01, &bound)) && bound == 0);
    assert_true(isnan(activation_carry(UNARY_SILU, NAN, 0.01, &bound)) && bound == 0);
    assert_true(activation_carry(UNARY_RELU, INFINITY, 0.01, &bound) == INFINITY && bound == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_an_op_and_an_id),
        cmocka_unit_test(every_id_has_a_row),
        cmocka_unit_test(kernels_of_a_kind_take_every_row),
        cmocka_unit_test(host_formulas_give_known_values),
        cmocka_unit_test(tolerances_grow_where_slopes_do),
        cmocka_unit_test(operands_that_are_not_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
