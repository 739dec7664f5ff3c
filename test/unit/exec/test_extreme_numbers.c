/*
 * Calls every function that takes a number, except builders, with numbers at the ends of their
 * types. Also passes lengths that wrap to the right value if they are counted in bytes. Each call
 * must fail with a message and change nothing. test_fuzz_builders.c tests builders. UBSan reports
 * arithmetic that is done before the check.
 */
#include "support/harness.h"

#include <rlxvk_ops.h>
#include <rlxvk_symbols.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"

static const int64_t numbers[] = {INT64_MAX,
                                  INT64_MIN,
                                  INT64_MAX - 1,
                                  INT64_MIN + 1,
                                  INT32_MAX,
                                  INT32_MIN,
                                  INT64_MAX / 2,
                                  INT64_C(1) << 62,
                                  INT64_C(1) << 40,
                                  -(INT64_C(1) << 40),
                                  -(INT64_C(1) << 42),
                                  -1,
                                  0,
                                  1};

/* ---- Graphs and symbols ---- */

static void dims_of_dims(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++)
        for (size_t k = 0; k < 2 * ARRAY_COUNT(numbers); k++) {
            rlxvk_graph *g = NULL;
            int64_t a = numbers[i], b = numbers[k / 2], wide, symbol = rlxvk_symbol(17);
            expect_ok(rlxvk_graph_create(&g));
            rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(symbol));
            int64_t made = k % 2 ? rlxvk_dim_multiply(g, a, b) : rlxvk_dim_add(g, a, b);
            bool over =
                k % 2 ? __builtin_mul_overflow(a, b, &wide) : __builtin_add_overflow(a, b, &wide);
            if (a >= 0 && b >= 0 && over)
                assert_int_equal(rlxvk_graph_status(g), RLXVK_E_TOO_LARGE);
            else if (a >= 0 && b >= 0)
                assert_true(rlxvk_graph_status(g) == RLXVK_OK && made == wide);
            rlxvk_graph_destroy(g);
        }
}

static void shapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++)
        for (size_t k = 0; k < ARRAY_COUNT(numbers); k++)
            for (int symbols = 0; symbols < 2; symbols++) {
                rlxvk_graph *g = NULL;
                char text[64];
                uint64_t count;
                rlxvk_shape s = RLXVK_SHAPE(numbers[i], numbers[k]);
                expect_ok(rlxvk_graph_create(&g));
                if (symbols)
                    rlxvk_input(g, "s", RLXVK_F32, RLXVK_SHAPE(rlxvk_symbol(0)));
                rlxvk_status status = rlxvk_shape_elements(s, &count);
                bool small = numbers[i] >= 0 && numbers[k] >= 0 && numbers[i] < 2 && numbers[k] < 2;
                assert_true(status == RLXVK_OK || !small);
                expect_ok(rlxvk_shape_text(g, s, text, sizeof text));
                rlxvk_input(g, "x", RLXVK_F32, s);
                if (status == RLXVK_E_TOO_LARGE && numbers[i] > 0 && numbers[k] > 0)
                    assert_int_equal(rlxvk_graph_status(g), RLXVK_E_TOO_LARGE);
                assert_true(rlxvk_graph_status(g) == RLXVK_OK || *rlxvk_graph_error(g));
                rlxvk_graph_destroy(g);
            }
}

static void sizes_of_symbols(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++)
        for (size_t k = 0; k < ARRAY_COUNT(numbers); k++) {
            rlxvk_binding sizes[] = {{RLXVK_BATCH, numbers[i]}, {RLXVK_SEQ, numbers[k]}};
            rlxvk_compile_options o = {.bindings = sizes, .binding_count = 2};
            rlxvk_graph *g = NULL, *bound = NULL;
            rlxvk_executable *e = NULL;
            size_t count;
            rlxvk_problem problem;
            bool legal = numbers[i] >= 0 && numbers[k] >= 0 && numbers[i] <= INT32_MAX &&
                         numbers[k] <= INT32_MAX;
            expect_ok(rlxvk_graph_create(&g));
            int64_t batch = rlxvk_symbol(RLXVK_BATCH), seq = rlxvk_symbol(RLXVK_SEQ);
            rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(batch, seq, 3));
            rlxvk_graph_output(g, rlxvk_reshape(g, x, RLXVK_SHAPE(-1, 3)));
            rlxvk_graph_output(g, rlxvk_concat(g, (rlxvk_tensor[]){x, x}, 2, 1));
            expect_ok(rlxvk_graph_status(g));
            rlxvk_status status = rlxvk_graph_bind(g, sizes, 2, &bound);
            assert_int_equal(status == RLXVK_E_RANGE, !legal);
            rlxvk_graph_destroy(bound);
            assert_int_equal(rlxvk_graph_verify(g, sizes, 2, &problem, 1, &count),
                             legal ? RLXVK_OK : RLXVK_E_RANGE);
            if (!legal)
                assert_int_equal(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_RANGE);
            rlxvk_set_symbol_example(g, RLXVK_SEQ, numbers[k]);
            assert_int_equal(rlxvk_graph_status(g) == RLXVK_E_RANGE,
                             numbers[k] < 0 || numbers[k] > INT32_MAX);
            rlxvk_graph_destroy(g);
        }
}

/* ---- Executables ---- */

enum { COUNT = 8 }; /* elements of the input, the output and the param */

/* Lengths other than COUNT. The last ones become COUNT or 0 if they are counted in words or wrap.
 */
static const size_t lengths[] = {SIZE_MAX,
                                 SIZE_MAX - 1,
                                 (size_t)INT64_MAX,
                                 (size_t)INT64_MAX + 1,
                                 SIZE_MAX / 4 + 1,
                                 SIZE_MAX / 4 + 1 + COUNT,
                                 SIZE_MAX / 2 + 1 + COUNT,
                                 (size_t)UINT32_MAX + 1 + COUNT,
                                 (size_t)1 << 62,
                                 COUNT + 1,
                                 COUNT - 1,
                                 0};

static rlxvk_executable *make_executable(void)
{
    static const rlxvk_bucket_axis axis = {"x", 0, false};
    rlxvk_compile_options o = {.bucket_axes = &axis, .bucket_axis_count = 1};
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(4, 2));
    rlxvk_tensor h = rlxvk_input(g, "h", RLXVK_F32, RLXVK_SHAPE(4, 2));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(4, 2));
    rlxvk_graph_output(g, rlxvk_add(g, rlxvk_mul(g, x, w), h));
    expect_ok(rlxvk_compile(shared_context, g, &o, &e));
    rlxvk_graph_destroy(g);
    return e;
}

static void expect_refused(rlxvk_status status, const char *call, size_t number)
{
    if (status == RLXVK_OK || !*rlxvk_last_error())
        fail_msg("%s takes %zu", call, number);
}

#define REFUSED(call, number) expect_refused(call, #call, number)

static void lengths_are_checked(void **state)
{
    rlxvk_executable *e = make_executable();
    float w[COUNT] = {1, 2, 3, 4, 5, 6, 7, 8}, x[COUNT] = {1, 1, 1, 1, 1, 1, 1, 1}, y[COUNT];
    rlxvk_run_input in[] = {{"x", x, COUNT, RLXVK_F32}};
    rlxvk_run_output out = {0, y, COUNT, RLXVK_F32};
    (void)state;
    expect_ok(rlxvk_set_param(e, "w", w, COUNT));
    expect_ok(rlxvk_bind_handle(e, "h", w, COUNT));
    for (size_t i = 0; i < ARRAY_COUNT(lengths); i++) {
        size_t n = lengths[i];
        rlxvk_param_item item = {"w", x, n, RLXVK_F32};
        REFUSED(rlxvk_set_param(e, "w", x, n), n);
        REFUSED(rlxvk_set_param_bytes(e, "w", x, n), n);
        REFUSED(rlxvk_set_param_typed(e, "w", x, n, RLXVK_F32), n);
        REFUSED(rlxvk_set_param_typed(e, "w", x, n, RLXVK_F64), n);
        REFUSED(rlxvk_set_params(e, &item, 1), n);
        REFUSED(rlxvk_read_param(e, "w", y, n), n);
        REFUSED(rlxvk_bind_handle(e, "h", x, n), n);
        REFUSED(rlxvk_bind_handle_as(e, "h", x, n, RLXVK_F32), n);
        REFUSED(rlxvk_read_handle(e, "h", y, n), n);
        REFUSED(rlxvk_set_handle_feed(e, "h", n ? n : 1), n);
        REFUSED(rlxvk_set_handle_feed_prefix(e, "h", n ? n : 1), n);
        REFUSED(rlxvk_register_row_feed(e, "h", n ? n : 1), n);
        in[0].length = n;
        REFUSED(rlxvk_run(e, in, 1, &out, 1), n);
        in[0].length = COUNT;
        out.length = n;
        REFUSED(rlxvk_run(e, in, 1, &out, 1), n);
        out.length = COUNT;
        out.index = n ? n : 1;
        REFUSED(rlxvk_run(e, in, 1, &out, 1), n);
        out.index = 0;
        assert_int_equal(rlxvk_executable_output_shape(e, n ? n : 1).rank, 0);
    }
    expect_ok(rlxvk_run(e, in, 1, &out, 1));
    for (int i = 0; i < COUNT; i++) /* nothing was changed */
        assert_true(y[i] == 2 * w[i]);
    rlxvk_executable_destroy(e);
}

static void rows_are_checked(void **state)
{
    rlxvk_executable *e = make_executable();
    float w[COUNT] = {1, 2, 3, 4, 5, 6, 7, 8}, x[COUNT] = {0}, y[COUNT];
    rlxvk_run_input in[] = {{"x", x, COUNT, RLXVK_F32}};
    rlxvk_run_output out = {0, y, COUNT, RLXVK_F32};
    (void)state;
    expect_ok(rlxvk_set_param(e, "w", w, COUNT));
    expect_ok(rlxvk_bind_handle(e, "h", w, COUNT));
    expect_ok(rlxvk_register_row_feed(e, "h", 0));
    expect_ok(rlxvk_run(e, in, 1, &out, 1));
    for (size_t i = 0; i < ARRAY_COUNT(lengths); i++)
        for (size_t k = 0; k < ARRAY_COUNT(lengths); k++) {
            size_t a = lengths[i], b = lengths[k];
            if (a > COUNT && b > 0) {
                REFUSED(rlxvk_feed_rows(e, a, 0, b), a);
                REFUSED(rlxvk_feed_rows(e, 0, a, b), a);
                REFUSED(rlxvk_read_output_row(e, 0, a, b, y), a);
            }
            if (b > COUNT)
                REFUSED(rlxvk_feed_rows(e, 0, 0, b), b);
            if (b > COUNT)
                REFUSED(rlxvk_read_output_row(e, 0, 0, b, y), b);
            if (a > 0)
                REFUSED(rlxvk_read_output_row(e, a, 0, 1, y), a);
        }
    rlxvk_executable_destroy(e);
}

static void extents_are_checked(void **state)
{
    rlxvk_executable *e = make_executable();
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++)
        for (size_t k = 0; k < ARRAY_COUNT(numbers); k++) {
            int64_t actual = numbers[i], upper = numbers[k];
            bool legal = upper == 1 && actual >= 0 && actual <= 1;
            assert_int_equal(rlxvk_set_active_extent(e, actual, upper),
                             legal ? RLXVK_OK : RLXVK_E_EXTENT);
        }
    rlxvk_executable_destroy(e);
}

static void options_are_checked(void **state)
{
    static const int32_t axes[] = {INT32_MAX, INT32_MIN, INT32_MIN + 1, 2, -3};
    rlxvk_graph *g = NULL;
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_graph_output(g, rlxvk_neg(g, rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(4, 2))));
    for (size_t i = 0; i < ARRAY_COUNT(axes); i++) {
        rlxvk_bucket_axis axis = {"x", axes[i], false};
        rlxvk_compile_options o = {.bucket_axes = &axis, .bucket_axis_count = 1};
        rlxvk_executable *e = NULL;
        assert_int_equal(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_AXIS);
    }
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        rlxvk_compile_options o = {.prepared_bytes = (uint64_t)numbers[i],
                                   .cached_bindings = (uint32_t)numbers[i]};
        rlxvk_executable *e = NULL;
        bool many = (uint32_t)numbers[i] > 1024;
        assert_int_equal(rlxvk_compile(shared_context, g, &o, &e), many ? RLXVK_E_ATTR : RLXVK_OK);
        rlxvk_executable_destroy(e);
    }
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dims_of_dims),        cmocka_unit_test(shapes),
        cmocka_unit_test(sizes_of_symbols),    cmocka_unit_test(lengths_are_checked),
        cmocka_unit_test(rows_are_checked),    cmocka_unit_test(extents_are_checked),
        cmocka_unit_test(options_are_checked),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
