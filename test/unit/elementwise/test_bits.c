/* Inverted bits of each integer type, beside those of C. */
#include "support/harness.h"

#include <rlxvk_ops.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { COUNT = 256 };

static void invert(rlxvk_dtype dtype, const float *x, float *y)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor input = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(COUNT));
    rlxvk_tensor inverted = rlxvk_bitwise_not(g, rlxvk_cast(g, input, dtype));
    rlxvk_graph_output(g, rlxvk_cast(g, inverted, RLXVK_F32));
    expect_ok(rlxvk_graph_status(g));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    rlxvk_run_input given = {.name = "x", .data = x, .length = COUNT};
    rlxvk_run_output taken = {.index = 0, .buffer = y, .length = COUNT};
    expect_ok(rlxvk_run(e, &given, 1, &taken, 1));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static void test_inverted_bits(void **state)
{
    float x[COUNT], y[COUNT];
    (void)state;
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)i;
    invert(RLXVK_U8, x, y);
    for (int i = 0; i < COUNT; i++)
        assert_true(y[i] == (float)(uint8_t) ~(unsigned)i);
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)(i - 128);
    invert(RLXVK_I8, x, y);
    for (int i = 0; i < COUNT; i++)
        assert_true(y[i] == (float)~(i - 128));
    invert(RLXVK_BOOL, x, y);
    for (int i = 0; i < COUNT; i++)
        assert_true(y[i] == (i == 128 ? 1 : 0));
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)((i - 128) * 255);
    invert(RLXVK_I16, x, y);
    for (int i = 0; i < COUNT; i++)
        assert_true(y[i] == (float)~((i - 128) * 255));
    invert(RLXVK_I32, x, y);
    for (int i = 0; i < COUNT; i++)
        assert_true(y[i] == (float)~((i - 128) * 255));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_inverted_bits)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
