/*
 * Gradients that differences cannot check, compared with the same gradients written with builder
 * calls. They are those of straight-through integers, of operands that nothing flows into, of
 * custom ops and functions, and second derivatives.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "graph/graph.h"
#include "support/harness.h"

#include <rlxvk_train.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static rlxvk_graph *new_graph(void)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    return g;
}

static rlxvk_tensor number(rlxvk_graph *g, float value)
{
    return rlxvk_constant(g, RLXVK_F32, RLXVK_SCALAR, &value, sizeof value);
}

static rlxvk_tensor leaf(rlxvk_graph *g, const char *name, rlxvk_shape shape)
{
    return rlxvk_input(g, name, RLXVK_F32, shape);
}

/* Runs the graph with these outputs and destroys it. got[i] and wanted[i] must be equal except for
 * rounding, and not all zeros. */
static void expect_equal(rlxvk_graph *g, const rlxvk_tensor *got, const rlxvk_tensor *wanted,
                         size_t count)
{
    rlxvk_executable *e = NULL;
    size_t length, at = 0;
    for (size_t i = 0; i < count; i++) {
        rlxvk_graph_output(g, got[i]);
        rlxvk_graph_output(g, wanted[i]);
    }
    expect_ok(rlxvk_graph_status(g));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    float *values = run_seeded(e, g, 1, false, &length);
    for (size_t i = 0; i < count; i++) {
        rlxvk_shape shape = rlxvk_tensor_shape(g, got[i]), other = rlxvk_tensor_shape(g, wanted[i]);
        size_t numel = shape_numel(&shape);
        double largest = 0;
        assert_true(shape_equal(&shape, &other));
        for (size_t j = 0; j < numel; j++)
            largest = fmax(largest, fabs((double)values[at + numel + j]));
        assert_true(largest > 0);
        for (size_t j = 0; j < numel; j++)
            if (!(fabs((double)values[at + j] - values[at + numel + j]) <= 1e-5 * largest))
                fail_msg("gradient %zu at %zu is %.9g, wanted %.9g", i, j, (double)values[at + j],
                         (double)values[at + numel + j]);
        at += 2 * numel;
    }
    assert_int_equal(at, length);
    free(values);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* ---- Integers ---- */

static rlxvk_tensor to_integers(rlxvk_graph *g, rlxvk_tensor x, float scale, int32_t zero_point)
{
    return rlxvk_quantize(
        g, x, &(rlxvk_quantize_options){.scales = &scale, .zero_points = &zero_point, .count = 1});
}

static rlxvk_tensor to_reals(rlxvk_graph *g, rlxvk_tensor x, float scale, int32_t zero_point)
{
    return rlxvk_dequantize(
        g, x, &(rlxvk_quantize_options){.scales = &scale, .zero_points = &zero_point, .count = 1});
}

static const rlxvk_requantize requantize = {.x_zero_point = 3,
                                            .w_zero_point = -2,
                                            .out_zero_point = 1,
                                            .multiplier = 0.125f};

/* dx = (multiplier dy) (w - zero point)^T, dw = (x - zero point)^T (multiplier dy). */
static void qmatmul_passes_straight_through(void **state)
{
    (void)state;
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = leaf(g, "x", RLXVK_SHAPE(2, 3, 5)), w = leaf(g, "w", RLXVK_SHAPE(4, 5));
    rlxvk_tensor seed = leaf(g, "seed", RLXVK_SHAPE(2, 3, 4)), got[2], wanted[2];
    rlxvk_tensor bias = rlxvk_constant(g, RLXVK_I32, RLXVK_SHAPE(4), (int32_t[]){9, -9, 5, 0}, 16);
    rlxvk_tensor xq = to_integers(g, x, 0.1f, 3);
    rlxvk_tensor wq = rlxvk_transpose(g, to_integers(g, w, 0.2f, -2), (int32_t[]){1, 0}, 2);
    rlxvk_tensor y = to_reals(g, rlxvk_qmatmul(g, xq, wq, bias, &requantize), 0.5f, 1);
    rlxvk_grad(g, y, seed, (rlxvk_tensor[]){x, w}, 2, got);
    rlxvk_tensor dy = rlxvk_mul(g, seed, number(g, requantize.multiplier));
    rlxvk_tensor rows = rlxvk_reshape(g, to_reals(g, xq, 1, 3), RLXVK_SHAPE(6, 5));
    rlxvk_matmul_options right = {.transpose_b = true}, left = {.transpose_a = true};
    wanted[0] = rlxvk_matmul_with(g, dy, to_reals(g, wq, 1, -2), &right);
    wanted[1] = rlxvk_matmul_with(g, rlxvk_reshape(g, dy, RLXVK_SHAPE(6, 4)), rows, &left);
    expect_equal(g, got, wanted, 2);
}

static void qconv2d_passes_straight_through(void **state)
{
    (void)state;
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = leaf(g, "x", RLXVK_SHAPE(2, 4, 7, 6)),
                 w = leaf(g, "w", RLXVK_SHAPE(6, 2, 3, 2));
    rlxvk_tensor xq = to_integers(g, x, 0.1f, 3), wq = to_integers(g, w, 0.2f, -2), got[2],
                 wanted[2];
    rlxvk_qconv2d_options options = {.requantize = requantize,
                                     .stride = {2, 1},
                                     .padding = {1, 0},
                                     .groups = 2};
    rlxvk_conv_options of_gradient = {.kernel = {3, 2},
                                      .stride = {2, 1},
                                      .padding = {1, 0},
                                      .groups = 2};
    rlxvk_tensor y = rlxvk_qconv2d(g, xq, wq, RLXVK_NONE, &options);
    rlxvk_tensor seed = leaf(g, "seed", rlxvk_tensor_shape(g, y));
    rlxvk_grad(g, to_reals(g, y, 0.5f, 1), seed, (rlxvk_tensor[]){x, w}, 2, got);
    rlxvk_tensor dy = rlxvk_mul(g, seed, number(g, requantize.multiplier));
    wanted[0] = rlxvk_conv_backward_input(g, to_reals(g, wq, 1, -2), dy, (int64_t[]){7, 6, 0},
                                          &of_gradient);
    wanted[1] = rlxvk_conv_backward_weight(g, to_reals(g, xq, 1, 3), dy, &of_gradient);
    expect_equal(g, got, wanted, 2);
}

/* Nothing flows through a cast to or from integers. A reshape of integers passes its gradient
 * on. */
static void casts_to_integers_stop(void **state)
{
    (void)state;
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = leaf(g, "x", RLXVK_SHAPE(6)), got[1], wanted[1];
    rlxvk_tensor cast = rlxvk_cast(g, rlxvk_cast(g, x, RLXVK_I8), RLXVK_F32);
    rlxvk_tensor q = rlxvk_reshape(g, to_integers(g, x, 0.5f, 0), RLXVK_SHAPE(2, 3));
    rlxvk_tensor widened = rlxvk_reshape(g, rlxvk_cast(g, q, RLXVK_F32), RLXVK_SHAPE(6));
    rlxvk_tensor seed = leaf(g, "seed", RLXVK_SHAPE(6));
    rlxvk_tensor y = rlxvk_reshape(g, to_reals(g, q, 0.5f, 0), RLXVK_SHAPE(6));
    rlxvk_grad(g, rlxvk_add(g, rlxvk_add(g, cast, widened), y), seed, &x, 1, got);
    wanted[0] = seed;
    expect_equal(g, got, wanted, 1);
}

/* ---- Custom ops ---- */

/* The custom op scaled_sum is alpha a + b; alpha is its attribute. */
static bool infer_sum(const rlxvk_shape *inputs, size_t count, const void *attributes, size_t size,
                      rlxvk_shape *out_shape, rlxvk_dtype *out_dtype)
{
    (void)attributes, (void)size, (void)out_dtype;
    *out_shape = inputs[0];
    return count == 2;
}

static int host_sum(const rlxvk_custom_view *inputs, size_t count, const void *attributes,
                    size_t size, const rlxvk_shape *shape, float *out)
{
    float alpha;
    memcpy(&alpha, attributes, size);
    for (uint64_t i = 0; i < shape_numel(shape); i++)
        out[i] = alpha * inputs[0].values[i] + inputs[1].values[i];
    return count != 2;
}

/* An example of a vjp: it makes the gradients of the operands from that of the result, by builder
 * calls. */
static bool vjp_of_sum(const rlxvk_custom_gradient *call)
{
    float alpha;
    memcpy(&alpha, call->attributes, sizeof alpha);
    if (alpha == 0)
        return false;
    if (call->wanted[0])
        call->d_inputs[0] = rlxvk_mul(call->graph, call->d_output, number(call->graph, alpha));
    call->d_inputs[1] = call->d_output;
    return true;
}

/* Gives a gradient of a wrong shape, which no operand has. */
static bool wrong_vjp(const rlxvk_custom_gradient *call)
{
    call->d_inputs[0] = number(call->graph, 1);
    return true;
}

static bool foreign_vjp(const rlxvk_custom_gradient *call)
{
    call->d_inputs[1] = (rlxvk_tensor){call->d_output.id, call->d_output.graph + 1};
    return true;
}

static void register_sum(const char *name, bool (*vjp)(const rlxvk_custom_gradient *))
{
    expect_ok(rlxvk_custom_register(&(rlxvk_custom_op){
        .name = name, .input_count = 2, .infer = infer_sum, .host = host_sum, .vjp = vjp}));
}

static rlxvk_tensor scaled_sum(rlxvk_graph *g, const char *name, rlxvk_tensor a, rlxvk_tensor b,
                               float alpha)
{
    return rlxvk_custom(g, name, (rlxvk_tensor[]){a, b}, 2, &alpha, sizeof alpha);
}

/* Takes the gradient twice, because the custom op is then also part of the gradient. */
static void custom_ops_bring_their_gradients(void **state)
{
    (void)state;
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = leaf(g, "x", RLXVK_SHAPE(2, 3)), w = leaf(g, "w", RLXVK_SHAPE(2, 3));
    rlxvk_tensor first[2], got[4], wanted[4], seed = leaf(g, "seed", RLXVK_SHAPE(2, 3));
    const rlxvk_tensor wrt[] = {x, w};
    register_sum("scaled_sum", vjp_of_sum);
    rlxvk_tensor s = scaled_sum(g, "scaled_sum", rlxvk_mul(g, x, x), w, 3);
    rlxvk_grad(g, rlxvk_mul(g, s, s), seed, wrt, 2, got);
    rlxvk_grad(g, got[0], seed, wrt, 2, got + 2);
    s = rlxvk_add(g, rlxvk_mul(g, rlxvk_mul(g, x, x), number(g, 3)), w);
    rlxvk_grad(g, rlxvk_mul(g, s, s), seed, wrt, 2, first);
    rlxvk_grad(g, first[0], seed, wrt, 2, wanted + 2);
    wanted[0] = first[0];
    wanted[1] = first[1];
    expect_equal(g, got, wanted, 4);
}

static void refuse(const char *name, float alpha, rlxvk_status status, const char *part)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = leaf(g, "x", RLXVK_SHAPE(2, 3)), dx;
    rlxvk_grad(g, scaled_sum(g, name, x, x, alpha), x, &x, 1, &dx);
    expect_error(rlxvk_graph_status(g), status, part);
    assert_int_equal(dx.id, 0);
    rlxvk_graph_destroy(g);
}

static void what_custom_ops_may_not_say(void **state)
{
    (void)state;
    register_sum("plain_sum", NULL);
    register_sum("wrong_sum", wrong_vjp);
    register_sum("foreign_sum", foreign_vjp);
    refuse("plain_sum", 1, RLXVK_E_UNSUPPORTED, "'plain_sum' was registered without a vjp");
    refuse("scaled_sum", 0, RLXVK_E_CUSTOM, "'scaled_sum' refused to be differentiated");
    refuse("wrong_sum", 1, RLXVK_E_SHAPE, "got a gradient of scalar");
    refuse("foreign_sum", 1, RLXVK_E_DANGLING, "gradient of operand");
}

/* ---- Custom functions ---- */

/* The function is round(a b). Its gradients are given as da = dy b and db = dy y, which differences
 * would not give. */
static void make_function(rlxvk_graph **body, rlxvk_graph **vjp)
{
    *body = new_graph();
    *vjp = new_graph();
    rlxvk_tensor a = leaf(*body, "a", RLXVK_SHAPE(2, 3)), b = leaf(*body, "b", RLXVK_SHAPE(2, 3));
    rlxvk_graph_output(*body, rlxvk_round(*body, rlxvk_mul(*body, a, b)));
    leaf(*vjp, "a", RLXVK_SHAPE(2, 3));
    b = leaf(*vjp, "b", RLXVK_SHAPE(2, 3));
    rlxvk_tensor y = leaf(*vjp, "y", RLXVK_SHAPE(2, 3)), dy = leaf(*vjp, "dy", RLXVK_SHAPE(2, 3));
    rlxvk_graph_output(*vjp, rlxvk_mul(*vjp, dy, b));
    rlxvk_graph_output(*vjp, rlxvk_mul(*vjp, dy, y));
}

/* The custom function is called within a body, and all bodies are destroyed before gradients are
 * taken. */
static void custom_functions_say_their_gradients(void **state)
{
    (void)state;
    rlxvk_graph *g = new_graph(), *outer = new_graph(), *body, *vjp;
    rlxvk_tensor a = leaf(g, "a", RLXVK_SHAPE(2, 3)), b = leaf(g, "b", RLXVK_SHAPE(2, 3)), y;
    rlxvk_tensor seed = leaf(g, "seed", RLXVK_SHAPE(2, 3)), got[3], wanted[3];
    rlxvk_tensor in[] = {leaf(outer, "a", RLXVK_SHAPE(2, 3)), leaf(outer, "b", RLXVK_SHAPE(2, 3))};
    make_function(&body, &vjp);
    rlxvk_graph_output(outer, rlxvk_custom_function(outer, body, vjp, in, 2));
    rlxvk_graph_destroy(body);
    rlxvk_graph_destroy(vjp);
    rlxvk_call(g, outer, (rlxvk_tensor[]){a, b}, 2, &y, 1);
    rlxvk_graph_destroy(outer);
    rlxvk_grad(g, y, seed, (rlxvk_tensor[]){a, b}, 2, got);
    got[2] = y;
    wanted[0] = rlxvk_mul(g, seed, b);
    wanted[2] = rlxvk_round(g, rlxvk_mul(g, a, b));
    wanted[1] = rlxvk_mul(g, seed, wanted[2]);
    expect_equal(g, got, wanted, 3);
}

static void what_custom_functions_may_not_be(void **state)
{
    (void)state;
    rlxvk_graph *g = new_graph(), *body, *vjp;
    rlxvk_tensor x = leaf(g, "x", RLXVK_SHAPE(2, 3)), both[] = {x, x}, d;
    make_function(&body, &vjp);
    assert_int_equal(rlxvk_custom_function(g, body, body, both, 2).id, 0);
    expect_error(rlxvk_graph_status(g), RLXVK_E_ARITY, "custom_function: vjp");
    rlxvk_graph_destroy(g);
    g = new_graph();
    x = leaf(g, "x", RLXVK_SHAPE(2, 3));
    assert_int_equal(rlxvk_custom_function(g, vjp, vjp, both, 2).id, 0);
    expect_error(rlxvk_graph_status(g), RLXVK_E_ARITY, "custom_function: body");
    rlxvk_graph_destroy(g);
    rlxvk_graph_destroy(vjp);
    vjp = new_graph(); /* a gradient of another shape */
    for (int i = 0; i < 4; i++)
        leaf(vjp, (const char *[]){"a", "b", "y", "dy"}[i], RLXVK_SHAPE(2, 3));
    rlxvk_graph_output(vjp, number(vjp, 1));
    rlxvk_graph_output(vjp, number(vjp, 1));
    g = new_graph();
    both[0] = both[1] = x = leaf(g, "x", RLXVK_SHAPE(2, 3));
    rlxvk_grad(g, rlxvk_custom_function(g, body, vjp, both, 2), x, &x, 1, &d);
    expect_error(rlxvk_graph_status(g), RLXVK_E_SHAPE, "got a gradient of scalar");
    rlxvk_graph_destroy(g);
    rlxvk_graph_destroy(body);
    rlxvk_graph_destroy(vjp);
}

/* ---- Second orders ---- */

/* Takes the gradients of a loss of y and lse by q, k and v. Then takes those of the sum of their
 * squares. */
static void differentiate_twice(rlxvk_graph *g, const rlxvk_tensor wrt[3], rlxvk_tensor y,
                                rlxvk_tensor lse, rlxvk_tensor out[3])
{
    static const int32_t axes[] = {0, 1, 2, 3};
    rlxvk_tensor loss = rlxvk_add(g, rlxvk_reduce_sum(g, rlxvk_sin(g, y), axes, 4, false),
                                  rlxvk_reduce_sum(g, rlxvk_mul(g, lse, lse), axes, 3, false));
    rlxvk_tensor first[3], squares = number(g, 0);
    rlxvk_grad(g, loss, RLXVK_NONE, wrt, 3, first);
    for (size_t i = 0; i < 3; i++)
        squares = rlxvk_add(g, squares,
                            rlxvk_reduce_sum(g, rlxvk_mul(g, first[i], first[i]), axes, 4, false));
    rlxvk_grad(g, squares, RLXVK_NONE, wrt, 3, out);
}

/* Compares causal attention with log-sum-exp with the same attention built from matmul and
 * softmax. */
static void attention_is_differentiated_twice(void **state)
{
    (void)state;
    rlxvk_graph *g = new_graph();
    const int32_t last = 3;
    const float seen[] = {1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0};
    rlxvk_tensor t[] = {leaf(g, "q", RLXVK_SHAPE(1, 2, 3, 4)),
                        leaf(g, "k", RLXVK_SHAPE(1, 2, 5, 4)),
                        leaf(g, "v", RLXVK_SHAPE(1, 2, 5, 4))};
    rlxvk_tensor got[3], wanted[3], lse;
    rlxvk_tensor mask = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(1, 3, 5), seen, sizeof seen);
    rlxvk_attention_options options = {.mask = RLXVK_MASK_CUSTOM,
                                       .layout = RLXVK_LAYOUT_BHSD,
                                       .score_scale = 0.5f};
    rlxvk_tensor y = rlxvk_attention_with_lse(g, t[0], t[1], t[2], mask, &options, &lse);
    differentiate_twice(g, t, y, lse, got);
    rlxvk_matmul_options transposed = {.transpose_b = true};
    rlxvk_tensor s = rlxvk_mul(g, rlxvk_matmul_with(g, t[0], t[1], &transposed), number(g, 0.5f));
    s = rlxvk_where(g, mask, s, number(g, -INFINITY));
    lse = rlxvk_log(g, rlxvk_reduce_sum(g, rlxvk_exp(g, s), &last, 1, false));
    differentiate_twice(g, t, rlxvk_matmul(g, rlxvk_softmax(g, s, 3), t[2]), lse, wanted);
    expect_equal(g, got, wanted, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(qmatmul_passes_straight_through),
        cmocka_unit_test(qconv2d_passes_straight_through),
        cmocka_unit_test(casts_to_integers_stop),
        cmocka_unit_test(custom_ops_bring_their_gradients),
        cmocka_unit_test(what_custom_ops_may_not_say),
        cmocka_unit_test(custom_functions_say_their_gradients),
        cmocka_unit_test(what_custom_functions_may_not_be),
        cmocka_unit_test(attention_is_differentiated_twice),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
