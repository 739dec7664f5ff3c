/* No node of a graph with right kernels may be blamed (exec/judge.h), and a judged run gives what
 * any other run gives. */
#include "program/context.h"
#include "support/judged.h"
#include "support/rewritten.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void no_right_node_is_blamed(void **state)
{
    (void)state;
    for (size_t i = 0; i < JUDGED_GRAPHS; i++) {
        rlxvk_graph *g = judged_graphs[i].build();
        rlxvk_executable *e = NULL;
        expect_ok(rlxvk_graph_status(g));
        expect_ok(rlxvk_compile(shared_context, g, &judged_graphs[i].options, &e));
        judged_run(e, g, 100 + i);
        judged_expect_clean(judged_graphs[i].name, e);
        judged_run(e, g, 200 + i);
        judged_expect_clean(judged_graphs[i].name, e);
        rlxvk_executable_destroy(e);
        rlxvk_graph_destroy(g);
    }
}

static void no_node_of_random_graphs_is_blamed(void **state)
{
    char what[32];
    (void)state;
    for (uint64_t seed = 1; seed <= harness_rounds(60); seed++) {
        random_source r = {seed};
        rlxvk_graph *g = new_graph();
        rlxvk_executable *e = NULL;
        if (seed % 3)
            random_graph(g, &r, 12, false);
        else
            random_shared_graph(g, &r, 12);
        expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
        judged_run(e, g, seed);
        snprintf(what, sizeof what, "seed %llu", (unsigned long long)seed);
        judged_answer a = judged_ask(e);
        if (a.first.computed_nodes)
            judged_expect_clean(what, e);
        rlxvk_executable_destroy(e);
        rlxvk_graph_destroy(g);
    }
}

/* Counts lines that say that all is right, and others. */
static void count_line(void *user, rlxvk_log_level level, const char *line)
{
    bool right = level == RLXVK_LOG_INFO && strstr(line, "all within their bounds");
    ((size_t *)user)[right ? 0 : 1]++;
}

/* A judged run gives what any other run gives. */
static void judged_runs_have_the_same_results(void **state)
{
    rlxvk_context *c = open_context(NULL);
    size_t logged[2] = {0};
    (void)state;
    c->log = (log_sink){count_line, logged};
    c->switches.check = CHECK_RESULTS;
    for (size_t i = 0; i < JUDGED_GRAPHS; i++) {
        rlxvk_graph *g = judged_graphs[i].build();
        float *values[2];
        size_t count[2];
        for (int k = 0; k < 2; k++) {
            rlxvk_executable *e = NULL;
            expect_ok(rlxvk_compile(k ? c : shared_context, g, &judged_graphs[i].options, &e));
            judged_run(e, g, 16);
            values[k] = run_seeded(e, g, 17, false, &count[k]);
            rlxvk_executable_destroy(e);
        }
        assert_memory_equal(values[0], values[1], count[0] * sizeof **values);
        free(values[0]);
        free(values[1]);
        rlxvk_graph_destroy(g);
    }
    assert_int_equal(logged[0], 2 * JUDGED_GRAPHS);
    assert_int_equal(logged[1], 0);
    close_context(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_right_node_is_blamed),
        cmocka_unit_test(no_node_of_random_graphs_is_blamed),
        cmocka_unit_test(judged_runs_have_the_same_results),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
