/* base/numeric.h against exact values, computed with 4,000 bits. The tables have what C libraries
 * got wrong: large angles, angles near multiples of pi / 2, and numbers just below a half. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"
#include "base/numeric.h"
#include "op/activation.h"
#include "op/elementwise/elementwise.h"

#include <math.h>
#include <string.h>

static const struct {
    double x, sine, cosine;
} angles[] = {
    {0x1p-1, 0x1.eaee8744b05fp-2, 0x1.c1528065b7d5p-1},
    {0x1p+0, 0x1.aed548f090ceep-1, 0x1.14a280fb5068cp-1},
    {0x1p+1, 0x1.d18f6ead1b446p-1, -0x1.aa22657537205p-2},
    {0x1.8p+1, 0x1.210386db6d55bp-3, -0x1.fae04be85e5d2p-1},
    {-0x1.8p+1, -0x1.210386db6d55bp-3, -0x1.fae04be85e5d2p-1},
    {0x1.921fb54442d18p-1, 0x1.6a09e667f3bccp-1, 0x1.6a09e667f3bcdp-1},
    {0x1.921fb54442d18p+0, 0x1p+0, 0x1.1a62633145c07p-54},
    {0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53, -0x1p+0},
    {-0x1.921fb54442d18p+2, 0x1.1a62633145c07p-52, 0x1p+0},
    {0x1.926e978d4fdf4p-1, 0x1.6a41a99fd55b2p-1, 0x1.69d21a9805fb3p-1},
    {-0x1.916872b020c4ap-1, -0x1.6988399beeabap-1, 0x1.6a8b64d22598p-1},
    {0x1.f4p+9, 0x1.a75cc150a206bp-1, 0x1.1ff026793f1bbp-1},
    {-0x1.86ap+16, -0x1.24daa9c527e96p-5, -0x1.ffac3841b3da7p-1},
    {0x1.2a05f2p+33, -0x1.f334c7896a4e3p-2, 0x1.bf098901c931ap-1},
    {0x1p+31, -0x1.f14f913e9af98p-1, 0x1.e70c2d5131e55p-3},
    {0x1p+63, 0x1.fff6dfd42dc54p-1, 0x1.82aa375b3c33ep-7},
    {0x1.0f0cf064dd592p+73, -0x1.b453ab76bf397p-1, 0x1.0be2cef01c8f4p-1},
    {0x1.921fb6p+1, -0x1.777a5cf72cec6p-24, -0x1.fffffffffffdep-1},
    {0x1.fffffep+62, 0x1.c048b38a8bbf6p-3, -0x1.f3957bad70e07p-1},
    {-0x1.234568p+100, -0x1.fd8b692b0b7cap-1, -0x1.90aa68752e9bfp-4},
    {0x1.fffffep+127, -0x1.0b33665089575p-1, 0x1.b4bf2c79bdfcep-1},
    {0x1.6ac5b262ca1ffp+849, 0x1p+0, -0x1.14ae72e6ba22fp-61},
    {0x1.7e43c8800759cp+996, -0x1.a2c16b010e385p-1, -0x1.2699022adc4c1p-1},
    {0x1.fffffffffffffp+1023, 0x1.452fc98b34e97p-8, -0x1.fffe62ecfab75p-1},
};

/* The distance in units of the last place; huge if the signs differ. */
static uint64_t apart(double a, double b)
{
    uint64_t bits[2];
    memcpy(&bits[0], &a, sizeof a);
    memcpy(&bits[1], &b, sizeof b);
    return bits[0] > bits[1] ? bits[0] - bits[1] : bits[1] - bits[0];
}

static void sines_and_cosines(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(angles); i++) {
        double x = angles[i].x, sine = angles[i].sine, cosine = angles[i].cosine;
        assert_in_range(apart(numeric_own_sin(x), sine), 0, 2);
        assert_in_range(apart(numeric_own_cos(x), cosine), 0, 2);
        assert_in_range(apart(numeric_sin(x), sine), 0, 8);
        assert_in_range(apart(numeric_cos(x), cosine), 0, 8);
        assert_in_range(apart(numeric_own_sin(-x), -sine), 0, 2);
        assert_in_range(apart(numeric_own_cos(-x), cosine), 0, 2);
        assert_in_range(apart(activation_host(UNARY_SIN, x), sine), 0, 8);
        assert_in_range(apart(activation_host(UNARY_COS, x), cosine), 0, 8);
    }
    assert_true(numeric_sin(0) == 0 && !signbit(numeric_sin(0.0)) && signbit(numeric_sin(-0.0)));
    assert_true(numeric_sin(-0x1p-1074) == -0x1p-1074 && numeric_cos(0x1p-1074) == 1);
    assert_true(isnan(numeric_sin(INFINITY)) && isnan(numeric_cos(-INFINITY)));
    assert_true(isnan(numeric_sin(NAN)) && isnan(numeric_cos(NAN)));
}

/* sin^2 + cos^2 = 1, and the double angle, for all exponents. */
static void identities_of_angles(void **state)
{
    (void)state;
    for (int exponent = -20; exponent < 1023; exponent++) {
        double x = ldexp(1 + fmod(0.6180339887498949 * exponent, 1) / 2, exponent);
        double s = numeric_sin(x), c = numeric_cos(x);
        assert_true(fabs(s * s + c * c - 1) < 1e-15);
        assert_true(fabs(numeric_sin(2 * x) - 2 * s * c) < 2e-15);
        assert_true(fabs(numeric_cos(2 * x) - (c - s) * (c + s)) < 2e-15);
    }
}

/* NaN equals NaN, and a zero any zero. */
static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void complex_exponentials(void **state)
{
    static const double table[][4] = {
        {0, 0, 1, 0},
        {1, 0, 0x1.5bf0a8b145769p+1, 0},
        {INFINITY, 0, INFINITY, 0},
        {NAN, 0, NAN, 0},
        {INFINITY, 2, -INFINITY, INFINITY},
        {INFINITY, -4, -INFINITY, INFINITY},
        {1000, -1, INFINITY, -INFINITY},
        {-INFINITY, 2, 0, 0},
        {-INFINITY, INFINITY, 0, 0},
        {-INFINITY, NAN, 0, 0},
        {INFINITY, INFINITY, INFINITY, NAN},
        {INFINITY, NAN, INFINITY, NAN},
        {3, INFINITY, NAN, NAN},
        {NAN, 1, NAN, NAN},
        {NAN, NAN, NAN, NAN},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        double z[2];
        numeric_complex_exp(table[i][0], table[i][1], z);
        assert_true(same(z[0], table[i][2]) && same(z[1], table[i][3]));
    }
    for (size_t i = 0; i < ARRAY_COUNT(angles); i++) {
        double z[2];
        numeric_complex_exp(0, angles[i].x, z);
        assert_in_range(apart(z[0], angles[i].cosine), 0, 8);
        assert_in_range(apart(z[1], angles[i].sine), 0, 8);
    }
}

static void halves_away_from_zero(void **state)
{
    static const double table[][2] = {
        {0, 0},
        {0.5, 1},
        {1.5, 2},
        {2.5, 3},
        {0.25, 0},
        {0x1.fffffep-2, 0},
        {1.75, 2},
        {0x1.fffffffffffffp-2, 0},
        {0x1p-149, 0},
        {0x1.fffffffffffffp+51, 0x1p+52},
        {8388607.5, 8388608},
        {0x1.0000000000001p+52, 0x1.0000000000001p+52},
        {0x1.fffffep+127, 0x1.fffffep+127},
        {INFINITY, INFINITY},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        double x = table[i][0], whole = table[i][1];
        assert_true(numeric_round(x) == whole && numeric_round(-x) == -whole);
        assert_true(signbit(numeric_round(-x)));
        if ((double)(float)x == x)
            assert_true(numeric_roundf((float)x) == (float)whole);
    }
    assert_true(isnan(numeric_round(NAN)) && isnan(numeric_roundf(NAN)));
}

/* musl's acosh gives numbers for operands far below 1. */
static void no_number_outside_the_domain(void **state)
{
    static const float below[] = {0, 0.5F, 0x1.fffffep-1F, -1, -15400.7F, -0x1p40F, -INFINITY, NAN};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(below); i++)
        assert_true(isnan(activation_host(UNARY_ACOSH, below[i])));
    assert_true(activation_host(UNARY_ACOSH, 1) == 0);
    assert_true(isinf(activation_host(UNARY_ACOSH, INFINITY)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sines_and_cosines),
        cmocka_unit_test(identities_of_angles),
        cmocka_unit_test(complex_exponentials),
        cmocka_unit_test(halves_away_from_zero),
        cmocka_unit_test(no_number_outside_the_domain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
