/*
 * rlxvk bench --training: measures whole training steps of well-known nets: forward, backward,
 * clipping and optimizer. It reports time, memory, and the parts of a step. Times are medians of
 * the clock until the loss is there. They begin with the upload of tokens; images already lie on
 * the device, as params.
 */
#include "bench/bench_nets.h"
#include "cli/output.h"
#include "graph/graph.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define STEPS   12 /* timed steps, after two that are not */
#define CLASSES 1000

typedef struct task {
    const char *name, *unit;
    rlxvk_tensor (*build)(bench_net *n, int64_t share, uint64_t *out_items);
    bool images; /* "x" has pixels, not tokens */
    bool sgd;    /* SGD with momentum; otherwise AdamW */
} task;

static const task tasks[] = {{"gpt2 124M", "tokens", bench_gpt2, false, false},
                             {"byte model", "tokens", bench_byte_model, false, false},
                             {"resnet18", "images", bench_resnet18, true, true}};

typedef struct training {
    const bench_net_setup *setup;
    const task *task;
    bench_net net;
    rlxvk_executable *executable;
    float *x, *y;
    uint64_t items, x_length;
    uint32_t random;
    float loss; /* of the last step */
} training;

/* ---- Building ---- */

static rlxvk_tensor average(training *t, size_t of, int index)
{
    char name[24];
    snprintf(name, sizeof name, "p%zu.%d", of, index);
    return rlxvk_param(t->net.graph, name, RLXVK_F32,
                       rlxvk_tensor_shape(t->net.graph, t->net.parameters.items[of].tensor));
}

static void step_parameter(training *t, size_t i, rlxvk_tensor gradient,
                           const rlxvk_optimizer_data *data)
{
    static const rlxvk_sgd_options sgd = {.learning_rate = 1e-3f, .momentum = 0.9f};
    static const rlxvk_adamw_options adamw = {1e-4f, 0.9f, 0.95f, 1e-8f, 0.1f, 1};
    rlxvk_graph *g = t->net.graph;
    rlxvk_tensor p = t->net.parameters.items[i].tensor;
    if (t->task->sgd)
        rlxvk_sgd(g, p, gradient, average(t, i, 0), &sgd, data, NULL);
    else
        rlxvk_adamw(g, p, gradient, average(t, i, 0), average(t, i, 1), &adamw, data, NULL);
}

static rlxvk_status add_steps(training *t, rlxvk_tensor loss)
{
    size_t count = 0, most = t->net.parameters.count;
    rlxvk_tensor *wrt = memory_zeroed(2 * most + 1, sizeof *wrt);
    size_t *places = memory_zeroed(most + 1, sizeof *places);
    rlxvk_status status = RLXVK_OK;
    TRY(wrt && places ? RLXVK_OK : status_fail_memory("gradients"));
    rlxvk_tensor *gradients = wrt + most;
    for (size_t i = 0; i < most; i++)
        if (t->net.parameters.items[i].trained) {
            places[count] = i;
            wrt[count++] = t->net.parameters.items[i].tensor;
        }
    rlxvk_grad(t->net.graph, loss, RLXVK_NONE, wrt, count, gradients);
    rlxvk_optimizer_data data = {.gradient_scale =
                                     rlxvk_gradient_clip(t->net.graph, gradients, count, 1)};
    rlxvk_graph_output(t->net.graph, loss);
    for (size_t i = 0; i < count; i++)
        step_parameter(t, places[i], gradients[i], &data);
error:
    memory_free(wrt);
    memory_free(places);
    return status;
}

static rlxvk_status make_batch(training *t)
{
    rlxvk_status status = RLXVK_OK;
    t->x = memory_allocate(t->x_length * sizeof *t->x);
    t->y = memory_allocate(t->items * sizeof *t->y);
    TRY(t->x && t->y ? RLXVK_OK : status_fail_memory("batch"));
    for (uint64_t i = 0; i < t->x_length; i++)
        t->x[i] = t->task->images ? bench_uniform(&t->random)
                                  : floorf(fabsf(bench_uniform(&t->random)) * 319);
    for (uint64_t i = 0; i < t->items; i++)
        t->y[i] = floorf(fabsf(bench_uniform(&t->random)) * (t->task->images ? CLASSES - 1 : 319));
error:
    return status;
}

static rlxvk_status prepare(training *t)
{
    rlxvk_compile_options options = {.precision = t->setup->precision, .allow_unset = RLXVK_ON};
    rlxvk_status status;
    TRY(rlxvk_graph_create(&t->net.graph));
    rlxvk_tensor loss = t->task->build(&t->net, t->setup->share, &t->items);
    TRY(add_steps(t, loss));
    rlxvk_shape x = rlxvk_tensor_shape(t->net.graph, t->net.x);
    t->x_length = shape_numel(&x);
    TRY(rlxvk_compile(t->setup->context, t->net.graph, &options, &t->executable));
    TRY(bench_set_parameters(&t->net, t->executable, &t->random));
    TRY(make_batch(t));
    if (t->task->images) {
        TRY(rlxvk_set_param(t->executable, "x", t->x, t->x_length));
        TRY(rlxvk_set_param(t->executable, "y", t->y, t->items));
    }
error:
    return status;
}

/* ---- Timing ---- */

static rlxvk_status run(void *user)
{
    training *t = user;
    const rlxvk_run_input inputs[] = {{.name = "x", .data = t->x, .length = t->x_length},
                                      {.name = "y", .data = t->y, .length = t->items}};
    rlxvk_run_output output = {.index = 0, .buffer = &t->loss, .length = 1};
    return rlxvk_run(t->executable, inputs, t->task->images ? 0 : 2, &output, 1);
}

typedef struct step_report {
    rlxvk_memory_report memory;
    rlxvk_plan_report plan;
    double seconds, rate, bytes;
    float losses[2];
} step_report;

static void print_text(const training *t, const step_report *r)
{
    printf("%-12s%-11s %9.2f ms %10.0f %s/s  %8.1f MB (scratch %.1f, at least %.1f; computed again "
           "%.1f)  %u submissions, %u host steps, %u dispatches; loss %.4f, then %.4f\n",
           t->task->name, t->net.recompute ? " recompute" : "", 1e3 * r->seconds, r->rate,
           t->task->unit, 1e-6 * r->bytes, 1e-6 * (double)r->memory.scratch_bytes,
           1e-6 * (double)r->memory.scratch_lower_bound, 1e-6 * (double)r->memory.recomputed_bytes,
           r->plan.submissions_per_run, r->plan.host_steps, r->plan.dispatches,
           (double)r->losses[0], (double)r->losses[1]);
}

static void print_object(const training *t, const step_report *r, bool first)
{
    const json_figure figures[] = {{"sizes_divided_by", (double)t->setup->share},
                                   {"ms", 1e3 * r->seconds},
                                   {"items_per_second", r->rate},
                                   {"bytes", r->bytes},
                                   {"scratch_bytes", (double)r->memory.scratch_bytes},
                                   {"scratch_lower_bound", (double)r->memory.scratch_lower_bound},
                                   {"recomputed_bytes", (double)r->memory.recomputed_bytes},
                                   {"submissions", r->plan.submissions_per_run},
                                   {"host_steps", r->plan.host_steps},
                                   {"dispatches", r->plan.dispatches},
                                   {"first_loss", (double)r->losses[0]},
                                   {"last_loss", (double)r->losses[1]}};
    bench_begin_object(t->task->name, t->task->unit, t->executable, first);
    printf(", \"recompute\": %s", t->net.recompute ? "true" : "false");
    print_json_figures(stdout, figures, ARRAY_COUNT(figures));
    printf("}");
}

static rlxvk_status measure(training *t, step_report *out)
{
    bench_net_times times = {0};
    rlxvk_status status;
    TRY(prepare(t));
    TRY(run(t));
    out->losses[0] = t->loss;
    TRY(bench_median_times(run, t, 1, t->setup->share > 1 ? 3 : STEPS, &times));
    out->losses[1] = t->loss;
    out->seconds = times.clock;
    out->rate = (double)t->items / out->seconds;
    rlxvk_executable_memory(t->executable, &out->memory);
    rlxvk_executable_plan(t->executable, &out->plan);
    out->bytes =
        (double)(out->memory.weight_bytes + out->memory.state_bytes + out->memory.scratch_bytes);
error:
    return status;
}

static void training_destroy(training *t)
{
    memory_free(t->x);
    memory_free(t->y);
    rlxvk_executable_destroy(t->executable);
    rlxvk_graph_destroy(t->net.graph);
    VECTOR_FREE(&t->net.parameters);
}

/* Each net is timed twice. */
static const char *name_of(size_t i)
{
    return tasks[i / 2].name;
}

static rlxvk_status time_task(const bench_net_setup *setup, size_t i, bool first)
{
    training t = {.setup = setup, .task = &tasks[i / 2], .net.recompute = i % 2, .random = 1};
    step_report report = {0};
    rlxvk_status status = measure(&t, &report);
    print_progress(NULL);
    if (status == RLXVK_OK && setup->json)
        print_object(&t, &report, first);
    else if (status == RLXVK_OK)
        print_text(&t, &report);
    training_destroy(&t);
    return status;
}

rlxvk_status bench_training(const bench_net_setup *setup)
{
    return bench_each_net(setup, &(bench_net_kind){2 * ARRAY_COUNT(tasks), name_of, time_task});
}
