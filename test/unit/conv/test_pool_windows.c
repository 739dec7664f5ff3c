/* The number of windows of a pool at the sizes that a symbol gets. */
#include "op/op.h"
#include "support/harness.h"

#include <rlxvk_ops.h>
#include <rlxvk_symbols.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* The last window of a pool with RLXVK_POOL_CEIL is left out at some sizes. */
static void windows_are_counted_at_each_size(void **state)
{
    static const int64_t counts[][2] = {{1, 1}, {2, 2}, {3, 2}, {4, 3}, {5, 3}, {6, 4}};
    rlxvk_pool_options o = RLXVK_SIZED(rlxvk_pool_options, .kernel = {1}, .stride = {2},
                                       .padding = {1}, .rounding = RLXVK_POOL_CEIL);
    rlxvk_graph *g = NULL;
    rlxvk_tensor x;
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1, 1, rlxvk_symbol(RLXVK_SEQ)));
    rlxvk_graph_output(g, rlxvk_pool_max(g, x, &o));
    for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
        rlxvk_graph *bound = NULL;
        expect_ok(rlxvk_graph_bind(g, &(rlxvk_binding){RLXVK_SEQ, counts[i][0]}, 1, &bound));
        assert_int_equal(rlxvk_tensor_shape(bound, rlxvk_graph_output_tensor(bound, 0)).dims[2],
                         counts[i][1]);
        rlxvk_graph_destroy(bound);
    }
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_counted_at_each_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
