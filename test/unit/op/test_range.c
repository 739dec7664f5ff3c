/*
 * If operands and result are ordinary numbers, the result must be right, even if intermediate
 * values may overflow or underflow. Tests kernels and host functions in two ways. Ops that scale
 * with their operands run with many powers of two. Single values at the ends of f32 are compared
 * with known results. The number of cases is checked, so that none is skipped unnoticed.
 */
#include "op/neighbours/knn.h"
#include "support/harness.h"
#include "support/rewritten.h"

#include <rlxvk_train.h>

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MOST_VALUES 64

/* ---- Running ---- */

typedef struct operand_data {
    rlxvk_dtype dtype;
    rlxvk_shape shape;
    const float *values;
} operand_data;

typedef rlxvk_tensor (*builder)(rlxvk_graph *g, const rlxvk_tensor *x);

static size_t words_of(const operand_data *x)
{
    size_t count = x->dtype == RLXVK_C64 ? 2 : 1;
    for (uint32_t i = 0; i < x->shape.rank; i++)
        count *= (size_t)x->shape.dims[i];
    return count;
}

/* Runs a graph with these inputs. Returns the number of words of the result. */
static size_t run(builder build, const operand_data *inputs, size_t count, bool host, float *out)
{
    static const char *const names[] = {"x0", "x1", "x2", "x3"};
    const rlxvk_compile_options o = {.force_host = host ? RLXVK_ON : RLXVK_OFF};
    rlxvk_graph *g = new_graph();
    rlxvk_executable *e = NULL;
    rlxvk_tensor x[4];
    rlxvk_run_input in[4];
    for (size_t i = 0; i < count; i++) {
        x[i] = rlxvk_input(g, names[i], inputs[i].dtype, inputs[i].shape);
        in[i] = (rlxvk_run_input){.name = names[i],
                                  .data = inputs[i].values,
                                  .length = words_of(&inputs[i]),
                                  .f32_words = true};
    }
    rlxvk_tensor y = build(g, x);
    rlxvk_graph_output(g, y);
    expect_ok(rlxvk_graph_status(g));
    rlxvk_shape shape = rlxvk_tensor_shape(g, y);
    size_t words = rlxvk_tensor_dtype(g, y) == RLXVK_C64 ? 2 : 1;
    for (uint32_t i = 0; i < shape.rank; i++)
        words *= (size_t)shape.dims[i];
    assert_true(words <= MOST_VALUES);
    const rlxvk_run_output to = {.index = 0, .buffer = out, .length = words, .f32_words = true};
    expect_ok(rlxvk_compile(shared_context, g, &o, &e));
    expect_ok(rlxvk_run(e, in, count, &to, 1));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    return words;
}

/* ---- Ops that scale with a power of two ---- */

#define BUILD(name, expression)                                                                    \
    static rlxvk_tensor name(rlxvk_graph *g, const rlxvk_tensor *x)                                \
    {                                                                                              \
        return expression;                                                                         \
    }

static const int32_t last_axis[] = {1};
static const rlxvk_pool_options pairs = {.kernel = {2}, .stride = {1}};

static rlxvk_tensor image(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_reshape(g, x, RLXVK_SHAPE(1, 4, 3));
}

static rlxvk_tensor gradient_of_sum(rlxvk_graph *g, rlxvk_tensor y, rlxvk_tensor x)
{
    rlxvk_tensor loss =
        rlxvk_l1_norm(g, y, (int32_t[]){0, 1, 2}, rlxvk_tensor_shape(g, y).rank, false);
    rlxvk_tensor dx = RLXVK_NONE;
    rlxvk_grad(g, loss, RLXVK_NONE, &x, 1, &dx);
    return dx;
}

static rlxvk_tensor clip(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_tensor all[] = {rlxvk_narrow(g, x, 0, 0, 1), rlxvk_narrow(g, x, 0, 1, 3)};
    return rlxvk_mul(g, x, rlxvk_gradient_clip(g, all, 2, 1));
}

BUILD(l1, rlxvk_l1_norm(g, x[0], last_axis, 1, false))
BUILD(l2, rlxvk_l2_norm(g, x[0], last_axis, 1, false))
BUILD(pairwise_l2, rlxvk_pairwise_distance(g, x[0], RLXVK_METRIC_L2))
BUILD(pairwise_cosine, rlxvk_pairwise_distance(g, x[0], RLXVK_METRIC_COSINE))
BUILD(knn_l2, rlxvk_knn(g, x[0], x[1], 3, RLXVK_METRIC_L2, NULL))
BUILD(knn_cosine, rlxvk_knn(g, x[0], x[1], 3, RLXVK_METRIC_COSINE, NULL))
BUILD(pairwise_l2_slope, gradient_of_sum(g, pairwise_l2(g, x), x[0]))
BUILD(knn_l2_slope, gradient_of_sum(g, knn_l2(g, x), x[0]))
BUILD(knn_cosine_slope, gradient_of_sum(g, knn_cosine(g, x), x[0]))
BUILD(pool_lp_2, rlxvk_pool_lp(g, image(g, x[0]), 2, &pairs))
BUILD(pool_lp_3, rlxvk_pool_lp(g, image(g, x[0]), 3, &pairs))
BUILD(pool_lp_half, rlxvk_pool_lp(g, image(g, x[0]), 0.5f, &pairs))
BUILD(global_lp_2, rlxvk_global_pool_lp(g, image(g, x[0]), 2))
BUILD(global_lp_7, rlxvk_global_pool_lp(g, image(g, x[0]), 7))
BUILD(global_lp_slope, gradient_of_sum(g, global_lp_2(g, x), x[0]))
BUILD(clipped, clip(g, x[0]))
BUILD(quotient, rlxvk_div(g, x[0], x[1]))
BUILD(complex_root, rlxvk_sqrt(g, x[0]))
BUILD(resized, rlxvk_adaptive_pool_mean(g, image(g, x[0]), (int64_t[]){2}))
BUILD(maximum, rlxvk_global_pool_max(g, image(g, x[0])))

/* If operands are multiplied by 2^e, the result is multiplied by 2^(degree e). */
static const struct scaled_op {
    const char *name;
    builder build;
    bool complex, both;   /* operands are C64; the second one is scaled, too */
    int smallest, degree; /* the least exponent; twice the degree */
} scaled_ops[] = {{"l1_norm", l1, false, false, -100, 2},
                  {"l2_norm", l2, false, false, -100, 2},
                  {"pairwise_distance L2", pairwise_l2, false, false, -100, 2},
                  {"pairwise_distance COSINE", pairwise_cosine, false, false, -30, 0},
                  {"knn L2", knn_l2, false, true, -100, 2},
                  {"knn COSINE", knn_cosine, false, true, -30, 0},
                  {"knn COSINE of the queries", knn_cosine, false, false, -30, 0},
                  {"gradient of pairwise_distance L2", pairwise_l2_slope, false, false, -100, 0},
                  {"gradient of knn L2", knn_l2_slope, false, true, -100, 0},
                  {"gradient of knn COSINE", knn_cosine_slope, false, false, -30, -2},
                  {"gradient of global_pool_lp", global_lp_slope, false, false, -100, 0},
                  {"pool_lp 2", pool_lp_2, false, false, -100, 2},
                  {"pool_lp 3", pool_lp_3, false, false, -100, 2},
                  {"pool_lp 0.5", pool_lp_half, false, false, -100, 2},
                  {"global_pool_lp 2", global_lp_2, false, false, -100, 2},
                  {"global_pool_lp 7", global_lp_7, false, false, -100, 2},
                  {"clip of gradients", clipped, false, false, 0, 0},
                  {"complex div", quotient, true, true, -100, 0},
                  {"complex div of the dividend", quotient, true, false, -100, 2},
                  {"complex sqrt", complex_root, true, false, -100, 1},
                  {"adaptive_pool_mean", resized, false, false, -100, 2},
                  {"global_pool_max", maximum, false, false, -100, 2}};

static const int exponents[] = {-100, -64, -30, -10, 30, 62, 64, 70, 90, 120};

static void fill(float *values, size_t count, double seed, int exponent)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (float)ldexp(sin(seed + 1.7 * (double)i) + 0.1, exponent);
}

/* Runs the op with operands times 2^exponent. */
static size_t run_scaled(const struct scaled_op *op, int exponent, bool host, float *out)
{
    float values[2][24];
    rlxvk_dtype type = op->complex ? RLXVK_C64 : RLXVK_F32;
    operand_data in[2];
    for (int i = 0; i < 2; i++) {
        fill(values[i], op->complex ? 24 : 12, i + 1, i == 0 || op->both ? exponent : 0);
        in[i] = (operand_data){type, RLXVK_SHAPE(4, 3), values[i]};
    }
    bool two = strstr(op->name, "knn") || strstr(op->name, "div");
    return run(op->build, in, two ? 2 : 1, host, out);
}

static void compare_scaled(const struct scaled_op *op, int exponent, bool host, const float *wanted,
                           size_t count)
{
    float got[MOST_VALUES];
    double most = 0, tolerance = strstr(op->name, "pairwise") ? 1e-3 : 1e-5;
    assert_int_equal(run_scaled(op, exponent, host, got), count);
    for (size_t i = 0; i < count; i++)
        most = fmax(most, fabs((double)wanted[i]));
    assert_true(most > 0);
    for (size_t i = 0; i < count; i++) {
        double back = ldexp(got[i], -op->degree * exponent / 2);
        if (!(fabs(back - (double)wanted[i]) <= tolerance * most))
            fail_msg("%s, 2^%d, %s: word %zu is %g, not %g 2^%d", op->name, exponent,
                     host ? "host" : "kernel", i, (double)got[i], (double)wanted[i],
                     op->degree * exponent / 2);
    }
}

static size_t walk_exponents(const struct scaled_op *op, bool host)
{
    float wanted[MOST_VALUES];
    size_t count = run_scaled(op, 0, host, wanted), instances = 0;
    for (size_t i = 0; i < sizeof exponents / sizeof *exponents; i++) {
        bool small = op->degree < 0 && exponents[i] > 100; /* such a result has few bits in f32 */
        if (exponents[i] < op->smallest || small)
            continue;
        compare_scaled(op, exponents[i], host, wanted, count);
        instances++;
    }
    return instances;
}

static void powers_of_two_come_out(void **state)
{
    size_t instances = 0;
    (void)state;
    for (size_t k = 0; k < sizeof scaled_ops / sizeof *scaled_ops; k++)
        for (int host = 0; host < 2; host++)
            instances += walk_exponents(&scaled_ops[k], host);
    printf("%zu instances of %zu ops\n", instances, sizeof scaled_ops / sizeof *scaled_ops);
    assert_true(instances >= 400);
}

/* ---- Single values ---- */

static rlxvk_tensor step_of(rlxvk_graph *g, const rlxvk_tensor *x)
{
    rlxvk_tensor averages[2];
    return rlxvk_adamw(g, x[0], x[1], x[2], x[3],
                       &(rlxvk_adamw_options){.learning_rate = 1,
                                              .beta1 = 0.9f,
                                              .beta2 = 0.999f,
                                              .eps = 1e-8f,
                                              .step = 1},
                       NULL, averages);
}

static rlxvk_tensor sampled(rlxvk_graph *g, rlxvk_tensor x, float temperature, uint32_t k, float p)
{
    return rlxvk_sample(
        g, x, &(rlxvk_sample_options){.temperature = temperature, .top_k = k, .top_p = p});
}

BUILD(product, rlxvk_mul(g, x[0], x[1]))
BUILD(draw_half, sampled(g, x[0], 0.5f, 0, 0))
BUILD(draw_cold, sampled(g, x[0], 1e-5f, 0, 0))
BUILD(draw_best, sampled(g, x[0], 0, 0, 0))
BUILD(draw_two, sampled(g, x[0], 1e-5f, 2, 0))
BUILD(draw_mass, sampled(g, x[0], 1e-3f, 0, 0.5f))
BUILD(gate,
      rlxvk_group_limited_gate(
          g, x[0], x[1],
          &(rlxvk_gate_options){.n_group = 2, .topk_group = 1, .top_k = 2, .routed_scaling = 1}))
BUILD(exponentials, rlxvk_log_sum_exp(g, x[0], (int32_t[]){0}, 1, false))
BUILD(sinh_of, rlxvk_sinh(g, x[0]))
BUILD(cosh_of, rlxvk_cosh(g, x[0]))
BUILD(softplus_of, rlxvk_softplus(g, x[0]))
BUILD(softsign_of, rlxvk_softsign(g, x[0]))
BUILD(mish_of, rlxvk_mish(g, x[0]))
BUILD(gelu_of, rlxvk_gelu(g, x[0]))
BUILD(gelu_approx_of, rlxvk_gelu_approx(g, x[0]))
BUILD(silu_of, rlxvk_silu(g, x[0]))
BUILD(hardswish_of, rlxvk_hardswish(g, x[0]))
BUILD(asinh_of, rlxvk_asinh(g, x[0]))
BUILD(acosh_of, rlxvk_acosh(g, x[0]))
BUILD(erf_of, rlxvk_erf(g, x[0]))
BUILD(log1p_of, rlxvk_log1p(g, x[0]))
BUILD(atan_of, rlxvk_atan(g, x[0]))
BUILD(rsqrt_of, rlxvk_rsqrt(g, x[0]))
BUILD(softmax_of, rlxvk_softmax(g, x[0], 0))
BUILD(log_softmax_of, rlxvk_log_softmax(g, x[0], 0))
BUILD(histogram_of, rlxvk_histogram(g, x[0], 2, -8e37f, 8e37f))
BUILD(clip_one, rlxvk_mul(g, x[0], rlxvk_gradient_clip(g, x, 1, 1)))
BUILD(entropy, rlxvk_softmax_cross_entropy(g, x[0], x[1]))

#define LOWEST (-FLT_MAX)

static const struct value {
    const char *name;
    builder build;
    rlxvk_dtype dtype;
    size_t inputs, count; /* words of each */
    float x[4][4];
    double y[4];
    size_t results;
} values[] = {
    {"complex div", quotient, RLXVK_C64, 2, 2, {{3e38f, 3e38f}, {2, 2}}, {1.5e38, 0}, 2},
    {"complex div", quotient, RLXVK_C64, 2, 2, {{3e38f, 3e38f}, {3e38f, 3e38f}}, {1, 0}, 2},
    {"complex div", quotient, RLXVK_C64, 2, 2, {{1e-37f, 1e-37f}, {1e-37f, -1e-37f}}, {0, 1}, 2},
    {"complex div", quotient, RLXVK_C64, 2, 2, {{0, 1e-30f}, {1e-20f, 1e-30f}}, {1e-20, 1e-10}, 2},
    {"complex div", quotient, RLXVK_C64, 2, 2, {{1, 0}, {3e38f, 3e38f}}, {0, 0}, 2},
    {"complex div", quotient, RLXVK_C64, 2, 2, {{1, 0}, {1e-37f, 0}}, {1e37, 0}, 2},
    {"complex mul",
     product,
     RLXVK_C64,
     2,
     2,
     {{2e19f, 1e19f}, {1.8e19f, 1.8e19f}},
     {1.8e38, INFINITY},
     2},
    {"adamw", step_of, RLXVK_F32, 4, 1, {{0}, {1e20f}, {0}, {0}}, {-1}, 1},
    {"adamw", step_of, RLXVK_F32, 4, 1, {{0}, {-3e20f}, {0}, {0}}, {1}, 1},
    {"sample, lowest",
     draw_half,
     RLXVK_F32,
     1,
     4,
     {{-3.2e38f, -3.3e38f, -3.1e38f, -3.4e38f}},
     {2},
     1},
    {"sample, cold", draw_cold, RLXVK_F32, 1, 4, {{1e34f, 2e34f, 3e34f, -1e34f}}, {2}, 1},
    {"sample, ends", draw_half, RLXVK_F32, 1, 4, {{LOWEST, FLT_MAX, LOWEST, 3e38f}}, {1}, 1},
    {"sample, top_k", draw_two, RLXVK_F32, 1, 4, {{LOWEST, -3.3e38f, -3e38f, LOWEST}}, {2}, 1},
    {"sample, top_p", draw_mass, RLXVK_F32, 1, 4, {{3e38f, 3.1e38f, LOWEST, 0}}, {1}, 1},
    {"sample, greedy", draw_best, RLXVK_F32, 1, 4, {{LOWEST, LOWEST, -3e38f, LOWEST}}, {2}, 1},
    {"sample, all lowest", draw_best, RLXVK_F32, 1, 4, {{LOWEST, LOWEST, LOWEST, LOWEST}}, {0}, 1},
    {"gate",
     gate,
     RLXVK_F32,
     2,
     4,
     {{3e38f, 1e38f, 3e38f, 3e38f}, {3e38f, 1e38f, 3e38f, 2e38f}},
     {2, 3, 0.5, 0.5},
     4},
    {"gradient_clip", clip_one, RLXVK_F32, 1, 2, {{3e20f, 4e20f}}, {0.6, 0.8}, 2},
    {"gradient_clip", clip_one, RLXVK_F32, 1, 2, {{3e37f, 4e37f}}, {0.6, 0.8}, 2},
    {"gradient_clip", clip_one, RLXVK_F32, 1, 2, {{3e-30f, 4e-30f}}, {3e-30, 4e-30}, 2},
    {"log_sum_exp", exponentials, RLXVK_F32, 1, 2, {{3e38f, LOWEST}}, {3e38}, 1},
    {"log_sum_exp", exponentials, RLXVK_F32, 1, 2, {{LOWEST, LOWEST}}, {LOWEST}, 1},
    {"softmax",
     softmax_of,
     RLXVK_F32,
     1,
     4,
     {{LOWEST, LOWEST, LOWEST, LOWEST}},
     {.25, .25, .25, .25},
     4},
    {"softmax", softmax_of, RLXVK_F32, 1, 4, {{FLT_MAX, LOWEST, 0, FLT_MAX}}, {.5, 0, 0, .5}, 4},
    {"log_softmax",
     log_softmax_of,
     RLXVK_F32,
     1,
     2,
     {{LOWEST, LOWEST}},
     {-0.6931471805599453, -0.6931471805599453},
     2},
    {"sinh", sinh_of, RLXVK_F32, 1, 2, {{89, -89}}, {2.2448063e38, -2.2448063e38}, 2},
    {"cosh", cosh_of, RLXVK_F32, 1, 2, {{89, -89}}, {2.2448063e38, 2.2448063e38}, 2},
    {"softplus", softplus_of, RLXVK_F32, 1, 2, {{3e38f, -3e38f}}, {3e38, 0}, 2},
    {"softsign", softsign_of, RLXVK_F32, 1, 2, {{FLT_MAX, LOWEST}}, {1, -1}, 2},
    {"mish", mish_of, RLXVK_F32, 1, 2, {{3e38f, -3e38f}}, {3e38, 0}, 2},
    {"gelu", gelu_of, RLXVK_F32, 1, 2, {{3e38f, -3e38f}}, {3e38, 0}, 2},
    {"gelu_approx", gelu_approx_of, RLXVK_F32, 1, 2, {{3e38f, -3e38f}}, {3e38, 0}, 2},
    {"silu", silu_of, RLXVK_F32, 1, 2, {{3e38f, -3e38f}}, {3e38, 0}, 2},
    {"hardswish", hardswish_of, RLXVK_F32, 1, 2, {{3e38f, -3e38f}}, {3e38, 0}, 2},
    {"asinh", asinh_of, RLXVK_F32, 1, 2, {{3e38f, -1e30f}}, {89.28995, -69.77068}, 2},
    {"acosh", acosh_of, RLXVK_F32, 1, 2, {{3e38f, 1e30f}}, {89.28995, 69.77068}, 2},
    {"erf", erf_of, RLXVK_F32, 1, 2, {{3e38f, -1e20f}}, {1, -1}, 2},
    {"log1p", log1p_of, RLXVK_F32, 1, 2, {{3e38f, 1e-30f}}, {88.59690, 1e-30}, 2},
    {"atan", atan_of, RLXVK_F32, 1, 2, {{3e38f, 1e-30f}}, {1.5707963, 1e-30}, 2},
    {"rsqrt", rsqrt_of, RLXVK_F32, 1, 2, {{1e38f, 1e-38f * 2}}, {1e-19, 7.0710678e18}, 2},
    {"histogram", histogram_of, RLXVK_F32, 1, 4, {{-7e37f, -5e37f, 0, 8e37f}}, {2, 2}, 2},
    {"cross entropy", entropy, RLXVK_F32, 2, 0, {{FLT_MAX, LOWEST, 0, 3e38f}, {0}}, {0}, 1},
};

static operand_data input_of(const struct value *v, size_t i)
{
    operand_data x = {v->dtype, RLXVK_SHAPE((int64_t)v->count), v->x[i]};
    if (v->dtype == RLXVK_C64)
        x.shape.dims[0] /= 2;
    if (v->build == gate)
        x.shape = RLXVK_SHAPE(1, 4);
    if (v->build == entropy)
        x.shape = i == 0 ? RLXVK_SHAPE(1, 4) : RLXVK_SHAPE(1);
    return x;
}

static void values_at_the_ends_of_f32(void **state)
{
    size_t instances = 0;
    (void)state;
    for (size_t k = 0; k < sizeof values / sizeof *values; k++)
        for (int host = 0; host < 2; host++, instances++) {
            const struct value *v = &values[k];
            operand_data in[4];
            float got[MOST_VALUES];
            for (size_t i = 0; i < v->inputs; i++)
                in[i] = input_of(v, i);
            size_t words = run(v->build, in, v->inputs, host, got);
            assert_true(words >= v->results);
            for (size_t i = 0; i < v->results; i++) {
                double slack = 1e-4 * fabs(v->y[i]) + (v->y[i] == 0 ? 1e-37 : 0);
                if (v->y[i] == got[i] || fabs(got[i] - v->y[i]) <= slack)
                    continue;
                fail_msg("%s (%zu), %s: word %zu is %g, not %g", v->name, k,
                         host ? "host" : "kernel", i, (double)got[i], v->y[i]);
            }
        }
    printf("%zu instances\n", instances);
    assert_true(instances >= 84);
}

/* ---- Lowest biases ---- */

typedef struct padded_row {
    int64_t queries, keys, width;
} padded_row;

/* Attention, its log-sum-exp and the gradient of v. The bias of every key is the lowest f32. */
static void check_padded(const padded_row *r, bool host)
{
    const rlxvk_compile_options compile = {.force_host = host ? RLXVK_ON : RLXVK_OFF};
    const rlxvk_attention_options o = {.mask = RLXVK_MASK_BIAS, .layout = RLXVK_LAYOUT_BHSD};
    size_t q_words = (size_t)(r->queries * r->width), k_words = (size_t)(r->keys * r->width);
    float *words = malloc((3 * q_words + 3 * k_words + 4096) * sizeof *words);
    float *q = words, *k = q + q_words, *v = k + k_words, *mask = v + k_words, *y = mask + 1024;
    float *lse = y + q_words, *dv = lse + 1024;
    rlxvk_graph *g = new_graph();
    rlxvk_executable *e = NULL;
    rlxvk_shape rows = RLXVK_SHAPE(1, 1, r->queries, r->width);
    rlxvk_shape columns = RLXVK_SHAPE(1, 1, r->keys, r->width);
    for (size_t i = 0; i < q_words; i++)
        q[i] = (float)sin((double)i);
    for (size_t i = 0; i < k_words; i++) {
        k[i] = (float)cos((double)i);
        v[i] = (float)(i / (size_t)r->width % 3) + 1;
    }
    for (int64_t i = 0; i < r->keys; i++)
        mask[i] = LOWEST;
    rlxvk_tensor x[] = {rlxvk_input(g, "q", RLXVK_F32, rows),
                        rlxvk_input(g, "k", RLXVK_F32, columns),
                        rlxvk_input(g, "v", RLXVK_F32, columns),
                        rlxvk_input(g, "mask", RLXVK_F32, RLXVK_SHAPE(r->keys))};
    rlxvk_tensor sums, slope;
    rlxvk_tensor result = rlxvk_attention_with_lse(g, x[0], x[1], x[2], x[3], &o, &sums);
    rlxvk_tensor loss = rlxvk_reduce_sum(g, result, (int32_t[]){0, 1, 2, 3}, 4, false);
    rlxvk_grad(g, loss, RLXVK_NONE, &x[2], 1, &slope);
    rlxvk_graph_output(g, result);
    rlxvk_graph_output(g, sums);
    rlxvk_graph_output(g, slope);
    const rlxvk_run_input in[] = {{.name = "q", .data = q, .length = q_words},
                                  {.name = "k", .data = k, .length = k_words},
                                  {.name = "v", .data = v, .length = k_words},
                                  {.name = "mask", .data = mask, .length = (size_t)r->keys}};
    const rlxvk_run_output out[] = {{.index = 0, .buffer = y, .length = q_words},
                                    {.index = 1, .buffer = lse, .length = (size_t)r->queries},
                                    {.index = 2, .buffer = dv, .length = k_words}};
    expect_ok(rlxvk_compile(shared_context, g, &compile, &e));
    expect_ok(rlxvk_run(e, in, 4, out, 3));
    double mean = 0, share = (double)r->queries / (double)r->keys;
    for (int64_t i = 0; i < r->keys; i++)
        mean += (double)v[i * r->width] / (double)r->keys;
    for (size_t i = 0; i < q_words; i++)
        assert_true(fabs((double)y[i] - mean) < 1e-4);
    for (int64_t i = 0; i < r->queries; i++)
        assert_true(lse[i] == LOWEST);
    for (size_t i = 0; i < k_words; i++)
        assert_true(fabs((double)dv[i] - share) < 1e-4 * share);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    free(words);
}

static void lowest_biases_remove_no_key(void **state)
{
    static const int64_t queries[] = {1, 5, 40}, keys[] = {3, 70, 600}, widths[] = {1, 8, 128};
    size_t instances = 0;
    (void)state;
    for (size_t i = 0; i < 27; i++)
        for (int host = 0; host < 2; host++, instances++)
            check_padded(&(padded_row){queries[i / 9], keys[i / 3 % 3], widths[i % 3]}, host);
    assert_int_equal(instances, 54);
}

/* ---- Random numbers ---- */

static void wide_ranges_are_filled(void **state)
{
    static const float ends[][2] = {{-3e38f, 3e38f}, {LOWEST, FLT_MAX},    {-2e38f, 3e38f},
                                    {LOWEST, 1e30f}, {-3.4e38f, -3.3e38f}, {-1, 1}};
    (void)state;
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
        for (int host = 0; host < 2; host++) {
            const rlxvk_compile_options o = {.force_host = host ? RLXVK_ON : RLXVK_OFF};
            double low = ends[k][0], high = ends[k][1], sum = 0;
            rlxvk_graph *g = new_graph();
            rlxvk_executable *e = NULL;
            float y[1000];
            rlxvk_graph_output(g, rlxvk_rng_uniform(g, RLXVK_SHAPE(1000), ends[k][0], ends[k][1],
                                                    NULL));
            const rlxvk_run_output to = {.index = 0, .buffer = y, .length = 1000};
            expect_ok(rlxvk_compile(shared_context, g, &o, &e));
            expect_ok(rlxvk_run(e, NULL, 0, &to, 1));
            for (int i = 0; i < 1000; i++) {
                assert_true(y[i] >= ends[k][0] && y[i] < ends[k][1]);
                sum += ((double)y[i] - low) / (high - low) / 1000;
            }
            assert_true(fabs(sum - 0.5) < 0.05);
            rlxvk_executable_destroy(e);
            rlxvk_graph_destroy(g);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(powers_of_two_come_out),
        cmocka_unit_test(values_at_the_ends_of_f32),
        cmocka_unit_test(lowest_biases_remove_no_key),
        cmocka_unit_test(wide_ranges_are_filled),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
