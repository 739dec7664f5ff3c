/* Leaves and outputs by name: the lists of an executable, errors for wrong names, inputs that can
 * be shared, and sizes that a feed may copy. */
#include "op/op.h"
#include "support/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

/* Outputs: "sum" [4] of x, random noise and w; and the cache [1, 4, 2] into which rows are written.
 * No node reads the input "unread" and the param "dead". */
static rlxvk_graph *mixed(void)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(4));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F16, RLXVK_SHAPE(4));
    (void)rlxvk_input(g, "unread", RLXVK_U8, RLXVK_SHAPE(3, 2));
    (void)rlxvk_param(g, "dead", RLXVK_F32, RLXVK_SHAPE(2));
    rlxvk_tensor cache = rlxvk_input(g, "cache", RLXVK_F32, RLXVK_SHAPE(1, 4, 2));
    rlxvk_tensor rows = rlxvk_input(g, "rows", RLXVK_F32, RLXVK_SHAPE(1, 1, 2));
    rlxvk_tensor at = rlxvk_input(g, "at", RLXVK_I32, RLXVK_SHAPE(1));
    rlxvk_tensor noise = rlxvk_rng_uniform(g, RLXVK_SHAPE(4), 0, 1, NULL);
    rlxvk_tensor sum = rlxvk_add(g, rlxvk_add(g, x, noise), w);
    rlxvk_graph_set_name(g, sum, "sum");
    rlxvk_graph_output(g, sum);
    rlxvk_graph_output(g, rlxvk_write_rows(g, cache, rows, at));
    expect_ok(rlxvk_graph_status(g));
    return g;
}

static rlxvk_executable *compiled(const rlxvk_compile_options *options)
{
    rlxvk_executable *e = NULL;
    rlxvk_graph *g = mixed();
    expect_ok(rlxvk_compile(shared_context, g, options, &e));
    rlxvk_graph_destroy(g);
    return e;
}

static void test_list_of_inputs(void **state)
{
    static const char *const names[] = {"x", "unread", "cache", "rows", "at"};
    rlxvk_executable *e = compiled(NULL);
    rlxvk_tensor_info infos[8] = {0};
    size_t count = 0;
    (void)state;
    expect_ok(rlxvk_executable_inputs(e, NULL, 0, &count));
    assert_int_equal(count, 5); /* the random state is not a caller's input */
    expect_ok(rlxvk_executable_inputs(e, infos, 2, &count));
    assert_int_equal(count, 5);
    assert_null(infos[2].name); /* beyond the capacity */
    expect_ok(rlxvk_executable_inputs(e, infos, 8, &count));
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(infos[i].name, names[i]);
        assert_int_equal(infos[i].live, i != 1);
        assert_int_equal(infos[i].in_place, i == 2);
        assert_false(infos[i].written || infos[i].bound || infos[i].resident || infos[i].fed);
    }
    assert_int_equal(infos[1].dtype, RLXVK_U8);
    assert_int_equal(infos[1].shape.rank, 2);
    assert_int_equal(infos[4].dtype, RLXVK_I32);
    rlxvk_executable_destroy(e);
}

/* The flags follow the state of a handle. */
static void test_flags_of_inputs(void **state)
{
    rlxvk_executable *e = compiled(&(rlxvk_compile_options){.allow_unset = RLXVK_ON});
    rlxvk_tensor_info infos[8];
    size_t count;
    (void)state;
    expect_ok(rlxvk_bind_handle(e, "x", (float[4]){1}, 4));
    expect_ok(rlxvk_executable_inputs(e, infos, 8, &count));
    assert_true(infos[0].written && infos[0].bound && !infos[0].resident && !infos[0].fed);
    expect_ok(rlxvk_set_handle_feed(e, "x", 0));
    expect_ok(rlxvk_executable_outputs(e, infos, 8, &count));
    assert_true(infos[0].fed && !infos[0].written && !infos[1].fed);
    expect_ok(rlxvk_run(e, NULL, 0, NULL, 0));
    expect_ok(rlxvk_executable_inputs(e, infos, 8, &count));
    assert_true(infos[0].fed && infos[0].resident && !infos[0].bound);
    assert_true(infos[2].resident && infos[2].written); /* a kernel writes the cache */
    assert_false(infos[3].written);
    rlxvk_executable_destroy(e);
}

static void test_list_of_params_and_outputs(void **state)
{
    rlxvk_executable *e = compiled(NULL), *other = NULL;
    rlxvk_tensor_info infos[4] = {0};
    size_t count = 0;
    (void)state;
    expect_ok(rlxvk_set_param_typed(e, "w", (float[4]){1}, 16, RLXVK_F32));
    other = compiled(&(rlxvk_compile_options){.share_with = e});
    expect_ok(rlxvk_executable_params(e, infos, 4, &count));
    assert_int_equal(count, 2);
    assert_string_equal(infos[0].name, "w");
    assert_int_equal(infos[0].dtype, RLXVK_F16);
    assert_true(infos[0].live && infos[0].written && infos[0].shared);
    assert_string_equal(infos[1].name, "dead");
    assert_false(infos[1].live || infos[1].written || infos[1].shared);
    expect_ok(rlxvk_executable_params(other, infos, 4, &count));
    assert_true(infos[0].written && infos[0].shared);
    expect_ok(rlxvk_executable_outputs(e, infos, 4, &count));
    assert_int_equal(count, 2);
    assert_string_equal(infos[0].name, "sum");
    assert_string_equal(infos[1].name, "");
    assert_int_equal(infos[1].shape.dims[1], 4);
    expect_error(rlxvk_executable_outputs(e, NULL, 1, &count), RLXVK_E_NULL, "infos");
    rlxvk_executable_destroy(other);
    rlxvk_executable_destroy(e);
}

/* If a param is used as an input, or an input as a param, the error says which it is and what to
 * do. */
static void test_leaves_of_the_other_kind(void **state)
{
    rlxvk_executable *e = compiled(NULL);
    float w[4] = {0};
    rlxvk_run_input in = {"w", w, 4, RLXVK_F32};
    const char *param = "'w' is a param, not an input; set it with rlxvk_set_param";
    const char *input = "'x' is an input, not a param; give it to rlxvk_run";
    (void)state;
    expect_error(rlxvk_run(e, &in, 1, NULL, 0), RLXVK_E_UNKNOWN_NAME, param);
    expect_error(rlxvk_bind_handle(e, "w", w, 4), RLXVK_E_UNKNOWN_NAME, param);
    expect_error(rlxvk_set_handle_feed(e, "w", 0), RLXVK_E_UNKNOWN_NAME, param);
    expect_error(rlxvk_register_row_feed(e, "w", 0), RLXVK_E_UNKNOWN_NAME, param);
    expect_error(rlxvk_read_handle(e, "w", w, 4), RLXVK_E_UNKNOWN_NAME, param);
    expect_error(rlxvk_set_param(e, "x", w, 4), RLXVK_E_UNKNOWN_NAME, input);
    expect_error(rlxvk_read_param(e, "x", w, 4), RLXVK_E_UNKNOWN_NAME, input);
    expect_error(rlxvk_set_param(e, "y", w, 4), RLXVK_E_UNKNOWN_NAME, "there are 'w', 'dead'");
    rlxvk_executable_destroy(e);
}

/* ---- Inputs to share ---- */

static rlxvk_status share(rlxvk_executable *with, const char *name, rlxvk_dtype dtype,
                          rlxvk_shape shape)
{
    const char *wanted = name ? name : "nothing";
    rlxvk_compile_options o = {.share_with = with,
                               .shared_inputs = &wanted,
                               .shared_input_count = 1};
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_graph_output(g, rlxvk_copy(g, rlxvk_input(g, name ? name : "x", dtype, shape)));
    rlxvk_status status = rlxvk_compile(shared_context, g, &o, &e);
    assert_int_equal(status == RLXVK_OK, e != NULL);
    rlxvk_graph_destroy(g);
    rlxvk_executable_destroy(e);
    return status;
}

static void test_inputs_that_cannot_be_shared(void **state)
{
    rlxvk_executable *e = compiled(NULL);
    (void)state;
    expect_ok(share(e, "x", RLXVK_F32, RLXVK_SHAPE(4)));
    expect_error(share(e, NULL, RLXVK_F32, RLXVK_SHAPE(4)), RLXVK_E_UNKNOWN_NAME,
                 "shared_inputs: the graph has no input named 'nothing'; there are 'x'");
    expect_error(share(e, "z", RLXVK_F32, RLXVK_SHAPE(4)), RLXVK_E_UNKNOWN_NAME, "share_with");
    expect_error(share(e, "x", RLXVK_I32, RLXVK_SHAPE(4)), RLXVK_E_DTYPE,
                 "'x' is I32 here and F32 in share_with");
    expect_error(share(e, "x", RLXVK_F32, RLXVK_SHAPE(2, 2)), RLXVK_E_SHAPE,
                 "'x' is 2x2 here and 4 in share_with");
    expect_error(share(e, "unread", RLXVK_U8, RLXVK_SHAPE(3, 2)), RLXVK_E_UNKNOWN_NAME,
                 "no output depends on it there");
    expect_error(share(e, "w", RLXVK_F16, RLXVK_SHAPE(4)), RLXVK_E_UNKNOWN_NAME,
                 "'w' is a param, not an input");
    expect_error(share(NULL, "x", RLXVK_F32, RLXVK_SHAPE(4)), RLXVK_E_ATTR, "share_with is NULL");
    expect_error(share(e, "rlxvk.rng", RLXVK_F32, RLXVK_SHAPE(8)), RLXVK_E_ATTR, "rlxvk.");
    rlxvk_executable_destroy(e);
}

/* ---- Feeds of unequal size ---- */

static void test_prefix_feeds(void **state)
{
    rlxvk_executable *e = compiled(&(rlxvk_compile_options){.allow_unset = RLXVK_ON});
    float x[4], y[8];
    rlxvk_run_input in = {"cache", (float[]){1, 2, 3, 4, 5, 6, 7, 8}, 8, RLXVK_F32};
    rlxvk_run_input at = {"at", (int32_t[]){9}, 1, RLXVK_I32}; /* out of range: dropped */
    rlxvk_run_output out = {1, y, 8, RLXVK_F32};
    (void)state;
    expect_error(rlxvk_set_handle_feed(e, "x", 1), RLXVK_E_LENGTH,
                 "output 1 (1x4x2, 8 elements) does not fill input 'x' (4, 4 elements) exactly");
    expect_error(rlxvk_set_handle_feed(e, "x", 1), RLXVK_E_LENGTH, "set_handle_feed_prefix");
    expect_error(rlxvk_set_handle_feed_prefix(e, "x", 2), RLXVK_E_INDEX, "output 2 of 2");
    expect_ok(rlxvk_set_handle_feed_prefix(e, "x", 1));
    expect_ok(rlxvk_run(e, (rlxvk_run_input[]){in, at}, 2, &out, 1));
    expect_ok(rlxvk_read_handle(e, "x", x, 4));
    assert_memory_equal(x, y, sizeof x);
    assert_memory_equal(x, ((float[]){1, 2, 3, 4}), sizeof x);
    rlxvk_executable_destroy(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_of_inputs),
        cmocka_unit_test(test_flags_of_inputs),
        cmocka_unit_test(test_list_of_params_and_outputs),
        cmocka_unit_test(test_leaves_of_the_other_kind),
        cmocka_unit_test(test_inputs_that_cannot_be_shared),
        cmocka_unit_test(test_prefix_feeds),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
