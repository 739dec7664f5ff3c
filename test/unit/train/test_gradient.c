/*
 * rlxvk_grad beyond single ops, which `rlxvk conform --gradients` checks. Tests values with several
 * readers, leaves that no gradient reaches, control flow, gradients of gradients, and refusals.
 * Random graphs on the device are compared with the host.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "op/evaluation.h"
#include "support/harness.h"

#include <rlxvk_train.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 4

static rlxvk_graph *new_graph(void)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    return g;
}

static rlxvk_tensor vector(rlxvk_graph *g, const char *name)
{
    return rlxvk_input(g, name, RLXVK_F32, RLXVK_SHAPE(N));
}

static rlxvk_tensor number(rlxvk_graph *g, float value)
{
    return rlxvk_constant(g, RLXVK_F32, RLXVK_SCALAR, &value, sizeof value);
}

static rlxvk_tensor total(rlxvk_graph *g, rlxvk_tensor t)
{
    static const int32_t axes[] = {0, 1, 2, 3};
    return rlxvk_reduce_sum(g, t, axes, rlxvk_tensor_shape(g, t).rank, false);
}

/* Runs the graph with x = 0.5, 1, -1.5, 2, returns the first output and destroys the graph. */
static void run(rlxvk_graph *g, float *out, uint64_t length)
{
    const float x[N] = {0.5f, 1, -1.5f, 2};
    rlxvk_executable *e = NULL;
    rlxvk_run_input in = {.name = "x", .data = x, .length = N};
    rlxvk_run_output to = {.index = 0, .buffer = out, .length = length};
    expect_ok(rlxvk_graph_status(g));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    expect_ok(rlxvk_run(e, &in, 1, &to, 1));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static void expect_values(const float *got, const double wanted[N])
{
    for (int i = 0; i < N; i++) {
        if (!(fabs(got[i] - wanted[i]) <= 1e-5 * fmax(1, fabs(wanted[i]))))
            print_error("element %d is %.9g, wanted %.9g\n", i, got[i], wanted[i]);
        assert_true(fabs(got[i] - wanted[i]) <= 1e-5 * fmax(1, fabs(wanted[i])));
    }
}

/* The gradient of the loss with respect to x must be `wanted`. */
static void expect_gradient(rlxvk_graph *g, rlxvk_tensor loss, rlxvk_tensor x,
                            const double wanted[N])
{
    rlxvk_tensor gradient;
    float got[N];
    rlxvk_grad(g, loss, RLXVK_NONE, &x, 1, &gradient);
    rlxvk_graph_output(g, gradient);
    run(g, got, N);
    expect_values(got, wanted);
}

/* ---- Which gradients arrive ---- */

/* The gradient of y = x * x + x is 2 x + 1. The loss reads y twice, so it is 2 (2 x + 1). */
static void several_readers_add_up(void **state)
{
    (void)state;
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = vector(g, "x"), y = rlxvk_add(g, rlxvk_mul(g, x, x), x);
    expect_gradient(g, total(g, rlxvk_add(g, y, y)), x, (double[]){4, 6, -4, 10});
}

static void parts_are_put_together(void **state)
{
    (void)state;
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = vector(g, "x");
    rlxvk_tensor first = rlxvk_narrow(g, x, 0, 0, 2), overlap = rlxvk_narrow(g, x, 0, 1, 2);
    rlxvk_tensor square = rlxvk_mul(g, overlap, overlap);
    rlxvk_tensor loss = rlxvk_add(g, total(g, first), total(g, square));
    expect_gradient(g, loss, x, (double[]){1, 1 + 2, -3, 0}); /* nothing reads the last */
}

static void what_does_not_reach_gives_zeros(void **state)
{
    (void)state;
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = vector(g, "x");
    rlxvk_tensor stopped = rlxvk_mul(g, rlxvk_stop_gradient(g, x), number(g, 3));
    rlxvk_tensor place = rlxvk_cast(g, rlxvk_argmax(g, x, 0, false), RLXVK_F32);
    expect_gradient(g, rlxvk_add(g, total(g, stopped), place), x, (double[]){0, 0, 0, 0});
}

/* If x is not positive, the gradient is 0: NaN of the logarithm must not leak. */
static void branches_not_taken_have_no_say(void **state)
{
    (void)state;
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = vector(g, "x");
    rlxvk_tensor taken = rlxvk_where(g, rlxvk_gt(g, x, number(g, 0)), x, number(g, 1));
    rlxvk_tensor y =
        rlxvk_where(g, rlxvk_gt(g, x, number(g, 0)), rlxvk_log(g, taken), number(g, 0));
    expect_gradient(g, total(g, y), x, (double[]){2, 1, 0, 0.5});
}

static void intermediate_tensors_have_gradients(void **state)
{
    (void)state;
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = vector(g, "x"), y = rlxvk_exp(g, x);
    expect_gradient(g, total(g, rlxvk_mul(g, y, y)), y,
                    (double[]){2 * exp(0.5), 2 * exp(1), 2 * exp(-1.5), 2 * exp(2)});
}

static void seeds_scale(void **state)
{
    (void)state;
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = vector(g, "x"), y = rlxvk_mul(g, x, x), gradient;
    float got[N];
    rlxvk_grad(g, y, x, &x, 1, &gradient);
    rlxvk_graph_output(g, gradient);
    run(g, got, N);
    expect_values(got, (double[]){0.5, 2, 4.5, 8});
}

/* ---- Control flow and higher orders ---- */

/* Three rounds of v = v * x make x^4, so the gradient is 4 x^3. */
static void loops_are_followed(void **state)
{
    (void)state;
    rlxvk_graph *g = new_graph(), *body = new_graph(), *condition = new_graph();
    rlxvk_tensor inner = vector(body, "v"), factor = vector(body, "factor"), v[2];
    rlxvk_graph_output(body, rlxvk_mul(body, inner, factor));
    rlxvk_graph_output(body, factor);
    vector(condition, "v");
    vector(condition, "factor");
    rlxvk_graph_output(condition, number(condition, 1));
    v[0] = v[1] = vector(g, "x");
    rlxvk_tensor x = v[0];
    rlxvk_while(g, condition, body, 3, v, 2, v);
    expect_gradient(g, total(g, v[0]), x, (double[]){0.5, 4, 4 * -3.375, 32});
    rlxvk_graph_destroy(body);
    rlxvk_graph_destroy(condition);
}

/* The third derivative of x^2 sin x, by gradients of gradients. */
static void gradients_have_gradients(void **state)
{
    (void)state;
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = vector(g, "x"), square = rlxvk_mul(g, x, x), d;
    rlxvk_tensor loss = total(g, rlxvk_mul(g, square, rlxvk_sin(g, x)));
    const double xs[N] = {0.5, 1, -1.5, 2};
    double wanted[N];
    for (int i = 0; i < N; i++) /* (x^2 sin x)''' */
        wanted[i] = 6 * cos(xs[i]) - 6 * xs[i] * sin(xs[i]) - xs[i] * xs[i] * cos(xs[i]);
    for (int order = 1; order < 3; order++) {
        rlxvk_grad(g, loss, RLXVK_NONE, &x, 1, &d);
        loss = total(g, d);
    }
    expect_gradient(g, loss, x, wanted);
}

/* ---- Random graphs ---- */

/* A random graph whose outputs are the gradients of its last output with respect to all real
 * leaves. If `marked`, it has checkpoints. Returns NULL if there are none or an op on the way has
 * no gradient. */
static rlxvk_graph *random_gradients(uint64_t seed, bool marked)
{
    random_source r = {seed};
    rlxvk_graph *g = new_graph();
    rlxvk_tensor wrt[64], gradients[64], seeds;
    size_t count = 0;
    random_graph(g, &r, 20 + (uint32_t)(seed % 180), false);
    expect_ok(rlxvk_graph_status(g));
    rlxvk_tensor loss = tensor_of(g, g->outputs.items[g->outputs.count - 1]);
    for (uint32_t id = 0; id < g->nodes.count && count < 64; id++) {
        if (graph_node(g, id)->input_count == 0 && graph_node(g, id)->dtype == RLXVK_F32 &&
            graph_node(g, id)->op != OP_constant)
            wrt[count++] = tensor_of(g, id);
        if (marked && id % 11 == seed % 11)
            rlxvk_checkpoint(g, tensor_of(g, id));
    }
    if (rlxvk_tensor_dtype(g, loss) == RLXVK_F32 && count) {
        seeds = rlxvk_input(g, "seed", RLXVK_F32, rlxvk_tensor_shape(g, loss));
        rlxvk_grad(g, loss, seeds, wrt, count, gradients);
    }
    if (rlxvk_tensor_dtype(g, loss) != RLXVK_F32 || count == 0 ||
        rlxvk_graph_status(g) == RLXVK_E_UNSUPPORTED) {
        rlxvk_graph_destroy(g);
        return NULL;
    }
    g->outputs.count = 0;
    for (size_t i = 0; i < count; i++)
        rlxvk_graph_output(g, gradients[i]);
    expect_ok(rlxvk_graph_status(g));
    return g;
}

/* Compares the device with the host's values without checkpoints. */
static void expect_near_host(const rlxvk_graph *g, uint64_t seed, const float *wanted, size_t count)
{
    rlxvk_executable *e = NULL;
    size_t got_count;
    double largest = 0;
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    float *got = run_seeded(e, g, seed, false, &got_count);
    assert_int_equal(got_count, count);
    for (size_t i = 0; i < count; i++)
        largest = isfinite(wanted[i]) ? fmax(largest, fabs(wanted[i])) : largest;
    for (size_t i = 0; i < count; i++) {
        bool near = isnan(wanted[i])
                        ? isnan(got[i])
                        : got[i] == wanted[i] || fabs((double)got[i] - wanted[i]) <= 1e-3 * largest;
        if (!near)
            print_error("seed %llu: element %zu of %zu is %.9g, wanted %.9g, largest %.3g\n",
                        (unsigned long long)seed, i, count, got[i], wanted[i], largest);
        assert_true(near);
    }
    free(got);
    rlxvk_executable_destroy(e);
}

static bool check_random(uint64_t seed)
{
    rlxvk_graph *g = random_gradients(seed, false), *marked = random_gradients(seed, true);
    size_t count;
    assert_int_equal(!g, !marked);
    if (!g)
        return false;
    float *wanted = evaluate_seeded(g, seed, false, &count);
    expect_near_host(g, seed, wanted, count);
    expect_near_host(marked, seed, wanted, count);
    free(wanted);
    rlxvk_graph_destroy(g);
    rlxvk_graph_destroy(marked);
    return true;
}

static void random_graphs_agree_with_the_host(void **state)
{
    (void)state;
    size_t checked = 0;
    for (uint64_t seed = 1; seed <= 60; seed++)
        checked += check_random(seed);
    print_message("%zu of 60 graphs\n", checked);
    assert_true(checked >= 30);
}

/* ---- Checkpoints ---- */

#define LAYERS 12
#define ROWS   512
#define WIDTH  96

/* Repeats x + w2 gelu(w1 norm(x)). The gradients of all weights are the outputs. */
static rlxvk_graph *layers_graph(bool marked)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor wrt[2 * LAYERS + 1], gradients[2 * LAYERS + 1];
    rlxvk_tensor x = wrt[2 * LAYERS] = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(ROWS, WIDTH));
    for (int i = 0; i < LAYERS; i++) {
        char name[16];
        for (int k = 0; k < 2; k++) {
            snprintf(name, sizeof name, "w%d.%d", i, k);
            wrt[2 * i + k] =
                rlxvk_param(g, name, RLXVK_F32,
                            k ? RLXVK_SHAPE(4 * WIDTH, WIDTH) : RLXVK_SHAPE(WIDTH, 4 * WIDTH));
        }
        rlxvk_tensor h = rlxvk_layer_norm(g, x, RLXVK_NONE, RLXVK_NONE, -1, 1e-5f);
        h = rlxvk_gelu(g, rlxvk_matmul(g, h, wrt[2 * i]));
        x = rlxvk_add(g, x, rlxvk_matmul(g, h, wrt[2 * i + 1]));
        if (marked && i + 1 < LAYERS)
            rlxvk_checkpoint(g, x);
    }
    rlxvk_grad(g, total(g, rlxvk_mul(g, x, x)), RLXVK_NONE, wrt, 2 * LAYERS + 1, gradients);
    for (int i = 0; i < 2 * LAYERS + 1; i++)
        rlxvk_graph_output(g, gradients[i]);
    expect_ok(rlxvk_graph_status(g));
    return g;
}

static void checkpoints_save_memory(void **state)
{
    (void)state;
    rlxvk_memory_report memory[2];
    uint64_t hash[2];
    for (int marked = 0; marked < 2; marked++) {
        rlxvk_graph *g = layers_graph(marked);
        rlxvk_executable *e = NULL;
        size_t count;
        expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
        float *got = run_seeded(e, g, 1, false, &count);
        hash[marked] = hash_floats(got, count);
        rlxvk_executable_memory(e, &memory[marked]);
        free(got);
        rlxvk_executable_destroy(e);
        rlxvk_graph_destroy(g);
    }
    print_message("scratch %llu KB, with checkpoints %llu KB; %llu KB computed again\n",
                  (unsigned long long)memory[0].scratch_bytes / 1024,
                  (unsigned long long)memory[1].scratch_bytes / 1024,
                  (unsigned long long)memory[1].recomputed_bytes / 1024);
    assert_true(hash[0] == hash[1]);
    assert_int_equal(memory[0].recomputed_bytes, 0);
    /* Recomputed for each layer: the norm, and two tensors of the wide product. */
    assert_true(memory[1].recomputed_bytes >= (LAYERS - 1) * 9ull * ROWS * WIDTH * sizeof(float));
    assert_true(memory[1].scratch_bytes < 0.4 * (double)memory[0].scratch_bytes);
    assert_true((double)memory[1].scratch_bytes < 1.1 * (double)memory[1].scratch_lower_bound);
}

/* ---- Refusals ---- */

/* Rows with labels below 0 do not count. If indices are checked, a label that is not a class is an
 * error. */
static void labels_are_checked(void **state)
{
    static const float x[6] = {0}, good[] = {2, -1}, bad[] = {0, 3};
    float loss[2];
    rlxvk_run_input inputs[] = {{.name = "x", .data = x, .length = 6},
                                {.name = "labels", .data = good, .length = 2}};
    rlxvk_run_output out = {.index = 0, .buffer = loss, .length = 2};
    rlxvk_compile_options options = {.check_index = RLXVK_ON};
    rlxvk_graph *g = new_graph();
    rlxvk_executable *e = NULL;
    (void)state;
    rlxvk_tensor logits = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(2, 3));
    rlxvk_tensor labels = rlxvk_input(g, "labels", RLXVK_F32, RLXVK_SHAPE(2));
    rlxvk_graph_output(g, rlxvk_softmax_cross_entropy(g, logits, labels));
    expect_ok(rlxvk_compile(shared_context, g, &options, &e));
    expect_ok(rlxvk_run(e, inputs, 2, &out, 1));
    assert_true(fabs(loss[0] - log(3)) < 1e-5 && loss[1] == 0);
    inputs[1].data = bad;
    expect_error(rlxvk_run(e, inputs, 2, &out, 1), RLXVK_E_INDEX_OOB, "3 at position 1");
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static void refuse(rlxvk_graph *g, rlxvk_tensor loss, rlxvk_tensor seed, rlxvk_tensor wrt,
                   rlxvk_status status, const char *part)
{
    rlxvk_tensor gradient = loss;
    rlxvk_grad(g, loss, seed, &wrt, 1, &gradient);
    assert_int_equal(gradient.id, 0);
    expect_error(rlxvk_graph_status(g), status, part);
    rlxvk_graph_destroy(g);
}

static void refusals(void **state)
{
    (void)state;
    rlxvk_graph *g = new_graph(), *other = new_graph();
    rlxvk_tensor x = vector(g, "x"), foreign = vector(other, "x");
    refuse(g, rlxvk_exp(g, x), RLXVK_NONE, x, RLXVK_E_SHAPE, "the loss is 4");
    g = new_graph();
    x = vector(g, "x");
    refuse(g, rlxvk_exp(g, x), number(g, 1), x, RLXVK_E_SHAPE, "seed is scalar");
    g = new_graph();
    x = vector(g, "x");
    refuse(g, total(g, x), RLXVK_NONE, foreign, RLXVK_E_DANGLING, "wrt");
    g = new_graph();
    x = rlxvk_input(g, "x", RLXVK_I32, RLXVK_SHAPE(N));
    refuse(g, total(g, rlxvk_cast(g, x, RLXVK_F32)), RLXVK_NONE, x, RLXVK_E_DTYPE, "I32");
    g = new_graph();
    x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1, 2, 3));
    rlxvk_tensor rows = rlxvk_input(g, "rows", RLXVK_F32, RLXVK_SHAPE(1, 1, 3));
    rlxvk_tensor written = rlxvk_write_rows(g, x, rows, number(g, 0));
    refuse(g, total(g, written), RLXVK_NONE, rows, RLXVK_E_UNSUPPORTED, "write_rows");
    rlxvk_graph_destroy(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_readers_add_up),
        cmocka_unit_test(parts_are_put_together),
        cmocka_unit_test(what_does_not_reach_gives_zeros),
        cmocka_unit_test(branches_not_taken_have_no_say),
        cmocka_unit_test(intermediate_tensors_have_gradients),
        cmocka_unit_test(seeds_scale),
        cmocka_unit_test(loops_are_followed),
        cmocka_unit_test(gradients_have_gradients),
        cmocka_unit_test(random_graphs_agree_with_the_host),
        cmocka_unit_test(checkpoints_save_memory),
        cmocka_unit_test(labels_are_checked),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
