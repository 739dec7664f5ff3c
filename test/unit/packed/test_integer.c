/*
 * The 8-bit integer ops: the worked examples of their definition, and a chain in which the 8-bit
 * tensors are computed.
 */
#include "support/harness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static rlxvk_graph *new_graph(void)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    return g;
}

/* Runs the graph with `result` as its only output, compares it and destroys the graph. */
static void expect_result(rlxvk_graph *g, rlxvk_tensor result, const float *wanted, size_t count)
{
    rlxvk_executable *e = NULL;
    float got[16] = {0};
    rlxvk_run_output out = {0, got, count, .f32_words = true};
    rlxvk_graph_output(g, result);
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    expect_ok(rlxvk_run(e, NULL, 0, &out, 1));
    for (size_t i = 0; i < count; i++)
        assert_true(got[i] == wanted[i]);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static const float half_scale = 0.5f;
static const int32_t point_three = 3;
static const rlxvk_quantize_options half_and_three = {.scales = &half_scale,
                                                      .zero_points = &point_three,
                                                      .count = 1};

static void quantize_follows_the_example(void **state)
{
    const float x[] = {0.25f, -0.25f, 0.75f, 100, -100, NAN};
    const float wanted[] = {4, 2, 5, 127, -128, 3};
    (void)state;
    rlxvk_graph *g = new_graph();
    rlxvk_tensor t = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(6), x, sizeof x);
    expect_result(g, rlxvk_quantize(g, t, &half_and_three), wanted, 6);
}

static void dequantize_follows_the_example(void **state)
{
    const int8_t q[] = {4, 2, 5};
    const float wanted[] = {0.5f, -0.5f, 1};
    (void)state;
    rlxvk_graph *g = new_graph();
    rlxvk_tensor t = rlxvk_constant(g, RLXVK_I8, RLXVK_SHAPE(3), q, sizeof q);
    expect_result(g, rlxvk_dequantize(g, t, &half_and_three), wanted, 3);
}

static const int8_t example_x[] = {10, -20, 127}, example_w[] = {1, -2, 3, 4, -128, 127};
static const int32_t example_bias[] = {100, -50};
static const rlxvk_requantize example = {-3, 1, 5, 0.005f};

static void qmatmul_follows_the_example(void **state)
{
    const float wanted[] = {-79, 86};
    (void)state;
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = rlxvk_constant(g, RLXVK_I8, RLXVK_SHAPE(1, 3), example_x, 3);
    rlxvk_tensor w = rlxvk_constant(g, RLXVK_I8, RLXVK_SHAPE(3, 2), example_w, 6);
    rlxvk_tensor bias = rlxvk_constant(g, RLXVK_I32, RLXVK_SHAPE(2), example_bias, 8);
    expect_result(g, rlxvk_qmatmul(g, x, w, bias, &example), wanted, 2);
}

/* A convolution with a window of one element must equal the product. */
static void qconv2d_agrees_with_qmatmul(void **state)
{
    const float wanted[] = {-79, 86};
    const int8_t transposed[] = {1, 3, -128, -2, 4, 127};
    const rlxvk_qconv2d_options options = {.requantize = example};
    (void)state;
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = rlxvk_constant(g, RLXVK_I8, RLXVK_SHAPE(1, 3, 1, 1), example_x, 3);
    rlxvk_tensor w = rlxvk_constant(g, RLXVK_I8, RLXVK_SHAPE(2, 3, 1, 1), transposed, 6);
    rlxvk_tensor bias = rlxvk_constant(g, RLXVK_I32, RLXVK_SHAPE(2), example_bias, 8);
    expect_result(g, rlxvk_qconv2d(g, x, w, bias, &options), wanted, 2);
}

/* x = 2, 4, -6 at scale 1/2 has the codes 7, 11, -9. Without the zero point 3 they are 4, 8, -12.
 * Times the identity at multiplier 1/4 they are 1, 2, -3. At scale 1/2 these are the wanted
 * values. */
static void computed_tensors_chain(void **state)
{
    const float x[] = {2, 4, -6}, wanted[] = {0.5f, 1, -1.5f};
    const int8_t identity[] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    const rlxvk_quantize_options half = {.scales = &half_scale, .count = 1};
    (void)state;
    rlxvk_graph *g = new_graph();
    rlxvk_tensor t = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(1, 3), x, sizeof x);
    rlxvk_tensor w = rlxvk_constant(g, RLXVK_I8, RLXVK_SHAPE(3, 3), identity, sizeof identity);
    rlxvk_tensor q = rlxvk_quantize(g, t, &half_and_three);
    rlxvk_tensor y = rlxvk_qmatmul(g, q, w, RLXVK_NONE, &(rlxvk_requantize){3, 0, 0, 0.25f});
    assert_int_equal(rlxvk_tensor_dtype(g, y), RLXVK_I8);
    expect_result(g, rlxvk_dequantize(g, y, &half), wanted, 3);
}

static void missing_options_and_operands_are_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        rlxvk_graph *g = new_graph();
        rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(2, 2));
        rlxvk_tensor q = rlxvk_input(g, "q", RLXVK_I8, RLXVK_SHAPE(2, 2));
        const rlxvk_tensor results[] = {
            i == 0 ? rlxvk_quantize(g, x, NULL) : RLXVK_NONE,
            i == 1 ? rlxvk_qmatmul(g, q, q, RLXVK_NONE, NULL) : RLXVK_NONE,
            i == 2 ? rlxvk_qconv2d(g, q, q, RLXVK_NONE, NULL) : RLXVK_NONE,
            i == 3 ? rlxvk_dequantize(g, RLXVK_NONE, &half_and_three) : RLXVK_NONE};
        assert_int_equal(results[i].id, 0);
        assert_int_equal(rlxvk_graph_status(g), i == 3 ? RLXVK_E_ARITY : RLXVK_E_ATTR);
        rlxvk_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantize_follows_the_example),
        cmocka_unit_test(dequantize_follows_the_example),
        cmocka_unit_test(qmatmul_follows_the_example),
        cmocka_unit_test(qconv2d_agrees_with_qmatmul),
        cmocka_unit_test(computed_tensors_chain),
        cmocka_unit_test(missing_options_and_operands_are_refused),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
