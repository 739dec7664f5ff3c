/*
 * rlxvk bench --replay: measures the cost of a replay besides the kernels' own work.
 *   chains     dispatches too small to take time themselves, dependent and independent
 *   host       the host's part of a run
 *   order      level order compared with program order
 *   bucket     few rows of a graph compiled for many, compared with a graph compiled for few
 *
 * Times are medians of the clock. The time of a dispatch is the difference between a long and a
 * short graph.
 */
#include "bench/bench.h"
#include "system/program.h"

#include <rlxvk_symbols.h>

#include <stdio.h>

enum { WIDTH = 64, LONG = 1001, SHORT = 1, BRANCHES = 8, TURNS = 40, HOST_TURNS = 400, BURSTS = 8 };
enum { LAYERS = 4, HIDDEN = 4 * WIDTH, BUCKET = 4096 };

typedef struct replay {
    rlxvk_context *context;
    rlxvk_graph *graph;
    rlxvk_executable *executable;
    rlxvk_plan_report plan;
} replay;

static void clear(replay *r)
{
    rlxvk_executable_destroy(r->executable);
    rlxvk_graph_destroy(r->graph);
    r->executable = NULL;
    r->graph = NULL;
}

static rlxvk_tensor reversed(rlxvk_graph *g, rlxvk_tensor x)
{
    static const int32_t axis = 1;
    return rlxvk_reverse(g, x, &axis, 1);
}

static rlxvk_tensor chain(rlxvk_graph *g, rlxvk_tensor x, int length)
{
    for (int i = 0; i < length; i++)
        x = reversed(g, x);
    return x;
}

/* `rows` chains, one after the other, each on its own row of the input. */
static rlxvk_status make_chains(replay *r, int rows, int length, rlxvk_toggle reorder)
{
    rlxvk_compile_options options = {.allow_unset = RLXVK_ON,
                                     .fusion = RLXVK_OFF,
                                     .reorder = reorder,
                                     .max_in_flight = BURSTS + 1};
    rlxvk_status status;
    clear(r);
    TRY(rlxvk_graph_create(&r->graph));
    rlxvk_tensor x = rlxvk_input(r->graph, "x", RLXVK_F32, RLXVK_SHAPE(rows, WIDTH));
    for (int i = 0; i < rows; i++)
        rlxvk_graph_output(r->graph, chain(r->graph, rlxvk_narrow(r->graph, x, 0, i, 1), length));
    TRY(rlxvk_compile(r->context, r->graph, &options, &r->executable));
    rlxvk_executable_plan(r->executable, &r->plan);
error:
    return status;
}

/* Microseconds of a run if several are in flight. */
static rlxvk_status time_burst(replay *r, double *out)
{
    double times[TURNS];
    rlxvk_ticket tickets[BURSTS];
    rlxvk_status status = RLXVK_OK;
    for (int turn = -2; turn < TURNS; turn++) {
        double begin = clock_seconds();
        for (int i = 0; i < BURSTS; i++)
            TRY(rlxvk_submit(r->executable, NULL, 0, NULL, 0, &tickets[i]));
        for (int i = 0; i < BURSTS; i++)
            TRY(rlxvk_wait(r->executable, tickets[i]));
        if (turn >= 0)
            times[turn] = (clock_seconds() - begin) * 1e6 / BURSTS;
    }
    *out = bench_median(times, TURNS);
error:
    return status;
}

static rlxvk_status report_dispatches(replay *r, const char *label, bool dependent)
{
    double many, one;
    rlxvk_status status;
    TRY(make_chains(r, 1, SHORT, RLXVK_ON));
    TRY(time_burst(r, &one));
    TRY(make_chains(r, dependent ? 1 : LONG, dependent ? LONG : 1, RLXVK_ON));
    TRY(time_burst(r, &many));
    printf("%-44s %9.3f us a dispatch (%u dispatches, %u barriers: %.1f us; 1: %.1f us)\n", label,
           (many - one) / (LONG - SHORT), r->plan.dispatches, r->plan.barriers, many, one);
error:
    return status;
}

static rlxvk_status report_order(replay *r, const char *label, rlxvk_toggle reorder)
{
    double time;
    rlxvk_status status;
    TRY(make_chains(r, BRANCHES, (LONG - 1) / BRANCHES, reorder));
    TRY(time_burst(r, &time));
    printf("%-44s %9.1f us a run (%u dispatches, %u barriers)\n", label, time, r->plan.dispatches,
           r->plan.barriers);
error:
    return status;
}

/* ---- The host's part ---- */

typedef struct host_times {
    double submit[HOST_TURNS], wait[HOST_TURNS], run[HOST_TURNS], cpu[HOST_TURNS];
} host_times;

static rlxvk_status make_small(replay *r)
{
    rlxvk_compile_options options = {.allow_unset = RLXVK_ON};
    rlxvk_status status;
    clear(r);
    TRY(rlxvk_graph_create(&r->graph));
    rlxvk_tensor x = rlxvk_input(r->graph, "x", RLXVK_F32, RLXVK_SHAPE(1, WIDTH));
    rlxvk_tensor w = rlxvk_param(r->graph, "w", RLXVK_F32, RLXVK_SHAPE(WIDTH, WIDTH));
    rlxvk_graph_output(r->graph, rlxvk_softmax(r->graph, rlxvk_matmul(r->graph, x, w), -1));
    TRY(rlxvk_compile(r->context, r->graph, &options, &r->executable));
error:
    return status;
}

/* Submits, lets the device finish, and only then waits. The rest is the host's time. */
static rlxvk_status time_host(replay *r, host_times *t)
{
    float x[WIDTH] = {0}, y[WIDTH];
    rlxvk_run_input in = {.name = "x", .data = x, .length = WIDTH};
    rlxvk_run_output out = {.index = 0, .buffer = y, .length = WIDTH};
    rlxvk_ticket ticket;
    rlxvk_status status = RLXVK_OK;
    for (int i = 0; i < HOST_TURNS; i++) {
        x[0] = (float)i; /* so that it is uploaded again */
        double begin = clock_seconds();
        TRY(rlxvk_submit(r->executable, &in, 1, &out, 1, &ticket));
        t->submit[i] = (clock_seconds() - begin) * 1e6;
        program_sleep(5e-4);
        begin = clock_seconds();
        TRY(rlxvk_wait(r->executable, ticket));
        t->wait[i] = (clock_seconds() - begin) * 1e6;
    }
    for (int i = 0; i < HOST_TURNS; i++) {
        x[0] = (float)-i;
        double begin = clock_seconds(), cpu = system_thread_seconds();
        TRY(rlxvk_run(r->executable, &in, 1, &out, 1));
        t->run[i] = (clock_seconds() - begin) * 1e6;
        t->cpu[i] = (system_thread_seconds() - cpu) * 1e6;
    }
error:
    return status;
}

static rlxvk_status report_host(replay *r)
{
    host_times *t = memory_zeroed(1, sizeof *t);
    rlxvk_status status;
    if (!t)
        return status_fail_memory("times");
    TRY(make_small(r));
    TRY(time_host(r, t));
    double submit = bench_median(t->submit, HOST_TURNS), wait = bench_median(t->wait, HOST_TURNS);
    printf("%-44s %9.1f us (submit %.1f, wait for what is done %.1f)\n",
           "host time of a run, 1 input, 1 output", submit + wait, submit, wait);
    printf("%-44s %9.1f us, of which this thread computes %.1f us\n",
           "rlxvk_run of matmul and softmax", bench_median(t->run, HOST_TURNS),
           bench_median(t->cpu, HOST_TURNS));
error:
    memory_free(t);
    return status;
}

/* ---- Few rows of a bucket ---- */

static rlxvk_tensor weight(rlxvk_graph *g, char kind, int layer, rlxvk_shape shape)
{
    char name[16];
    snprintf(name, sizeof name, "%c%d", kind, layer);
    return rlxvk_param(g, name, RLXVK_F32, shape);
}

/* Layers x + w silu(v norm(x)), each with biases. */
static rlxvk_status make_layers(replay *r, int64_t rows)
{
    static const rlxvk_bucket_axis axis = {"x", 0, false};
    rlxvk_compile_options options = {.allow_unset = RLXVK_ON,
                                     .max_in_flight = BURSTS + 1,
                                     .bucket_axes = &axis,
                                     .bucket_axis_count = rows > 1};
    rlxvk_status status;
    clear(r);
    TRY(rlxvk_graph_create(&r->graph));
    rlxvk_graph *g = r->graph;
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(rows, WIDTH));
    for (int i = 0; i < LAYERS; i++) {
        rlxvk_tensor h = rlxvk_layer_norm(g, x, weight(g, 'g', i, RLXVK_SHAPE(WIDTH)),
                                          weight(g, 'b', i, RLXVK_SHAPE(WIDTH)), -1, 1e-5f);
        h = rlxvk_matmul(g, h, weight(g, 'v', i, RLXVK_SHAPE(WIDTH, HIDDEN)));
        h = rlxvk_silu(g, rlxvk_add(g, h, weight(g, 'c', i, RLXVK_SHAPE(HIDDEN))));
        h = rlxvk_matmul(g, h, weight(g, 'w', i, RLXVK_SHAPE(HIDDEN, WIDTH)));
        x = rlxvk_add(g, x, rlxvk_add(g, h, weight(g, 'd', i, RLXVK_SHAPE(WIDTH))));
    }
    rlxvk_graph_output(g, x);
    TRY(rlxvk_compile(r->context, g, &options, &r->executable));
    rlxvk_executable_plan(r->executable, &r->plan);
error:
    return status;
}

static rlxvk_status report_rows(replay *r, int64_t actual, double *out)
{
    char label[64];
    rlxvk_status status;
    snprintf(label, sizeof label, "%d layers on %lld of %d rows", LAYERS, (long long)actual,
             BUCKET);
    TRY(rlxvk_set_active_extent(r->executable, actual, BUCKET));
    TRY(time_burst(r, out));
    printf("%-44s %9.1f us a run (%u dispatches, %u barriers)\n", label, *out, r->plan.dispatches,
           r->plan.barriers);
error:
    return status;
}

static rlxvk_status report_extents(replay *r)
{
    double few, one;
    rlxvk_extent_report report;
    rlxvk_status status;
    TRY(make_layers(r, BUCKET));
    if (!rlxvk_extent_supported(r->executable, &report))
        TRY(status_fail(RLXVK_E_UNSUPPORTED, "%s", report.reason));
    TRY(report_rows(r, BUCKET / 16, &few));
    TRY(report_rows(r, 1, &few));
    TRY(make_layers(r, 1));
    TRY(time_burst(r, &one));
    printf("%-44s %9.1f us a run (%u dispatches, %u barriers): 1 of %d takes %.2f times as long\n",
           "the same layers compiled for 1 row", one, r->plan.dispatches, r->plan.barriers, BUCKET,
           few / one);
error:
    return status;
}

rlxvk_status bench_replay(rlxvk_context *context)
{
    replay r = {.context = context};
    rlxvk_status status;
    TRY(report_dispatches(&r, "tiny dispatches, each reads the last", true));
    TRY(report_dispatches(&r, "tiny dispatches, independent", false));
    TRY(report_order(&r, "8 branches of 125, program order", RLXVK_OFF));
    TRY(report_order(&r, "8 branches of 125, level order", RLXVK_ON));
    TRY(report_host(&r));
    TRY(report_extents(&r));
error:
    clear(&r);
    return status;
}
