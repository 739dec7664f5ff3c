/*
 * rlxvk bench --inference: measures whole runs of well-known nets. It reports the time on the
 * device, the time by the clock from the call to the result on the host, memory, and the parts of a
 * run. A net's input lies on the device, as a param. Times are medians.
 */
#include "bench/bench_nets.h"
#include "cli/output.h"
#include "graph/graph.h"

#include <rlxvk_symbols.h>

#include <math.h>
#include <stdio.h>

typedef struct task {
    const char *name, *unit;
    rlxvk_tensor (*build)(bench_net *n, int64_t share, uint64_t *out_items);
    float least, most; /* range of the input */
    bool whole;        /* whole numbers, not pixels */
    int64_t tokens;    /* of a sequence; 0: the net's default */
    int64_t active;    /* of these, with an extent that shortens sequences; 0: all */
} task;

static const task tasks[] = {
    {"resnet50", "images", bench_resnet50, -1, 1, false, 0, 0},
    {"bert base", "tokens", bench_bert, 0, 3000, true, 0, 0},
    {"bert base, 32 of 128", "tokens", bench_bert, 0, 3000, true, 128, 32},
    {"bert base, 128 of 128", "tokens", bench_bert, 0, 3000, true, 128, 128},
    {"bert base of 32", "tokens", bench_bert, 0, 3000, true, 32, 0},
};

typedef struct inference {
    const bench_net_setup *setup;
    const task *task;
    bench_net net;
    rlxvk_executable *executable;
    float *result, *x; /* x: the input of each run, or NULL */
    uint64_t items, length, x_length;
    uint32_t random;
} inference;

typedef struct run_report {
    rlxvk_memory_report memory;
    rlxvk_plan_report plan;
    bench_net_times times;
} run_report;

static rlxvk_status set_input(inference *t)
{
    rlxvk_shape shape = rlxvk_tensor_shape(t->net.graph, t->net.x);
    t->x_length = shape_numel(&shape);
    t->x = memory_allocate(t->x_length * sizeof *t->x);
    if (!t->x)
        return status_fail_memory("input");
    for (uint64_t i = 0; i < t->x_length; i++) {
        float part = 0.5f + 0.5f * bench_uniform(&t->random);
        t->x[i] = t->task->least + part * (t->task->most - t->task->least);
        t->x[i] = t->task->whole ? floorf(t->x[i]) : t->x[i];
    }
    return t->net.is_given ? RLXVK_OK : rlxvk_set_param(t->executable, "x", t->x, t->x_length);
}

static rlxvk_status prepare(inference *t)
{
    rlxvk_bucket_axis sequences = {.input = "x", .axis = 1};
    rlxvk_compile_options options = {.precision = t->setup->precision,
                                     .time_runs = RLXVK_ON,
                                     .bucket_axes = &sequences,
                                     .bucket_axis_count = t->net.is_given,
                                     .extent_promise = t->net.is_given ? RLXVK_EXTENT_SHORTER
                                                                       : RLXVK_EXTENT_PREFIX};
    rlxvk_status status;
    TRY(rlxvk_graph_create(&t->net.graph));
    rlxvk_tensor y = t->task->build(&t->net, t->setup->share, &t->items);
    rlxvk_graph_output(t->net.graph, y);
    rlxvk_shape shape = rlxvk_tensor_shape(t->net.graph, y);
    t->length = shape_numel(&shape);
    t->result = memory_allocate(t->length * sizeof *t->result);
    TRY(t->result ? RLXVK_OK : status_fail_memory("result"));
    TRY(rlxvk_compile(t->setup->context, t->net.graph, &options, &t->executable));
    TRY(bench_set_parameters(&t->net, t->executable, &t->random));
    TRY(set_input(t));
    if (t->net.is_given) {
        TRY(rlxvk_set_active_extent(t->executable, t->task->active, t->task->tokens));
        t->items = t->items / (uint64_t)t->task->tokens * (uint64_t)t->task->active;
    }
error:
    return status;
}

static rlxvk_status run_once(void *user)
{
    inference *t = user;
    rlxvk_run_input input = {.name = "x", .data = t->x, .length = t->x_length};
    rlxvk_run_output output = {.index = 0, .buffer = t->result, .length = t->length};
    return rlxvk_run(t->executable, &input, t->net.is_given, &output, 1);
}

static rlxvk_status measure(inference *t, run_report *out)
{
    rlxvk_device_info info;
    rlxvk_status status;
    TRY(prepare(t));
    rlxvk_context_device(t->setup->context, &info);
    out->times.stamps = info.timestamps ? t->executable : NULL;
    TRY(bench_median_times(run_once, t, 3, t->setup->share > 1 ? 3 : BENCH_MOST_RUNS, &out->times));
    rlxvk_executable_memory(t->executable, &out->memory);
    rlxvk_executable_plan(t->executable, &out->plan);
error:
    return status;
}

static void print_report(const inference *t, const run_report *r, bool first)
{
    double bytes =
        (double)(r->memory.weight_bytes + r->memory.state_bytes + r->memory.scratch_bytes);
    double rate = (double)t->items / r->times.device;
    const json_figure figures[] = {{"sizes_divided_by", (double)t->setup->share},
                                   {"ms", 1e3 * r->times.device},
                                   {"clock_ms", 1e3 * r->times.clock},
                                   {"items_per_second", rate},
                                   {"bytes", bytes},
                                   {"scratch_bytes", (double)r->memory.scratch_bytes},
                                   {"host_steps", r->plan.host_steps},
                                   {"dispatches", r->plan.dispatches}};
    if (!t->setup->json) {
        printf("%-22s %9.2f ms, %.2f by the clock %10.0f %s/s  %8.1f MB (scratch %.1f)  %u host "
               "steps, %u dispatches\n",
               t->task->name, 1e3 * r->times.device, 1e3 * r->times.clock, rate, t->task->unit,
               1e-6 * bytes, 1e-6 * (double)r->memory.scratch_bytes, r->plan.host_steps,
               r->plan.dispatches);
        return;
    }
    bench_begin_object(t->task->name, t->task->unit, t->executable, first);
    print_json_figures(stdout, figures, ARRAY_COUNT(figures));
    printf("}");
}

static void inference_destroy(inference *t)
{
    memory_free(t->result);
    memory_free(t->x);
    rlxvk_executable_destroy(t->executable);
    rlxvk_graph_destroy(t->net.graph);
    VECTOR_FREE(&t->net.parameters);
}

static const char *name_of(size_t i)
{
    return tasks[i].name;
}

static rlxvk_status time_task(const bench_net_setup *setup, size_t i, bool first)
{
    inference t = {.setup = setup,
                   .task = &tasks[i],
                   .net = {.infer = true,
                           .tokens = tasks[i].tokens,
                           .is_given = tasks[i].active > 0},
                   .random = 1};
    run_report report = {0};
    rlxvk_status status = measure(&t, &report);
    print_progress(NULL);
    if (status == RLXVK_OK)
        print_report(&t, &report, first);
    inference_destroy(&t);
    return status;
}

rlxvk_status bench_inference(const bench_net_setup *setup)
{
    return bench_each_net(setup, &(bench_net_kind){ARRAY_COUNT(tasks), name_of, time_task});
}
