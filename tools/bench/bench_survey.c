/*
 * rlxvk bench --pipelines with --statistics or --each-variant: makes the pipelines that the
 * conformance cases need, one by one, and tells what the driver's compiler says of each. With
 * --modules, it writes their SPIR-V and makes none. Cases are lowered only; nothing runs. A
 * pipeline belongs to the first case that needs it.
 */
#include "bench/bench_survey.h"
#include "bench/pattern.h"
#include "bench/bench_figures.h"
#include "bench/bench_modules.h"
#include "bench/bench_sample.h"
#include "conform/conform.h"
#include "program/context.h"
#include "cli/clock.h"
#include "cli/file.h"
#include "cli/output.h"
#include "cli/probe.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 25, PRECISIONS = RLXVK_PRECISION_SPLIT + 1, VENDOR_NVIDIA = 0x10de };

#define SLOW 1.0 /* seconds; no pipeline should take longer on a GPU */

/* Who needs a pipeline. */
typedef struct need {
    const char *line;
    const char *kind,
        *row;   /* kind NULL: not of --each-variant; row NULL: the kernel has no variants */
    bool named; /* the case or the option named the variant; the table would not have */
    rlxvk_precision precision;
} need;

typedef struct made {
    pipeline_description about;
    bench_figures figures;
    need by;
} made;

/* A dispatch of a shape. */
typedef struct use {
    pipeline_request request;
    need by;
    uint32_t groups[3];
    bool prepares;
    size_t lowering; /* dispatches of one lowering have the same number */
} use;

/* A pipeline of a row, of which a few are made. */
typedef struct candidate {
    pipeline_request request;
    need by;
} candidate;

typedef struct failure {
    pipeline_request request;
    need by;
    char message[512];
} failure;

typedef struct survey {
    const bench_survey_setup *setup;
    conform_setup lowering;
    rlxvk_device_info device;
    need current;
    case_list lines;
    VECTOR(const char *) wanted; /* lines that the options leave */
    VECTOR(made) made;
    VECTOR(failure) failures;
    VECTOR(use) uses; /* with --shapes */
    bench_modules modules;
    bench_sample sample;
    bool knowing;                 /* with --at-most: what is chosen is not made, but known */
    VECTOR(candidate) candidates; /* with --at-most: of all rows */
    device_profile gpu;           /* with the option for subgroups */
    size_t dispatches;            /* of the current variant */
    size_t lowerings;
    rlxvk_status status; /* of what `take` did */
    double seconds;
} survey;

/* ---- Making ---- */

static void request_of(const dispatch *d, pipeline_request *out)
{
    memset(out, 0, sizeof *out);
    out->kernel = d->kernel;
    out->constant_count = (uint8_t)kernel_find(d->kernel)->constant_count;
    memcpy(out->constants, d->constants, sizeof d->constants);
}

static rlxvk_status add_failure(survey *s, const pipeline_request *request)
{
    failure f = {.request = *request, .by = s->current};
    for (size_t i = 0; i < s->failures.count; i++)
        if (memcmp(&s->failures.items[i].request, request, sizeof *request) == 0)
            return RLXVK_OK;
    snprintf(f.message, sizeof f.message, "%s", rlxvk_last_error());
    return VECTOR_PUSH(&s->failures, f) ? RLXVK_OK : status_fail_memory("survey");
}

static rlxvk_status add_made(survey *s, size_t number)
{
    rlxvk_status status;
    made m = {.by = s->current};
    TRY(pipeline_describe(s->lowering.context->device, number, &m.about));
    m.figures = bench_figures_of(&m.about);
    if (VECTOR_PUSH(&s->made, m))
        return RLXVK_OK;
    pipeline_description_destroy(&m.about);
    status = status_fail_memory("survey");
error:
    return status;
}

/* If a pipeline cannot be made, it counts as failed, and the survey goes on. */
static rlxvk_status make(survey *s, const pipeline_request *request)
{
    device *on = s->lowering.context->device;
    size_t before = pipeline_count_made(on);
    VkPipeline pipeline;
    if (s->modules.folder)
        return bench_modules_add(&s->modules, on, request, s->current.line);
    if (pipeline_get_all(on, request, 1, &pipeline) != RLXVK_OK)
        return vk_is_lost(on) ? vk_require_device(on, "bench") : add_failure(s, request);
    return pipeline_count_made(on) > before ? add_made(s, before) : RLXVK_OK;
}

/* With --at-most, which pipelines are made is only known when all are. */
static rlxvk_status consider(survey *s, const dispatch *d)
{
    candidate c;
    rlxvk_status status;
    bool is_new;
    request_of(d, &c.request);
    s->current.row = d->variant;
    s->current.named = d->source == VARIANT_BY_NAME;
    if (s->setup->chosen && s->current.named)
        return RLXVK_OK;
    if (!s->setup->at_most)
        return make(s, &c.request);
    if (s->knowing)
        return bench_sample_know(&s->sample, &c.request);
    TRY(bench_sample_ask(&s->sample, &c.request, d->variant, &is_new));
    c.by = s->current;
    if (is_new && !VECTOR_PUSH(&s->candidates, c))
        status = status_fail_memory("survey");
error:
    return status;
}

static rlxvk_status add_use(survey *s, const dispatch *d)
{
    use u = {.by = s->current, .prepares = d->prepares, .lowering = s->lowerings};
    request_of(d, &u.request);
    memcpy(u.groups, d->groups, sizeof u.groups);
    return VECTOR_PUSH(&s->uses, u) ? RLXVK_OK : status_fail_memory("survey");
}

/* Of shapes, takes all dispatches if one is of the row, because all take time. */
static void take(void *user, const schedule *schedule)
{
    survey *s = user;
    const char *row = s->lowering.row;
    bool has_row = !row;
    for (size_t i = 0; i < schedule->dispatches.count; i++)
        has_row |= schedule->dispatches.items[i].variant == row;
    for (size_t i = 0; i < schedule->dispatches.count && has_row && s->status == RLXVK_OK; i++) {
        const dispatch *d = &schedule->dispatches.items[i];
        if (row && d->variant != row && !s->setup->shapes)
            continue;
        s->dispatches++;
        s->status = consider(s, d);
        if (s->status == RLXVK_OK && s->setup->shapes)
            s->status = add_use(s, d);
    }
}

/* A case that cannot be lowered, because the device or the variant cannot do it, needs no pipeline.
 */
static rlxvk_status survey_case(survey *s, const char *line)
{
    s->current.line = line;
    s->current.precision = s->lowering.precision;
    s->lowerings++;
    print_progress(line);
    (void)!conform_lower(&s->lowering, &(conform_case){.line = line},
                         s->setup->subgroup_size ? &s->gpu : NULL, take, s);
    return s->status;
}

/* ---- Which cases ---- */

/* Whether the op's kernels depend on this precision. */
static bool depends(const char *op, rlxvk_precision precision)
{
    for (size_t k = 0; k < CHOICE_COUNT; k++)
        if (choice_kinds[k].precisions >> precision & 1 && choice_reaches(&choice_kinds[k], op))
            return true;
    return false;
}

static const char *op_of(const char *line, char out[40])
{
    snprintf(out, 40, "%.*s", (int)strcspn(line, " "), line);
    return out;
}

/* The variants that the device chooses, or that --variant names. */
static rlxvk_status survey_chosen(survey *s)
{
    rlxvk_status status = RLXVK_OK;
    char op[40];
    s->lowering.variant = s->setup->variant;
    for (int p = 0; p < PRECISIONS; p++) {
        bool all = s->setup->precision ? p == (int)s->setup->precision : p == 0;
        s->lowering.precision = (rlxvk_precision)p;
        for (size_t i = 0; i < s->wanted.count; i++) {
            const char *line = s->wanted.items[i];
            if (all || (!s->setup->precision && depends(op_of(line, op), s->lowering.precision)))
                TRY(survey_case(s, line));
        }
    }
error:
    return status;
}

static rlxvk_status survey_row(survey *s, const kernel_kind *kind, rlxvk_precision precision)
{
    rlxvk_status status = RLXVK_OK;
    char op[40];
    s->lowering.precision = precision;
    for (size_t i = 0; i < s->wanted.count; i++)
        if (choice_reaches(kind, op_of(s->wanted.items[i], op)))
            TRY(survey_case(s, s->wanted.items[i]));
error:
    return status;
}

/* Every row of every kernel kind, in the kind's precisions; if no case dispatches it there, in the
 * others. */
static rlxvk_status survey_variants(survey *s)
{
    rlxvk_status status = RLXVK_OK;
    const char *row;
    char choice[128];
    for (size_t k = 0; k < CHOICE_COUNT; k++)
        for (size_t r = 0; (row = choice_row_name(&choice_kinds[k], r)); r++) {
            const kernel_kind *kind = &choice_kinds[k];
            snprintf(choice, sizeof choice, "%s=%s", kind->name, row);
            s->lowering.variant = choice;
            s->lowering.row = row;
            s->current.kind = kind->name;
            s->dispatches = 0;
            for (int own = 1; own >= 0 && s->dispatches == 0; own--)
                for (int p = 0; p < PRECISIONS; p++)
                    if (conform_runs_in(kind, s->setup->precision, (rlxvk_precision)p) == own &&
                        (own || !s->setup->precision))
                        TRY(survey_row(s, kind, (rlxvk_precision)p));
        }
error:
    s->lowering.variant = s->lowering.row = NULL;
    return status;
}

static bool are_alike(const candidate *a, const candidate *b)
{
    return a->by.row == b->by.row && a->by.precision == b->by.precision &&
           a->request.kernel == b->request.kernel;
}

/* Of the candidates of a row, a kernel and a precision, makes at most so many. */
static rlxvk_status make_sample(survey *s)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < s->candidates.count; i++) {
        const candidate *c = &s->candidates.items[i];
        size_t before = 0, count = 0;
        for (size_t k = 0; k < s->candidates.count; k++)
            if (are_alike(c, &s->candidates.items[k])) {
                before += k < i;
                count++;
            }
        s->current = c->by;
        if (bench_sample_takes(before, count, (size_t)s->setup->at_most))
            TRY(make(s, &c->request));
        else
            s->sample.left_out++;
    }
error:
    return status;
}

static rlxvk_status survey_each_variant(survey *s)
{
    rlxvk_status status = RLXVK_OK;
    s->knowing = s->setup->at_most > 0;
    if (s->knowing)
        TRY(survey_chosen(s));
    s->knowing = false;
    TRY(survey_variants(s));
    TRY(make_sample(s));
error:
    return status;
}

/* Takes the cases that name a variant, or the others. */
static rlxvk_status choose_naming(survey *s, bool naming)
{
    uint64_t matching = 0;
    for (size_t i = 0; i < s->lines.lines.count; i++) {
        const char *line = s->lines.lines.items[i];
        if ((strstr(line, " variant=") != NULL) != naming)
            continue;
        if (s->setup->filter && !pattern_matches(s->setup->filter, line))
            continue;
        if (s->setup->sparse && matching++ % s->setup->sparse)
            continue;
        if (!VECTOR_PUSH(&s->wanted, line))
            return status_fail_memory("survey");
    }
    return RLXVK_OK;
}

/* The lines of a file, without those that are empty. */
static rlxvk_status read_shapes(survey *s)
{
    rlxvk_status status;
    file_content file = {0};
    TRY(file_read(s->setup->shapes, &file));
    for (uint64_t at = 0, end; at < file.length; at = end + 1) {
        for (end = at; end < file.length && file.data[end] != '\n';)
            end++;
        if (end > at)
            case_add(&s->lines, "%.*s", (int)MIN(end - at, INT_MAX), (const char *)file.data + at);
    }
    if (s->lines.failed)
        status = status_fail(RLXVK_E_LENGTH, "'%s': a line is too long", s->setup->shapes);
error:
    file_free(&file);
    return status;
}

/* Cases that name a variant come last. So a pipeline that the table chooses, too, belongs to a case
 * for which it does. */
static rlxvk_status choose_lines(survey *s)
{
    rlxvk_status status;
    TRY(s->setup->shapes ? read_shapes(s) : case_list_generate(&s->lines));
    TRY(choose_naming(s, false));
    TRY(choose_naming(s, true));
    if (s->wanted.count == 0)
        status = status_fail(RLXVK_E_INDEX, "no conformance case matches --filter");
error:
    return status;
}

/* ---- Report ---- */

static int worst_first(const void *a, const void *b)
{
    const made *x = a, *y = b;
    return bench_compare_trouble(&x->figures, x->about.seconds, &y->figures, y->about.seconds);
}

static void print_need(const need *by)
{
    if (by->row)
        printf(" %s%s%s%s", by->kind ? by->kind : "", by->kind ? "=" : "", by->row,
               by->named ? " (named)" : "");
    if (by->precision)
        printf(" in %s", rlxvk_precision_name(by->precision));
    printf("  %s\n", by->line);
}

static void print_kernel(const pipeline_request *r)
{
    printf("%s<", kernel_find(r->kernel)->name);
    for (uint32_t c = 0; c < r->constant_count; c++)
        printf("%s%u", c ? "," : "", r->constants[c]);
    printf(">");
}

static void print_figures(const made *m)
{
    static const figure columns[] = {FIGURE_SPILLS,      FIGURE_SCALAR_SPILLS, FIGURE_SCRATCH,
                                     FIGURE_REGISTERS,   FIGURE_SHARED,        FIGURE_OCCUPANCY,
                                     FIGURE_INSTRUCTIONS};
    for (size_t i = 0; i < ARRAY_COUNT(columns); i++)
        if (m->figures.at[columns[i]] < 0)
            printf("%7s ", "-");
        else
            printf("%7.0f ", m->figures.at[columns[i]]);
    printf("%7.3f s  ", m->about.seconds);
}

/* Lists all pipelines in trouble, and others up to a number. */
static void print_text(survey *s)
{
    size_t troubled = 0, chosen = 0, slow = 0;
    printf("%s (%s)\n%7s %7s %7s %7s %7s %7s %7s %9s  %s\n", s->device.name, s->device.driver,
           "spills", "scalar", "scratch", "regs", "shared", "waves", "instr", "made in", "kernel");
    for (size_t i = 0; i < s->made.count; i++) {
        const made *m = &s->made.items[i];
        bool is_slow = m->about.seconds > SLOW, is_troubled = bench_is_troubled(&m->figures);
        slow += is_slow;
        troubled += is_troubled;
        chosen += is_troubled && !m->by.named;
        if (i >= SHOWN && !is_slow && !is_troubled)
            continue;
        print_figures(m);
        print_kernel(&m->about.request);
        print_need(&m->by);
    }
    for (size_t i = 0; i < s->failures.count; i++) {
        printf("FAILED ");
        print_kernel(&s->failures.items[i].request);
        print_need(&s->failures.items[i].by);
        printf("  %s\n", s->failures.items[i].message);
    }
    printf("%zu pipelines, %zu failed, %zu with spills or scratch memory (%zu of them chosen by "
           "table), %zu above %.0f s, %.1f s\n",
           s->made.count, s->failures.count, troubled, chosen, slow, SLOW, s->seconds);
    if (s->setup->at_most)
        printf("%zu pipelines were left out\n", s->sample.left_out);
}

static void json_need(const pipeline_request *r, const need *by)
{
    printf("\n  {\"kernel\": \"%s\", \"constants\": [", kernel_find(r->kernel)->name);
    for (uint32_t c = 0; c < r->constant_count; c++)
        printf("%s%u", c ? ", " : "", r->constants[c]);
    printf("], \"case\": ");
    print_json_string(stdout, by->line);
    printf(", \"precision\": \"%s\"", rlxvk_precision_name(by->precision));
    printf(", \"chosen\": %s", by->named ? "false" : "true");
    if (by->row)
        printf(", \"variant\": \"%s%s%s\"", by->kind ? by->kind : "", by->kind ? "=" : "", by->row);
}

static void json_made(const made *m)
{
    json_figure figures[FIGURE_COUNT + 2] = {{"seconds", m->about.seconds},
                                             {"subgroup_size", m->about.subgroup_size}};
    size_t count = 2;
    json_need(&m->about.request, &m->by);
    for (size_t f = 0; f < FIGURE_COUNT; f++)
        if (m->figures.at[f] >= 0)
            figures[count++] = (json_figure){bench_figure_name((figure)f), m->figures.at[f]};
    print_json_figures(stdout, figures, count);
    printf(", \"statistics\": {");
    for (size_t i = 0; i < m->about.statistics.count; i++) {
        printf("%s", i ? ", " : "");
        print_json_string(stdout, m->about.statistics.items[i].name);
        printf(": ");
        print_json_number(stdout, m->about.statistics.items[i].value);
    }
    printf("}}");
}

static void json_uses(const survey *s)
{
    printf(",\n \"dispatches\": [");
    for (size_t i = 0; i < s->uses.count; i++) {
        const use *u = &s->uses.items[i];
        printf("%s", i ? "," : "");
        json_need(&u->request, &u->by);
        printf(", \"lowering\": %zu, \"groups\": [%u, %u, %u], \"prepares\": %s}", u->lowering,
               u->groups[0], u->groups[1], u->groups[2], u->prepares ? "true" : "false");
    }
    printf("]");
}

static void print_json(survey *s)
{
    printf("{\"device\": ");
    print_json_string(stdout, s->device.name);
    printf(", \"driver\": ");
    print_json_string(stdout, s->device.driver);
    printf(", \"seconds\": ");
    print_json_number(stdout, s->seconds);
    printf(", \"left_out\": %zu", s->sample.left_out);
    printf(",\n \"pipelines\": [");
    for (size_t i = 0; i < s->made.count; i++) {
        printf("%s", i ? "," : "");
        json_made(&s->made.items[i]);
    }
    printf("],\n \"failures\": [");
    for (size_t i = 0; i < s->failures.count; i++) {
        printf("%s", i ? "," : "");
        json_need(&s->failures.items[i].request, &s->failures.items[i].by);
        printf(", \"error\": ");
        print_json_string(stdout, s->failures.items[i].message);
        printf("}");
    }
    printf("]");
    if (s->setup->shapes)
        json_uses(s);
    printf("}\n");
}

static rlxvk_status end_modules(survey *s)
{
    bench_modules *m = &s->modules;
    rlxvk_status status = bench_modules_close(m);
    if (status != RLXVK_OK)
        return status;
    printf("%zu modules of %zu pipelines, %zu failed, %.1f s\n", m->contents.count,
           m->requests.count, m->failed, s->seconds);
    if (m->failed)
        return status_fail(RLXVK_E_UNSUPPORTED, "%zu pipelines are beyond the device's limits",
                           m->failed);
    return RLXVK_OK;
}

/* ---- Survey ---- */

/* A driver that executes nothing does not tell how subgroups hold matrices. So this assumes that
 * GPUs of NVIDIA hold them as glsl/matmul/matrix_layout.glsl expects, and no others do. */
static rlxvk_status assume_layouts(survey *s, const rlxvk_context_options *options)
{
    enum { OTHER = 1, LANES = 2 }; /* as in matrix_layout.c */
    device *d = s->lowering.context->device;
    rlxvk_context *probed = NULL; /* its own, so that the survey has only the cases' pipelines */
    bool executes = true;
    rlxvk_status status;
    TRY(rlxvk_context_create(options, &probed));
    TRY(probe_executes(probed, &executes));
    for (size_t i = 0; i < ARRAY_COUNT(d->matrix_layouts) && !executes; i++)
        d->matrix_layouts[i] = d->snapshot.properties.vendorID == VENDOR_NVIDIA ? LANES : OTHER;
error:
    rlxvk_context_destroy(probed);
    return status;
}

static void survey_destroy(survey *s)
{
    bench_modules_destroy(&s->modules);
    bench_sample_destroy(&s->sample);
    VECTOR_FREE(&s->candidates);
    for (size_t i = 0; i < s->made.count; i++)
        pipeline_description_destroy(&s->made.items[i].about);
    VECTOR_FREE(&s->made);
    VECTOR_FREE(&s->failures);
    VECTOR_FREE(&s->uses);
    VECTOR_FREE(&s->wanted);
    case_list_destroy(&s->lines);
    rlxvk_context_destroy(s->lowering.context);
}

rlxvk_status bench_survey(const bench_survey_setup *setup)
{
    rlxvk_context_options options = {.cache_directory = "", .tuning = RLXVK_OFF};
    survey s = {.setup = setup};
    rlxvk_device_info found;
    rlxvk_status status;
    double begin = clock_seconds();
    bench_without_caches();
    TRY(option_device(setup->device, &found, &options));
    TRY(context_create(&options, (context_needs){.statistics = setup->statistics},
                       &s.lowering.context));
    rlxvk_context_device(s.lowering.context, &s.device);
    TRY(choose_lines(&s));
    TRY(assume_layouts(&s, &options));
    s.gpu = bench_profile_of_gpu(s.lowering.context->device, (uint32_t)setup->subgroup_size);
    if (setup->modules)
        TRY(bench_modules_open(&s.modules, setup->modules));
    TRY(setup->each_variant ? survey_each_variant(&s) : survey_chosen(&s));
    s.seconds = clock_seconds() - begin;
    print_progress(NULL);
    if (setup->modules) {
        status = end_modules(&s);
        goto error;
    }
    qsort(s.made.items, s.made.count, sizeof *s.made.items, worst_first);
    (setup->json ? print_json : print_text)(&s);
    if (s.failures.count)
        status = status_fail(RLXVK_E_VULKAN, "%zu pipelines cannot be made", s.failures.count);
error:
    survey_destroy(&s);
    return status;
}
