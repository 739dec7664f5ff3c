/*
 * Random graphs with several errors at some sizes. rlxvk_graph_bind and rlxvk_compile must report
 * the first error that rlxvk_graph_verify lists.
 */
#include "op/op.h"
#include "support/harness.h"

#include <rlxvk_ops_array.h>
#include <rlxvk_symbols.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

enum { BATCH_OF = 5 }; /* bound for the size in the first example */

typedef struct maker {
    rlxvk_graph *g;
    random_source r;
    rlxvk_tensor x, y; /* of BATCH and SEQ elements */
    rlxvk_tensor last;
} maker;

/* ---- Nodes that fail at some sizes, and nodes that never fail ---- */

/* min(BATCH, 2). The examples suggest another shape, and the caller reads it and relies on it. */
static rlxvk_tensor told_slice(maker *m)
{
    rlxvk_tensor t = rlxvk_slice(m->g, m->x, (int64_t[]){0}, (int64_t[]){2}, NULL, 1);
    (void)rlxvk_tensor_shape(m->g, t);
    return t;
}

static rlxvk_tensor told_step(maker *m)
{
    rlxvk_tensor t = rlxvk_slice(m->g, m->y, (int64_t[]){1}, (int64_t[]){4}, (int64_t[]){2}, 1);
    (void)rlxvk_tensor_shape(m->g, t);
    return t;
}

static rlxvk_tensor largest(maker *m)
{
    return rlxvk_topk(m->g, m->x, 1 + random_below(&m->r, 4));
}

static rlxvk_tensor narrowed(maker *m)
{
    return rlxvk_narrow(m->g, m->y, 0, 1 + random_below(&m->r, 2), 2);
}

static rlxvk_tensor split(maker *m)
{
    return rlxvk_reshape(m->g, rlxvk_concat(m->g, (rlxvk_tensor[]){m->x, m->x}, 2, 0),
                         RLXVK_SHAPE(-1, 2));
}

static rlxvk_tensor summed(maker *m)
{
    return rlxvk_add(m->g, m->x, rlxvk_narrow(m->g, m->x, 0, 0, 1));
}

static rlxvk_tensor kept(maker *m)
{
    return rlxvk_neg(m->g, m->last);
}

static rlxvk_tensor (*const pieces[])(maker *) = {told_slice, told_step, largest, narrowed,
                                                  split,      summed,    kept};

static rlxvk_graph *make_graph(uint64_t seed)
{
    maker m = {.r = {seed}};
    expect_ok(rlxvk_graph_create(&m.g));
    rlxvk_set_symbol_example(m.g, RLXVK_BATCH, 1 + random_below(&m.r, BATCH_OF));
    m.x = rlxvk_input(m.g, "x", RLXVK_F32, RLXVK_SHAPE(rlxvk_symbol(RLXVK_BATCH)));
    m.y = rlxvk_input(m.g, "y", RLXVK_F32, RLXVK_SHAPE(rlxvk_symbol(RLXVK_SEQ)));
    m.last = m.x;
    bool outputs = random_below(&m.r, 6);
    for (uint32_t k = 2 + random_below(&m.r, 5); k > 0; k--) {
        rlxvk_tensor t = pieces[random_below(&m.r, ARRAY_COUNT(pieces))](&m);
        if (rlxvk_graph_status(m.g) != RLXVK_OK)
            break; /* it fails at these examples, and the error sticks */
        m.last = t;
        if (outputs)
            rlxvk_graph_output(m.g, t);
    }
    if (random_below(&m.r, 6) == 0)
        (void)rlxvk_softmax(m.g, m.x, 7); /* sticks */
    return m.g;
}

/* ---- Comparison with the list ---- */

typedef struct tally {
    uint32_t graphs, told, nodes, outputs, sticky, several;
} tally;

static void expect_first(rlxvk_status status, const rlxvk_problem *first, const char *call,
                         uint64_t seed)
{
    if (status != first->status || !strstr(rlxvk_last_error(), first->text))
        fail_msg("%s, seed %llu: %s: %s; first is %s: %s", call, (unsigned long long)seed,
                 rlxvk_status_name(status), rlxvk_last_error(), rlxvk_status_name(first->status),
                 first->text);
}

static void check_sizes(rlxvk_graph *g, uint64_t seed, int64_t batch, int64_t seq, tally *t)
{
    rlxvk_binding sizes[] = {{RLXVK_BATCH, batch}, {RLXVK_SEQ, seq}};
    rlxvk_problem problems[16];
    rlxvk_compile_options o = {.bindings = sizes, .binding_count = 2};
    rlxvk_graph *bound = NULL;
    rlxvk_executable *e = NULL;
    size_t count = 0, at = 0;
    expect_ok(rlxvk_graph_verify(g, sizes, 2, problems, 16, &count));
    rlxvk_status status = rlxvk_compile(shared_context, g, &o, &e);
    if (count)
        expect_first(status, &problems[0], "compile", seed);
    else
        expect_ok(status);
    rlxvk_executable_destroy(e);
    status = rlxvk_graph_bind(g, sizes, 2, &bound);
    at = count && problems[0].status == RLXVK_E_NO_OUTPUTS;
    if (at < count)
        expect_first(status, &problems[at], "graph_bind", seed);
    else
        expect_ok(status);
    rlxvk_graph_destroy(bound);
    t->graphs += count > 0;
    t->several += count > 1;
    for (size_t i = 0; i < count && i < 16; i++) {
        t->told += strstr(problems[i].text, "was taken for") != NULL;
        t->outputs += problems[i].status == RLXVK_E_NO_OUTPUTS;
        t->sticky += problems[i].node == UINT32_MAX && problems[i].status != RLXVK_E_NO_OUTPUTS;
        t->nodes += problems[i].node != UINT32_MAX;
        assert_true(i == 0 || problems[i - 1].node == UINT32_MAX ||
                    problems[i - 1].node < problems[i].node);
    }
}

static void the_first_is_named(void **state)
{
    static const int64_t some[] = {0, 1, 2, 3, 5};
    tally t = {0};
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        rlxvk_graph *g = make_graph(seed);
        for (size_t i = 0; i < ARRAY_COUNT(some); i++)
            check_sizes(g, seed, some[i], some[(i + seed) % ARRAY_COUNT(some)], &t);
        rlxvk_graph_destroy(g);
    }
    print_message("%u graphs at sizes with problems, %u with several: %u told wrong, %u of nodes, "
                  "%u without outputs, %u that failed before\n",
                  t.graphs, t.several, t.told, t.nodes, t.outputs, t.sticky);
    assert_true(t.several > 40 && t.told > 20 && t.nodes > 100 && t.outputs > 10 && t.sticky > 10);
}

/* If only some symbols are bound, a shape that the caller has read and that no longer holds is
 * already an error. */
static void told_wrong_in_part(void **state)
{
    rlxvk_graph *g = NULL, *bound = NULL;
    maker m = {.r = {1}};
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    m.g = g;
    rlxvk_set_symbol_example(g, RLXVK_BATCH, 5);
    m.x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(rlxvk_symbol(RLXVK_BATCH)));
    m.y = rlxvk_input(g, "y", RLXVK_F32, RLXVK_SHAPE(rlxvk_symbol(RLXVK_SEQ)));
    rlxvk_tensor t = told_slice(&m);
    rlxvk_graph_output(g, t);
    rlxvk_graph_output(g, rlxvk_topk(g, m.x, 1));
    rlxvk_graph_output(g, rlxvk_neg(g, m.y));
    expect_ok(rlxvk_graph_status(g));
    for (int64_t size = 0; size < 4; size++) {
        rlxvk_binding both[] = {{RLXVK_BATCH, size}, {RLXVK_SEQ, 4}};
        rlxvk_status whole = rlxvk_graph_bind(g, both, 2, &bound);
        rlxvk_graph_destroy(bound);
        rlxvk_status part = rlxvk_graph_bind(g, both, 1, &bound);
        rlxvk_graph_destroy(bound);
        assert_int_equal(part, whole);
        if (size == 0)
            expect_error(part, RLXVK_E_SHAPE, "was taken for");
    }
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_is_named),
        cmocka_unit_test(told_wrong_in_part),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
