/* Arrays as text: the same text as numpy.array2string (NumPy 1.24) writes. */
#include "graph/graph.h"
#include "graph/half.h"

#include <math.h>
#include <rlxvk_inspect.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { ROOM = 1 << 15 };

static const struct {
    rlxvk_dtype dtype;
    rlxvk_shape shape;
    bool counting; /* element i is i times the first value */
    double values[8];
    rlxvk_values_options options;
    const char *text;
} cases[] = {
    {RLXVK_F32,
     {2, {2, 2}},
     false,
     {0, 1.5, -2, 0.25},
     {0},
     "[[ 0.    1.5 ]\n"
     " [-2.    0.25]]"},
    {RLXVK_F32, {0, {0}}, false, {1}, {0}, "1."},
    {RLXVK_F32, {1, {1}}, false, {0.1}, {0}, "[0.1]"},
    {RLXVK_F64, {1, {2}}, false, {0.1, 0.3333333333333333}, {0}, "[0.1        0.33333333]"},
    {RLXVK_F16,
     {1, {3}},
     false,
     {0.1, 0.3333333333333333, 4488},
     {0},
     "[9.998e-02 3.333e-01 4.488e+03]"},
    {RLXVK_F32, {3, {2, 0, 3}}, false, {0}, {0}, "[]"},
    {RLXVK_F32, {1, {4}}, false, {NAN, -INFINITY, INFINITY, 2.5}, {0}, "[ nan -inf  inf  2.5]"},
    {RLXVK_F32, {1, {2}}, false, {NAN, NAN}, {0}, "[nan nan]"},
    {RLXVK_F32, {1, {3}}, false, {10000000000.0, 0.3, -2}, {0}, "[ 1.e+10  3.e-01 -2.e+00]"},
    {RLXVK_F64, {1, {2}}, false, {1e-300, 1e+300}, {0}, "[1.e-300 1.e+300]"},
    {RLXVK_F32, {1, {2}}, false, {-0.0, 1e-05}, {0}, "[-0.e+00  1.e-05]"},
    {RLXVK_F32, {1, {3}}, false, {1, 1000, 0.5}, {0}, "[1.e+00 1.e+03 5.e-01]"},
    {RLXVK_F32, {1, {3}}, false, {100000000, 500000, 99999999}, {0}, "[1.e+08 5.e+05 1.e+08]"},
    {RLXVK_F32,
     {1, {3}},
     false,
     {0.6666666666666666, 33.333333333333336, 0.001},
     {.precision = 3},
     "[6.667e-01 3.333e+01 1.000e-03]"},
    {RLXVK_F64,
     {1, {2}},
     false,
     {3.141592653589793, 2.718281828459045},
     {.precision = 20},
     "[3.141592653589793 2.718281828459045]"},
    {RLXVK_I32,
     {2, {2, 3}},
     false,
     {1, -20, 300, 0, 5, -2147483648.0},
     {0},
     "[[          1         -20         300]\n"
     " [          0           5 -2147483648]]"},
    {RLXVK_U32, {1, {2}}, false, {4294967295.0, 1}, {0}, "[4294967295          1]"},
    {RLXVK_I8, {1, {3}}, false, {-128, 127, 5}, {0}, "[-128  127    5]"},
    {RLXVK_I64,
     {1, {2}},
     false,
     {-9007199254740992.0, 3},
     {0},
     "[-9007199254740992                 3]"},
    {RLXVK_BOOL, {1, {3}}, false, {1, 0, 1}, {0}, "[ True False  True]"},
    {RLXVK_BOOL, {0, {0}}, false, {1}, {0}, "True"},
    {RLXVK_C64,
     {1, {3}},
     false,
     {1, 2, -3.5, -0.25, NAN, 0},
     {0},
     "[ 1. +2.j   -3.5-0.25j  nan+0.j  ]"},
    {RLXVK_C64,
     {1, {2}},
     false,
     {10000000000.0, 1e-10, 0, INFINITY},
     {0},
     "[1.e+10+1.e-10j 0.e+00   +infj]"},
    {RLXVK_F32,
     {1, {30}},
     true,
     {0.5},
     {0},
     "[ 0.   0.5  1.   1.5  2.   2.5  3.   3.5  4.   4.5  5.   5.5  6.   6.5\n"
     "  7.   7.5  8.   8.5  9.   9.5 10.  10.5 11.  11.5 12.  12.5 13.  13.5\n"
     " 14.  14.5]"},
    {RLXVK_I16,
     {3, {2, 2, 2}},
     true,
     {1},
     {0},
     "[[[0 1]\n"
     "  [2 3]]\n"
     "\n"
     " [[4 5]\n"
     "  [6 7]]]"},
    {RLXVK_I32, {1, {1001}}, true, {1}, {0}, "[   0    1    2 ...  998  999 1000]"},
    {RLXVK_F32,
     {2, {40, 40}},
     true,
     {1},
     {0},
     "[[0.000e+00 1.000e+00 2.000e+00 ... 3.700e+01 3.800e+01 3.900e+01]\n"
     " [4.000e+01 4.100e+01 4.200e+01 ... 7.700e+01 7.800e+01 7.900e+01]\n"
     " [8.000e+01 8.100e+01 8.200e+01 ... 1.170e+02 1.180e+02 1.190e+02]\n"
     " ...\n"
     " [1.480e+03 1.481e+03 1.482e+03 ... 1.517e+03 1.518e+03 1.519e+03]\n"
     " [1.520e+03 1.521e+03 1.522e+03 ... 1.557e+03 1.558e+03 1.559e+03]\n"
     " [1.560e+03 1.561e+03 1.562e+03 ... 1.597e+03 1.598e+03 1.599e+03]]"},
    {RLXVK_I32,
     {3, {2, 9, 9}},
     true,
     {1},
     {.threshold = 10, .edge_items = 2},
     "[[[  0   1 ...   7   8]\n"
     "  [  9  10 ...  16  17]\n"
     "  ...\n"
     "  [ 63  64 ...  70  71]\n"
     "  [ 72  73 ...  79  80]]\n"
     "\n"
     " [[ 81  82 ...  88  89]\n"
     "  [ 90  91 ...  97  98]\n"
     "  ...\n"
     "  [144 145 ... 151 152]\n"
     "  [153 154 ... 160 161]]]"},
    {RLXVK_I32,
     {1, {25}},
     true,
     {100},
     {.line_width = 20},
     "[   0  100  200\n"
     "  300  400  500\n"
     "  600  700  800\n"
     "  900 1000 1100\n"
     " 1200 1300 1400\n"
     " 1500 1600 1700\n"
     " 1800 1900 2000\n"
     " 2100 2200 2300\n"
     " 2400]"},
    {RLXVK_F32,
     {1, {7}},
     true,
     {0.125},
     {.line_width = 5},
     "[0.\n"
     " 0.125\n"
     " 0.25\n"
     " 0.375\n"
     " 0.5\n"
     " 0.625\n"
     " 0.75 ]"},
    {RLXVK_U8, {1, {12}}, true, {9}, {.threshold = 5, .edge_items = 1}, "[ 0 ... 99]"},
};

/* Writes one value in a dtype's encoding and returns its size. */
static size_t encode(rlxvk_dtype dtype, double v, uint8_t *out)
{
    float narrow = (float)v;
    int64_t whole = isfinite(v) ? (int64_t)v : 0;
    uint16_t half = dtype == RLXVK_F16 ? f32_to_f16(narrow) : f32_to_bf16(narrow);
    size_t size = dtype == RLXVK_C64 ? 4 : rlxvk_dtype_size(dtype); /* C64: one part at a time */
    bool word = dtype == RLXVK_F32 || dtype == RLXVK_C64;
    const void *from = word                                        ? (const void *)&narrow
                       : dtype == RLXVK_F64                        ? (const void *)&v
                       : dtype == RLXVK_F16 || dtype == RLXVK_BF16 ? (const void *)&half
                                                                   : (const void *)&whole;
    memcpy(out, from, size);
    return size;
}

static void write_case(size_t i, char *out, size_t size, size_t *out_length)
{
    static uint8_t bytes[ROOM + 1];
    uint8_t *at = bytes + 1; /* not aligned */
    uint64_t count;
    assert_int_equal(rlxvk_shape_elements(cases[i].shape, &count), RLXVK_OK);
    count *= cases[i].dtype == RLXVK_C64 ? 2 : 1;
    for (uint64_t k = 0; k < count; k++)
        at += encode(cases[i].dtype,
                     cases[i].counting ? (double)k * cases[i].values[0] : cases[i].values[k], at);
    assert_int_equal(rlxvk_values_text(bytes + 1, cases[i].dtype, cases[i].shape, &cases[i].options,
                                       out, size, out_length),
                     RLXVK_OK);
}

static void test_as_numpy(void **state)
{
    static char got[ROOM];
    size_t length;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        write_case(i, got, sizeof got, &length);
        assert_string_equal(got, cases[i].text);
        assert_int_equal(length, strlen(got));
    }
}

/* NumPy has no bfloat16. The text has the fewest digits that distinguish values. */
static void test_bf16(void **state)
{
    uint16_t values[3] = {f32_to_bf16(1 / 3.0f), f32_to_bf16(1), f32_to_bf16(-258)};
    char got[64];
    size_t length;
    (void)state;
    assert_int_equal(rlxvk_values_text(values, RLXVK_BF16, RLXVK_SHAPE(3), NULL, got, sizeof got,
                                       &length),
                     RLXVK_OK);
    assert_string_equal(got, "[   0.334    1.    -258.   ]");
}

/* If the buffer is too short, it gets the beginning. The length is always that of the whole text.
 */
static void test_short_buffers(void **state)
{
    char whole[256], part[256];
    size_t length, again;
    (void)state;
    write_case(0, whole, sizeof whole, &length);
    for (size_t size = 0; size <= length + 1; size++) {
        memset(part, 'x', sizeof part);
        write_case(0, size ? part : NULL, size, &again);
        assert_int_equal(again, length);
        assert_memory_equal(part, whole, size ? size - 1 : 0);
        assert_true(!size || part[size - 1] == 0);
        assert_int_equal(part[size], 'x');
    }
}

static void expect(rlxvk_status got, rlxvk_status wanted, const char *part)
{
    assert_int_equal(got, wanted);
    assert_ptr_equal(strstr(rlxvk_last_error(), "values_text"), rlxvk_last_error());
    assert_non_null(strstr(rlxvk_last_error(), part));
}

static void test_errors(void **state)
{
    const float one = 1;
    char out[16];
    size_t n;
    (void)state;
    expect(rlxvk_values_text(&one, (rlxvk_dtype)99, RLXVK_SCALAR, NULL, out, sizeof out, &n),
           RLXVK_E_DTYPE, "99");
    expect(rlxvk_values_text(&one, RLXVK_F32, (rlxvk_shape){9, {1}}, NULL, out, sizeof out, &n),
           RLXVK_E_SHAPE, "9");
    expect(rlxvk_values_text(&one, RLXVK_F32, RLXVK_SHAPE(-1), NULL, out, sizeof out, &n),
           RLXVK_E_SHAPE, "");
    expect(rlxvk_values_text(&one, RLXVK_F32, RLXVK_SHAPE(1 << 20, 1 << 20), NULL, out, sizeof out,
                             &n),
           RLXVK_E_TOO_LARGE, "");
    expect(rlxvk_values_text(&one, RLXVK_F32, RLXVK_SCALAR,
                             &(rlxvk_values_options){.precision = 41}, out, sizeof out, &n),
           RLXVK_E_ATTR, "precision 41");
    expect(rlxvk_values_text(NULL, RLXVK_F32, RLXVK_SHAPE(2), NULL, out, sizeof out, &n),
           RLXVK_E_NULL, "data");
    assert_int_equal(rlxvk_values_text(NULL, RLXVK_F32, RLXVK_SHAPE(0, 2), NULL, out, sizeof out,
                                       &n),
                     RLXVK_OK);
    assert_string_equal(out, "[]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_numpy),
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_short_buffers),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
