/* Attention as exporters write it: products, a softmax between them, and a scale somewhere. */
#include "support/rewritten.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

enum form {
    PLAIN,       /* softmax(q k^T / 2) v */
    DIVIDED,     /* by 2 */
    OVER,        /* 2 over the scores */
    BY_SIDES,    /* q / sqrt 2, k^T / sqrt 2, as PyTorch exports it */
    BY_PRODUCT,  /* the product transposes k */
    FROM_ROWS,   /* one transpose from [B, S, H, D] to [B, H, D, S] */
    KEYS_TURNED, /* k is given as [B, H, D, S] */
    THREE_AXES,  /* [B * H, S, D] */
    CROSS,       /* fewer keys than queries */
    ONE_QUERY,   /* which the product may take for a vector */
    UNSCALED,
    MASKED,      /* something is added to the scores */
    ACROSS,      /* the softmax is along the queries */
    SHOWN,       /* the weights are an output */
    READ_TWICE,  /* the scores have another reader */
    OTHER_WIDTH, /* of v */
    SHARED_KEYS, /* one head of k and v for all */
    BY_TENSOR,   /* the scale is one for each head */
    BY_ZERO,
    WRITTEN_EARLY, /* a write lies between the transpose of k and its product */
    WRITTEN        /* a write to a tensor lies between */
};

static rlxvk_tensor turned(rlxvk_graph *g, rlxvk_tensor k, uint32_t rank)
{
    int32_t perm[] = {0, 1, 2, 3};
    perm[rank - 1] = (int32_t)rank - 2;
    perm[rank - 2] = (int32_t)rank - 1;
    return rlxvk_transpose(g, k, perm, rank);
}

static rlxvk_tensor scaled(rlxvk_graph *g, rlxvk_tensor s, enum form form)
{
    rlxvk_tensor two = rlxvk_scalar(g, 2);
    if (form == DIVIDED)
        return rlxvk_div(g, s, two);
    if (form == OVER)
        return rlxvk_div(g, two, s);
    if (form == BY_TENSOR)
        return rlxvk_mul(g, s, floats(g, RLXVK_SHAPE(1, 3, 1, 1), (float[]){0.5f, 1, 2}));
    if (form == BY_SIDES || form == UNSCALED)
        return s;
    return rlxvk_mul(g, rlxvk_scalar(g, form == BY_ZERO ? 0 : 0.5f), s);
}

static void write_somewhere(rlxvk_graph *g)
{
    rlxvk_tensor cache = input(g, "cache", RLXVK_SHAPE(2, 5, 4));
    rlxvk_tensor row = input(g, "row", RLXVK_SHAPE(2, 1, 4)), at = input(g, "at", RLXVK_SHAPE(1));
    rlxvk_graph_output(g, rlxvk_write_rows(g, cache, row, at));
}

static rlxvk_graph *build(enum form form)
{
    rlxvk_graph *g = new_graph();
    bool three = form == THREE_AXES;
    int64_t queries = form == ONE_QUERY ? 1 : 6, keys = form == CROSS ? 4 : 6;
    rlxvk_shape own = three ? RLXVK_SHAPE(6, queries, 8) : RLXVK_SHAPE(2, 3, queries, 8);
    rlxvk_shape others = three ? RLXVK_SHAPE(6, keys, 8) : RLXVK_SHAPE(2, 3, keys, 8);
    if (form == SHARED_KEYS)
        others.dims[1] = 1;
    rlxvk_shape values = others;
    values.dims[others.rank - 1] = form == OTHER_WIDTH ? 4 : 8;
    rlxvk_tensor q = input(g, "q", own), v = input(g, "v", values), k;
    if (form == FROM_ROWS)
        k = rlxvk_transpose(g, input(g, "k", RLXVK_SHAPE(2, 6, 3, 8)), (int32_t[]){0, 2, 3, 1}, 4);
    else if (form == KEYS_TURNED)
        k = input(g, "k", RLXVK_SHAPE(2, 3, 8, 6));
    else
        k = input(g, "k", others);
    if (form != FROM_ROWS && form != KEYS_TURNED && form != BY_PRODUCT)
        k = turned(g, k, own.rank);
    if (form == BY_SIDES) {
        q = rlxvk_mul(g, q, rlxvk_scalar(g, 0.70710678f));
        k = rlxvk_mul(g, k, rlxvk_scalar(g, 0.70710678f));
    }
    if (form == WRITTEN_EARLY)
        write_somewhere(g);
    const rlxvk_matmul_options by_product = {.transpose_b = form == BY_PRODUCT};
    rlxvk_tensor scores = scaled(g, rlxvk_matmul_with(g, q, k, &by_product), form);
    if (form == READ_TWICE)
        rlxvk_graph_output(g, rlxvk_neg(g, scores));
    if (form == MASKED)
        scores = rlxvk_add(g, scores, input(g, "mask", RLXVK_SHAPE(6, 6)));
    rlxvk_tensor weights = rlxvk_softmax(g, scores, form == ACROSS ? -2 : -1);
    if (form == SHOWN)
        rlxvk_graph_output(g, weights);
    if (form == WRITTEN)
        write_somewhere(g);
    rlxvk_graph_output(g, rlxvk_matmul(g, weights, v));
    expect_ok(rlxvk_graph_status(g));
    return g;
}

static void these_are_attention(void **state)
{
    (void)state;
    for (int form = PLAIN; form <= UNSCALED; form++)
        if (form != OVER) {
            char what[32];
            snprintf(what, sizeof what, "form %d", form);
            expect_count(what, count_after(build((enum form)form), OP_attention), 1);
        }
}

static void these_are_not(void **state)
{
    (void)state;
    expect_count("constant over scores", count_after(build(OVER), OP_attention), 0);
    for (int form = MASKED; form < WRITTEN_EARLY; form++) {
        char what[32];
        snprintf(what, sizeof what, "form %d", form);
        expect_count(what, count_after(build((enum form)form), OP_attention), 0);
    }
}

static void nothing_moves_over_a_write(void **state)
{
    (void)state;
    for (int form = WRITTEN_EARLY; form <= WRITTEN; form++) {
        rlxvk_graph *g = build((enum form)form), *after = rewritten(g, true);
        expect_count(form == WRITTEN ? "late" : "early", count_op(after, OP_attention), 0);
        rlxvk_graph_destroy(after);
        rlxvk_graph_destroy(g);
    }
}

/* Of one pattern, no transpose is left: attention reads k where it lies. */
static void transposes_go(void **state)
{
    (void)state;
    expect_count("by sides", count_after(build(BY_SIDES), OP_transpose), 0);
    expect_count("from rows", count_after(build(FROM_ROWS), OP_transpose), 1);
    expect_count("turned", count_after(build(KEYS_TURNED), OP_transpose), 1);
}

static void misses_are_named(void **state)
{
    static const struct {
        enum form form;
        const char *why;
    } cases[] = {{SHOWN, "output"},
                 {OTHER_WIDTH, "differ in shape"},
                 {SHARED_KEYS, "differ in axis 1"},
                 {BY_ZERO, "multiplied by 0"}};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        rlxvk_graph *g = build(cases[i].form), *after = rewritten(g, true);
        expect_miss("attention", after, cases[i].why);
        rlxvk_graph_destroy(after);
        rlxvk_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(these_are_attention),
                                       cmocka_unit_test(these_are_not),
                                       cmocka_unit_test(nothing_moves_over_a_write),
                                       cmocka_unit_test(transposes_go),
                                       cmocka_unit_test(misses_are_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
