/* .npy files: every element type, round trips, refused headers, truncation and mutation. */
#define _POSIX_C_SOURCE 200809L
#include "conform/npy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

/* Makes a version 1 file of this dictionary and `size` bytes of data 1, 2, 3, ... Returns its
 * length. */
static size_t make(uint8_t *out, const char *dictionary, size_t size)
{
    size_t length = strlen(dictionary);
    memcpy(out, "\x93NUMPY\1\0", 8);
    out[8] = (uint8_t)length;
    out[9] = (uint8_t)(length >> 8);
    memcpy(out + 10, dictionary, length);
    for (size_t i = 0; i < size; i++)
        out[10 + length + i] = (uint8_t)(i + 1);
    return 10 + length + size;
}

static rlxvk_status parse(const char *dictionary, size_t size, npy_array *out)
{
    uint8_t bytes[1024];
    return npy_parse(bytes, make(bytes, dictionary, size), out);
}

static void test_types(void **state)
{
    npy_array array;
    (void)state;
    assert_int_equal(parse("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }\n", 6,
                           &array),
                     RLXVK_OK);
    assert_true(array.dtype == RLXVK_U8 && array.shape.rank == 2 && array.shape.dims[1] == 3 &&
                npy_element(&array, 5) == 6);
    npy_destroy(&array);
    assert_int_equal(parse("{\"shape\":(),\"descr\":\"<i4\",\"fortran_order\":False}", 4, &array),
                     RLXVK_OK);
    assert_true(array.shape.rank == 0 && array.numel == 1 && npy_element(&array, 0) == 0x04030201);
    npy_destroy(&array);
    assert_int_equal(parse("{'descr': '<i8', 'fortran_order': False, 'shape': (0,), }", 0, &array),
                     RLXVK_OK);
    assert_true(array.numel == 0);
    npy_destroy(&array);
}

static const struct {
    const char *dictionary;
    rlxvk_status status;
} refused[] = {
    {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", RLXVK_E_DTYPE},
    {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", RLXVK_E_DTYPE},
    {"{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }", RLXVK_E_DTYPE},
    {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,), }", RLXVK_E_FILE},
    {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", RLXVK_E_FILE},
    {"{'descr': '<f4', 'fortran_order': False, }", RLXVK_E_FILE},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}", RLXVK_E_FILE},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", RLXVK_E_FILE},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", RLXVK_E_FILE},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 2), }", RLXVK_E_FILE},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,", RLXVK_E_FILE},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", RLXVK_E_SHAPE},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4294967296, 4294967296), }",
     RLXVK_E_SHAPE},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,2), }", RLXVK_E_SHAPE},
    {"", RLXVK_E_FILE},
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++) {
        npy_array array;
        rlxvk_status status = parse(refused[i].dictionary, 8, &array);
        if (status != refused[i].status || array.data != NULL)
            fail_msg("%s: %s", refused[i].dictionary, rlxvk_last_error());
    }
}

static void test_hostile(void **state)
{
    uint8_t bytes[256];
    size_t length =
        make(bytes, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n", 16);
    uint32_t seed = 3;
    npy_array array;
    (void)state;
    for (size_t n = 0; n <= length; n++) {
        uint8_t *copy = malloc(n + (n == 0));
        memcpy(copy, bytes, n);
        assert_true((npy_parse(copy, n, &array) == RLXVK_OK) == (n == length));
        npy_destroy(&array);
        free(copy);
    }
    for (int round = 0; round < 20000; round++) {
        uint8_t *copy = malloc(length);
        memcpy(copy, bytes, length);
        for (int i = 0; i < 2; i++) {
            seed = seed * 1664525u + 1013904223u;
            copy[(seed >> 8) % 70] ^= (uint8_t)(1u << (seed >> 29));
        }
        if (npy_parse(copy, length, &array) == RLXVK_OK && array.numel > 0)
            (void)npy_element(&array, array.numel - 1);
        npy_destroy(&array);
        free(copy);
    }
    memory_fail_at(1);
    assert_int_equal(npy_parse(bytes, length, &array), RLXVK_E_OUT_OF_HOST_MEMORY);
    memory_fail_at(0);
}

static void test_write(void **state)
{
    char path[] = "/tmp/rlxvk-npy-XXXXXX";
    const float data[6] = {1, -2, 3.5f, 0, 5, 6};
    npy_array array;
    (void)state;
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    close(descriptor);
    for (uint32_t rank = 0; rank <= 3; rank++) {
        rlxvk_shape shape = {.rank = rank, .dims = {rank == 1 ? 6 : 3, 2, 1}};
        assert_int_equal(npy_write_f32(path, data, &shape), RLXVK_OK);
        assert_int_equal(npy_read(path, &array), RLXVK_OK);
        assert_true(array.shape.rank == rank && array.numel == (rank ? 6 : 1));
        assert_memory_equal(array.data, data, array.size);
        npy_destroy(&array);
    }
    unlink(path);
    assert_int_equal(npy_read(path, &array), RLXVK_E_FILE);
    assert_int_equal(npy_write_f32("/nonexistent/x.npy", data, &RLXVK_SHAPE(2)), RLXVK_E_FILE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_types), cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_hostile),
                                       cmocka_unit_test(test_write)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
