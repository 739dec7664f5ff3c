/* The bytes and flops of steps, which rlxvk run --profile relates to the device's ceilings. */
#include "bench/bench.h"
#include "support/harness.h"

#include <rlxvk_ops.h>
#include <rlxvk_ops_domain.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

/* The work of all steps of the graph with this output, which it frees. */
static bench_work work_of(rlxvk_graph *g, rlxvk_tensor y)
{
    rlxvk_executable *e;
    rlxvk_plan_report plan;
    bench_work sum = {0};
    rlxvk_graph_output(g, y);
    expect_ok(rlxvk_graph_status(g));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    rlxvk_executable_plan(e, &plan);
    for (size_t i = 0; i < plan.dispatches; i++) {
        bench_work work = bench_step_work(e, i);
        sum.bytes += work.bytes;
        sum.flops += work.flops;
    }
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    return sum;
}

static rlxvk_graph *new_graph(void)
{
    rlxvk_graph *g;
    expect_ok(rlxvk_graph_create(&g));
    return g;
}

static rlxvk_tensor input(rlxvk_graph *g, const char *name, rlxvk_shape shape)
{
    return rlxvk_input(g, name, RLXVK_F32, shape);
}

static void every_operand_counts_once(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(1024));
    bench_work work = work_of(g, rlxvk_add(g, x, input(g, "y", RLXVK_SHAPE(1024))));
    (void)state;
    assert_true(work.bytes == 3 * 4096 && work.flops == 0);
    g = new_graph();
    x = input(g, "x", RLXVK_SHAPE(1024));
    assert_true(work_of(g, rlxvk_mul(g, x, x)).bytes == 2 * 4096);
}

/* Of a gathered table, only the rows that are read. */
static void tables_count_as_their_rows(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor table = input(g, "table", RLXVK_SHAPE(5000, 64));
    rlxvk_tensor rows = rlxvk_input(g, "rows", RLXVK_I32, RLXVK_SHAPE(64));
    bench_work work = work_of(g, rlxvk_gather(g, table, rows, 0));
    (void)state;
    assert_true(work.bytes == 2 * 4 * 64 * 64 + 4 * 64);
}

static void products_count_their_sums(void **state)
{
    static const rlxvk_attention_options causal = {.mask = RLXVK_MASK_CAUSAL,
                                                   .layout = RLXVK_LAYOUT_BSHD};
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(3, 40, 16)), w = input(g, "w", RLXVK_SHAPE(16, 24));
    (void)state;
    assert_true(work_of(g, rlxvk_matmul(g, x, w)).flops == 2.0 * 3 * 40 * 24 * 16);
    g = new_graph();
    x = input(g, "x", RLXVK_SHAPE(2, 8, 10, 12));
    w = input(g, "w", RLXVK_SHAPE(6, 4, 3, 3));
    assert_true(
        work_of(g, rlxvk_conv(g, x, w, RLXVK_NONE, &(rlxvk_conv_options){.groups = 2})).flops ==
        2.0 * 2 * 6 * 8 * 10 * 4 * 9);
    g = new_graph();
    x = input(g, "x", RLXVK_SHAPE(2, 8, 10, 12));
    w = input(g, "w", RLXVK_SHAPE(8, 6, 3, 3));
    assert_true(work_of(g, rlxvk_conv_transpose2d(g, x, w, RLXVK_NONE, NULL)).flops ==
                2.0 * 2 * 8 * 10 * 12 * 6 * 9);
    g = new_graph();
    x = input(g, "x", RLXVK_SHAPE(2, 16, 4, 32));
    w = input(g, "w", RLXVK_SHAPE(2, 20, 4, 32));
    assert_true(work_of(g, rlxvk_attention(g, x, w, w, RLXVK_NONE, &causal)).flops ==
                4.0 * 2 * 16 * 4 * 32 * (20 - 7.5));
}

/* The ceiling that limits the work is the nearer one. */
static void shares_are_of_the_nearer_ceiling(void **state)
{
    const bench_ceilings c = {.copy_bytes = 1e9, .fma_flops = 1e12};
    (void)state;
    assert_true(bench_share(&c, 500, 0, 1) > 0.499 && bench_share(&c, 500, 0, 1) < 0.501);
    assert_true(bench_share(&c, 100, 8e5, 1) > 0.799 && bench_share(&c, 100, 8e5, 1) < 0.801);
    assert_true(bench_share(&c, 100, 8e5, 0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operand_counts_once),
        cmocka_unit_test(tables_count_as_their_rows),
        cmocka_unit_test(products_count_their_sums),
        cmocka_unit_test(shares_are_of_the_nearer_ceiling),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
