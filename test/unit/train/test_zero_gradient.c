/*
 * A gradient that is exactly 0 must pass on 0, whatever the local derivative is. This is tested for
 * every elementwise op, at special points whose results rlxvk_where does not choose. It is also
 * tested for the parts that rlxvk_if and rlxvk_while leave out, and for powers at 0. Their
 * derivatives contain 0 times infinity if they are written as products.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "graph/graph.h"
#include "op/op.h"
#include "support/harness.h"

#include <rlxvk_ops_math.h>
#include <rlxvk_train.h>

#include <math.h>

#define POINTS 12

static const float points[POINTS] = {0,   -0.0f, 1,      -1,    INFINITY, -INFINITY,
                                     NAN, 1e10f, -1e10f, 3e38f, -3e38f,   1e-40f};
static size_t instances;

static rlxvk_graph *new_graph(void)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    return g;
}

static rlxvk_tensor number(rlxvk_graph *g, float value)
{
    return rlxvk_scalar(g, value);
}

static rlxvk_tensor never(rlxvk_graph *g)
{
    return rlxvk_input(g, "never", RLXVK_F32, RLXVK_SHAPE(1));
}

/* Runs the graph with all pairs of points as x and y, and with `never` 0. All words of the outputs
 * must be `wanted`. */
static void expect_all(rlxvk_graph *g, const char *what, size_t count, const float *wanted)
{
    rlxvk_executable *e = NULL;
    float x[POINTS * POINTS], y[POINTS * POINTS], no = 0, got[POINTS * POINTS];
    expect_ok(rlxvk_graph_status(g));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    for (size_t i = 0; i < POINTS * POINTS; i++) {
        x[i] = points[i % POINTS];
        y[i] = points[i / POINTS];
    }
    for (size_t i = 0; i < count; i++) {
        rlxvk_run_output out = {i, got, POINTS * POINTS, RLXVK_F32};
        rlxvk_run_input in[] = {{"x", x, POINTS * POINTS, RLXVK_F32},
                                {"y", y, POINTS * POINTS, RLXVK_F32},
                                {"never", &no, 1, RLXVK_F32}};
        expect_ok(rlxvk_run(e, in, 3, &out, 1));
        for (size_t k = 0; k < POINTS * POINTS; k++, instances++)
            if (got[k] != wanted[i])
                fail_msg("%s, output %zu at x = %g, y = %g: %g, wanted %g", what, i, (double)x[k],
                         (double)y[k], (double)got[k], (double)wanted[i]);
    }
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

typedef struct leaves {
    rlxvk_tensor x, y, never;
} leaves;

static leaves add_leaves(rlxvk_graph *g)
{
    return (leaves){rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(POINTS * POINTS)),
                    rlxvk_input(g, "y", RLXVK_F32, RLXVK_SHAPE(POINTS * POINTS)), never(g)};
}

/* The first and second derivatives of 2 x + y. The value f is not chosen, so it must add
 * nothing. */
static void check_left_out(rlxvk_graph *g, leaves l, rlxvk_tensor f, const char *what)
{
    static const float wanted[] = {2, 1, 0, 0};
    rlxvk_tensor chosen = rlxvk_fma(g, l.x, number(g, 2), l.y), d[4], by[] = {l.x, l.y};
    rlxvk_tensor ones = rlxvk_full(g, RLXVK_SHAPE(POINTS * POINTS), 1);
    rlxvk_grad(g, rlxvk_where(g, l.never, f, chosen), ones, by, 2, d);
    rlxvk_grad(g, rlxvk_add(g, d[0], d[1]), ones, by, 2, d + 2);
    for (size_t i = 0; i < 4; i++)
        rlxvk_graph_output(g, d[i]);
    expect_all(g, what, 4, wanted);
}

static void where_leaves_activations_out(void **state)
{
    (void)state;
    instances = 0;
    for (op_kind op = OP_gelu; op_table[op].family == op_table[OP_gelu].family; op++) {
        rlxvk_graph *g = new_graph();
        leaves l = add_leaves(g);
        check_left_out(g, l, op_build(g, op, &l.x, 1, NULL), op_table[op].name);
    }
    print_message("%zu words\n", instances);
}

static void where_leaves_operations_out(void **state)
{
    static const op_kind ops[] = {OP_add,
                                  OP_sub,
                                  OP_mul,
                                  OP_div,
                                  OP_max,
                                  OP_min,
                                  OP_pow,
                                  OP_mod,
                                  OP_fmod,
                                  OP_gradient_product,
                                  OP_gradient_quotient};
    (void)state;
    instances = 0;
    for (size_t i = 0; i < ARRAY_COUNT(ops); i++) {
        rlxvk_graph *g = new_graph();
        leaves l = add_leaves(g);
        rlxvk_tensor f = op_build(g, ops[i], (rlxvk_tensor[]){l.x, l.y}, 2, NULL);
        check_left_out(g, l, f, op_table[ops[i]].name);
    }
    rlxvk_graph *g = new_graph();
    leaves l = add_leaves(g);
    check_left_out(g, l, rlxvk_fma(g, l.x, l.y, rlxvk_exp(g, l.x)), "fma");
    print_message("%zu words\n", instances);
}

/* ---- Branches ---- */

/* A branch of x [n] and w [n] that gives NaN in each derivative at the points. */
static rlxvk_tensor branch(rlxvk_graph *g, int which, rlxvk_tensor x, rlxvk_tensor w)
{
    const rlxvk_shape matrix = RLXVK_SHAPE(POINTS, POINTS);
    const int32_t axis = 1;
    rlxvk_tensor m = rlxvk_reshape(g, x, matrix), v = rlxvk_reshape(g, w, matrix);
    switch (which) {
    case 0:
        m = rlxvk_matmul(g, m, rlxvk_log(g, v));
        break;
    case 1:
        m = rlxvk_softmax(g, rlxvk_mul(g, m, v), 1);
        break;
    case 2:
        m = rlxvk_cumprod(g, rlxvk_div(g, m, v), 1, false);
        break;
    case 3:
        m = rlxvk_layer_norm(g, rlxvk_mul(g, m, v), RLXVK_NONE, RLXVK_NONE, 1, 0);
        break;
    case 4:
        m = rlxvk_sub(g, m, rlxvk_reduce_prod(g, rlxvk_rsqrt(g, v), &axis, 1, true));
        break;
    default:
        m = rlxvk_pow(g, m, v);
    }
    return rlxvk_reshape(g, m, RLXVK_SHAPE(POINTS * POINTS));
}

#define BRANCHES 6

static rlxvk_graph *branch_body(int which)
{
    rlxvk_graph *body = new_graph();
    rlxvk_tensor x = rlxvk_input(body, "a", RLXVK_F32, RLXVK_SHAPE(POINTS * POINTS));
    rlxvk_tensor w = rlxvk_input(body, "b", RLXVK_F32, RLXVK_SHAPE(POINTS * POINTS));
    rlxvk_graph_output(body, which < 0 ? rlxvk_fma(body, x, number(body, 2), w)
                                       : branch(body, which, x, w));
    return body;
}

static void if_leaves_branches_out(void **state)
{
    static const float wanted[] = {2, 1, 0, 0};
    (void)state;
    instances = 0;
    for (int which = 0; which < BRANCHES; which++)
        for (int otherwise = 0; otherwise < 2; otherwise++) {
            rlxvk_graph *g = new_graph(), *bad = branch_body(which), *good = branch_body(-1);
            leaves l = add_leaves(g);
            rlxvk_tensor by[] = {l.x, l.y}, d[4], y, p = l.never;
            rlxvk_tensor ones = rlxvk_full(g, RLXVK_SHAPE(POINTS * POINTS), 1);
            if (otherwise)
                p = rlxvk_sub(g, number(g, 1), p);
            y = rlxvk_if(g, p, otherwise ? good : bad, otherwise ? bad : good, by, 2);
            rlxvk_graph_destroy(bad);
            rlxvk_graph_destroy(good);
            rlxvk_grad(g, y, ones, by, 2, d);
            rlxvk_grad(g, rlxvk_add(g, d[0], d[1]), ones, by, 2, d + 2);
            for (size_t i = 0; i < 4; i++)
                rlxvk_graph_output(g, d[i]);
            expect_all(g, "if", 4, wanted);
        }
    print_message("%zu words\n", instances);
}

/* x' = 2 x + y, for two rounds, so the gradient of the result is 4 and 3. The third value counts
 * the rounds. If it is 2 or more, the body divides by 0 and has products with NaN, but these rounds
 * are left out. */
static void while_leaves_rounds_out(void **state)
{
    static const float wanted[] = {4, 3};
    const rlxvk_shape all = RLXVK_SHAPE(POINTS * POINTS);
    (void)state;
    instances = 0;
    for (int replays = 0; replays < 2; replays++) {
        rlxvk_graph *g = new_graph(), *test = new_graph(), *body = new_graph();
        rlxvk_tensor in[3], out[3], by[2], d[2];
        in[0] = rlxvk_input(body, "a", RLXVK_F32, all);
        in[1] = rlxvk_input(body, "b", RLXVK_F32, all);
        in[2] = rlxvk_input(body, "n", RLXVK_F32, RLXVK_SHAPE(1));
        rlxvk_input(test, "a", RLXVK_F32, all);
        rlxvk_input(test, "b", RLXVK_F32, all);
        rlxvk_tensor n = rlxvk_input(test, "n", RLXVK_F32, RLXVK_SHAPE(1));
        rlxvk_graph_output(test, rlxvk_lt(test, n, number(test, 1.5f)));
        /* 0 in the rounds that count, otherwise infinite or NaN */
        rlxvk_tensor left = rlxvk_sub(body, number(body, 2), in[2]);
        rlxvk_tensor far = rlxvk_div(body, in[1], left);
        far = rlxvk_where(body, rlxvk_gt(body, left, number(body, 0.5f)), number(body, 0), far);
        rlxvk_tensor m = rlxvk_reshape(body, far, RLXVK_SHAPE(POINTS, POINTS));
        m = rlxvk_reshape(body, rlxvk_matmul(body, m, m), all);
        rlxvk_tensor next = rlxvk_fma(body, in[0], number(body, 2), in[1]);
        rlxvk_graph_output(body, rlxvk_add(body, next, m));
        rlxvk_graph_output(body, in[1]);
        rlxvk_graph_output(body, rlxvk_add(body, in[2], number(body, 1)));
        rlxvk_graph_set_unroll_limit(g, replays ? 1 : 100000);
        leaves l = add_leaves(g);
        by[0] = l.x, by[1] = l.y;
        rlxvk_while(g, test, body, 5, (rlxvk_tensor[]){l.x, l.y, l.never}, 3, out);
        rlxvk_graph_destroy(test);
        rlxvk_graph_destroy(body);
        rlxvk_grad(g, out[0], rlxvk_full(g, all, 1), by, 2, d);
        rlxvk_graph_output(g, d[0]);
        rlxvk_graph_output(g, d[1]);
        expect_all(g, replays ? "while, replayed" : "while, unrolled", 2, wanted);
    }
    print_message("%zu words\n", instances);
}

/* ---- Powers ---- */

/* The k-th derivative of x^n at 0: if k = n, it is n!, otherwise 0. */
static void powers_at_zero(void **state)
{
    (void)state;
    for (int n = 0; n < 5; n++)
        for (int as_input = 0; as_input < 2; as_input++) {
            rlxvk_graph *g = new_graph();
            rlxvk_executable *e = NULL;
            rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(2));
            rlxvk_tensor p =
                as_input ? rlxvk_input(g, "p", RLXVK_F32, RLXVK_SHAPE(1)) : number(g, (float)n);
            rlxvk_tensor y = rlxvk_pow(g, x, p), ones = rlxvk_full(g, RLXVK_SHAPE(2), 1);
            float zeros[2] = {0, -0.0f}, power = (float)n, got[2], factorial = 1;
            for (int k = 1; k <= 4; k++) {
                rlxvk_grad(g, y, ones, &x, 1, &y);
                rlxvk_graph_output(g, y);
            }
            expect_ok(rlxvk_graph_status(g));
            expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
            for (int k = 1; k <= 4; k++) {
                rlxvk_run_input in[] = {{"x", zeros, 2, RLXVK_F32}, {"p", &power, 1, RLXVK_F32}};
                rlxvk_run_output out = {(size_t)k - 1, got, 2, RLXVK_F32};
                factorial *= (float)k;
                expect_ok(rlxvk_run(e, in, as_input ? 2 : 1, &out, 1));
                for (int i = 0; i < 2; i++)
                    if (!(fabsf(got[i] - (k == n ? factorial : 0)) <= 1e-4f))
                        fail_msg("derivative %d of x^%d at 0 is %g", k, n, (double)got[i]);
            }
            rlxvk_executable_destroy(e);
            rlxvk_graph_destroy(g);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_leaves_activations_out),
        cmocka_unit_test(where_leaves_operations_out),
        cmocka_unit_test(if_leaves_branches_out),
        cmocka_unit_test(while_leaves_rounds_out),
        cmocka_unit_test(powers_at_zero),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
