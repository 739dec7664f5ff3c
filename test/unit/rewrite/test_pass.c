/*
 * The whole rewrite, without a device. Reads keep their order with in-place writes. Dead nodes are
 * removed, but writes stay. Outputs and names are kept, and random graphs keep their values. Each
 * allocation may fail.
 */
#include "support/rewritten.h"

#include <rlxvk_ops_domain.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* ---- Writes in place ---- */

/* A fusion would move a read past a write of the value that it reads. So product, sum and halves
 * must still use the old value. */
static void keeps_reads_before_writes(void **state)
{
    (void)state;
    for (int which = 0; which < 3; which++) {
        rlxvk_graph *g = new_graph();
        rlxvk_tensor cache = input(g, "cache", RLXVK_SHAPE(2, 3, 4));
        rlxvk_tensor rows = input(g, "rows", RLXVK_SHAPE(2, 1, 4));
        rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(2, 3, 4)), up = RLXVK_NONE, s;
        if (which == 0)
            s = rlxvk_matmul(g, cache, param(g, "w", RLXVK_SHAPE(4, 4)));
        else if (which == 1)
            s = rlxvk_add(g, cache, x);
        else
            up = rlxvk_narrow(g, cache, 2, 0, 2),
            s = rlxvk_silu(g, rlxvk_narrow(g, cache, 2, 2, 2));
        rlxvk_tensor after =
            rlxvk_write_rows(g, cache, rows, floats(g, RLXVK_SHAPE(1), (float[]){1}));
        if (which == 0)
            s = rlxvk_add(g, s, param(g, "b", RLXVK_SHAPE(4)));
        else if (which == 1)
            s = build_norm(g, true, s, -1);
        else
            s = rlxvk_mul(g, up, s);
        rlxvk_graph_output(g, s);
        rlxvk_graph_output(g, after);
        rlxvk_graph *done = checked(g, false);
        assert_int_equal(count_op(done, OP_fused_matmul_bias_act), 0);
        assert_int_equal(count_op(done, OP_fused_residual_rms_norm), 0);
        assert_int_equal(count_op(done, OP_fused_swiglu), 0);
        rlxvk_graph_destroy(done);
        rlxvk_graph_destroy(g);
    }
}

/* v is a view of the cache from before the write, w is the cache after it. */
static rlxvk_tensor read_view(rlxvk_graph *g, int which, rlxvk_tensor cache, rlxvk_tensor rows)
{
    const rlxvk_shape flat = RLXVK_SHAPE(24);
    rlxvk_tensor zero = floats(g, RLXVK_SHAPE(1), (float[]){0}), v = RLXVK_NONE, w, y = RLXVK_NONE;
    if (which != 2 && which != 3)
        v = rlxvk_reshape(g, which == 8 ? rlxvk_input(g, "other", RLXVK_F32, flat) : cache, flat);
    if (which == 1)
        y = rlxvk_neg(g, v);
    if (which == 7)
        v = rlxvk_narrow(g, v, 0, 2, 4);
    if (which == 5)
        rows = rlxvk_narrow(g, rlxvk_reshape(g, v, RLXVK_SHAPE(1, 6, 4)), 1, 0, 2);
    w = rlxvk_write_rows(g, cache, rows, zero);
    if (which == 2)
        v = rlxvk_reshape(g, cache, flat);
    if (which == 3) {
        v = w;
        rlxvk_write_rows(g, cache, rlxvk_neg(g, rows), zero);
    }
    if (which == 6)
        v = rlxvk_narrow(g, v, 0, 2, 4);
    return which == 4 ? v : which == 1 ? y : which == 5 ? w : rlxvk_neg(g, v);
}

static void detaches_views(void **state)
{
    static const struct {
        const char *what;
        uint32_t copies;
    } cases[] = {
        {"read after the write", 1},
        {"read before the write", 0},
        {"built after the write", 0},
        {"between two writes", 1},
        {"an output", 1},
        {"read by the write", 1},
        {"viewed after", 1},
        {"two views before", 1},
        {"another leaf", 0},
    };
    (void)state;
    for (int i = 0; i < (int)ARRAY_COUNT(cases); i++) {
        rlxvk_graph *g = new_graph();
        rlxvk_tensor cache = input(g, "cache", RLXVK_SHAPE(1, 6, 4));
        rlxvk_graph_output(g, read_view(g, i, cache, input(g, "rows", RLXVK_SHAPE(1, 2, 4))));
        expect_count(cases[i].what, count_after(g, OP_copy), cases[i].copies);
    }
}

/* ---- Dead nodes, outputs, names ---- */

static void drops_dead_nodes(void **state)
{
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(2)), dead = input(g, "dead", RLXVK_SHAPE(2));
    rlxvk_exp(g, rlxvk_add(g, dead, x));
    rlxvk_graph_output(g, rlxvk_neg(g, x));
    rlxvk_graph *after = checked(g, false);
    assert_int_equal(after->nodes.count, 2);
    rlxvk_graph_destroy(after);
    rlxvk_graph_destroy(g);
}

/* No node reads the cache after the write, but the next run will. */
static void keeps_writes(void **state)
{
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_tensor cache = input(g, "cache", RLXVK_SHAPE(1, 4, 2));
    rlxvk_tensor rows = rlxvk_neg(g, input(g, "rows", RLXVK_SHAPE(1, 1, 2)));
    rlxvk_write_rows(g, cache, rows, input(g, "position", RLXVK_SHAPE(1)));
    rlxvk_graph_output(g, rlxvk_neg(g, input(g, "x", RLXVK_SHAPE(2))));
    rlxvk_graph *after = checked(g, false);
    assert_int_equal(count_op(after, OP_write_rows), 1);
    assert_int_equal(after->nodes.count, g->nodes.count);
    rlxvk_graph_destroy(after);
    rlxvk_graph_destroy(g);
}

static void keeps_outputs(void **state)
{
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(2, 4)), w = param(g, "w", RLXVK_SHAPE(4, 4));
    rlxvk_tensor c = floats(g, RLXVK_SHAPE(4), (float[]){1, 2, 3, 4}), twice = rlxvk_add(g, c, c);
    rlxvk_tensor y = rlxvk_relu(g, rlxvk_add(g, rlxvk_matmul(g, x, w), twice));
    rlxvk_graph_set_name(g, y, "y");
    rlxvk_graph_set_name(g, twice, "twice");
    const rlxvk_tensor outputs[] = {y, x, twice, y, w, x, c};
    for (size_t i = 0; i < ARRAY_COUNT(outputs); i++)
        rlxvk_graph_output(g, outputs[i]);
    rlxvk_graph *after = checked(g, false);
    assert_int_equal(count_op(after, OP_fused_matmul_bias_act), 1);
    assert_int_equal(after->outputs.items[0], after->outputs.items[3]);
    assert_int_equal(graph_node(after, after->outputs.items[1])->op, OP_input);
    assert_int_equal(graph_node(after, after->outputs.items[2])->op, OP_constant);
    assert_int_equal(graph_node(after, after->outputs.items[4])->op, OP_param);
    rlxvk_graph_destroy(after);
    rlxvk_graph_destroy(g);
}

static void refuses_without_outputs(void **state)
{
    rlxvk_graph *g = new_graph();
    (void)state;
    input(g, "x", RLXVK_SHAPE(2));
    expect_error(rewrite_graph(g, &(rewrite_options){.fusion = true}), RLXVK_E_NO_OUTPUTS,
                 "no output");
    rlxvk_graph_destroy(g);
}

static void random_graphs_keep_their_values(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        rlxvk_graph *g = new_graph();
        random_source r = {seed};
        random_graph(g, &r, 10 + random_below(&r, 40), true);
        rlxvk_graph_destroy(checked(g, true));
        rlxvk_graph_destroy(g);
    }
}

/* Each allocation of a rewrite fails once. The result must be an error, without a leak or a crash.
 * Errors of passes name the pass. */
static void survives_failing_allocations(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(2, 4)), r = input(g, "r", RLXVK_SHAPE(2, 4));
    rlxvk_tensor sum = rlxvk_add(g, rlxvk_add(g, x, r), param(g, "b", RLXVK_SHAPE(4)));
    bool done = false, first = false, last = false;
    (void)state;
    rlxvk_tensor k = floats(g, RLXVK_SHAPE(4), (float[]){1, 2, 3, 4});
    rlxvk_graph_output(g, build_norm(g, false, sum, -1));
    rlxvk_graph_output(g, rlxvk_add(g, k, k));
    rlxvk_tensor y = rlxvk_conv(g, input(g, "image", RLXVK_SHAPE(1, 2, 3, 3)),
                                param(g, "w", RLXVK_SHAPE(4, 2, 1, 1)), RLXVK_NONE, NULL);
    y = rlxvk_batch_norm_inference(g, y, k, k, k, param(g, "variance", RLXVK_SHAPE(4)), 0.1f, 1);
    rlxvk_graph_output(g, rlxvk_relu(g, y));
    for (uint64_t nth = 1; !done; nth++) {
        rlxvk_graph *copy = NULL;
        memory_fail_at(nth);
        rlxvk_status status = graph_clone(g, &copy);
        if (status == RLXVK_OK)
            status = rewrite_graph(copy, &(rewrite_options){.fusion = true});
        memory_fail_at(0);
        done = status == RLXVK_OK;
        if (!done)
            assert_int_equal(status, RLXVK_E_OUT_OF_HOST_MEMORY);
        first = first || (!done && strncmp(rlxvk_last_error(), "pass detach_views: ", 19) == 0);
        last = last || (!done && strncmp(rlxvk_last_error(), "pass share_nodes: ", 18) == 0);
        rlxvk_graph_destroy(copy);
        assert_true(nth < 1000);
    }
    assert_true(first && last);
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_reads_before_writes),
        cmocka_unit_test(detaches_views),
        cmocka_unit_test(drops_dead_nodes),
        cmocka_unit_test(keeps_writes),
        cmocka_unit_test(keeps_outputs),
        cmocka_unit_test(refuses_without_outputs),
        cmocka_unit_test(random_graphs_keep_their_values),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
