/* See run.h: one model, its inputs, its runs and what is expected. */
#include "cli/clock.h"
#include "cli/run.h"
#include "base/new_file.h"

#include <rlxvk_symbols.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DIMS = 256, EXACT = 1 << 24 };

typedef struct run_input {
    rlxvk_model_info info;
    array value;   /* empty: none is given */
    bool is_value; /* it decides sizes, so the graph gets it */
} run_input;

typedef struct job {
    const run_options *o;
    rlxvk_context *context;
    rlxvk_model *model;
    rlxvk_executable *e;
    run_input *inputs;
    size_t input_count;
    rlxvk_model_binding bindings[MOST_DIMS];
    size_t binding_count;
    rlxvk_model_value values[RUN_MOST];
    size_t value_count;
    int64_t bound[RUN_MOST][RLXVK_MAX_RANK * 8]; /* of --bind NAME=N,N */
    double reals[RUN_MOST][RLXVK_MAX_RANK * 8];
    char names[2 * RUN_MOST][128];
    size_t name_count;
    run_result *r;
} job;

/* ---- Options ---- */

/* Splits NAME=REST at the last '=' that a name may not have behind it. */
static rlxvk_status split(job *j, const char *argument, const char **out_name,
                          const char **out_rest)
{
    const char *equal = strchr(argument, '=');
    size_t length = equal ? (size_t)(equal - argument) : 0;
    char *name = j->names[j->name_count];
    if (!equal || length == 0 || length >= sizeof j->names[0])
        return status_fail(RLXVK_E_ATTR, "'%s' is not NAME=VALUE", argument);
    memcpy(name, argument, length);
    name[length] = 0;
    j->name_count++;
    *out_name = name;
    *out_rest = equal + 1;
    return RLXVK_OK;
}

static run_input *find_input(job *j, const char *name)
{
    for (size_t i = 0; i < j->input_count; i++)
        if (strcmp(j->inputs[i].info.name, name) == 0)
            return &j->inputs[i];
    return NULL;
}

static rlxvk_status bind_value(job *j, size_t at, const char *name, const char *rest)
{
    rlxvk_model_value *v = &j->values[j->value_count++];
    bool whole = !strpbrk(rest, ".eEn");
    size_t count = 0;
    for (const char *c = rest; *c;) {
        char *end;
        if (count == ARRAY_COUNT(j->bound[0]))
            return status_fail(RLXVK_E_ATTR, "--bind %s has more than %zu values", name, count);
        j->reals[at][count] = text_to_real(c, &end);
        j->bound[at][count] = whole ? strtoll(c, &end, 10) : 0;
        if (end == c || (*end && *end != ','))
            return status_fail(RLXVK_E_ATTR, "--bind %s: '%s' is no number", name, c);
        count++;
        c = *end ? end + 1 : end;
    }
    *v = (rlxvk_model_value){.name = name, .length = count};
    v->dtype = whole ? RLXVK_I64 : RLXVK_F64;
    v->data = whole ? (const void *)j->bound[at] : j->reals[at];
    return RLXVK_OK;
}

static rlxvk_status take_binds(job *j)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < j->o->bind_count; i++) {
        const char *name, *rest;
        run_input *input;
        TRY(split(j, j->o->binds[i], &name, &rest));
        input = find_input(j, name);
        if (input) {
            input->is_value = true;
            TRY(bind_value(j, i, name, rest));
        } else {
            char *end;
            int64_t size = strtoll(rest, &end, 10);
            if (*rest == 0 || *end)
                TRY(status_fail(RLXVK_E_ATTR, "--bind %s=%s: no size", name, rest));
            j->bindings[j->binding_count++] = (rlxvk_model_binding){.name = name, .size = size};
        }
    }
error:
    return status;
}

/* ---- Inputs ---- */

static rlxvk_status list_inputs(job *j)
{
    rlxvk_model_info *infos = NULL;
    rlxvk_status status;
    TRY(rlxvk_model_inputs(j->model, NULL, 0, &j->input_count));
    infos = memory_zeroed(j->input_count + 1, sizeof *infos);
    j->inputs = memory_zeroed(j->input_count + 1, sizeof *j->inputs);
    if (!infos || !j->inputs)
        TRY(status_fail_memory("inputs"));
    TRY(rlxvk_model_inputs(j->model, infos, j->input_count, &j->input_count));
    for (size_t i = 0; i < j->input_count; i++)
        j->inputs[i].info = infos[i];
error:
    memory_free(infos);
    return status;
}

static bool exists(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file)
        fclose(file);
    return file != NULL;
}

/* FOLDER/PREFIX_INDEX.pb or .npy, or FOLDER/NAME.npy. */
static bool find_file(const char *folder, const char *prefix, size_t index, const char *name,
                      char *out, size_t size)
{
    snprintf(out, size, "%s/%s_%zu.pb", folder, prefix, index);
    if (exists(out))
        return true;
    snprintf(out, size, "%s/%s_%zu.npy", folder, prefix, index);
    if (exists(out))
        return true;
    snprintf(out, size, "%s/%s.npy", folder, name);
    return exists(out);
}

static rlxvk_status read_folder(job *j)
{
    char path[4096];
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; j->o->data && i < j->input_count; i++)
        /* Files of sequences and the like are not read: the model is refused for them. */
        if (j->inputs[i].info.dtype != RLXVK_DTYPE_COUNT &&
            find_file(j->o->data, "input", i, j->inputs[i].info.name, path, sizeof path))
            TRY(array_read(path, &j->inputs[i].value));
error:
    return status;
}

static rlxvk_status read_inputs(job *j)
{
    rlxvk_status status;
    TRY(read_folder(j));
    for (size_t i = 0; i < j->o->input_count; i++) {
        const char *name, *rest;
        run_input *input;
        TRY(split(j, j->o->inputs[i], &name, &rest));
        input = find_input(j, name);
        if (!input)
            TRY(status_fail(RLXVK_E_UNKNOWN_NAME, "the model has no input '%s'", name));
        if (strcmp(rest, "random") != 0) {
            array_destroy(&input->value);
            TRY(array_read(rest, &input->value));
        }
    }
error:
    return status;
}

static bool is_bound(const job *j, const char *name)
{
    for (size_t i = 0; i < j->binding_count; i++)
        if (strcmp(j->bindings[i].name, name) == 0)
            return true;
    return false;
}

static rlxvk_status require_sizes(const job *j)
{
    for (size_t i = 0; i < j->input_count; i++)
        for (uint32_t a = 0; a < j->inputs[i].info.shape.rank; a++) {
            const char *name = j->inputs[i].info.dim_names[a];
            if (name && !is_bound(j, name) && !j->inputs[i].is_value)
                return status_fail(RLXVK_E_UNBOUND_SYMBOL,
                                   "dim %u of input '%s' has no size; give the input a file, or "
                                   "--bind '%s'=SIZE",
                                   a, j->inputs[i].info.name, name);
        }
    return RLXVK_OK;
}

/* Named dims get their sizes from the arrays that are given. */
static rlxvk_status bind_dims(job *j)
{
    for (size_t i = 0; i < j->input_count; i++) {
        const run_input *in = &j->inputs[i];
        if (!in->value.data || !in->info.has_shape)
            continue;
        /* An input of another rank is refused later, if the graph reads it. */
        for (uint32_t a = 0; a < MIN(in->info.shape.rank, in->value.shape.rank); a++) {
            const char *name = in->info.dim_names[a];
            if (!name || is_bound(j, name) || j->binding_count == MOST_DIMS)
                continue;
            j->bindings[j->binding_count++] =
                (rlxvk_model_binding){.name = name, .size = in->value.shape.dims[a]};
        }
    }
    return require_sizes(j);
}

/* ---- The executable ---- */

/* Gives inputs that decide sizes as values, if they are at hand. */
static rlxvk_status give_values(job *j, bool *out_more)
{
    rlxvk_model_info infos[RUN_MOST];
    size_t count;
    rlxvk_status status;
    *out_more = false;
    TRY(rlxvk_model_inputs(j->model, infos, ARRAY_COUNT(infos), &count));
    for (size_t i = 0; i < MIN(count, ARRAY_COUNT(infos)); i++) {
        run_input *in = &j->inputs[i];
        double *numbers;
        if (!infos[i].needs_value || in->is_value || !in->value.data || j->value_count == RUN_MOST)
            continue;
        numbers = array_numbers(&in->value);
        if (!numbers)
            return status_fail_memory("input");
        in->is_value = *out_more = true;
        array_destroy(&in->value);
        in->value.data = numbers; /* F64, kept until the end */
        j->values[j->value_count] = (rlxvk_model_value){.name = in->info.name, .data = numbers};
        TRY(rlxvk_shape_elements(infos[i].shape, &in->value.numel));
        j->values[j->value_count].dtype = RLXVK_F64;
        j->values[j->value_count++].length = (size_t)in->value.numel;
    }
error:
    return status;
}

static rlxvk_status make_executable(job *j)
{
    rlxvk_compile_options compile = {.precision = j->o->precision};
    rlxvk_status status;
    bool more = true;
    do {
        rlxvk_model_graph_options options = {.bindings = j->bindings,
                                             .binding_count = j->binding_count,
                                             .values = j->values,
                                             .value_count = j->value_count};
        status_sentence sentence;
        status = rlxvk_model_executable(j->model, j->context, &options, &compile, &j->e);
        if (status == RLXVK_OK)
            break;
        status_save(&sentence);
        TRY(give_values(j, &more));
        status_restore(&sentence);
        status = RLXVK_E_UNSUPPORTED;
    } while (more);
error:
    return status;
}

/* The device holds integers as f32 words, which are exact only so far. */
static rlxvk_status check_exact(const char *name, const array *a)
{
    bool wide = a->dtype == RLXVK_I32 || a->dtype == RLXVK_U32 || a->dtype == RLXVK_I64;
    double *numbers = wide ? array_numbers(a) : NULL;
    rlxvk_status status = RLXVK_OK;
    if (wide && !numbers)
        return status_fail_memory("input");
    for (uint64_t i = 0; wide && i < a->numel; i++)
        if (fabs(numbers[i]) > EXACT)
            TRY(status_fail(RLXVK_E_RANGE,
                            "input '%s' has the integer %.0f; integers above 2^24 are not exact in "
                            "f32 words",
                            name, numbers[i]));
error:
    memory_free(numbers);
    return status;
}

static rlxvk_status check_inputs(job *j)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < j->input_count; i++)
        if (j->inputs[i].value.data && !j->inputs[i].is_value)
            TRY(check_exact(j->inputs[i].info.name, &j->inputs[i].value));
error:
    return status;
}

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

static rlxvk_status collect_inputs(job *j, rlxvk_run_input *out, size_t *out_count)
{
    rlxvk_tensor_info infos[RUN_MOST];
    size_t count;
    rlxvk_status status;
    TRY(rlxvk_executable_inputs(j->e, infos, ARRAY_COUNT(infos), &count));
    *out_count = 0;
    for (size_t i = 0; i < MIN(count, ARRAY_COUNT(infos)); i++) {
        run_input *in = find_input(j, infos[i].name);
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
static rlxvk_status make_outputs(job *j, rlxvk_run_output **out)
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
static rlxvk_status shorten_outputs(job *j)
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

static int compare_times(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static rlxvk_status run_often(job *j, const rlxvk_run_input *inputs, size_t input_count,
                              const rlxvk_run_output *outputs)
{
    size_t repeat = (size_t)j->o->repeat;
    double *times = memory_zeroed(repeat + 1, sizeof *times);
    rlxvk_status status = RLXVK_OK;
    if (!times)
        return status_fail_memory("times");
    for (size_t i = 0; i <= repeat; i++) {
        double start = clock_seconds();
        TRY(rlxvk_run(j->e, inputs, input_count, outputs, j->r->output_count));
        times[i] = 1e3 * (clock_seconds() - start);
    }
    j->r->first_ms = times[0];
    qsort(times + 1, repeat, sizeof *times, compare_times);
    j->r->median_ms = repeat ? times[1 + repeat / 2] : times[0];
error:
    memory_free(times);
    return status;
}

static rlxvk_status run_executable(job *j)
{
    rlxvk_run_input inputs[RUN_MOST];
    rlxvk_run_output *outputs = NULL;
    size_t input_count;
    rlxvk_status status;
    TRY(collect_inputs(j, inputs, &input_count));
    TRY(make_outputs(j, &outputs));
    TRY(run_often(j, inputs, input_count, outputs));
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
static void compare_numbers(job *j, const run_output *got, const double *a, const double *b)
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

static rlxvk_status compare_output(job *j, size_t index)
{
    run_output *got = &j->r->outputs[index];
    array wanted = {0};
    double *a = NULL, *b = NULL;
    char path[4096];
    rlxvk_status status = RLXVK_OK;
    if (!find_file(j->o->compare, "output", index, got->name, path, sizeof path))
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

static rlxvk_status finish(job *j)
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

static rlxvk_status load(job *j)
{
    double start = clock_seconds();
    rlxvk_status status;
    TRY(check_output(j->o));
    TRY(rlxvk_model_open(j->o->model, NULL, &j->model));
    j->r->load_ms = 1e3 * (clock_seconds() - start);
    TRY(list_inputs(j));
    TRY(take_binds(j));
    TRY(read_inputs(j));
    TRY(bind_dims(j));
    start = clock_seconds();
    TRY(make_executable(j));
    TRY(check_inputs(j));
    j->r->compile_ms = 1e3 * (clock_seconds() - start);
error:
    return status;
}

/* All problems of the model, one a line. */
static void tell_problems(job *j, rlxvk_status status)
{
    static rlxvk_model_problem problems[16];
    text t = {j->r->why, sizeof j->r->why, 0};
    size_t count = 0;
    if (j->model)
        (void)!rlxvk_model_problems(j->model, problems, ARRAY_COUNT(problems), &count);
    if (count == 0)
        text_append(&t, "%s: %s", rlxvk_status_name(status), rlxvk_last_error());
    for (size_t i = 0; i < MIN(count, ARRAY_COUNT(problems)); i++)
        text_append(&t, "%s%s '%s'%s%s: %s", i ? "\n" : "", problems[i].op, problems[i].node,
                    *problems[i].attribute ? ", attribute " : "", problems[i].attribute,
                    problems[i].text);
    if (count > ARRAY_COUNT(problems))
        text_append(&t, "\nand %zu more", count - ARRAY_COUNT(problems));
}

void run_model(const run_options *o, rlxvk_context *context, run_result *out)
{
    job *j = memory_zeroed(1, sizeof *j);
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
        tell_problems(j, status);
    } else {
        status = run_executable(j);
        status = status == RLXVK_OK ? finish(j) : status;
    }
    if (status != RLXVK_OK && out->verdict != RUN_REFUSED) {
        out->verdict = RUN_FAILED;
        snprintf(out->why, sizeof out->why, "%s: %s", rlxvk_status_name(status),
                 rlxvk_last_error());
    }
    rlxvk_executable_destroy(j->e);
    rlxvk_model_destroy(j->model);
    for (size_t i = 0; i < j->input_count && j->inputs; i++)
        array_destroy(&j->inputs[i].value);
    memory_free(j->inputs);
    memory_free(j);
}

void run_free(run_result *result)
{
    for (size_t i = 0; i < result->output_count && result->outputs; i++)
        array_destroy(&result->outputs[i].value);
    memory_free(result->outputs);
    *result = (run_result){0};
}
