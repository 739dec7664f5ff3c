/* See run.h: one model, its runs and what is expected. */
#include "bench/bench.h"
#include "cli/clock.h"
#include "cli/labels.h"
#include "cli/run_job.h"
#include "base/new_file.h"

#include <rlxvk_symbols.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Runs ---- */

static uint32_t random_bits(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Floats from -1 to 1, and zeros for other types, because they are often indices. */
static rlxvk_status fill_random(const rlxvk_tensor_info *info, uint32_t seed, array *out)
{
    rlxvk_status status;
    TRY(array_make(info->dtype, info->shape, out));
    for (uint64_t i = 0; info->dtype == RLXVK_F32 && i < out->numel; i++)
        ((float *)out->data)[i] = (float)random_bits(&seed) / (1 << 23) - 1;
error:
    return status;
}

static rlxvk_status collect_inputs(run_job *j, rlxvk_run_input *out, size_t *out_count)
{
    rlxvk_tensor_info infos[RUN_MOST];
    size_t count;
    rlxvk_status status;
    TRY(rlxvk_executable_inputs(j->e, infos, ARRAY_COUNT(infos), &count));
    *out_count = 0;
    for (size_t i = 0; i < MIN(count, ARRAY_COUNT(infos)); i++) {
        run_input *in = run_find_input(j, infos[i].name);
        if (!in)
            continue; /* the random numbers' own */
        if (!infos[i].live)
            array_destroy(&in->value); /* nothing reads it, so its file does not matter */
        if (!in->value.data)
            TRY(fill_random(&infos[i], (uint32_t)i, &in->value));
        if (!rlxvk_shape_equal(infos[i].shape, in->value.shape))
            TRY(status_fail(RLXVK_E_SHAPE,
                            "input '%s' is %s in the model; its file has another "
                            "shape",
                            in->info.name, infos[i].shape_text));
        if (in->value.short_words && infos[i].dtype == RLXVK_BF16)
            array_take_as_bf16(&in->value);
        out[(*out_count)++] = (rlxvk_run_input){.name = in->info.name,
                                                .data = in->value.data,
                                                .length = (size_t)in->value.numel,
                                                .dtype = in->value.dtype};
    }
error:
    return status;
}

/* The file's outputs, then counts of those whose sizes data decides. */
static rlxvk_status make_outputs(run_job *j, rlxvk_run_output **out)
{
    size_t count = rlxvk_executable_output_count(j->e);
    rlxvk_status status = RLXVK_OK;
    j->r->outputs = memory_zeroed(count + 1, sizeof *j->r->outputs);
    *out = memory_zeroed(count + 1, sizeof **out);
    if (!j->r->outputs || !*out)
        return status_fail_memory("outputs");
    j->r->output_count = count;
    for (size_t i = 0; i < count; i++) {
        array *a = &j->r->outputs[i].value;
        TRY(array_make(rlxvk_executable_output_dtype(j->e, i),
                       rlxvk_executable_output_shape(j->e, i), a));
        (*out)[i] = (rlxvk_run_output){.index = i,
                                       .buffer = a->data,
                                       .length = (size_t)a->numel,
                                       .dtype = a->dtype};
    }
error:
    return status;
}

/* Leaves the file's outputs, with the sizes that the run gave them. */
static rlxvk_status shorten_outputs(run_job *j)
{
    size_t all = j->r->output_count, count;
    rlxvk_model_info *infos = memory_zeroed(all + 1, sizeof *infos);
    rlxvk_status status;
    if (!infos)
        return status_fail_memory("outputs");
    TRY(rlxvk_model_outputs(j->model, infos, all, &count));
    for (size_t i = 0; i < count; i++) {
        run_output *o = &j->r->outputs[i];
        snprintf(o->name, sizeof o->name, "%s", infos[i].name);
        if (infos[i].count_output)
            array_shorten(&o->value, infos[i].count_axis,
                          *(int64_t *)j->r->outputs[infos[i].count_output].value.data);
    }
    for (size_t i = count; i < all; i++)
        array_destroy(&j->r->outputs[i].value);
    j->r->output_count = count;
error:
    memory_free(infos);
    return status;
}

/* The device's time stays 0 if the device cannot tell it. */
static rlxvk_status run_often(run_job *j, const rlxvk_run_input *inputs, size_t input_count,
                              const rlxvk_run_output *outputs)
{
    size_t repeat = (size_t)j->o->repeat, later = repeat ? 1 : 0, count = repeat + 1 - later;
    double *times = memory_zeroed(repeat + 1, sizeof *times);
    double *device = memory_zeroed(repeat + 1, sizeof *device);
    rlxvk_status status = times && device ? RLXVK_OK : status_fail_memory("times");
    TRY(status);
    for (size_t i = 0; i <= repeat; i++) {
        double start = clock_seconds();
        TRY(rlxvk_run(j->e, inputs, input_count, outputs, j->r->output_count));
        times[i] = 1e3 * (clock_seconds() - start);
        rlxvk_status timed = rlxvk_executable_run_time(j->e, &device[i]);
        if (timed != RLXVK_E_UNSUPPORTED)
            TRY(timed);
        device[i] /= 1e3;
    }
    j->r->first_ms = times[0];
    j->r->median_ms = bench_median(times + later, count);
    j->r->device_ms = bench_median(device + later, count);
error:
    memory_free(times);
    memory_free(device);
    return status;
}

static rlxvk_status run_executable(run_job *j)
{
    rlxvk_run_input inputs[RUN_MOST];
    rlxvk_run_output *outputs = NULL;
    size_t input_count;
    rlxvk_status status;
    TRY(collect_inputs(j, inputs, &input_count));
    TRY(make_outputs(j, &outputs));
    TRY(run_often(j, inputs, input_count, outputs));
    if (j->o->profile)
        TRY(run_profile(j));
    if (j->o->check)
        TRY(run_check(j, inputs, input_count));
    TRY(shorten_outputs(j));
error:
    memory_free(outputs);
    return status;
}

/* ---- Results ---- */

static rlxvk_status measure(run_output *o)
{
    double *numbers = array_numbers(&o->value), sum = 0;
    uint64_t count = 0;
    if (!numbers)
        return status_fail_memory("output");
    o->lowest = INFINITY;
    o->highest = -INFINITY;
    for (uint64_t i = 0; i < o->value.numel; i++) {
        if (!isfinite(numbers[i])) {
            o->not_finite++;
            continue;
        }
        o->lowest = fmin(o->lowest, numbers[i]);
        o->highest = fmax(o->highest, numbers[i]);
        sum += numbers[i];
        count++;
    }
    o->mean = count ? sum / (double)count : 0;
    memory_free(numbers);
    return RLXVK_OK;
}

static bool is_near(const run_options *o, rlxvk_dtype dtype, double got, double wanted, double unit)
{
    bool real = dtype <= RLXVK_F64;
    /* Programs round to BF16 in several ways, so a result may be off by one unit. */
    double rtol = dtype == RLXVK_BF16 ? fmax(o->rtol, 1.0 / 128) : o->rtol;
    if (isnan(wanted) || isnan(got))
        return isnan(wanted) && isnan(got);
    if (isinf(wanted) || isinf(got) || !real)
        return wanted == got;
    return fabs(got - wanted) <= fmax(o->atol, unit) + rtol * fabs(wanted);
}

/* Compares an output with what is expected. Integers must be equal. */
static void compare_numbers(run_job *j, const run_output *got, const double *a, const double *b)
{
    uint64_t bad = 0, worst = 0;
    double largest = 0;
    /* Two units in the last place of the largest element: sums in f32 cancel to no less. */
    for (uint64_t i = 0; i < got->value.numel; i++)
        largest = isfinite(b[i]) ? fmax(largest, fabs(b[i])) : largest;
    largest *= 1.0 / (1 << 22);
    for (uint64_t i = 0; i < got->value.numel; i++) {
        if (is_near(j->o, got->value.dtype, a[i], b[i], largest))
            continue;
        if (bad == 0 || !(fabs(a[i] - b[i]) <= fabs(a[worst] - b[worst])))
            worst = i;
        bad++;
    }
    if (!bad)
        return;
    j->r->verdict = RUN_WRONG;
    snprintf(j->r->why, sizeof j->r->why,
             "output '%.60s': %llu of %llu elements are off, the worst is element %llu, %.9g "
             "instead of %.9g",
             got->name, (unsigned long long)bad, (unsigned long long)got->value.numel,
             (unsigned long long)worst, a[worst], b[worst]);
}

static rlxvk_status compare_output(run_job *j, size_t index)
{
    run_output *got = &j->r->outputs[index];
    array wanted = {0};
    double *a = NULL, *b = NULL;
    char path[4096];
    rlxvk_status status = RLXVK_OK;
    if (!run_find_file(j->o->compare, "output", index, got->name, path, sizeof path))
        return status_fail(RLXVK_E_FILE, "%s has no output_%zu.pb, output_%zu.npy or %s.npy",
                           j->o->compare, index, index, got->name);
    TRY(array_read(path, &wanted));
    if (wanted.short_words && got->value.dtype == RLXVK_BF16)
        array_take_as_bf16(&wanted);
    /* Expected results may be more precise than the model's. */
    if ((wanted.dtype != got->value.dtype &&
         !(wanted.dtype == RLXVK_F64 && got->value.dtype == RLXVK_F32)) ||
        !rlxvk_shape_equal(wanted.shape, got->value.shape)) {
        char shapes[2][128] = {"", ""};
        (void)!rlxvk_shape_text(NULL, got->value.shape, shapes[0], sizeof shapes[0]);
        (void)!rlxvk_shape_text(NULL, wanted.shape, shapes[1], sizeof shapes[1]);
        j->r->verdict = RUN_WRONG;
        snprintf(j->r->why, sizeof j->r->why, "output '%.60s' is %s %s instead of %s %s", got->name,
                 rlxvk_dtype_name(got->value.dtype), shapes[0], rlxvk_dtype_name(wanted.dtype),
                 shapes[1]);
        goto error;
    }
    a = array_numbers(&got->value);
    b = array_numbers(&wanted);
    if (!a || !b)
        TRY(status_fail_memory("output"));
    compare_numbers(j, got, a, b);
error:
    memory_free(a);
    memory_free(b);
    array_destroy(&wanted);
    return status;
}

static rlxvk_status finish(run_job *j)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < j->r->output_count; i++) {
        TRY(measure(&j->r->outputs[i]));
        if (j->o->compare && j->r->verdict == RUN_DONE)
            TRY(compare_output(j, i));
        if (j->o->output) {
            char path[4096];
            snprintf(path, sizeof path, "%s/output_%zu.npy", j->o->output, i);
            TRY(array_write(path, &j->r->outputs[i].value));
        }
    }
    if (j->o->labels)
        TRY(labels_rank(j->o, j->r));
error:
    return status;
}

/* ---- A job ---- */

static rlxvk_status check_output(const run_options *o)
{
    char path[4096];
    if (!o->output)
        return RLXVK_OK;
    snprintf(path, sizeof path, "%s/output_0.npy", o->output);
    return new_file_check(path);
}

static rlxvk_status load(run_job *j)
{
    double start = clock_seconds();
    rlxvk_status status;
    TRY(check_output(j->o));
    TRY(run_job_open(j));
    j->r->load_ms = 1e3 * (clock_seconds() - start);
    start = clock_seconds();
    TRY(run_job_compile(j));
    j->r->compile_ms = 1e3 * (clock_seconds() - start);
error:
    return status;
}

void run_model(const run_options *o, rlxvk_context *context, run_result *out)
{
    run_job *j = memory_zeroed(1, sizeof *j);
    text why = {out->why, sizeof out->why, 0};
    rlxvk_status status;
    *out = (run_result){0};
    if (!j) {
        out->verdict = RUN_FAILED;
        return;
    }
    j->o = o;
    j->context = context;
    j->r = out;
    status = load(j);
    if (status != RLXVK_OK) {
        out->verdict = RUN_REFUSED;
        run_job_explain(j, status, &why);
    } else {
        status = run_executable(j);
        status = status == RLXVK_OK ? finish(j) : status;
    }
    if (status != RLXVK_OK && out->verdict != RUN_REFUSED) {
        out->verdict = RUN_FAILED;
        snprintf(out->why, sizeof out->why, "%s: %s", rlxvk_status_name(status),
                 rlxvk_last_error());
    }
    run_job_close(j);
    memory_free(j);
}

void run_free(run_result *result)
{
    for (size_t i = 0; i < result->output_count && result->outputs; i++)
        array_destroy(&result->outputs[i].value);
    memory_free(result->outputs);
    memory_free(result->rows);
    memory_free(result->best);
    *result = (run_result){0};
}
