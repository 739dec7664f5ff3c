/* Optimizer states begin as zeros. A step for all params gives the same as a step for each. */
#include "support/harness.h"

#include <rlxvk_ops.h>
#include <rlxvk_symbols.h>
#include <rlxvk_train.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { IN = 3, OUT = 2, ROWS = 4, STEPS = 5 };
typedef enum optimizer { ADAMW, SGD, LION, OPTIMIZERS } optimizer;

static const rlxvk_adamw_options adamw = {.learning_rate = 0.1f, .weight_decay = 0.01f, .step = 1};
static const rlxvk_sgd_options sgd = {.learning_rate = 0.1f, .momentum = 0.9f};
static const rlxvk_lion_options lion = {.learning_rate = 0.1f};
static const char *const names[] = {"w", "b", "idle"};

static rlxvk_graph *new_graph(void)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    return g;
}

static rlxvk_tensor zeros_of(rlxvk_graph *g, const char *name, const char *what, rlxvk_tensor like)
{
    char full[32];
    snprintf(full, sizeof full, "%s.%s", name, what);
    return rlxvk_state(g, full, RLXVK_F32, rlxvk_tensor_shape(g, like));
}

static void step_each(rlxvk_graph *g, optimizer which, const rlxvk_tensor *p, const rlxvk_tensor *d)
{
    for (int i = 0; i < 2; i++)
        if (which == ADAMW)
            rlxvk_adamw(g, p[i], d[i], zeros_of(g, names[i], "first", p[i]),
                        zeros_of(g, names[i], "second", p[i]), &adamw, NULL, NULL);
        else if (which == SGD)
            rlxvk_sgd(g, p[i], d[i], zeros_of(g, names[i], "momentum", p[i]), &sgd, NULL, NULL);
        else
            rlxvk_lion(g, p[i], d[i], zeros_of(g, names[i], "average", p[i]), &lion, NULL, NULL);
}

static void step_all(rlxvk_graph *g, optimizer which, const rlxvk_tensor *p, const rlxvk_tensor *d)
{
    expect_ok(which == ADAMW ? rlxvk_adamw_all(g, p, d, 3, &adamw, NULL)
              : which == SGD ? rlxvk_sgd_all(g, p, d, 3, &sgd, NULL)
                             : rlxvk_lion_all(g, p, d, 3, &lion, NULL));
}

/* The mean square of x w + b, and one param that has no gradient. */
static rlxvk_graph *built(optimizer which, bool all)
{
    static const int32_t axes[] = {0, 1};
    rlxvk_graph *g = new_graph();
    rlxvk_tensor p[] = {rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(IN, OUT)),
                        rlxvk_param(g, "b", RLXVK_F32, RLXVK_SHAPE(OUT)),
                        rlxvk_param(g, "idle", RLXVK_F32, RLXVK_SHAPE(7))};
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(ROWS, IN)), d[3] = {{0}};
    rlxvk_tensor y = rlxvk_add(g, rlxvk_matmul(g, x, p[0]), p[1]);
    rlxvk_tensor loss = rlxvk_reduce_mean(g, rlxvk_mul(g, y, y), axes, 2, false);
    rlxvk_grad(g, loss, RLXVK_NONE, p, 2, d);
    rlxvk_graph_output(g, loss);
    (all ? step_all : step_each)(g, which, p, d);
    expect_ok(rlxvk_graph_status(g));
    return g;
}

static void steps_of_all_are_those_of_each(void **state)
{
    (void)state;
    for (int which = 0; which < OPTIMIZERS; which++) {
        float learned[2][IN * OUT + OUT], x[ROWS * IN], w[IN * OUT], b[OUT] = {0.5f, -0.25f};
        for (int i = 0; i < ROWS * IN; i++)
            x[i] = sinf((float)i);
        for (int all = 0; all < 2; all++) {
            rlxvk_graph *g = built((optimizer)which, all);
            rlxvk_executable *e = NULL;
            for (int i = 0; i < IN * OUT; i++)
                w[i] = cosf((float)i);
            expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
            expect_ok(rlxvk_set_param(e, "w", w, IN * OUT));
            expect_ok(rlxvk_set_param(e, "b", b, OUT));
            for (int step = 0; step < STEPS; step++)
                expect_ok(rlxvk_run(e, &RLXVK_RUN_INPUT("x", x), 1, NULL, 0));
            expect_ok(rlxvk_read_param(e, "w", learned[all], IN * OUT));
            expect_ok(rlxvk_read_param(e, "b", learned[all] + IN * OUT, OUT));
            rlxvk_executable_destroy(e);
            rlxvk_graph_destroy(g);
        }
        assert_memory_equal(learned[0], learned[1], sizeof *learned);
        assert_true(fabsf(learned[0][0] - 1) > 0.05f); /* it has learned */
    }
}

/* y = x + count. Each run adds one to count. */
static rlxvk_graph *counter(int64_t rows)
{
    rlxvk_graph *g = new_graph();
    float one = 1;
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(rows));
    rlxvk_tensor count = rlxvk_state(g, "count", RLXVK_F32, RLXVK_SHAPE(1));
    rlxvk_tensor unit = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(1), &one, sizeof one);
    rlxvk_graph_output(g, rlxvk_add(g, x, count));
    rlxvk_accumulate(g, count, unit, rlxvk_scalar(g, 1));
    return g;
}

static float counted(rlxvk_executable *e, size_t rows)
{
    const float x[4] = {0};
    float y[4] = {-1};
    rlxvk_run_input in = {.name = "x", .data = x, .length = rows};
    expect_ok(rlxvk_run(e, &in, 1, &(rlxvk_run_output){.buffer = y, .length = rows}, 1));
    return y[0];
}

static void states_begin_as_zeros(void **state)
{
    rlxvk_executable *first, *second, *copy;
    (void)state;
    for (int symbolic = 0; symbolic < 2; symbolic++) {
        rlxvk_graph *g = counter(symbolic ? rlxvk_symbol(RLXVK_BATCH) : 2);
        expect_ok(rlxvk_compile(shared_context, g, NULL, &first));
        for (int i = 0; i < 3; i++)
            assert_true(counted(first, symbolic ? 1 + (size_t)i : 2) == (float)i);
        expect_ok(rlxvk_clone(first, &copy));
        assert_true(counted(copy, 2) == 3);
        if (!symbolic) { /* a later executable finds the present value */
            rlxvk_compile_options share = {.share_with = first};
            expect_ok(rlxvk_compile(shared_context, g, &share, &second));
            assert_true(counted(second, 2) == 3 && counted(first, 2) == 4);
            rlxvk_executable_destroy(second);
        }
        expect_ok(rlxvk_clear_param(copy, "count"));
        assert_true(counted(copy, 2) == 0);
        const float ten = 10;
        expect_ok(rlxvk_set_param(copy, "count", &ten, 1));
        assert_true(counted(copy, 2) == 10);
        rlxvk_executable_destroy(copy);
        rlxvk_executable_destroy(first);
        rlxvk_graph_destroy(g);
    }
}

/* Averages need no value, but a weight that has none must still be reported. */
static void a_weight_that_is_not_set_is_still_told(void **state)
{
    rlxvk_graph *g = built(ADAMW, true);
    rlxvk_executable *e = NULL;
    const float x[ROWS * IN] = {0}, w[IN * OUT] = {0};
    (void)state;
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    expect_ok(rlxvk_set_param(e, "w", w, IN * OUT));
    expect_error(rlxvk_run(e, &RLXVK_RUN_INPUT("x", x), 1, NULL, 0), RLXVK_E_UNSET_PARAM, "'b'");
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static void errors(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        rlxvk_graph *g = new_graph();
        rlxvk_tensor p = rlxvk_param(g, "p", RLXVK_F32, RLXVK_SHAPE(2));
        rlxvk_tensor d = rlxvk_input(g, "d", RLXVK_F32, RLXVK_SHAPE(2));
        rlxvk_tensor pair[2] = {p, p}, slopes[2] = {d, d}, made = rlxvk_neg(g, p);
        rlxvk_status status = i == 0   ? rlxvk_adamw_all(g, pair, slopes, 2, &adamw, NULL)
                              : i == 1 ? rlxvk_sgd_all(g, &made, &d, 1, NULL, NULL)
                              : i == 2 ? rlxvk_lion_all(g, NULL, &d, 1, NULL, NULL)
                              : i == 3 ? rlxvk_adamw_all(NULL, &p, &d, 1, NULL, NULL)
                                       : rlxvk_sgd_all(g, pair, slopes, 0, NULL, NULL);
        const struct {
            rlxvk_status status;
            const char *part;
        } wanted[] = {{RLXVK_E_DUP_NAME, "p.first"},
                      {RLXVK_E_ATTR, "parameter 0 is no param but 'neg'"},
                      {RLXVK_E_NULL, "parameters"},
                      {RLXVK_E_NULL, "graph"}};
        if (i < 4)
            expect_error(status, wanted[i].status, wanted[i].part);
        else
            expect_ok(status);
        assert_int_equal(rlxvk_graph_status(g), i < 3 ? status : RLXVK_OK);
        rlxvk_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_of_all_are_those_of_each),
        cmocka_unit_test(states_begin_as_zeros),
        cmocka_unit_test(a_weight_that_is_not_set_is_still_told),
        cmocka_unit_test(errors),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
