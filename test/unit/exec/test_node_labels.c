/*
 * Messages name the nodes that the program built. Numbers are those of the source graph, as in
 * rlxvk_graph_node, even if nodes were rewritten. Nodes that a composite builds internally have no
 * number in messages.
 */
#include "op/op.h"
#include "support/harness.h"

#include <rlxvk_inspect.h>
#include <rlxvk_ops_vision.h>
#include <rlxvk_symbols.h>
#include <rlxvk_train.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static rlxvk_graph *begin(void)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    (void)rlxvk_relu(g, rlxvk_input(g, "dead", RLXVK_F32, RLXVK_SHAPE(2))); /* 0, 1: removed */
    return g;
}

static uint32_t number_of(const rlxvk_graph *g, rlxvk_tensor t)
{
    uint32_t node = UINT32_MAX;
    expect_ok(rlxvk_tensor_node(g, t, &node));
    return node;
}

static void expect_label(const char *message, const char *format, uint32_t number)
{
    char label[128];
    snprintf(label, sizeof label, format, number);
    if (!strstr(message, label))
        fail_msg("'%s' lacks '%s'", message, label);
}

static void composites_do_not_show_their_parts(void **state)
{
    const int64_t before[] = {1, 0}, after[] = {0, 1};
    rlxvk_graph *g = begin();
    (void)state;
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1, 3, 8, 8));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(4, 2, 3, 3));
    rlxvk_conv_padded(g, x, w, RLXVK_NONE, NULL, before, after);
    expect_label(rlxvk_graph_error(g), "conv_padded (node %u): conv (of an inner step and 'w'): w",
                 4);
    assert_string_equal(rlxvk_graph_error(g), rlxvk_last_error());
    rlxvk_graph_destroy(g);

    g = begin();
    x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(3));
    rlxvk_matmul(g, x, rlxvk_input(g, "y", RLXVK_F32, RLXVK_SHAPE(4, 2)));
    expect_label(rlxvk_graph_error(g), "matmul (node %u): K is 3", 4);
    rlxvk_graph_destroy(g);

    g = begin(); /* nodes that the caller built keep their names or numbers */
    x = rlxvk_neg(g, rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(4)));
    rlxvk_prelu(g, x, rlxvk_input(g, "slope", RLXVK_F32, RLXVK_SHAPE(3)));
    expect_label(rlxvk_graph_error(g), "prelu (node 5): mul (of node %u and 'slope'): operand 1",
                 number_of(g, x));
    rlxvk_graph_destroy(g);

    g = begin();
    x = rlxvk_input(g, "x", RLXVK_I32, RLXVK_SHAPE(8));
    rlxvk_fft_conv1d(g, x, rlxvk_input(g, "y", RLXVK_F32, RLXVK_SHAPE(3)));
    expect_label(rlxvk_graph_error(g), "fft_conv1d (node %u): rfft_block (of 'x'): operand is I32",
                 4);
    rlxvk_graph_destroy(g);
}

static void runs_name_the_nodes_that_were_built(void **state)
{
    float x[8] = {0}, indices[4] = {1, 9, 2, 3};
    rlxvk_graph *g = begin();
    rlxvk_executable *e = NULL;
    rlxvk_step_time steps[8];
    size_t count = 0, seen = 0;
    (void)state;
    rlxvk_tensor six = rlxvk_mul(g, rlxvk_scalar(g, 2), rlxvk_scalar(g, 3)); /* folded */
    rlxvk_tensor in = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(8));
    rlxvk_tensor at = rlxvk_input(g, "i", RLXVK_F32, RLXVK_SHAPE(4));
    rlxvk_tensor y = rlxvk_gather(g, rlxvk_mul(g, in, six), at, 0);
    rlxvk_graph_set_name(g, y, "picked");
    rlxvk_tensor last = rlxvk_relu(g, rlxvk_add(g, y, y)); /* fused into a region */
    rlxvk_graph_output(g, last);
    const rlxvk_compile_options options = {.check_index = RLXVK_ON, .profile = RLXVK_ON};
    const rlxvk_run_input inputs[] = {{.name = "x", .data = x, .length = 8},
                                      {.name = "i", .data = indices, .length = 4}};
    expect_ok(rlxvk_compile(shared_context, g, &options, &e));
    assert_int_equal(rlxvk_run(e, inputs, 2, NULL, 0), RLXVK_E_INDEX_OOB);
    expect_label(rlxvk_last_error(), "gather 'picked' (node %u): 1 indices", number_of(g, y));
    expect_ok(rlxvk_executable_profile(e, steps, 8, &count));
    for (size_t i = 0; i < count; i++) {
        seen += steps[i].node_id == number_of(g, y) && strcmp(steps[i].node, "picked") == 0;
        seen += 10 * (steps[i].node_id == number_of(g, last));
    }
    assert_int_equal(seen, 11);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static void compiling_names_what_a_pattern_was_made_of(void **state)
{
    const rlxvk_bucket_axis axis = {"a", 0};
    rlxvk_graph *g = begin();
    rlxvk_executable *e = NULL;
    rlxvk_extent_report report;
    char label[64];
    (void)state;
    rlxvk_tensor a = rlxvk_input(g, "a", RLXVK_F32, RLXVK_SHAPE(4, 64));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(64, 64));
    rlxvk_tensor b = rlxvk_param(g, "b", RLXVK_F32, RLXVK_SHAPE(64));
    rlxvk_tensor y = rlxvk_relu(g, rlxvk_add(g, rlxvk_matmul(g, a, w), b));
    rlxvk_tensor sum = rlxvk_reduce_sum(g, y, (int32_t[]){0}, 1, false);
    rlxvk_graph_output(g, sum);
    rlxvk_compile_options options = {.bucket_axes = &axis, .bucket_axis_count = 1};
    expect_ok(rlxvk_compile(shared_context, g, &options, &e));
    assert_false(rlxvk_extent_supported(e, &report));
    expect_label(report.reason, "reduce_sum (node %u): ", number_of(g, sum));
    rlxvk_executable_destroy(e);
    options = (rlxvk_compile_options){.force_host = RLXVK_ON, .forbid_host = RLXVK_ON};
    assert_int_equal(rlxvk_compile(shared_context, g, &options, &e), RLXVK_E_UNSUPPORTED);
    snprintf(label, sizeof label, "relu (node %u, in fused_matmul_bias_act)", number_of(g, y));
    expect_label(rlxvk_last_error(), label, 0);
    rlxvk_graph_destroy(g);
}

static void the_first_bad_node_is_one_that_was_built(void **state)
{
    const float zeros[16] = {0};
    rlxvk_graph *g = begin();
    rlxvk_executable *e = NULL;
    rlxvk_bad_node bad;
    (void)state;
    rlxvk_tensor a = rlxvk_input(g, "a", RLXVK_F32, RLXVK_SHAPE(4, 4));
    rlxvk_tensor before = rlxvk_sub(g, a, rlxvk_scalar(g, 1)), y = rlxvk_log(g, before);
    rlxvk_graph_output(g, y);
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    expect_ok(rlxvk_first_bad_node(e, &(rlxvk_run_input){.name = "a", .data = zeros, .length = 16},
                                   1, &bad));
    assert_int_equal(bad.node, number_of(g, y));
    assert_int_equal(bad.previous_node, number_of(g, before));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* The nodes of a gradient are in the graph, but the caller did not write them. Messages name the
 * node to which the gradient belongs. */
static void gradients_name_whose_they_are(void **state)
{
    const rlxvk_compile_options options = {.force_host = RLXVK_ON, .forbid_host = RLXVK_ON};
    rlxvk_graph *g = begin();
    rlxvk_executable *e = NULL;
    rlxvk_tensor dw;
    (void)state;
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1, 1, 8, 8));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(4, 1, 3, 3));
    rlxvk_tensor y = rlxvk_conv(g, x, w, RLXVK_NONE, NULL);
    rlxvk_tensor loss = rlxvk_reduce_sum(g, y, (int32_t[]){0, 1, 2, 3}, 4, false);
    rlxvk_grad(g, loss, RLXVK_NONE, &w, 1, &dw);
    rlxvk_graph_output(g, dw);
    expect_ok(rlxvk_graph_status(g));
    assert_int_equal(rlxvk_compile(shared_context, g, &options, &e), RLXVK_E_UNSUPPORTED);
    expect_label(rlxvk_last_error(), ", for the gradient of node %u)", number_of(g, y));
    rlxvk_graph_destroy(g);
}

/* Scratch memory of a kernel is named after its node. */
static void scratch_is_of_a_node(void **state)
{
    const rlxvk_context_options small = {.limit_binding_bytes = 2 << 20};
    rlxvk_context *context = NULL;
    rlxvk_executable *e = NULL;
    rlxvk_graph *g = begin();
    (void)state;
    rlxvk_tensor y =
        rlxvk_lstm(g, rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1, 4096, 1)),
                   rlxvk_param(g, "w_ih", RLXVK_F32, RLXVK_SHAPE(256)),
                   rlxvk_param(g, "w_hh", RLXVK_F32, RLXVK_SHAPE(256, 64)),
                   rlxvk_param(g, "bias", RLXVK_F32, RLXVK_SHAPE(256)), RLXVK_NONE, RLXVK_NONE,
                   &(rlxvk_recurrent_options){.hidden_size = 64}, NULL, NULL);
    rlxvk_graph_set_name(g, y, "net");
    rlxvk_graph_output(g, y);
    expect_ok(rlxvk_context_create(&small, &context));
    assert_int_equal(rlxvk_compile(context, g, NULL, &e), RLXVK_E_TOO_LARGE);
    expect_label(rlxvk_last_error(), "scratch of lstm 'net' (node %u) needs 4194304 bytes",
                 number_of(g, y));
    rlxvk_context_destroy(context);
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(composites_do_not_show_their_parts),
        cmocka_unit_test(runs_name_the_nodes_that_were_built),
        cmocka_unit_test(compiling_names_what_a_pattern_was_made_of),
        cmocka_unit_test(the_first_bad_node_is_one_that_was_built),
        cmocka_unit_test(gradients_name_whose_they_are),
        cmocka_unit_test(scratch_is_of_a_node),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
