/*
 * Fusion patterns, without a device. Each must fire only if it may, and the fused graph must
 * compute the same.
 */
#include "support/rewritten.h"
#include "op/matmul/matmul.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* ---- matmul + bias + activation ---- */

typedef rlxvk_tensor (*unary_builder)(rlxvk_graph *, rlxvk_tensor);

/* In the order of rlxvk_activation, whose first entry is NONE. */
static const unary_builder activations[] = {
    NULL,
#define ACTIVATION(code, NAME, row, ...) rlxvk_##row,
#include "args/activation.def"
};

enum extra { ALONE, PRODUCT_OUTPUT, PRODUCT_TWICE, SUM_OUTPUT, SUM_TWICE, BIAS_IS_X };

typedef struct product_case {
    const char *what;
    rlxvk_shape x, w, bias;
    bool transpose_a, transpose_b, bias_first;
    enum extra extra;
    uint32_t fused, left; /* fused nodes, and activations left */
    const char *why;      /* the reason for unfused nodes; NULL: no pattern had begun */
} product_case;

static rlxvk_graph *build_product(const product_case *c, rlxvk_activation activation)
{
    rlxvk_graph *g = new_graph();
    rlxvk_matmul_options options = {c->transpose_a, c->transpose_b};
    rlxvk_tensor x = input(g, "x", c->x), w = param(g, "w", c->w);
    rlxvk_tensor m = rlxvk_matmul_with(g, x, w, &options);
    rlxvk_tensor b = c->extra == BIAS_IS_X ? x : param(g, "b", c->bias);
    rlxvk_tensor a = c->bias_first ? rlxvk_add(g, b, m) : rlxvk_add(g, m, b);
    rlxvk_tensor y = activation ? activations[activation](g, a) : a;
    rlxvk_graph_set_name(g, y, "y");
    rlxvk_graph_output(g, y);
    if (c->extra == PRODUCT_OUTPUT)
        rlxvk_graph_output(g, m);
    if (c->extra == PRODUCT_TWICE)
        rlxvk_graph_output(g, rlxvk_neg(g, m));
    if (c->extra == SUM_OUTPUT)
        rlxvk_graph_output(g, a);
    if (c->extra == SUM_TWICE)
        rlxvk_graph_output(g, rlxvk_mul(g, a, a));
    return g;
}

static void fuses_every_activation(void **state)
{
    const product_case c = {"plain", RLXVK_SHAPE(3, 4), RLXVK_SHAPE(4, 5), RLXVK_SHAPE(5)};
    (void)state;
    for (uint32_t a = 0; a < ARRAY_COUNT(activations); a++) {
        rlxvk_graph *g = build_product(&c, (rlxvk_activation)a), *after = checked(g, false);
        assert_int_equal(after->nodes.count, 4);
        const node *n = graph_node(after, 3);
        assert_int_equal(n->op, OP_fused_matmul_bias_act);
        assert_int_equal(((const matmul_attributes *)n->attributes)->activation, a);
        assert_string_equal(n->name, "y");
        rlxvk_graph_destroy(after);
        rlxvk_graph_destroy(g);
    }
}

static void fuses_products(void **state)
{
    const rlxvk_shape x = RLXVK_SHAPE(3, 4), w = RLXVK_SHAPE(4, 5), b = RLXVK_SHAPE(5);
    const rlxvk_shape tall = RLXVK_SHAPE(2, 3, 4), square = RLXVK_SHAPE(4, 4);
    const product_case cases[] = {
        {"bias first", x, w, b, .bias_first = true, .fused = 1},
        {"leading one", x, w, RLXVK_SHAPE(1, 5), .fused = 1},
        {"two leading ones, rank 3", tall, w, RLXVK_SHAPE(1, 1, 5), .fused = 1},
        {"rank 3", tall, w, b, .fused = 1},
        {"transpose_b", x, RLXVK_SHAPE(5, 4), b, .transpose_b = true, .fused = 1},
        {"one row", RLXVK_SHAPE(1, 4), w, RLXVK_SHAPE(1, 5), .fused = 1},
        {"one column", x, RLXVK_SHAPE(4, 1), RLXVK_SHAPE(1), .fused = 1},
        {"no rows", RLXVK_SHAPE(0, 4), w, b, .fused = 1},
        {"transpose_a", RLXVK_SHAPE(4, 3), w, b, .transpose_a = true, .left = 1,
         .why = "transposes its first"},
        {"w of rank 3", tall, RLXVK_SHAPE(2, 4, 5), b, .left = 1, .why = "has rank 3"},
        {"scalar bias", x, w, RLXVK_SCALAR, .left = 1, .why = "one element, not 5"},
        {"bias of one", x, w, RLXVK_SHAPE(1), .left = 1, .why = "one element, not 5"},
        {"scalar bias, one column", x, RLXVK_SHAPE(4, 1), RLXVK_SCALAR, .left = 1},
        {"column bias", x, w, RLXVK_SHAPE(3, 1), .left = 1},
        {"residual", x, w, RLXVK_SHAPE(3, 5), .left = 1},
        {"residual x", square, square, b, .extra = BIAS_IS_X, .left = 1},
        {"bias that widens", x, w, RLXVK_SHAPE(2, 1, 5), .left = 1},
        {"bias of higher rank", x, w, RLXVK_SHAPE(1, 1, 5), .left = 1, .why = "widens matmul"},
        {"product is an output", x, w, b, .extra = PRODUCT_OUTPUT, .left = 1,
         .why = "matmul %2 is a graph output"},
        {"product used twice", x, w, b, .extra = PRODUCT_TWICE, .left = 1,
         .why = "matmul %2 has 2 readers"},
        {"sum is an output", x, w, b, .extra = SUM_OUTPUT, .fused = 1, .left = 1,
         .why = "fused_matmul_bias_act %3 is a graph output"},
        {"sum used twice", x, w, b, .extra = SUM_TWICE, .fused = 1, .left = 1,
         .why = "fused_matmul_bias_act %3 has 3 readers"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const product_case *c = &cases[i];
        rlxvk_graph *g = build_product(c, RLXVK_ACTIVATION_RELU);
        rlxvk_graph *after = checked(g, false);
        expect_count(c->what, count_op(after, OP_fused_matmul_bias_act), c->fused);
        expect_count(c->what, count_op(after, OP_relu), c->left);
        expect_miss(c->what, after, c->why);
        rlxvk_graph_destroy(after);
        rlxvk_graph_destroy(g);
    }
}

static void products_that_share(void **state)
{
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(4, 4)), w = param(g, "w", RLXVK_SHAPE(4, 4));
    rlxvk_tensor m = rlxvk_matmul(g, x, w); /* m + m */
    rlxvk_graph_output(g, rlxvk_add(g, m, m));
    expect_count("sum with itself", count_after(g, OP_fused_matmul_bias_act), 0);
    g = new_graph(); /* two products of one row: either may be the bias of the other */
    x = input(g, "x", RLXVK_SHAPE(1, 4)), w = param(g, "w", RLXVK_SHAPE(4, 4));
    rlxvk_graph_output(g, rlxvk_add(g, rlxvk_matmul(g, x, w),
                                    rlxvk_matmul(g, x, param(g, "v", RLXVK_SHAPE(4, 4)))));
    expect_count("two rows", count_after(g, OP_fused_matmul_bias_act), 1);
    g = new_graph(); /* other dtypes */
    x = rlxvk_input(g, "x", RLXVK_F16, RLXVK_SHAPE(2, 4)), w = param(g, "w", RLXVK_SHAPE(4, 4));
    rlxvk_graph_output(g, rlxvk_add(g, rlxvk_matmul(g, x, w), param(g, "b", RLXVK_SHAPE(4))));
    expect_count("half x", count_after(g, OP_fused_matmul_bias_act), 0);
    g = new_graph(); /* a packed weight keeps the product F32 */
    x = input(g, "x", RLXVK_SHAPE(2, 4));
    w = rlxvk_param(g, "w", RLXVK_F16, RLXVK_SHAPE(4, 4));
    rlxvk_graph_output(g, rlxvk_add(g, rlxvk_matmul(g, x, w), param(g, "b", RLXVK_SHAPE(4))));
    expect_count("half w", count_after(g, OP_fused_matmul_bias_act), 1);
    g = new_graph(); /* a constant bias [1, N] leaves a reshape, which folds */
    x = input(g, "x", RLXVK_SHAPE(2, 4)), w = param(g, "w", RLXVK_SHAPE(4, 2));
    rlxvk_tensor b = floats(g, RLXVK_SHAPE(1, 2), (float[]){1, 2});
    rlxvk_graph_output(g, rlxvk_add(g, rlxvk_matmul(g, x, w), b));
    expect_count("constant bias", count_after(g, OP_reshape), 0);
}

/* ---- residual + norm ---- */

typedef struct norm_case {
    const char *what;
    rlxvk_shape x, residual, bias; /* bias of rank 0: none */
    int32_t axis;
    bool bias_first;
    enum extra extra; /* PRODUCT_...: of the inner sum, SUM_...: of the outer */
    uint32_t fused;
    const char *why;
} norm_case;

static rlxvk_graph *build_residual(const norm_case *c, bool rms)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", c->x), r = input(g, "r", c->residual);
    rlxvk_tensor inner = rlxvk_add(g, x, r), s = inner;
    if (c->bias.rank) {
        rlxvk_tensor b = param(g, "b", c->bias);
        s = c->bias_first ? rlxvk_add(g, b, inner) : rlxvk_add(g, inner, b);
    }
    rlxvk_graph_output(g, build_norm(g, rms, s, c->axis));
    if (c->extra == PRODUCT_OUTPUT)
        rlxvk_graph_output(g, inner);
    if (c->extra == SUM_OUTPUT)
        rlxvk_graph_output(g, s);
    if (c->extra == SUM_TWICE)
        rlxvk_graph_output(g, rlxvk_neg(g, s));
    return g;
}

static void fuses_residual_norms(void **state)
{
    const rlxvk_shape x = RLXVK_SHAPE(2, 3, 8), none = RLXVK_SCALAR, row = RLXVK_SHAPE(8);
    const norm_case cases[] = {
        {"plain", x, x, none, -1, .fused = 1},
        {"last axis by number", x, x, none, 2, .fused = 1},
        {"rank 1", row, row, none, 0, .fused = 1},
        {"bias", x, x, row, -1, .fused = 1},
        {"bias first", x, x, row, -1, .bias_first = true, .fused = 1},
        {"rank 1 and bias", row, row, row, 0, .fused = 1},
        {"another axis", RLXVK_SHAPE(2, 8, 8), RLXVK_SHAPE(2, 8, 8), none, 1,
         .why = "axis 1, not the last"},
        {"broadcast residual", x, RLXVK_SHAPE(3, 8), none, -1, .why = "summands of add"},
        {"broadcast x", RLXVK_SHAPE(1, 3, 8), x, none, -1, .why = "summands of add"},
        {"broadcast residual and bias", x, row, row, -1, .why = "summands of add"},
        {"scalar bias", x, x, RLXVK_SHAPE(1), -1, .why = "summands of add"},
        {"sum is an output", x, x, none, -1, .extra = SUM_OUTPUT},
        {"sum used twice", x, x, none, -1, .extra = SUM_TWICE},
        {"outer sum is an output", x, x, row, -1, .extra = SUM_OUTPUT, .why = "summands of add"},
        {"inner sum is an output", x, x, row, -1, .extra = PRODUCT_OUTPUT,
         .why = "is a graph output"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        for (int rms = 0; rms < 2; rms++) {
            op_kind op = rms ? OP_fused_residual_rms_norm : OP_fused_residual_ln;
            rlxvk_graph *g = build_residual(&cases[i], rms), *after = checked(g, false);
            expect_count(cases[i].what, count_op(after, op), cases[i].fused);
            expect_miss(cases[i].what, after, cases[i].why);
            rlxvk_graph_destroy(after);
            rlxvk_graph_destroy(g);
        }
}

static void fuses_norms_without_vectors(void **state)
{
    (void)state;
    for (int which = 0; which < 4; which++) {
        rlxvk_graph *g = new_graph();
        rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(2, 4)), r = input(g, "r", RLXVK_SHAPE(2, 4));
        rlxvk_tensor gamma = which & 1 ? param(g, "gamma", RLXVK_SHAPE(4)) : RLXVK_NONE;
        rlxvk_tensor beta = which & 2 ? param(g, "beta", RLXVK_SHAPE(4)) : RLXVK_NONE;
        rlxvk_graph_output(g, rlxvk_layer_norm(g, rlxvk_add(g, x, r), gamma, beta, -1, 1e-5f));
        expect_count("optional vectors", count_after(g, OP_fused_residual_ln), 1);
    }
}

/* A residual with itself, one of another dtype that needs promotion, and a difference in place of a
 * sum. */
static void residuals_at_the_edge(void **state)
{
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(2, 4));
    rlxvk_graph_output(g, build_norm(g, false, rlxvk_add(g, x, x), -1));
    expect_count("x + x", count_after(g, OP_fused_residual_ln), 1);
    g = new_graph();
    x = input(g, "x", RLXVK_SHAPE(2, 4));
    rlxvk_tensor h = rlxvk_input(g, "h", RLXVK_F16, RLXVK_SHAPE(2, 4));
    rlxvk_graph_output(g, build_norm(g, false, rlxvk_add(g, x, h), -1));
    expect_count("half residual", count_after(g, OP_fused_residual_ln), 0);
    g = new_graph();
    x = input(g, "x", RLXVK_SHAPE(2, 4));
    rlxvk_tensor r = input(g, "r", RLXVK_SHAPE(2, 4));
    rlxvk_graph_output(g, build_norm(g, false, rlxvk_sub(g, x, r), -1));
    expect_count("difference", count_after(g, OP_fused_residual_ln), 0);
}

/* ---- Norm pairs ---- */

typedef struct pair_case {
    const char *what;
    int norms; /* norms that read the sum */
    bool keep_sum, broadcast, other_axis, gamma_before, gamma_after, gamma_is_sum, writes;
    uint32_t pairs;
    const char *why;
} pair_case;

static rlxvk_tensor pair_gamma(rlxvk_graph *g, const pair_case *c, rlxvk_tensor before,
                               rlxvk_tensor sum)
{
    if (c->gamma_after)
        return rlxvk_neg(g, param(g, "late", RLXVK_SHAPE(4)));
    if (c->gamma_is_sum)
        return sum;
    return c->gamma_before ? before : param(g, "gamma", RLXVK_SHAPE(4));
}

static rlxvk_graph *build_pair(const pair_case *c)
{
    rlxvk_graph *g = new_graph();
    rlxvk_shape shape = c->gamma_is_sum ? RLXVK_SHAPE(4) : RLXVK_SHAPE(4, 4);
    rlxvk_tensor x = input(g, "x", shape), cache = input(g, "cache", RLXVK_SHAPE(1, 4, 4));
    rlxvk_tensor r = input(g, "r", c->broadcast ? RLXVK_SHAPE(4) : shape);
    rlxvk_tensor before = rlxvk_neg(g, param(g, "early", RLXVK_SHAPE(4)));
    rlxvk_tensor sum = rlxvk_add(g, x, r);
    if (c->writes)
        rlxvk_write_rows(g, cache, input(g, "rows", RLXVK_SHAPE(1, 1, 4)),
                         input(g, "position", RLXVK_SHAPE(1)));
    rlxvk_tensor gamma = pair_gamma(g, c, before, sum);
    for (int i = 0; i < c->norms; i++)
        rlxvk_graph_output(g, rlxvk_layer_norm(g, sum, gamma, RLXVK_NONE, c->other_axis ? 0 : -1,
                                               i ? 1e-4f : 1e-5f));
    if (c->keep_sum)
        rlxvk_graph_output(g, sum);
    return g;
}

static void finds_norm_pairs(void **state)
{
    const pair_case cases[] = {
        {"sum is an output", 1, .keep_sum = true, .pairs = 1},
        {"two norms", 2, .pairs = 1, .why = "in one step with"},
        {"two norms and an output", 2, .keep_sum = true, .pairs = 1, .why = "in one step with"},
        {"gamma computed before", 1, .keep_sum = true, .gamma_before = true, .pairs = 1},
        {"gamma computed after", 1, .keep_sum = true, .gamma_after = true,
         .why = "is not there before"},
        {"gamma is the sum", 1, .keep_sum = true, .gamma_is_sum = true,
         .why = "is not there before"},
        {"gamma is the sum, no output", 1, .gamma_is_sum = true, .why = "is not there before"},
        {"private sum", 1},
        {"broadcast residual", 1, .keep_sum = true, .broadcast = true, .why = "summands of add"},
        {"another axis", 1, .keep_sum = true, .other_axis = true, .why = "axis 0, not the last"},
        {"a write in between", 1, .keep_sum = true, .writes = true,
         .why = "written in place after"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        rlxvk_graph *g = build_pair(&cases[i]), *after;
        pair_list pairs = {0};
        after = checked(g, false);
        expect_ok(rewrite_find_norm_pairs(after, &pairs));
        expect_count(cases[i].what, (uint32_t)pairs.count, cases[i].pairs);
        expect_miss(cases[i].what, after, cases[i].why);
        for (size_t p = 0; p < pairs.count; p++) {
            const node *second = graph_node(after, pairs.items[p].second);
            assert_int_equal(graph_node(after, pairs.items[p].first)->op, OP_add);
            assert_int_equal(second->inputs[0], pairs.items[p].first);
        }
        VECTOR_FREE(&pairs);
        rlxvk_graph_destroy(after);
        rlxvk_graph_destroy(g);
    }
}

/* ---- SwiGLU ---- */

typedef struct swiglu_case {
    const char *what;
    rlxvk_shape whole;
    int32_t axis;
    int64_t up, gate, length;
    bool silu_first, swap_whole;
    enum extra extra; /* PRODUCT_OUTPUT: of a half, SUM_OUTPUT: of the silu, SUM_TWICE: the whole */
    uint32_t fused;
    const char *why;
} swiglu_case;

static rlxvk_graph *build_swiglu(const swiglu_case *c)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor whole = input(g, "c", c->whole), other = input(g, "d", c->whole);
    rlxvk_tensor up = rlxvk_narrow(g, whole, c->axis, c->up, c->length);
    rlxvk_tensor gate = rlxvk_narrow(g, c->swap_whole ? other : whole, c->axis, c->gate, c->length);
    rlxvk_tensor s = rlxvk_silu(g, gate);
    rlxvk_graph_output(g, c->silu_first ? rlxvk_mul(g, s, up) : rlxvk_mul(g, up, s));
    if (c->extra == PRODUCT_OUTPUT)
        rlxvk_graph_output(g, up);
    if (c->extra == PRODUCT_TWICE)
        rlxvk_graph_output(g, rlxvk_neg(g, gate));
    if (c->extra == SUM_OUTPUT)
        rlxvk_graph_output(g, s);
    if (c->extra == SUM_TWICE)
        rlxvk_graph_output(g, rlxvk_neg(g, whole));
    return g;
}

static void fuses_swiglu(void **state)
{
    const rlxvk_shape c = RLXVK_SHAPE(3, 8), cube = RLXVK_SHAPE(8, 3, 8);
    const swiglu_case cases[] = {
        {"up first", c, -1, 0, 4, 4, .fused = 1},
        {"gate first", c, -1, 4, 0, 4, .fused = 1},
        {"silu first", c, 1, 0, 4, 4, .silu_first = true, .fused = 1},
        {"gate and silu first", c, 1, 4, 0, 4, .silu_first = true, .fused = 1},
        {"rank 3", cube, 2, 0, 4, 4, .fused = 1},
        {"the whole has other readers", c, 1, 0, 4, 4, .extra = SUM_TWICE, .fused = 1},
        {"another axis", cube, 0, 0, 4, 4, .why = "not a half of the last axis"},
        {"not halves", RLXVK_SHAPE(3, 9), 1, 0, 4, 4, .why = "not a half"},
        {"a slice of the middle", RLXVK_SHAPE(3, 12), 1, 4, 8, 4, .why = "not a half"},
        {"one half twice", c, 1, 0, 0, 4, .why = "narrow %1 has 2 readers"},
        {"overlapping", c, 1, 0, 2, 4, .why = "not a half"},
        {"empty halves", c, 1, 0, 0, 0, .why = "not a half"},
        {"of two tensors", c, 1, 0, 4, 4, .swap_whole = true},
        {"up is an output", c, 1, 0, 4, 4, .extra = PRODUCT_OUTPUT, .why = "is a graph output"},
        {"gate used elsewhere", c, 1, 0, 4, 4, .extra = PRODUCT_TWICE,
         .why = "narrow %2 has 2 readers"},
        {"silu is an output", c, 1, 0, 4, 4, .extra = SUM_OUTPUT, .why = "is a graph output"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        rlxvk_graph *g = build_swiglu(&cases[i]), *after = checked(g, false);
        expect_count(cases[i].what, count_op(after, OP_fused_swiglu), cases[i].fused);
        expect_miss(cases[i].what, after, cases[i].why);
        rlxvk_graph_destroy(after);
        rlxvk_graph_destroy(g);
    }
}

/* If fusion is off, that is the reason for each node that could have been fused. */
static void tells_what_is_off(void **state)
{
    const product_case c = {"off", RLXVK_SHAPE(3, 4), RLXVK_SHAPE(4, 5), RLXVK_SHAPE(5)};
    rlxvk_graph *g = build_product(&c, RLXVK_ACTIVATION_RELU), *after = rewritten(g, false);
    (void)state;
    expect_miss(c.what, after, "matmul + bias + activation: fusion is off");
    rlxvk_graph_destroy(after);
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fuses_every_activation),
        cmocka_unit_test(fuses_products),
        cmocka_unit_test(products_that_share),
        cmocka_unit_test(fuses_residual_norms),
        cmocka_unit_test(fuses_norms_without_vectors),
        cmocka_unit_test(residuals_at_the_edge),
        cmocka_unit_test(finds_norm_pairs),
        cmocka_unit_test(fuses_swiglu),
        cmocka_unit_test(tells_what_is_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
