/*
 * Measures one case: copies of the op, each on its own leaves with random contents, in timed runs.
 *
 * gradient=alone measures the gradients of all leaves instead of the result. The leaf "dy" is the
 * result's gradient. gradient=beside measures both, in one graph.
 */
#include "cli/option.h"
#include "bench/bench.h"
#include "exec/executable.h"

#include <rlxvk_train.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COPIES = 32, MOST_STEPS = 1024, MOST_RUNS = 40, FEWEST_RUNS = 3, BURST = 16 };

#define WORKING_SET_GPU     (256.0 * 1048576)
#define WORKING_SET_CPU     (48.0 * 1048576)
#define SECONDS_GPU         0.4
#define SECONDS_CPU         0.2
#define SECONDS_WARM_UP_GPU 0.5 /* an idle GPU raises its clocks after up to 0.4 s of work */
#define SECONDS_WARM_UP_CPU 0.15
#define BURST_MICROSECONDS  4000.0 /* of work in flight at once */
#define COMPUTE_BOUND                                                                              \
    64.0                     /* flops a byte; above this, caching the operands does not            \
                                help */
#define RANDOM_WORDS 4194304 /* longer leaves repeat their contents */

typedef struct bench {
    const bench_setup *setup;
    option_variants names;
    rlxvk_compile_options chosen; /* with the setup's variants */
    case_spec spec;
    bool cpu;
    uint32_t copies, burst;
    rlxvk_graph *graph;
    rlxvk_executable *executable;
    double run_microseconds[MOST_RUNS];
} bench;

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return count ? values[count / 2] : 0;
}

static bool has_gradient(const case_spec *s)
{
    return case_word(s, "gradient", NULL) != NULL;
}

static bool has_result(const case_spec *s)
{
    return strcmp(case_word(s, "gradient", "beside"), "beside") == 0;
}

/* ---- Work of one op ---- */

static double elements(const rlxvk_shape *s)
{
    double product = 1;
    for (uint32_t i = 0; i < s->rank; i++)
        product *= (double)s->dims[i];
    return product;
}

static const rlxvk_shape *leaf_shape(const case_spec *s, const char *name)
{
    static const rlxvk_shape none = {.rank = 1};
    for (size_t i = 0; i < s->input_count; i++)
        if (strcmp(s->inputs[i].name, name) == 0)
            return &s->inputs[i].shape;
    return &none;
}

/* conv sums the taps and channels of a row of w for every element of y. Its transpose spreads every
 * element of x over as many of y. The gradients need as many operations. */
static double count_conv_flops(const case_spec *s, const rlxvk_shape *y)
{
    const rlxvk_shape *w = leaf_shape(s, "w");
    double row = w->dims[0] ? elements(w) / (double)w->dims[0] : 0;
    if (strcmp(s->row, "conv") == 0 || strcmp(s->row, "fused_conv") == 0)
        return 2 * elements(y) * row;
    if (strcmp(s->row, "conv_backward_input") == 0)
        return 2 * elements(leaf_shape(s, "dy")) * row;
    if (strcmp(s->row, "conv_backward_weight") == 0 && y->dims[0])
        return 2 * elements(leaf_shape(s, "dy")) * elements(y) / (double)y->dims[0];
    return strcmp(s->row, "conv_transpose2d") == 0 ? 2 * elements(leaf_shape(s, "x")) * row : 0;
}

/* Products do two flops for every output element and summed element. Other ops are limited by
 * memory. */
static double count_flops(const case_spec *s, const rlxvk_shape *y)
{
    if (strcmp(s->row, "matmul") == 0) {
        const rlxvk_shape *a = leaf_shape(s, "a");
        return 2 * elements(y) * (double)a->dims[a->rank - 1];
    }
    if (strcmp(s->row, "dequant_matmul") == 0 || strcmp(s->row, "dequant_grouped_matmul") == 0) {
        const rlxvk_shape *x = leaf_shape(s, "x");
        return 2 * elements(y) * (double)x->dims[x->rank - 1];
    }
    bool attends = strcmp(s->row, "attention") == 0;
    if (attends || strcmp(s->row, "attention_backward") == 0) {
        bool causal = strcmp(case_word(s, "mask", "none"), "causal") == 0;
        const rlxvk_shape *q = leaf_shape(s, "q");
        double queries = (double)q->dims[2], keys = (double)leaf_shape(s, "k")->dims[2];
        double seen = causal ? keys - (queries - 1) / 2 : keys; /* keys for a query, on average */
        /* The result has two products, its gradients have five. */
        double products = attends ? (has_gradient(s) ? 7 : 2) : 5;
        return 2 * products * elements(q) * seen;
    }
    return count_conv_flops(s, y);
}

static double leaf_bytes(const case_input *leaf)
{
    double word = leaf->dtype == RLXVK_F16 || leaf->dtype == RLXVK_BF16 ? 2 : 4;
    return (double)case_length(leaf) * (case_is_raw(leaf) ? 1 : word);
}

/* Counts every operand and gradient once, but of a gathered table only the rows that are read. */
static double count_bytes(const case_spec *s, const rlxvk_shape *y)
{
    bool complex = strcmp(s->row, "fft") == 0;
    double bytes = has_result(s) ? (complex ? 8 : 4) * elements(y) : 0;
    for (size_t i = 0; i < s->input_count; i++) {
        bool table = strcmp(s->row, "gather") == 0 && i == 0;
        bool differentiated = has_gradient(s) && strcmp(s->inputs[i].name, "dy") != 0;
        bytes += table ? 4 * elements(y) : leaf_bytes(&s->inputs[i]) * (differentiated ? 2 : 1);
    }
    return bytes;
}

/* ---- Graph ---- */

static void leaf_name(const bench *b, size_t input, uint32_t copy, char out[40])
{
    text name = {out, 40, 0};
    text_append(&name, "%s%u", b->spec.inputs[input].name, copy);
}

static void output_gradients(const bench *b, const rlxvk_tensor *leaves, rlxvk_tensor y)
{
    rlxvk_tensor wrt[CASE_MAX_INPUTS], gradients[CASE_MAX_INPUTS];
    rlxvk_tensor dy = case_tensor(&b->spec, leaves, "dy");
    size_t count = 0;
    for (size_t i = 0; i < b->spec.input_count; i++)
        if (leaves[i].id != dy.id)
            wrt[count++] = leaves[i];
    rlxvk_grad(b->graph, y, dy, wrt, count, gradients);
    for (size_t i = 0; i < count; i++)
        rlxvk_graph_output(b->graph, gradients[i]);
}

static rlxvk_status build(bench *b, rlxvk_shape *out_shape)
{
    const case_family *family = case_find_family(b->spec.row);
    rlxvk_status status;
    char name[40];
    if (!family)
        return status_fail(RLXVK_E_UNKNOWN_OP, "no case family builds row '%s'", b->spec.row);
    rlxvk_graph_destroy(b->graph);
    b->graph = NULL;
    TRY(rlxvk_graph_create(&b->graph));
    for (uint32_t copy = 0; copy < b->copies; copy++) {
        rlxvk_tensor leaves[CASE_MAX_INPUTS], y;
        for (size_t i = 0; i < b->spec.input_count; i++) {
            leaf_name(b, i, copy, name);
            leaves[i] =
                rlxvk_param(b->graph, name, b->spec.inputs[i].dtype, b->spec.inputs[i].shape);
        }
        y = family->build(b->graph, &b->spec, leaves);
        if (has_result(&b->spec))
            rlxvk_graph_output(b->graph, y);
        if (has_gradient(&b->spec))
            output_gradients(b, leaves, y);
        *out_shape = rlxvk_tensor_shape(b->graph, y);
    }
    if (rlxvk_graph_status(b->graph) != RLXVK_OK)
        status = status_fail(rlxvk_graph_status(b->graph), "%s", rlxvk_graph_error(b->graph));
error:
    return status;
}

/* Gives a leaf random contents, in every copy. The copies have equal values in different memory. */
static rlxvk_status fill_leaf(bench *b, size_t input)
{
    const case_input *leaf = &b->spec.inputs[input];
    uint64_t length = case_length(leaf), fresh = MIN(length, RANDOM_WORDS);
    float *words = memory_allocate(length * (case_is_raw(leaf) ? 1 : sizeof *words) + 8);
    rlxvk_status status = RLXVK_OK;
    char name[40];
    if (!words)
        return status_fail_memory("bench input");
    if (case_is_raw(leaf))
        TRY(fill_bytes(leaf->fill, input + 1, length, (uint8_t *)words));
    else
        TRY(fill_words(leaf->fill, input + 1, fresh, words));
    for (uint64_t at = fresh; !case_is_raw(leaf) && at < length; at += fresh)
        memcpy(words + at, words, MIN(fresh, length - at) * sizeof *words);
    for (uint32_t copy = 0; copy < b->copies; copy++) {
        leaf_name(b, input, copy, name);
        TRY(case_is_raw(leaf) ? rlxvk_set_param_bytes(b->executable, name, words, length)
                              : rlxvk_set_param_typed(b->executable, name, words,
                                                      length * sizeof *words, RLXVK_F32));
    }
error:
    memory_free(words);
    return status;
}

static rlxvk_compile_options options_of(const bench *b)
{
    bool regions = case_integer(&b->spec, "regions", 1);
    return (rlxvk_compile_options){.precision = case_precision(&b->spec, b->setup->precision),
                                   .variants = b->chosen.variants,
                                   .variant_count = b->chosen.variant_count,
                                   .full_barrier = RLXVK_ON,
                                   .max_in_flight = BURST,
                                   .regions = regions ? RLXVK_DEFAULT : RLXVK_OFF,
                                   .reorder = RLXVK_OFF};
}

static rlxvk_status compile(bench *b)
{
    rlxvk_compile_options options = options_of(b);
    rlxvk_status status;
    options.time_runs = RLXVK_ON;
    TRY(rlxvk_compile(b->setup->context, b->graph, &options, &b->executable));
    for (size_t i = 0; i < b->spec.input_count; i++)
        TRY(fill_leaf(b, i));
error:
    return status;
}

static void discard(bench *b)
{
    rlxvk_executable_destroy(b->executable);
    b->executable = NULL;
}

/* Runs on zeros, and finds the kernel of the longest step and whether a step runs on the host. */
static rlxvk_status name_kernel(bench *b, bench_result *out)
{
    rlxvk_compile_options options = options_of(b);
    rlxvk_step_time *steps = memory_zeroed(MOST_STEPS, sizeof *steps);
    text kernel = {out->kernel, sizeof out->kernel, 0};
    size_t count = 0, longest = 0;
    rlxvk_status status = RLXVK_OK;
    options.allow_unset = RLXVK_ON;
    options.profile = RLXVK_ON;
    if (!steps)
        TRY(status_fail_memory("bench steps"));
    TRY(rlxvk_compile(b->setup->context, b->graph, &options, &b->executable));
    TRY(rlxvk_run(b->executable, NULL, 0, NULL, 0));
    TRY(rlxvk_executable_profile(b->executable, steps, MOST_STEPS, &count));
    for (size_t i = 0; i < MIN(count, MOST_STEPS); i++) {
        out->host |= !steps[i].gpu;
        if (steps[i].microseconds > steps[longest].microseconds)
            longest = i;
    }
    text_append(&kernel, "%s", count ? steps[longest].name : "");
error:
    discard(b);
    memory_free(steps);
    return status;
}

/* Reads from the plan which kernel variants were chosen, and by whom. */
static void note_variants(const bench *b, bench_result *out)
{
    const schedule *s = &b->executable->program->schedule;
    const char *kind = b->setup->kind;
    for (size_t i = s->queries.count; kind && i-- > 0;)
        if (strcmp(s->queries.items[i].kind->name, kind) == 0)
            out->query = s->queries.items[i];
    for (size_t i = 0; i < s->dispatches.count; i++)
        out->named |= s->dispatches.items[i].source == VARIANT_BY_NAME;
    for (size_t i = 0; out->query.kind && i < s->dispatches.count && !out->variant; i++) {
        const char *row, *used = s->dispatches.items[i].variant;
        for (size_t k = 0; used && (row = choice_row_name(out->query.kind, k)); k++)
            if (row == used)
                out->variant = row;
    }
}

/* ---- Timing ---- */

/* Submits several runs, so that the device is never idle between them, because idle devices lower
 * their clocks. */
static rlxvk_status run_burst(bench *b, double *out_time)
{
    rlxvk_ticket tickets[BURST];
    double begin = clock_seconds();
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = 0; i < b->burst; i++)
        TRY(rlxvk_submit(b->executable, NULL, 0, NULL, 0, &tickets[i]));
    for (uint32_t i = 0; i < b->burst; i++)
        TRY(rlxvk_wait(b->executable, tickets[i]));
    *out_time = (clock_seconds() - begin) * 1e6 / b->burst;
    b->burst = (uint32_t)MIN(MAX(BURST_MICROSECONDS / *out_time, 1), BURST);
error:
    return status;
}

/* Runs a burst and returns the time of its last run. */
static rlxvk_status run_once(bench *b, bool timestamps, double *out_time)
{
    rlxvk_status status;
    TRY(run_burst(b, out_time));
    if (timestamps)
        TRY(rlxvk_executable_run_time(b->executable, out_time));
error:
    return status;
}

static rlxvk_status time_runs(bench *b, bool timestamps, bench_result *out)
{
    const bench_setup *setup = b->setup;
    double usual = b->cpu ? SECONDS_CPU : SECONDS_GPU, begin = clock_seconds();
    double budget = setup->seconds > 0 ? setup->seconds : usual;
    double usual_warm_up = b->cpu ? SECONDS_WARM_UP_CPU : SECONDS_WARM_UP_GPU;
    double warm_up = setup->warm_up > 0 ? setup->warm_up : usual_warm_up;
    size_t count = 0;
    rlxvk_status status;
    do {
        TRY(run_once(b, timestamps, &out->microseconds));
        out->microseconds /= b->copies;
    } while (clock_seconds() - begin < warm_up);
    if (setup->limit > 0 && out->microseconds > setup->limit)
        return RLXVK_OK;
    begin = clock_seconds();
    while (count < FEWEST_RUNS || (count < MOST_RUNS && clock_seconds() - begin < budget))
        TRY(run_once(b, timestamps, &b->run_microseconds[count++]));
    out->microseconds = bench_median(b->run_microseconds, count) / b->copies;
error:
    return status;
}

/* Chooses so many copies that they fill the working set. Products that compute much do not need
 * this. */
static void choose_copies(bench *b, const bench_result *work)
{
    double set = b->cpu ? WORKING_SET_CPU : WORKING_SET_GPU, copies = ceil(set / work->bytes);
    bool compute = work->flops > COMPUTE_BOUND * work->bytes;
    b->copies = compute ? 1 : (uint32_t)MIN(MAX(copies, 1), MOST_COPIES);
}

rlxvk_status bench_run(const bench_setup *setup, const char *line, bench_result *out)
{
    bench b = {.setup = setup, .copies = 1, .burst = 1};
    rlxvk_device_info device;
    rlxvk_plan_report plan;
    rlxvk_shape shape;
    rlxvk_status status;
    *out = (bench_result){0};
    rlxvk_context_device(setup->context, &device);
    b.cpu = device.kind == RLXVK_DEVICE_CPU;
    TRY(case_parse(line, &b.spec));
    TRY(option_set_variants(setup->variant, &b.names, &b.chosen));
    TRY(build(&b, &shape));
    out->flops = count_flops(&b.spec, &shape);
    out->bytes = count_bytes(&b.spec, &shape);
    choose_copies(&b, out);
    if (device.timestamps && !setup->kind)
        TRY(name_kernel(&b, out));
    TRY(build(&b, &shape));
    TRY(compile(&b));
    note_variants(&b, out);
    if (setup->only_named && !out->named)
        goto error;
    rlxvk_executable_plan(b.executable, &plan);
    if (plan.dispatches > MOST_STEPS && b.copies > 1) { /* a long chain has enough work in one
                                                           copy */
        discard(&b);
        b.copies = 1;
        TRY(build(&b, &shape));
        TRY(compile(&b));
    }
    TRY(time_runs(&b, device.timestamps, out));
error:
    discard(&b);
    rlxvk_graph_destroy(b.graph);
    return status;
}
