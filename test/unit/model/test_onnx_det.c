/* Det of ONNX models, for sizes that the node tests of the standard do not have. */
#include "support/harness.h"
#include "support/onnx_writer.h"

#include <rlxvk_model.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

enum { FLOAT = 1, MOST = 70 };

static onnx_message det_of(const char *x, const char *y)
{
    onnx_message g = {0};
    onnx_write_op(&g, "Det", ONNX_NAMES("x"), ONNX_NAMES("y"));
    onnx_write_value(&g, 11, "x", FLOAT, x);
    onnx_write_value(&g, 12, "y", FLOAT, y);
    return g;
}

/* The matrix that has 2 on the diagonal and -1 beside it: its determinant is N + 1. */
static void write_chain(float *x, size_t n)
{
    memset(x, 0, n * n * sizeof *x);
    for (size_t i = 0; i < n; i++) {
        x[i * n + i] = 2;
        if (i > 0)
            x[i * n + i - 1] = x[(i - 1) * n + i] = -1;
    }
}

/* A batch of two. The second matrix has its first row negated. */
static void expect_determinants(rlxvk_executable *e, size_t n)
{
    static float x[2 * MOST * MOST];
    float y[2];
    rlxvk_run_input in = {.name = "x", .data = x, .length = 2 * n * n};
    rlxvk_run_output out = {.buffer = y, .length = 2};
    write_chain(x, n);
    write_chain(x + n * n, n);
    for (size_t i = 0; i < n; i++)
        x[n * n + i] = -x[n * n + i];
    expect_ok(rlxvk_run(e, &in, 1, &out, 1));
    assert_true(fabs(y[0] - (double)(n + 1)) < 1e-5 * (double)n);
    assert_true(fabs(y[1] + (double)(n + 1)) < 1e-5 * (double)n);
}

static void any_size_is_taken(void **state)
{
    const size_t sizes[] = {1, 2, 3, 4, 5, 8, 33, 70};
    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        char x[32];
        snprintf(x, sizeof x, "2,%zu,%zu", sizes[k], sizes[k]);
        onnx_message g = det_of(x, "2");
        rlxvk_executable *e = onnx_make_executable(&g, 22);
        expect_determinants(e, sizes[k]);
        rlxvk_executable_destroy(e);
    }
}

static void batches_may_have_names(void **state)
{
    onnx_message g = det_of("B,5,5", "B");
    rlxvk_executable *e = onnx_make_executable(&g, 22);
    (void)state;
    expect_determinants(e, 5);
    rlxvk_executable_destroy(e);
}

static void other_shapes_are_refused(void **state)
{
    static const char *const shapes[] = {"2,5", "5"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        onnx_message g = det_of(shapes[i], ""), bytes = onnx_write_model(&g, 22);
        rlxvk_model *m = NULL;
        rlxvk_graph *graph = NULL;
        expect_ok(rlxvk_model_open_bytes(bytes.bytes, bytes.size, NULL, &m));
        expect_error(rlxvk_model_graph(m, NULL, &graph), RLXVK_E_SHAPE, "Det 'y'");
        rlxvk_model_destroy(m);
        message_free(&bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_size_is_taken),
        cmocka_unit_test(batches_may_have_names),
        cmocka_unit_test(other_shapes_are_refused),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
