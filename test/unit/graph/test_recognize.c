/* Symbolic dims are recognized from sizes at several points. A recognized form must be the right
 * one, not only one that fits a few sizes: graphs are bound to sizes around each step of it. */
#include "base/base.h"
#include "support/harness.h"

#include <rlxvk_ops.h>
#include <rlxvk_symbols.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define B rlxvk_symbol(RLXVK_BATCH)
#define H rlxvk_symbol(RLXVK_USER_SYMBOL)
#define W rlxvk_symbol(RLXVK_USER_SYMBOL + 1)

static rlxvk_graph *new_graph(void)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    return g;
}

static void expect_shape(const rlxvk_graph *g, rlxvk_tensor t, const char *wanted)
{
    char got[256];
    expect_ok(rlxvk_graph_status(g));
    expect_ok(rlxvk_shape_text(g, rlxvk_tensor_shape(g, t), got, sizeof got));
    assert_string_equal(got, wanted);
}

/* Binds, which compares the told shape, and gives the length of the last axis. */
static int64_t length_at(const rlxvk_graph *g, const rlxvk_binding *sizes, size_t count)
{
    rlxvk_graph *bound = NULL;
    expect_ok(rlxvk_graph_bind(g, sizes, count, &bound));
    rlxvk_shape s = rlxvk_tensor_shape(bound, rlxvk_graph_output_tensor(bound, 0));
    rlxvk_graph_destroy(bound);
    return s.dims[s.rank - 1];
}

/* Frames of sound: 400 samples each, 160 or 640 apart. The batch is no part of their number. */
static void windows_with_long_strides(void **state)
{
    static const struct {
        int64_t stride;
        const char *shape;
    } rows[] = {{160, "BATCHx8x((S16-240)/160)"}, {640, "BATCHx8x((S16+240)/640)"}};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        rlxvk_graph *g = new_graph();
        rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(B, 1, H));
        rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(8, 1, 400));
        rlxvk_tensor y =
            rlxvk_conv(g, x, w, RLXVK_NONE, &(rlxvk_conv_options){.stride = {rows[i].stride}});
        rlxvk_graph_output(g, y);
        expect_shape(g, y, rows[i].shape);
        for (int64_t size = 400; size < 3000; size += size % rows[i].stride == 239 ? 1 : 37) {
            const rlxvk_binding sizes[] = {{RLXVK_BATCH, 3}, {RLXVK_USER_SYMBOL, size}};
            assert_int_equal(length_at(g, sizes, 2), (size - 400) / rows[i].stride + 1);
        }
        rlxvk_graph_destroy(g);
    }
}

/* An image goes down five times, and its levels meet again at one size. Only multiples of 32 fit,
 * and the search may find the same one for both axes. */
static void axes_that_must_divide_stay_apart(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(B, 96, H, W)), levels[6] = {x};
    rlxvk_tensor ups[4], y;
    rlxvk_pool_options half = {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
    char text[256];
    (void)state;
    for (int i = 0; i < 5; i++) {
        levels[i + 1] = rlxvk_pool_max(g, levels[i], &half);
        (void)rlxvk_tensor_shape(g, levels[i + 1]); /* told, so it must stay right */
    }
    ups[3] = levels[5];
    for (int i = 2; i >= 0; i--)
        ups[i] = rlxvk_add(g, rlxvk_resize_nearest2x(g, ups[i + 1]), levels[2 + i]);
    for (int i = 1; i < 4; i++)
        for (int k = 0; k < i; k++)
            ups[i] = rlxvk_resize_nearest2x(g, ups[i]);
    y = rlxvk_concat(g, ups, 4, 1);
    rlxvk_graph_output(g, y);
    expect_ok(rlxvk_graph_status(g));
    rlxvk_shape s = rlxvk_tensor_shape(g, y);
    expect_ok(rlxvk_shape_text(g, s, text, sizeof text));
    if (strncmp(text, "BATCHx384x", 10) != 0 || s.dims[2] == s.dims[3])
        fail_msg("%s", text);
    const rlxvk_binding sizes[] = {{RLXVK_BATCH, 3},
                                   {RLXVK_USER_SYMBOL, 64},
                                   {RLXVK_USER_SYMBOL + 1, 160}};
    assert_int_equal(length_at(g, sizes, 3), 40);
    rlxvk_graph_destroy(g);
}

/* A size that the examples cannot tell from a number, because a reshape wants exactly one. */
static void one_batch_for_all_examples(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(B, H));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(48, 6));
    (void)state;
    rlxvk_graph_output(g, rlxvk_matmul(g, x, w));
    expect_shape(g, rlxvk_graph_output_tensor(g, 0), "BATCHx6");
    expect_shape(g, rlxvk_neg(g, x), "BATCHxS16");
    rlxvk_graph_destroy(g);
}

/* Operands of other points have the storage of the graph's own nodes: raw bytes stay raw through
 * copies, and computed U8 values are words. */
static void shapes_of_bytes_are_recognized(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor raw = rlxvk_input(g, "raw", RLXVK_U8, RLXVK_SHAPE(B, H));
    (void)state;
    rlxvk_tensor twice[] = {rlxvk_copy(g, raw),
                            rlxvk_reshape(g, rlxvk_copy(g, raw), RLXVK_SHAPE(B, H))};
    rlxvk_tensor wide = rlxvk_concat(g, twice, 2, 1);
    expect_shape(g, wide, "BATCHx(S16+S16)");
    rlxvk_tensor words = rlxvk_cast(g, rlxvk_cast(g, wide, RLXVK_F32), RLXVK_U8);
    expect_shape(g, rlxvk_add(g, words, words), "BATCHx(S16+S16)");
    expect_ok(rlxvk_graph_status(g));
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_with_long_strides),
        cmocka_unit_test(axes_that_must_divide_stay_apart),
        cmocka_unit_test(one_batch_for_all_examples),
        cmocka_unit_test(shapes_of_bytes_are_recognized),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
