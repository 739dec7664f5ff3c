/* Pools and resizing of ONNX models that the node tests of the standard do not have. */
#include "support/harness.h"
#include "support/onnx_writer.h"

#include <rlxvk_model.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

enum { FLOAT = 1, INT64 = 7 };

/* ---- Pools ---- */

/* Kernel 2, dilation 2, stride 2, ceil_mode. The last window of six cells has only its first. */
static onnx_message pool_node(const char *op, const char *const *outputs, size_t count)
{
    onnx_message node = onnx_write_node(op, ONNX_NAMES("x"), outputs, count);
    onnx_write_integers(&node, "kernel_shape", (const int64_t[]){2}, 1);
    onnx_write_integers(&node, "dilations", (const int64_t[]){2}, 1);
    onnx_write_integers(&node, "strides", (const int64_t[]){2}, 1);
    onnx_write_integer(&node, "ceil_mode", 1);
    return node;
}

static void dilated_pools_have_indices(void **state)
{
    static const float x[6] = {3, 1, 4, 1, 5, 9};
    onnx_message g = {0}, node = pool_node("MaxPool", ONNX_NAMES("y", "i"));
    rlxvk_executable *e;
    float y[3];
    int64_t i[3];
    rlxvk_run_input in = {.name = "x", .data = x, .length = 6};
    rlxvk_run_output out[] = {{.index = 0, .buffer = y, .length = 3},
                              {.index = 1, .buffer = i, .length = 3, .dtype = RLXVK_I64}};
    (void)state;
    message_inner(&g, 1, &node);
    onnx_write_value(&g, 11, "x", FLOAT, "1,1,6");
    onnx_write_value(&g, 12, "y", FLOAT, "1,1,3");
    onnx_write_value(&g, 12, "i", INT64, "1,1,3");
    e = onnx_make_executable(&g, 22);
    expect_ok(rlxvk_run(e, &in, 1, out, 2));
    assert_true(y[0] == 4 && y[1] == 5 && y[2] == 5);
    assert_true(i[0] == 2 && i[1] == 4 && i[2] == 4);
    rlxvk_executable_destroy(e);
}

/* The number of windows follows from the size of each run. Cells that only ceil_mode reaches do not
 * count. */
static void dilated_pools_take_named_dims(void **state)
{
    static const float x[6] = {3, 1, 4, 1, 5, 9};
    onnx_message g = {0}, node = pool_node("AveragePool", ONNX_NAMES("y"));
    rlxvk_executable *e;
    (void)state;
    onnx_write_integer(&node, "count_include_pad", 1);
    message_inner(&g, 1, &node);
    onnx_write_value(&g, 11, "x", FLOAT, "1,1,N");
    onnx_write_value(&g, 12, "y", FLOAT, "1,1,M");
    e = onnx_make_executable(&g, 22);
    for (size_t n = 5; n <= 6; n++) {
        float y[3] = {0};
        rlxvk_run_input in = {.name = "x", .data = x, .length = n};
        rlxvk_run_output out = {.buffer = y, .length = n - 3};
        expect_ok(rlxvk_run(e, &in, 1, &out, 1));
        assert_true(y[0] == 3.5f && y[1] == 4.5f && y[2] == (n == 6 ? 5 : 0));
    }
    rlxvk_executable_destroy(e);
}

/* ---- Resizing ---- */

enum { RANK = 4, MOST = 512 };

/* Resizes one axis linearly, by half pixels. */
static void resize_axis(double *x, int64_t dims[RANK], int axis, int64_t to)
{
    double y[MOST];
    int64_t outer = 1, inner = 1, from = dims[axis];
    for (int i = 0; i < axis; i++)
        outer *= dims[i];
    for (int i = axis + 1; i < RANK; i++)
        inner *= dims[i];
    assert_true(outer * to * inner <= MOST);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t t = 0; t < to; t++)
            for (int64_t i = 0; i < inner; i++) {
                double at = ((double)t + 0.5) * (double)from / (double)to - 0.5;
                int64_t low = (int64_t)floor(at), a = MIN(MAX(low, 0), from - 1);
                int64_t b = MIN(MAX(low + 1, 0), from - 1);
                double *line = &x[o * from * inner + i];
                y[(o * to + t) * inner + i] =
                    line[a * inner] + (at - (double)low) * (line[b * inner] - line[a * inner]);
            }
    dims[axis] = to;
    memcpy(x, y, (size_t)(outer * to * inner) * sizeof *x);
}

static void expect_resized(const int64_t sizes[RANK])
{
    int64_t dims[RANK] = {2, 3, 4, 5};
    double want[MOST];
    float x[120], y[MOST];
    onnx_message g = {0}, node = onnx_write_node("Resize", ONNX_NAMES("x", "", "", "sizes"),
                                                 ONNX_NAMES("y"));
    rlxvk_run_input in = {.name = "x", .data = x, .length = 120};
    rlxvk_run_output out = {.buffer = y, .length = 1};
    rlxvk_executable *e;
    for (int i = 0; i < 120; i++)
        want[i] = x[i] = (float)(i * 37 % 101);
    for (int i = 0; i < RANK; i++) {
        resize_axis(want, dims, i, sizes[i]);
        out.length *= (size_t)sizes[i];
    }
    onnx_write_text(&node, "mode", "linear");
    message_inner(&g, 1, &node);
    onnx_write_row(&g, "sizes", sizes, RANK);
    onnx_write_value(&g, 11, "x", FLOAT, "2,3,4,5");
    onnx_write_value(&g, 12, "y", FLOAT, "");
    e = onnx_make_executable(&g, 22);
    expect_ok(rlxvk_run(e, &in, 1, &out, 1));
    for (size_t i = 0; i < out.length; i++)
        if (fabs(y[i] - want[i]) > 1e-4)
            fail_msg("%lld,..: element %zu is %g instead of %g", (long long)sizes[0], i,
                     (double)y[i], want[i]);
    rlxvk_executable_destroy(e);
}

/* Not only the spatial axes of an image: one axis, several in a row, some apart, all. */
static void any_axes_are_resized(void **state)
{
    (void)state;
    expect_resized((const int64_t[]){5, 3, 4, 5});
    expect_resized((const int64_t[]){2, 7, 4, 5});
    expect_resized((const int64_t[]){3, 2, 4, 5});
    expect_resized((const int64_t[]){2, 5, 3, 7});
    expect_resized((const int64_t[]){3, 3, 4, 8});
    expect_resized((const int64_t[]){4, 5, 3, 5});
    expect_resized((const int64_t[]){3, 2, 5, 7});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dilated_pools_have_indices),
        cmocka_unit_test(dilated_pools_take_named_dims),
        cmocka_unit_test(any_axes_are_resized),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
