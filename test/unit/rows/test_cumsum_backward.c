/*
 * cumsum_backward on a device: cumulative sums from the other end, along every axis. They are
 * compared with sums that are computed for each element. Their own gradient must be the cumulative
 * sum of the incoming gradient.
 */
#include "support/harness.h"
#include "support/rewritten.h"

#include <rlxvk_train.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { DEPTH = 3, ROWS = 5, COLUMNS = 4, NUMEL = DEPTH * ROWS * COLUMNS };

static const int sizes[3] = {DEPTH, ROWS, COLUMNS}, strides[3] = {ROWS * COLUMNS, COLUMNS, 1};

/* The sum of the elements on one side of element i along the axis. If not `exclusive`, element i is
 * included. */
static float side_sum(const float *x, int i, int axis, bool behind, bool exclusive)
{
    int at = i / strides[axis] % sizes[axis];
    float sum = exclusive ? 0 : x[i];
    for (int j = 0; j < sizes[axis]; j++)
        if (behind ? j > at : j < at)
            sum += x[i + (j - at) * strides[axis]];
    return sum;
}

static void expect_sums(int axis, bool exclusive)
{
    float dy[NUMEL], seed[NUMEL], got[2][NUMEL];
    rlxvk_graph *g = new_graph();
    rlxvk_executable *e = NULL;
    rlxvk_tensor slope;
    for (int i = 0; i < NUMEL; i++) {
        dy[i] = (float)(i * 7 % 23 - 11);
        seed[i] = (float)(i * 5 % 19 - 9);
    }
    rlxvk_tensor x = input(g, "dy", RLXVK_SHAPE(DEPTH, ROWS, COLUMNS));
    rlxvk_tensor y = rlxvk_cumsum_backward(g, x, axis - 3 * exclusive, exclusive);
    rlxvk_grad(g, y, floats(g, RLXVK_SHAPE(DEPTH, ROWS, COLUMNS), seed), &x, 1, &slope);
    rlxvk_graph_output(g, y);
    rlxvk_graph_output(g, slope);
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    const rlxvk_run_input in = {"dy", dy, NUMEL, RLXVK_F32};
    const rlxvk_run_output out[] = {{0, got[0], NUMEL, RLXVK_F32}, {1, got[1], NUMEL, RLXVK_F32}};
    expect_ok(rlxvk_run(e, &in, 1, out, 2));
    for (int i = 0; i < NUMEL; i++) { /* integers are exact */
        assert_true(got[0][i] == side_sum(dy, i, axis, true, exclusive));
        assert_true(got[1][i] == side_sum(seed, i, axis, false, exclusive));
    }
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static void sums_from_the_other_end(void **state)
{
    (void)state;
    for (int axis = 0; axis < 3; axis++)
        for (int exclusive = 0; exclusive < 2; exclusive++)
            expect_sums(axis, exclusive);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_from_the_other_end)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
