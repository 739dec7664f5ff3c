/*
 * The time of a run without profiling, if the plan has host steps between segments of several
 * dispatches. Each segment has its own two timestamps, one before and one after it. The time of the
 * run is the sum of their differences.
 */
#include "exec/record.h"
#include "exec/executable.h"
#include "support/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdlib.h>
#include <cmocka.h>

enum { MOST = 16 };

/* `hosts` host steps with segments of one to three dispatches between them. Segment `heavy` also
 * has a long product. */
static rlxvk_executable *segmented(int hosts, int heavy, rlxvk_compile_options o)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    host_rows room;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(64, 64));
    rlxvk_tensor w = rlxvk_input(g, "w", RLXVK_F32, RLXVK_SHAPE(512, 512));
    for (int i = 0; i <= hosts; i++) {
        for (int k = 0; k < 1 + i % 3; k++)
            x = rlxvk_softmax(g, x, -1);
        for (int k = 0; i == heavy && k < 2; k++) {
            w = rlxvk_add(g, w, rlxvk_reduce_max(g, x, (int32_t[]){0, 1}, 2, false));
            w = rlxvk_matmul(g, w, w); /* must wait for the steps before it */
            x = rlxvk_add(g, x, rlxvk_narrow(g, rlxvk_narrow(g, w, 0, 0, 64), 1, 0, 64));
        }
        x = i < hosts ? rlxvk_cumsum(g, x, 1, false) : x;
    }
    rlxvk_graph_output(g, x);
    force_host(&o, "cumsum", &room);
    expect_ok(rlxvk_compile(shared_context, g, &o, &e));
    rlxvk_graph_destroy(g);
    return e;
}

static void run_once(rlxvk_executable *e)
{
    static float x[64 * 64], w[512 * 512];
    rlxvk_run_input in[] = {{"x", x, 64 * 64, RLXVK_F32}, {"w", w, 512 * 512, RLXVK_F32}};
    for (int i = 0; i < 64 * 64; i++)
        x[i] = (float)(i % 7);
    expect_ok(rlxvk_run(e, in, e->program->input_count, NULL, 0));
}

/* Segment i has only the timestamps 2 i and 2 i + 1. The test reads them directly and not through
 * the library. */
static double stamped(const rlxvk_executable *e, double times[MOST])
{
    const device *d = e->device;
    double period = d->snapshot.properties.limits.timestampPeriod / 1e3, sum = 0;
    for (uint32_t i = 0; i < e->program->plan.segments.count; i++) {
        uint64_t edges[2] = {0, 0};
        times[i] = 0;
        if (e->program->plan.segments.items[i].host)
            continue;
        assert_int_equal(record_first_query(e, i), 2 * i);
        assert_int_equal(record_last_query(e, i), 2 * i + 1);
        assert_int_equal(d->fn.GetQueryPoolResults(d->handle, e->queries, 2 * i, 2, sizeof edges,
                                                   edges, sizeof *edges, VK_QUERY_RESULT_64_BIT),
                         VK_SUCCESS);
        assert_true(edges[1] >= edges[0]);
        times[i] = (double)(edges[1] - edges[0]) * period;
        sum += times[i];
    }
    return sum;
}

static void stamps_are_of_their_segments(void **state)
{
    (void)state;
    for (int hosts = 0; hosts < 4; hosts++) {
        rlxvk_executable *e = segmented(hosts, -1, (rlxvk_compile_options){.time_runs = RLXVK_ON});
        double times[MOST], whole = -1;
        assert_int_equal(e->program->plan.segments.count, 2 * hosts + 1);
        run_once(e);
        if (e->queries) {
            expect_ok(rlxvk_executable_run_time(e, &whole));
            assert_true(fabs(whole - stamped(e, times)) < 1e-6);
            assert_true(whole > 0);
        }
        rlxvk_executable_destroy(e);
    }
}

/* The segment with the long product takes most of the time, whichever segment it is. */
static void a_long_segment_shows(void **state)
{
    enum { HOSTS = 2 };
    (void)state;
    for (int heavy = 0; heavy <= HOSTS; heavy++) {
        rlxvk_executable *e =
            segmented(HOSTS, heavy, (rlxvk_compile_options){.time_runs = RLXVK_ON});
        double times[MOST], whole;
        bool shows = !e->queries;
        for (int tries = 0; tries < 5 && !shows; tries++) { /* a busy machine may delay others */
            run_once(e);
            expect_ok(rlxvk_executable_run_time(e, &whole));
            assert_true(fabs(whole - stamped(e, times)) < 1e-6);
            shows = times[2 * heavy] > 0.5 * whole;
        }
        assert_true(shows);
        rlxvk_executable_destroy(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stamps_are_of_their_segments),
        cmocka_unit_test(a_long_segment_shows),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
