/* See run_job.h. */
#include "cli/run_job.h"
#include "base/system.h"

#include <rlxvk_symbols.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXACT = 1 << 24 };

/* ---- Options ---- */

/* Splits NAME=REST at the last '=' that a name may not have behind it. */
static rlxvk_status split(run_job *j, const char *argument, const char **out_name,
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

run_input *run_find_input(run_job *j, const char *name)
{
    for (size_t i = 0; i < j->input_count; i++)
        if (strcmp(j->inputs[i].info.name, name) == 0)
            return &j->inputs[i];
    return NULL;
}

static rlxvk_status bind_value(run_job *j, size_t at, const char *name, const char *rest)
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

static rlxvk_status take_binds(run_job *j)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < j->o->bind_count; i++) {
        const char *name, *rest;
        run_input *input;
        TRY(split(j, j->o->binds[i], &name, &rest));
        input = run_find_input(j, name);
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

static rlxvk_status list_inputs(run_job *j)
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

bool run_find_file(const char *folder, const char *prefix, size_t index, const char *name,
                   char *out, size_t size)
{
    snprintf(out, size, "%s/%s_%zu.pb", folder, prefix, index);
    if (system_may_read(out) == 0)
        return true;
    snprintf(out, size, "%s/%s_%zu.npy", folder, prefix, index);
    if (system_may_read(out) == 0)
        return true;
    snprintf(out, size, "%s/%s.npy", folder, name);
    return system_may_read(out) == 0;
}

static rlxvk_status read_folder(run_job *j)
{
    char path[4096];
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; j->o->data && i < j->input_count; i++)
        /* Files of sequences and the like are not read: the model is refused for them. */
        if (j->inputs[i].info.dtype != RLXVK_DTYPE_COUNT &&
            run_find_file(j->o->data, "input", i, j->inputs[i].info.name, path, sizeof path))
            TRY(array_read(path, &j->inputs[i].value));
error:
    return status;
}

static const rlxvk_model_binding *find_binding(const run_job *j, const char *name)
{
    for (size_t i = 0; i < j->binding_count; i++)
        if (strcmp(j->bindings[i].name, name) == 0)
            return &j->bindings[i];
    return NULL;
}

/* Reads a picture or a sound in the input's size. Named dims that are not bound are unknown. */
static rlxvk_status read_media(const run_job *j, const char *path, run_input *input)
{
    rlxvk_shape shape = input->info.shape;
    rlxvk_status status;
    if (!input->info.has_shape)
        return status_fail(RLXVK_E_SHAPE,
                           "input '%s' has no shape in the model; give it a .npy file",
                           input->info.name);
    for (uint32_t a = 0; a < shape.rank; a++) {
        const char *name = input->info.dim_names[a];
        const rlxvk_model_binding *bound = name ? find_binding(j, name) : NULL;
        if (name)
            shape.dims[a] = bound ? bound->size : -1;
    }
    status = media_read(path, input->info.dtype, shape, &j->o->media, &input->value);
    if (status != RLXVK_OK)
        status = status_fail_within(status, "input '%s'", input->info.name);
    return status;
}

static rlxvk_status read_inputs(run_job *j)
{
    rlxvk_status status;
    TRY(read_folder(j));
    for (size_t i = 0; i < j->o->input_count; i++) {
        const char *name, *rest;
        run_input *input;
        TRY(split(j, j->o->inputs[i], &name, &rest));
        input = run_find_input(j, name);
        if (!input)
            TRY(status_fail(RLXVK_E_UNKNOWN_NAME, "the model has no input '%s'", name));
        if (strcmp(rest, "random") != 0) {
            array_destroy(&input->value);
            TRY(media_is(rest) ? read_media(j, rest, input) : array_read(rest, &input->value));
        }
    }
error:
    return status;
}

/* The first dim without a size; NULL: there is none. */
static const char *find_unbound(const run_job *j, uint32_t *out_axis, const char **out_input)
{
    for (size_t i = 0; i < j->input_count; i++)
        for (uint32_t a = 0; a < j->inputs[i].info.shape.rank; a++) {
            const char *name = j->inputs[i].info.dim_names[a];
            *out_axis = a;
            *out_input = j->inputs[i].info.name;
            if (name && !find_binding(j, name) && !j->inputs[i].is_value)
                return name;
        }
    return NULL;
}

bool run_job_has_sizes(const run_job *j)
{
    uint32_t axis;
    const char *input;
    return find_unbound(j, &axis, &input) == NULL;
}

static rlxvk_status require_sizes(const run_job *j)
{
    uint32_t axis;
    const char *input, *name = find_unbound(j, &axis, &input);
    return name ? status_fail(RLXVK_E_UNBOUND_SYMBOL,
                              "dim %u of input '%s' has no size; give the input a file, or "
                              "--bind '%s'=SIZE",
                              axis, input, name)
                : RLXVK_OK;
}

/* Named dims get their sizes from the arrays that are given. */
static rlxvk_status bind_dims(run_job *j)
{
    for (size_t i = 0; i < j->input_count; i++) {
        const run_input *in = &j->inputs[i];
        if (!in->value.data || !in->info.has_shape)
            continue;
        /* An input of another rank is refused later, if the graph reads it. */
        for (uint32_t a = 0; a < MIN(in->info.shape.rank, in->value.shape.rank); a++) {
            const char *name = in->info.dim_names[a];
            if (!name || find_binding(j, name) || j->binding_count == MOST_DIMS)
                continue;
            j->bindings[j->binding_count++] =
                (rlxvk_model_binding){.name = name, .size = in->value.shape.dims[a]};
        }
    }
    return RLXVK_OK;
}

/* ---- The executable ---- */

/* Gives inputs that decide sizes as values, if they are at hand. */
static rlxvk_status give_values(run_job *j, bool *out_more)
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

static rlxvk_model_graph_options graph_options(const run_job *j)
{
    return (rlxvk_model_graph_options){.bindings = j->bindings,
                                       .binding_count = j->binding_count,
                                       .values = j->values,
                                       .value_count = j->value_count};
}

rlxvk_status run_job_graph(run_job *j, rlxvk_graph **out)
{
    rlxvk_model_graph_options options = graph_options(j);
    return rlxvk_model_graph(j->model, &options, out);
}

static rlxvk_status make_executable(run_job *j)
{
    rlxvk_compile_options compile = {.precision = j->o->precision, .time_runs = RLXVK_ON};
    rlxvk_status status;
    bool more = true;
    if (j->o->profile)
        compile.profile = RLXVK_ON;
    do {
        rlxvk_model_graph_options options = graph_options(j);
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

static rlxvk_status check_inputs(run_job *j)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < j->input_count; i++)
        if (j->inputs[i].value.data && !j->inputs[i].is_value)
            TRY(check_exact(j->inputs[i].info.name, &j->inputs[i].value));
error:
    return status;
}

/* ---- A job ---- */

rlxvk_status run_job_open(run_job *j)
{
    rlxvk_status status;
    TRY(rlxvk_model_open(j->o->model, NULL, &j->model));
    TRY(list_inputs(j));
    TRY(take_binds(j));
    TRY(read_inputs(j));
    TRY(bind_dims(j));
error:
    return status;
}

rlxvk_status run_job_compile(run_job *j)
{
    rlxvk_status status;
    TRY(require_sizes(j));
    TRY(make_executable(j));
    TRY(check_inputs(j));
error:
    return status;
}

void run_job_explain(const run_job *j, rlxvk_status status, text *out)
{
    rlxvk_model_problem problems[16];
    size_t count = 0;
    if (j->model)
        (void)!rlxvk_model_problems(j->model, problems, ARRAY_COUNT(problems), &count);
    if (count == 0)
        text_append(out, "%s: %s", rlxvk_status_name(status), rlxvk_last_error());
    for (size_t i = 0; i < MIN(count, ARRAY_COUNT(problems)); i++)
        text_append(out, "%s%s '%s'%s%s: %s", i ? "\n" : "", problems[i].op, problems[i].node,
                    *problems[i].attribute ? ", attribute " : "", problems[i].attribute,
                    problems[i].text);
    if (count > ARRAY_COUNT(problems))
        text_append(out, "\nand %zu more", count - ARRAY_COUNT(problems));
}

void run_job_close(run_job *j)
{
    rlxvk_executable_destroy(j->e);
    rlxvk_model_destroy(j->model);
    for (size_t i = 0; i < j->input_count && j->inputs; i++)
        array_destroy(&j->inputs[i].value);
    memory_free(j->inputs);
}
