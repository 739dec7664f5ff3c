/* Short sequences of calls that once failed. Fuzzing (test/fuzz/sequence.c) found them. */
#include "support/harness.h"

#include <rlxvk_ops.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static rlxvk_executable *compile(rlxvk_graph *g, const rlxvk_compile_options *o)
{
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_compile(shared_context, g, o, &e));
    rlxvk_graph_destroy(g);
    return e;
}

static rlxvk_graph *graph(void)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    return g;
}

static void run(rlxvk_executable *e, const char *name, const float *values, size_t length)
{
    rlxvk_run_input in = {name, values, length, RLXVK_F32};
    expect_ok(rlxvk_run(e, &in, values != NULL, NULL, 0));
}

/* If 5 bytes are fed into an input of 6, the sixth byte stays as it is. */
static void test_feed_of_bytes(void **state)
{
    const uint8_t from[5] = {1, 2, 3, 4, 5}, to[6] = {9, 9, 9, 9, 9, 9};
    const uint8_t wanted[6] = {1, 2, 3, 4, 5, 9};
    uint8_t got[6];
    rlxvk_graph *g = graph();
    (void)state;
    rlxvk_graph_output(g, rlxvk_copy(g, rlxvk_input(g, "to", RLXVK_U8, RLXVK_SHAPE(6))));
    rlxvk_graph_output(g, rlxvk_input(g, "from", RLXVK_U8, RLXVK_SHAPE(5)));
    rlxvk_executable *e = compile(g, NULL);
    rlxvk_run_input inputs[] = {{"from", from, 5, RLXVK_U8}, {"to", to, 6, RLXVK_U8}};
    rlxvk_run_output out = {0, got, 6, RLXVK_U8};
    expect_error(rlxvk_set_handle_feed(e, "to", 1), RLXVK_E_LENGTH, "output 1 (5, 5 elements)");
    expect_ok(rlxvk_set_handle_feed_prefix(e, "to", 1));
    expect_ok(rlxvk_run(e, inputs, 2, NULL, 0));
    expect_ok(rlxvk_run(e, NULL, 0, &out, 1));
    assert_memory_equal(got, wanted, 6);
    rlxvk_executable_destroy(e);
}

/* A param refuses bytes with an invalid dtype. */
static void test_params_of_no_dtype(void **state)
{
    float y[2];
    rlxvk_graph *g = graph();
    (void)state;
    rlxvk_graph_output(g, rlxvk_copy(g, rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(2))));
    rlxvk_executable *e = compile(g, NULL);
    rlxvk_param_item item = {"w", y, 0, RLXVK_DTYPE_COUNT};
    rlxvk_run_output out = {0, y, 2, RLXVK_F32};
    expect_error(rlxvk_set_params(e, &item, 1), RLXVK_E_DTYPE, "'w'");
    expect_error(rlxvk_run(e, NULL, 0, &out, 1), RLXVK_E_UNSET_PARAM, "'w'");
    rlxvk_executable_destroy(e);
}

static rlxvk_tensor plus_one(rlxvk_graph *g, rlxvk_tensor x)
{
    const float one = 1;
    return rlxvk_add(g, x, rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(1), &one, sizeof one));
}

/* The random step after a run with a bad index, with and without a feed. */
static void test_step_of_failed_runs(void **state)
{
    const float data[2] = {1, 2}, bad = 5;
    const rlxvk_rng_options rng = {.advance_per_run = true};
    (void)state;
    for (int fed = 0; fed < 2; fed++) {
        rlxvk_graph *g = graph();
        rlxvk_rng_options now;
        rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(2));
        rlxvk_tensor i = rlxvk_input(g, "i", RLXVK_F32, RLXVK_SHAPE(1));
        rlxvk_graph_output(g, rlxvk_gather(g, x, i, 0));
        rlxvk_graph_output(g, plus_one(g, x));
        rlxvk_executable *e =
            compile(g, &(rlxvk_compile_options){.check_index = RLXVK_ON, .rng = &rng});
        rlxvk_run_input inputs[] = {{"x", data, 2, RLXVK_F32}, {"i", &bad, 1, RLXVK_F32}};
        if (fed)
            expect_ok(rlxvk_set_handle_feed(e, "x", 1));
        expect_error(rlxvk_run(e, inputs, 2, NULL, 0), RLXVK_E_INDEX_OOB, "gather");
        rlxvk_get_rng(e, &now);
        assert_int_equal(now.step, 1);
        rlxvk_executable_destroy(e);
    }
}

/* An output that is a view of an input was made a copy because of a feed. If the feed was cleared,
 * a clone of the executable still has the copy. */
static void test_clone_of_kept_outputs(void **state)
{
    const float first[2] = {8, 9}, second[2] = {1, 2};
    float got[2];
    rlxvk_executable *copy = NULL;
    rlxvk_graph *g = graph();
    (void)state;
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(2));
    rlxvk_graph_output(g, x);
    rlxvk_graph_output(g, plus_one(g, x));
    rlxvk_executable *e = compile(g, NULL);
    expect_ok(rlxvk_set_handle_feed(e, "x", 1));
    expect_ok(rlxvk_set_handle_feed(e, "x", 0));
    run(e, "x", first, 2);
    expect_ok(rlxvk_bind_handle(e, "x", second, 2));
    expect_ok(rlxvk_clone(e, &copy));
    expect_ok(rlxvk_read_handle(copy, "x", got, 2));
    assert_memory_equal(got, second, sizeof got);
    expect_ok(rlxvk_read_output_row(copy, 0, 0, 2, got));
    assert_memory_equal(got, first, sizeof got);
    rlxvk_executable_destroy(copy);
    rlxvk_executable_destroy(e);
}

/* A complex param takes two f32 values per element. */
static void test_complex_param(void **state)
{
    const float values[4] = {1, 2, 3, 4};
    float got[4];
    rlxvk_graph *g = graph();
    (void)state;
    rlxvk_graph_output(g, rlxvk_copy(g, rlxvk_param(g, "w", RLXVK_C64, RLXVK_SHAPE(2))));
    rlxvk_executable *e = compile(g, NULL);
    expect_ok(rlxvk_set_param_typed(e, "w", values, 16, RLXVK_F32));
    expect_ok(rlxvk_read_param_typed(e, "w", got, 16, RLXVK_F32));
    assert_memory_equal(got, values, sizeof got);
    rlxvk_executable_destroy(e);
}

/* The random state is raw bits. If these bits happen to be a NaN as an f32, that is not an error.
 */
static void test_random_state_is_no_number(void **state)
{
    const rlxvk_rng_options rng = {.seed = 0x7fc000007f800000u, .step = UINT64_MAX};
    rlxvk_bad_node bad;
    rlxvk_graph *g = graph();
    (void)state;
    rlxvk_graph_output(g, rlxvk_rng_uniform(g, RLXVK_SHAPE(4), 0, 1, NULL));
    rlxvk_executable *e = compile(g, &(rlxvk_compile_options){.rng = &rng});
    expect_ok(rlxvk_first_bad_node(e, NULL, 0, &bad));
    assert_false(bad.found);
    rlxvk_executable_destroy(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_feed_of_bytes),
        cmocka_unit_test(test_params_of_no_dtype),
        cmocka_unit_test(test_step_of_failed_runs),
        cmocka_unit_test(test_clone_of_kept_outputs),
        cmocka_unit_test(test_complex_param),
        cmocka_unit_test(test_random_state_is_no_number),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
