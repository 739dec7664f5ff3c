/*
 * rlxvk bench --pipelines: measures how long it takes to make each pipeline of the conformance
 * cases, without a cache. Software drivers compile at the first dispatch. So a case's time is that
 * of compiling it plus the difference between its first and second run. If the device is a
 * processor, it is processor time. If a case makes several pipelines, it shows their mean.
 */
#include "bench/bench_survey.h"
#include "bench/pattern.h"
#include "conform/cases/table.h"
#include "program/context.h"
#include "exec/executable.h"
#include "cli/output.h"
#include "cli/option.h"
#include "cli/clock.h"
#include "base/system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 25 };

#define SLOW 2.0 /* seconds; no pipeline should take longer */

typedef struct made {
    double seconds; /* for one pipeline */
    size_t pipelines;
    char what[320];
} made;

typedef struct survey {
    rlxvk_context *context;
    double (*clock)(void);
    VECTOR(made) cases; /* cases that made pipelines */
    size_t pipelines;
    double total;
} survey;

static rlxvk_status build(const case_spec *spec, rlxvk_graph **out)
{
    const case_family *family = case_find_family(spec->row);
    rlxvk_tensor leaves[CASE_MAX_INPUTS];
    rlxvk_status status = rlxvk_graph_create(out);
    if (status != RLXVK_OK)
        return status;
    for (size_t i = 0; i < spec->input_count; i++)
        leaves[i] = (case_is_param(&spec->inputs[i]) ? rlxvk_param
                                                     : rlxvk_input)(*out, spec->inputs[i].name,
                                                                    spec->inputs[i].dtype,
                                                                    spec->inputs[i].shape);
    rlxvk_graph_output(*out, family->build(*out, spec, leaves));
    return rlxvk_graph_status(*out);
}

static void describe(const rlxvk_executable *e, const char *line, text *out)
{
    for (size_t i = 0; i < e->program->schedule.dispatches.count && i < 3; i++) {
        const dispatch *d = &e->program->schedule.dispatches.items[i];
        const kernel_info *k = kernel_find(d->kernel);
        text_append(out, "%s%s<", i ? " " : "", k->name);
        for (uint32_t c = 0; c < k->constant_count; c++)
            text_append(out, "%s%u", c ? "," : "", d->constants[c]);
        text_append(out, ">%s%s", d->variant ? " " : "", d->variant ? d->variant : "");
    }
    text_append(out, "  %s", line);
}

/* If a case cannot be compiled or run here, it counts as making no pipelines. */
static rlxvk_status survey_case(survey *s, const char *line, const char *variant)
{
    rlxvk_graph *graph = NULL;
    rlxvk_executable *e = NULL;
    case_spec spec;
    made m = {0};
    size_t before = pipeline_count_made(s->context->device);
    option_variants variants;
    rlxvk_status status = RLXVK_OK;
    if (case_parse(line, &spec) != RLXVK_OK || build(&spec, &graph) != RLXVK_OK)
        goto error;
    rlxvk_compile_options options = {.allow_unset = RLXVK_ON,
                                     .precision = case_precision(&spec, RLXVK_PRECISION_F32)};
    TRY(option_set_variants(variant, &variants, &options));
    double begin = s->clock();
    if (rlxvk_compile(s->context, graph, &options, &e) != RLXVK_OK)
        goto error;
    size_t count = pipeline_count_made(s->context->device) - before;
    if (count == 0)
        goto error;
    double compiled = s->clock();
    if (rlxvk_run(e, NULL, 0, NULL, 0) != RLXVK_OK)
        goto error;
    double first = s->clock();
    if (rlxvk_run(e, NULL, 0, NULL, 0) != RLXVK_OK)
        goto error;
    double seconds = compiled - begin + MAX(first - compiled - (s->clock() - first), 0);
    m = (made){.seconds = seconds / (double)count, .pipelines = count};
    text what = {m.what, sizeof m.what, 0};
    describe(e, line, &what);
    s->total += seconds;
    s->pipelines += count;
    if (!VECTOR_PUSH(&s->cases, m))
        status = status_fail_memory("survey");
error:
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(graph);
    return status;
}

static int slowest_first(const void *a, const void *b)
{
    double x = ((const made *)a)->seconds, y = ((const made *)b)->seconds;
    return (x < y) - (x > y);
}

static void report(survey *s)
{
    size_t slow = 0;
    print_progress(NULL);
    qsort(s->cases.items, s->cases.count, sizeof *s->cases.items, slowest_first);
    for (size_t i = 0; i < s->cases.count; i++) {
        slow += s->cases.items[i].seconds > SLOW;
        if (i < SHOWN)
            printf("%8.3f s, %zu such: %s\n", s->cases.items[i].seconds,
                   s->cases.items[i].pipelines, s->cases.items[i].what);
    }
    printf("%zu pipelines in %.1f s; %zu cases with any above %.0f s\n", s->pipelines, s->total,
           slow, SLOW);
}

void bench_without_caches(void)
{
    system_environment_set("MESA_SHADER_CACHE_DISABLE", "true");
    system_environment_set("MESA_GLSL_CACHE_DISABLE", "true");
    system_environment_set("__GL_SHADER_DISK_CACHE", "0");
}

rlxvk_status bench_pipelines(const bench_survey_setup *setup)
{
    rlxvk_context_options options = {.cache_directory = ""};
    survey s = {0};
    case_list lines = {0};
    uint64_t matching = 0;
    rlxvk_device_info info;
    rlxvk_status status;
    bench_without_caches();
    TRY(option_device(setup->device, &info, &options));
    TRY(rlxvk_context_create(&options, &s.context));
    rlxvk_context_device(s.context, &info);
    s.clock = info.kind == RLXVK_DEVICE_CPU ? system_process_seconds : clock_seconds;
    TRY(case_list_generate(&lines));
    for (size_t i = 0; i < lines.lines.count; i++) {
        const char *line = lines.lines.items[i];
        if (setup->filter && !pattern_matches(setup->filter, line))
            continue;
        if (setup->sparse && matching++ % setup->sparse)
            continue;
        print_progress(line);
        TRY(survey_case(&s, line, setup->variant));
    }
    report(&s);
error:
    VECTOR_FREE(&s.cases);
    case_list_destroy(&lines);
    rlxvk_context_destroy(s.context);
    return status;
}
