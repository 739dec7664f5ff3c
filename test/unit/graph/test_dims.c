/* Dims computed from other dims, and ops that generate values along a symbolic dim: aranges and
 * triangles. */
#include "support/harness.h"

#include <rlxvk_ops.h>
#include <rlxvk_ops_math.h>
#include <rlxvk_symbols.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define B rlxvk_symbol(RLXVK_BATCH)
#define S rlxvk_symbol(RLXVK_SEQ)

enum { MOST = 9 };

static rlxvk_graph *new_graph(void)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    return g;
}

/* The shape [dim] as text. */
static const char *said(rlxvk_graph *g, int64_t dim, char *buffer, size_t size)
{
    expect_ok(rlxvk_shape_text(g, RLXVK_SHAPE(dim), buffer, size));
    return buffer;
}

static void dims_compute(void **state)
{
    rlxvk_graph *g = new_graph();
    char text[64];
    (void)state;
    assert_int_equal(rlxvk_dim_sub(g, 7, 3), 4);
    assert_int_equal(rlxvk_dim_div(g, 7, 2), 3);
    assert_int_equal(rlxvk_dim_sub(g, S, 0), S);
    assert_int_equal(rlxvk_dim_sub(g, S, S), 0);
    assert_int_equal(rlxvk_dim_div(g, S, 1), S);
    assert_int_equal(rlxvk_dim_sub(g, rlxvk_dim_add(g, S, 5), 5), S);
    assert_int_equal(rlxvk_dim_sub(g, S, B), rlxvk_dim_sub(g, S, B));
    assert_true(rlxvk_dim_sub(g, S, B) != rlxvk_dim_sub(g, B, S));
    assert_string_equal(said(g, rlxvk_dim_sub(g, S, 1), text, sizeof text), "(SEQ-1)");
    assert_string_equal(said(g, rlxvk_dim_sub(g, S, B), text, sizeof text), "(SEQ-BATCH)");
    assert_string_equal(said(g, rlxvk_dim_sub(g, 9, B), text, sizeof text), "(9-BATCH)");
    assert_string_equal(said(g, rlxvk_dim_div(g, S, 2), text, sizeof text), "(SEQ/2)");
    expect_ok(rlxvk_graph_status(g));
    rlxvk_graph_destroy(g);
}

static void errors(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        rlxvk_graph *g = new_graph();
        int64_t got = i == 0   ? rlxvk_dim_sub(g, 3, 5)
                      : i == 1 ? rlxvk_dim_div(g, S, 0)
                      : i == 2 ? rlxvk_dim_div(g, 4, 0)
                      : i == 3 ? rlxvk_dim_sub(g, -2, S)
                      : i == 4 ? (int64_t)rlxvk_arange(g, 0, 1, -3).id
                               : (int64_t)rlxvk_arange(g, 0, 1, (1 << 24) + 1).id;
        static const char *const parts[] = {"3 less 5 is below 0", "dim_div: a dim by 0",
                                            "dim_div: a dim by 0", "-2 is no dim",
                                            "-3 numbers",          "16777217 numbers"};
        assert_int_equal(got, 0);
        expect_error(rlxvk_graph_status(g), i == 5 ? RLXVK_E_TOO_LARGE : RLXVK_E_SHAPE, parts[i]);
        rlxvk_graph_destroy(g);
    }
}

/* Outputs x without its first two rows, and the first half of its rows. Each length must give the
 * same rows as a graph of numbers. */
static void dims_are_bound(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_executable *e = NULL;
    float x[2 * MOST], y[2 * MOST], z[2 * MOST];
    (void)state;
    rlxvk_tensor t = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(S, 2));
    rlxvk_set_symbol_example(g, RLXVK_SEQ, 4);
    rlxvk_graph_output(g, rlxvk_narrow(g, t, 0, 2, rlxvk_dim_sub(g, S, 2)));
    rlxvk_graph_output(g, rlxvk_narrow(g, t, 0, 0, rlxvk_dim_div(g, S, 2)));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    for (int i = 0; i < 2 * MOST; i++)
        x[i] = (float)i;
    for (size_t length = 2; length <= MOST; length++) {
        rlxvk_run_input in = {.name = "x", .data = x, .length = 2 * length};
        size_t rest = 2 * (length - 2), half = 2 * (length / 2);
        rlxvk_run_output out[] = {{.index = 0, .buffer = y, .length = rest},
                                  {.index = 1, .buffer = z, .length = half}};
        expect_ok(rlxvk_run(e, &in, 1, out, 2));
        assert_memory_equal(y, x + 4, rest * sizeof *y);
        assert_memory_equal(z, x, half * sizeof *z);
    }
    expect_error(rlxvk_run(e, &(rlxvk_run_input){.name = "x", .data = x, .length = 2}, 1, NULL, 0),
                 RLXVK_E_RANGE, "-1");
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* start + i step; a symbolic length gives the same values as a number. */
static void numbers_in_a_row(void **state)
{
    (void)state;
    for (int64_t length = 0; length <= MOST; length++) {
        float y[2][MOST];
        for (int symbolic = 0; symbolic < 2 && length + symbolic > 0; symbolic++) {
            rlxvk_graph *g = new_graph();
            rlxvk_executable *e = NULL;
            if (symbolic && length == 0)
                continue;
            rlxvk_graph_output(g, rlxvk_arange(g, 0.3f, -0.7f, symbolic ? S : length));
            expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
            if (symbolic)
                expect_ok(rlxvk_bind_symbols(e, &(rlxvk_binding){RLXVK_SEQ, length}, 1));
            rlxvk_run_output out = {.buffer = y[symbolic], .length = (size_t)length};
            expect_ok(rlxvk_run(e, NULL, 0, &out, 1));
            for (int64_t i = 0; i < length; i++) {
                float step = (float)i * -0.7f;
                assert_true(y[symbolic][i] == 0.3f + step);
            }
            rlxvk_executable_destroy(e);
            rlxvk_graph_destroy(g);
        }
    }
}

static void triangles_of_symbols(void **state)
{
    float x[MOST * MOST], y[2][MOST * MOST];
    (void)state;
    for (int i = 0; i < MOST * MOST; i++)
        x[i] = (float)(i + 1);
    for (int64_t k = -3; k <= 3; k++) {
        rlxvk_graph *g = new_graph();
        rlxvk_executable *e = NULL;
        rlxvk_tensor t = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(B, S));
        rlxvk_graph_output(g, rlxvk_tril(g, t, k));
        rlxvk_graph_output(g, rlxvk_triu(g, t, k));
        expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
        for (int64_t rows = 1; rows <= MOST; rows += 2)
            for (int64_t columns = 1; columns <= MOST; columns += 3) {
                const rlxvk_binding sizes[] = {{RLXVK_BATCH, rows}, {RLXVK_SEQ, columns}};
                size_t count = (size_t)(rows * columns);
                rlxvk_run_input in = {.name = "x", .data = x, .length = count};
                rlxvk_run_output out[] = {{.index = 0, .buffer = y[0], .length = count},
                                          {.index = 1, .buffer = y[1], .length = count}};
                expect_ok(rlxvk_bind_symbols(e, sizes, 2));
                expect_ok(rlxvk_run(e, &in, 1, out, 2));
                for (int64_t i = 0; i < rows * columns; i++) {
                    int64_t off = i % columns - i / columns;
                    assert_true(y[0][i] == (off <= k ? x[i] : 0));
                    assert_true(y[1][i] == (off >= k ? x[i] : 0));
                }
            }
        rlxvk_executable_destroy(e);
        rlxvk_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dims_compute),         cmocka_unit_test(errors),
        cmocka_unit_test(dims_are_bound),       cmocka_unit_test(numbers_in_a_row),
        cmocka_unit_test(triangles_of_symbols),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
