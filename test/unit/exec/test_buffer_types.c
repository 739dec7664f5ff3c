/*
 * The element type of callers' buffers, tested for every call that takes or returns data and for
 * every dtype. If a buffer has the tensor's own dtype, its data are copied unchanged. If a call
 * names no dtype or another one, it fails with E_DTYPE and changes nothing, unless the tensor is
 * F32.
 */
#include "graph/graph.h"
#include "support/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

enum { COUNT = 3, BYTES = 8 * COUNT };

/* Writes three values in the host encoding of a dtype; if `others`, three different ones. */
static void encode(rlxvk_dtype dtype, bool others, void *to)
{
    static const float all[2][2 * COUNT] = {{1, 0, 1, 1, 0, 0}, {0, 1, 1, 0, 1, 0}};
    static const float numbers[2][2 * COUNT] = {{1, 7, 5, -2, 3, 4}, {6, 2, 9, 8, -1, 3}};
    dtype_narrow(dtype, dtype == RLXVK_BOOL ? all[others] : numbers[others], COUNT, to);
}

static bool same(rlxvk_dtype dtype, const void *a, const void *b)
{
    return memcmp(a, b, COUNT * rlxvk_dtype_size(dtype)) == 0;
}

/* An executable whose output is a copy of a leaf: a param or an input. */
static rlxvk_executable *of_leaf(rlxvk_dtype dtype, bool param)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor leaf = (param ? rlxvk_param : rlxvk_input)(g, "x", dtype, RLXVK_SHAPE(COUNT));
    rlxvk_graph_output(g, rlxvk_copy(g, leaf));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    rlxvk_graph_destroy(g);
    return e;
}

/* Checks the status of a call on a tensor of dtype `own` with a buffer of dtype `given`. */
static void expect_type(rlxvk_dtype own, rlxvk_dtype given, rlxvk_status status)
{
    rlxvk_status wanted = own == given ? RLXVK_OK : RLXVK_E_DTYPE;
    if (status != wanted)
        fail_msg("%s tensor, %s buffer: %s '%s', wanted %s", rlxvk_dtype_name(own),
                 rlxvk_dtype_name(given), rlxvk_status_name(status), rlxvk_last_error(),
                 rlxvk_status_name(wanted));
    if (status == RLXVK_E_DTYPE && !strstr(rlxvk_last_error(), rlxvk_dtype_name(own)))
        fail_msg("'%s' does not name %s", rlxvk_last_error(), rlxvk_dtype_name(own));
}

static void runs_take_and_give_the_tensors_own_type(void **state)
{
    (void)state;
    for (int own = 0; own < RLXVK_DTYPE_COUNT; own++) {
        rlxvk_executable *e = of_leaf(own, false);
        for (int given = 0; given < RLXVK_DTYPE_COUNT; given++) {
            uint8_t data[BYTES], got[BYTES], kept[BYTES];
            encode(own, given % 2, data);
            memset(got, 0x5a, sizeof got);
            memcpy(kept, got, sizeof got);
            rlxvk_run_input in = {.name = "x", .data = data, .length = COUNT, .dtype = own};
            rlxvk_run_output out = {.buffer = got, .length = COUNT, .dtype = given};
            expect_type(own, given, rlxvk_run(e, &in, 1, &out, 1));
            assert_true(own == given ? same(own, got, data) : same(RLXVK_F64, got, kept));
            in.dtype = given;
            out.dtype = own;
            expect_type(own, given, rlxvk_run(e, &in, 1, &out, 1));
        }
        rlxvk_executable_destroy(e);
    }
}

static void handles_take_and_give_the_tensors_own_type(void **state)
{
    (void)state;
    for (int own = 0; own < RLXVK_DTYPE_COUNT; own++) {
        rlxvk_executable *e = of_leaf(own, false);
        uint8_t data[BYTES], got[BYTES];
        encode(own, false, data);
        expect_ok(rlxvk_bind_handle_as(e, "x", data, COUNT, own));
        expect_ok(rlxvk_run(e, NULL, 0, NULL, 0));
        expect_ok(rlxvk_set_handle_feed(e, "x", 0));
        for (int given = 0; given < RLXVK_DTYPE_COUNT; given++) {
            if (own != given)
                expect_type(own, given, rlxvk_bind_handle_as(e, "x", data, COUNT, given));
            expect_type(own, given, rlxvk_read_handle_as(e, "x", got, COUNT, given));
            expect_type(own, given, rlxvk_read_fed_output_as(e, "x", got, COUNT, given));
            expect_type(own, given, rlxvk_read_output_row_as(e, 0, 0, COUNT, got, given));
        }
        memset(got, 0, sizeof got);
        expect_ok(rlxvk_read_handle_as(e, "x", got, COUNT, own));
        assert_true(same(own, got, data));
        memset(got, 0, sizeof got);
        expect_ok(rlxvk_read_fed_output_as(e, "x", got, COUNT, own));
        assert_true(same(own, got, data));
        size_t size = rlxvk_dtype_size(own); /* the last row of 2 elements has only 1 */
        memset(got, 0, sizeof got);
        expect_ok(rlxvk_read_output_row_as(e, 0, 2, 1, got, own));
        assert_memory_equal(got, data + 2 * size, size);
        expect_type(own, RLXVK_F32, rlxvk_read_handle(e, "x", (float *)got, COUNT));
        expect_type(own, RLXVK_F32, rlxvk_read_fed_output(e, "x", (float *)got, COUNT));
        expect_type(own, RLXVK_F32, rlxvk_read_output_row(e, 0, 0, COUNT, (float *)got));
        if (own != RLXVK_F32)
            expect_type(own, RLXVK_F32, rlxvk_bind_handle(e, "x", (const float *)data, COUNT));
        rlxvk_executable_destroy(e);
    }
}

static void params_say_their_type(void **state)
{
    (void)state;
    for (int own = 0; own < RLXVK_DTYPE_COUNT; own++) {
        rlxvk_executable *e = of_leaf(own, true);
        size_t length = COUNT * rlxvk_dtype_size(own);
        bool raw = own == RLXVK_U8 || own == RLXVK_I8, pairs = own == RLXVK_C64;
        uint8_t data[BYTES], got[BYTES];
        float words[2 * COUNT];
        encode(own, false, data);
        expect_type(own, RLXVK_F32, rlxvk_set_param(e, "x", (const float *)data, COUNT));
        expect_ok(rlxvk_set_param_typed(e, "x", data, length, own));
        expect_type(own, RLXVK_F32, rlxvk_read_param(e, "x", (float *)got, COUNT));
        for (int given = 0; given < RLXVK_DTYPE_COUNT; given++)
            if (given != RLXVK_F32)
                expect_type(own, given,
                            rlxvk_read_param_typed(e, "x", got, COUNT * rlxvk_dtype_size(given),
                                                   given));
        expect_ok(rlxvk_read_param_typed(e, "x", got, length, own));
        assert_true(same(own, got, data));
        rlxvk_status status =
            rlxvk_read_param_typed(e, "x", words, (pairs ? 8 : 4) * COUNT, RLXVK_F32);
        assert_int_equal(status, raw ? RLXVK_E_DTYPE : RLXVK_OK);
        if (!raw) {
            float wanted[2 * COUNT];
            dtype_widen(own, data, COUNT, wanted);
            assert_memory_equal(words, wanted, (pairs ? 8 : 4) * COUNT);
        }
        bool stored = raw || pairs || own == RLXVK_F16 || own == RLXVK_BF16 || own == RLXVK_F32;
        status = rlxvk_set_param_bytes(e, "x", data, length);
        assert_int_equal(status, stored ? RLXVK_OK : RLXVK_E_DTYPE);
        rlxvk_executable_destroy(e);
    }
}

/* The use case for which the macros were requested: ids as int32_t, and an argmax. */
static void macros_fill_in_type_and_length(void **state)
{
    const int32_t ids[] = {1, 7, 5};
    int32_t best[1] = {-1};
    float table[8] = {10, 11, 12, 13, 14, 15, 16, 17}, got[3];
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_graph_create(&g));
    (void)state;
    rlxvk_tensor y =
        rlxvk_gather(g, rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(8), table, sizeof table),
                     rlxvk_input(g, "ids", RLXVK_I32, RLXVK_SHAPE(3)), 0);
    rlxvk_graph_output(g, y);
    rlxvk_graph_output(g, rlxvk_argmax(g, y, 0, true));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    rlxvk_run_output out[] = {RLXVK_RUN_OUTPUT(0, got), RLXVK_RUN_OUTPUT(1, best)};
    expect_ok(rlxvk_run(e, &RLXVK_RUN_INPUT("ids", ids), 1, out, 2));
    assert_memory_equal(got, ((float[]){11, 17, 15}), sizeof got);
    assert_int_equal(best[0], 1);
    out[1].dtype = RLXVK_F32;
    expect_error(rlxvk_run(e, NULL, 0, out, 2), RLXVK_E_DTYPE, "argmax '' is I32");
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_take_and_give_the_tensors_own_type),
        cmocka_unit_test(handles_take_and_give_the_tensors_own_type),
        cmocka_unit_test(params_say_their_type),
        cmocka_unit_test(macros_fill_in_type_and_length),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
