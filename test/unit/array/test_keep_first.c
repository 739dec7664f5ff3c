/*
 * keep_first and pack_first along an axis of more than 2^24 places, on a device. An odd count above
 * 2^23 may not become even, and neither the axis nor the count may be rounded to the other.
 */
#include "support/harness.h"

#include <rlxvk_ops.h>
#include <rlxvk_ops_array.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define LENGTH ((1 << 24) + 1) /* as f32 it is one less */

typedef rlxvk_tensor keeper(rlxvk_graph *, rlxvk_tensor x, rlxvk_tensor count);

static rlxvk_tensor keep(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor count)
{
    return rlxvk_keep_first(g, x, count, 0, 0);
}
static rlxvk_tensor pack(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor count)
{
    return rlxvk_pack_first(g, x, count, 0);
}
/* What is left of ones at four places from 2^23 - 1 on, and at the last four. */
static void expect_left(rlxvk_executable *e, float count, const char *middle, const char *end)
{
    float found[2][4];
    const rlxvk_run_input in = {.name = "count", .data = &count, .length = 1};
    const rlxvk_run_output out[] = {{.index = 0, .buffer = found[0], .length = 4},
                                    {.index = 1, .buffer = found[1], .length = 4}};
    expect_ok(rlxvk_run(e, &in, 1, out, 2));
    for (int i = 0; i < 4; i++) {
        assert_float_equal(found[0][i], middle[i] == '1', 0);
        assert_float_equal(found[1][i], end[i] == '1', 0);
    }
}

static void counts_are_exact(void **state)
{
    static keeper *const keepers[] = {keep, pack};
    (void)state;
    for (size_t i = 0; i < sizeof keepers / sizeof *keepers; i++) {
        rlxvk_graph *g = NULL;
        rlxvk_executable *e = NULL;
        expect_ok(rlxvk_graph_create(&g));
        rlxvk_tensor ones = rlxvk_full(g, RLXVK_SHAPE(LENGTH), 1);
        rlxvk_tensor y = keepers[i](g, ones, rlxvk_input(g, "count", RLXVK_F32, RLXVK_SHAPE(1)));
        rlxvk_graph_output(g, rlxvk_narrow(g, y, 0, (1 << 23) - 1, 4));
        rlxvk_graph_output(g, rlxvk_narrow(g, y, 0, LENGTH - 4, 4));
        expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
        expect_left(e, (1 << 23) + 1, "1100", "0000");
        expect_left(e, 1 << 24, "1111", "1110");
        expect_left(e, (1 << 24) + 2, "1111", "1111");
        rlxvk_executable_destroy(e);
        rlxvk_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts_are_exact)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
