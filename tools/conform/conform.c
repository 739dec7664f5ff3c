/*
 * rlxvk conform: which cases to run, on how many threads, and what is made of the results. Results
 * are kept by case and reported in the order of the cases, however the threads ran.
 */
#include "conform/conform.h"
#include "cli/clock.h"
#include "cli/commands.h"
#include "exec/context.h"
#include "cli/new_file.h"
#include "op/choice/choice.h"
#include "cli/output.h"
#include "cli/option.h"

#include <getopt.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SPARSE = 8 }; /* --sparse without a number: one case in so many */

typedef struct options {
    const char *device, *ops, *golden, *html, *variant;
    rlxvk_precision precision;
    uint64_t number, seed, jobs, sparse, phase;
    bool one_case, json, force_host, each_variant, tuned, list, help;
} options;

typedef struct variant_totals {
    uint64_t passed, failed;
    size_t unused; /* variants that no case could use */
} variant_totals;

typedef struct job {
    const options *options;
    conform_setup setup;
    case_list lines;
    golden_set golden;
    VECTOR(conform_case) cases;
    char (*rows)[40]; /* the row of each case */
    conform_result *results;
    conform_report report;
    variant_totals variants; /* of --each-variant */
    pthread_mutex_t lock;    /* of next, done and the standard streams */
    size_t next, done;
} job;

static const char help[] =
    "usage: rlxvk conform [OPTION]...\n\n"
    "Runs every case of every op on a device and compares with the host reference.\n\n"
    "  --device D     index, part of the name, or UUID (default: RLXVK_DEVICE, else the best)\n"
    "  --op NAME,...  only the cases of these ops\n"
    "  --case N       only case N of that op\n"
    "  --golden DIR   the golden vectors of DIR instead of the built-in cases\n"
    "  --seed S       contents of the inputs (default 1)\n"
    "  --sparse[=N]   every Nth case of each op (eighth): a quick look, or one under a slow layer\n"
    "  --phase P      with --sparse=N: start at case P of each op, so that N processes share them\n"
    "  --jobs N       cases at a time (default: 2, or 1 on a single processor)\n"
    "  --precision P  of matrix products: f32 (default), f16, bf16, split\n"
    "  --variant V    kernel variants by name, as RLXVK_VARIANT: family=row,...\n"
    "  --each-variant each family's cases with each of its kernel variants in turn; those that "
    "the\n"
    "                 variant cannot do are passed over\n"
    "  --tuned        let measured choices decide, too (rlxvk bench --tune); otherwise the tables\n"
    "  --force-host   run every op's host function through the executable\n"
    "  --json         the report as JSON on standard output, failures on standard error\n"
    "  --html FILE    the report as a page, too\n"
    "  --list         print the cases instead of running them\n\n"
    "Exit status 0 only if nothing failed.\n";

static const struct option long_options[] = {
    {"device", required_argument, NULL, 'd'},  {"op", required_argument, NULL, 'o'},
    {"case", required_argument, NULL, 'c'},    {"golden", required_argument, NULL, 'g'},
    {"seed", required_argument, NULL, 's'},    {"jobs", required_argument, NULL, 'j'},
    {"html", required_argument, NULL, 'H'},    {"precision", required_argument, NULL, 'p'},
    {"variant", required_argument, NULL, 'v'}, {"each-variant", no_argument, NULL, 'e'},
    {"tuned", no_argument, NULL, 't'},         {"force-host", no_argument, NULL, 'f'},
    {"json", no_argument, NULL, 'J'},          {"list", no_argument, NULL, 'l'},
    {"sparse", optional_argument, NULL, 'S'},  {"phase", required_argument, NULL, 'P'},
    {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
};

static bool set_option(options *o, int letter)
{
    const char **const words[128] = {['d'] = &o->device,
                                     ['o'] = &o->ops,
                                     ['g'] = &o->golden,
                                     ['H'] = &o->html,
                                     ['v'] = &o->variant};
    bool *const flags[128] = {['f'] = &o->force_host, ['J'] = &o->json, ['e'] = &o->each_variant,
                              ['t'] = &o->tuned,      ['l'] = &o->list, ['h'] = &o->help};
    if (letter < 0 || letter >= 128 || letter == '?')
        return false;
    if (words[letter])
        *words[letter] = optarg;
    else if (flags[letter])
        *flags[letter] = true;
    else if (letter == 'p')
        return parse_precision(optarg, &o->precision);
    else if (letter == 'c')
        return o->one_case = parse_number("case", optarg, 0, UINT32_MAX, &o->number);
    else if (letter == 's')
        return parse_number("seed", optarg, 0, UINT64_MAX, &o->seed);
    else if (letter == 'S' && !optarg)
        o->sparse = SPARSE;
    else if (letter == 'S')
        return parse_number("sparse", optarg, 1, UINT32_MAX, &o->sparse);
    else if (letter == 'P')
        return parse_number("phase", optarg, 0, UINT32_MAX, &o->phase);
    else
        return parse_number("jobs", optarg, 1, 64, &o->jobs);
    return true;
}

static bool check_op(const char *name)
{
    const char *near = case_nearest_row(name);
    if (case_find_family(name))
        return true;
    report_error("--op '%s': no op of this name has cases; %s%s%s", name,
                 near ? "did you mean " : "`rlxvk conform --list` shows those that have",
                 near ? near : "", near ? "?" : "");
    return false;
}

/* Every name of a list must be known; an empty one is not. */
static bool check_ops(const char *list)
{
    char name[64];
    for (const char *at = list, *end; at; at = *end ? end + 1 : NULL) {
        end = at + strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)(end - at), at);
        if (!check_op(name))
            return false;
    }
    return true;
}

static bool parse_options(options *o, int argc, char **argv)
{
    *o = (options){.seed = 1, .jobs = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 2 : 1};
    for (int letter; (letter = getopt_long(argc, argv, "hj:", long_options, NULL)) != -1;)
        if (!set_option(o, letter))
            return false;
    if (!parse_end(argc, argv, optind) || !check_ops(o->ops))
        return false;
    if (o->phase >= MAX(o->sparse, 1))
        report_error("--phase %llu: it must be less than the N of --sparse=N, which is %llu",
                     (unsigned long long)o->phase, (unsigned long long)MAX(o->sparse, 1));
    else if (o->one_case && (!o->ops || strchr(o->ops, ',')))
        report_error("--case needs one --op, whose case it is");
    else if (o->each_variant && (o->variant || o->json || o->html || o->force_host))
        report_error("--each-variant goes with no --variant, --json, --html or --force-host");
    else
        return true;
    return false;
}

/* ---- Which cases ---- */

static conform_row *find_row(job *j, const char *name)
{
    for (size_t i = 0; i < j->report.rows.count; i++)
        if (strcmp(j->report.rows.items[i].name, name) == 0)
            return &j->report.rows.items[i];
    return VECTOR_PUSH(&j->report.rows, (conform_row){.name = name})
               ? &j->report.rows.items[j->report.rows.count - 1]
               : NULL;
}

static bool takes_op(const options *o, const char *row)
{
    size_t length = strlen(row);
    for (const char *at = o->ops; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, row, length) == 0 && (at[length] == ',' || at[length] == 0))
            return true;
    return !o->ops;
}

/* Numbers the case within its row and takes it when the options want it. `row` must outlive the
 * report. */
static rlxvk_status add_case(job *j, const char *row, const char *line, const golden_case *golden)
{
    conform_row *counted = find_row(j, row);
    if (!counted)
        return status_fail_memory("cases");
    uint64_t number = counted->cases++;
    const options *o = j->options;
    if (!takes_op(o, row) || (o->one_case && o->number != number) ||
        (o->sparse && number % o->sparse != o->phase))
        return RLXVK_OK;
    return VECTOR_PUSH(&j->cases, (conform_case){line, golden, number})
               ? RLXVK_OK
               : status_fail_memory("cases");
}

static rlxvk_status choose_golden(job *j)
{
    rlxvk_status status = golden_open(j->options->golden, &j->golden);
    for (size_t i = 0; i < j->golden.cases.count && status == RLXVK_OK; i++) {
        const golden_case *c = &j->golden.cases.items[i];
        if (c->spec.row[0])
            status = add_case(j, c->spec.row, c->line, c);
        else
            j->report.without_op++;
    }
    return status;
}

static rlxvk_status choose_generated(job *j)
{
    rlxvk_status status = case_list_generate(&j->lines);
    if (status != RLXVK_OK)
        return status;
    j->rows = memory_zeroed(j->lines.lines.count + 1, sizeof *j->rows);
    if (!j->rows)
        return status_fail_memory("cases");
    for (size_t i = 0; i < j->lines.lines.count && status == RLXVK_OK; i++) {
        const char *line = j->lines.lines.items[i];
        snprintf(j->rows[i], sizeof *j->rows, "%.*s", (int)strcspn(line, " "), line);
        status = add_case(j, j->rows[i], line, NULL);
    }
    return status;
}

static rlxvk_status choose_cases(job *j)
{
    rlxvk_status status = j->options->golden ? choose_golden(j) : choose_generated(j);
    if (status != RLXVK_OK)
        return status;
    for (size_t i = 0; i < j->report.rows.count; i++)
        j->report.rows.items[i].cases = 0; /* from here on: cases that ran */
    j->results = memory_zeroed(j->cases.count + 1, sizeof *j->results);
    if (!j->results)
        return status_fail_memory("cases");
    if (j->cases.count == 0)
        return status_fail(RLXVK_E_INDEX, "no case matches these options");
    return RLXVK_OK;
}

static const char *row_of(const conform_case *c, char out[40])
{
    const char *line = c->golden ? c->golden->spec.row : c->line;
    snprintf(out, 40, "%.*s", (int)strcspn(line, " "), line);
    return out;
}

static void list_cases(const job *j)
{
    char row[40];
    for (size_t i = 0; i < j->cases.count; i++)
        printf("%s %llu: %s\n", row_of(&j->cases.items[i], row),
               (unsigned long long)j->cases.items[i].number, j->cases.items[i].line);
}

/* ---- Running ---- */

/* What all runs of this job have in common: "rlxvk conform" and options. */
static void append_command(const job *j, text *line)
{
    const options *o = j->options;
    text_append(line, "rlxvk conform");
    if (o->device)
        text_append(line, " --device '%s'", o->device);
    if (o->golden)
        text_append(line, " --golden '%s'", o->golden);
    if (o->force_host)
        text_append(line, " --force-host");
    if (o->tuned)
        text_append(line, " --tuned");
    if (j->setup.precision)
        text_append(line, " --precision %s", rlxvk_precision_name(j->setup.precision));
    if (j->setup.variant)
        text_append(line, " --variant '%s'", j->setup.variant);
    text_append(line, " --seed %llu", (unsigned long long)o->seed);
}

/* A command line that runs this case alone, as it ran here. */
static char *rerun_line(const job *j, const conform_case *c)
{
    char buffer[1024] = "", row[40];
    text line = {buffer, sizeof buffer, 0};
    append_command(j, &line);
    text_append(&line, " --op %s --case %llu", row_of(c, row), (unsigned long long)c->number);
    return memory_copy_string(buffer);
}

static void describe_run(job *j)
{
    const options *o = j->options;
    text line = {j->report.command, sizeof j->report.command, 0};
    append_command(j, &line);
    if (o->ops)
        text_append(&line, " --op %s", o->ops);
    if (o->one_case)
        text_append(&line, " --case %llu", (unsigned long long)o->number);
    if (o->sparse)
        text_append(&line, " --sparse=%llu --phase %llu", (unsigned long long)o->sparse,
                    (unsigned long long)o->phase);
    j->report.started = time(NULL);
}

static void print_failure(const job *j, const conform_case *c, const conform_result *result)
{
    char row[40], *rerun = rerun_line(j, c);
    print_progress(NULL);
    fprintf(j->options->json ? stderr : stdout, "FAILED %s case %llu: %s\n  %s\n  rerun: %s\n",
            row_of(c, row), (unsigned long long)c->number, c->line, result->message,
            rerun ? rerun : "");
    memory_free(rerun);
}

static void run_case(job *j, size_t i)
{
    const conform_case *c = &j->cases.items[i];
    golden_case loaded;
    if (!c->golden) {
        conform_run(&j->setup, c, &j->results[i]);
        return;
    }
    loaded = *c->golden;
    if (golden_load(&j->golden, &loaded) != RLXVK_OK) {
        j->results[i].verdict = VERDICT_FAILED;
        snprintf(j->results[i].message, sizeof j->results[i].message, "%s", rlxvk_last_error());
        return;
    }
    conform_run(&j->setup, &(conform_case){c->line, &loaded, c->number}, &j->results[i]);
    golden_unload(&loaded);
}

static void note_done(job *j, size_t i)
{
    char line[96], row[40];
    pthread_mutex_lock(&j->lock);
    j->done++;
    if (j->results[i].verdict == VERDICT_FAILED)
        print_failure(j, &j->cases.items[i], &j->results[i]);
    snprintf(line, sizeof line, "[%zu/%zu] %s", j->done, j->cases.count,
             row_of(&j->cases.items[i], row));
    print_progress(line);
    pthread_mutex_unlock(&j->lock);
}

static void *work(void *user)
{
    job *j = user;
    for (;;) {
        pthread_mutex_lock(&j->lock);
        size_t i = j->next++;
        pthread_mutex_unlock(&j->lock);
        if (i >= j->cases.count)
            return NULL;
        run_case(j, i);
        note_done(j, i);
    }
}

static void run_all(job *j)
{
    pthread_t threads[64];
    size_t started = 0, wanted = MIN(MIN(j->options->jobs, ARRAY_COUNT(threads)), j->cases.count);
    double begin = clock_seconds();
    while (started + 1 < wanted && pthread_create(&threads[started], NULL, work, j) == 0)
        started++;
    work(j);
    while (started > 0)
        pthread_join(threads[--started], NULL);
    print_progress(NULL);
    j->report.seconds = clock_seconds() - begin;
}

/* ---- Each variant ---- */

/* The cases of a family's ops. */
static rlxvk_status take_cases(job *j, const choice_family *family, const conform_case *all,
                               size_t count)
{
    char row[40];
    j->cases.count = 0;
    for (size_t i = 0; i < count; i++)
        if (choice_reaches(family, row_of(&all[i], row)) && !VECTOR_PUSH(&j->cases, all[i]))
            return status_fail_memory("cases");
    return RLXVK_OK;
}

static void run_variant(job *j, const choice_family *family, const char *row)
{
    variant_totals *totals = &j->variants;
    char choice[128], name[160];
    uint64_t verdicts[VERDICT_COUNT] = {0}, passed_over = 0;
    snprintf(choice, sizeof choice, "%s=%s", family->name, row);
    snprintf(name, sizeof name, "%s%s%s", choice, j->setup.precision ? " in " : "",
             j->setup.precision ? rlxvk_precision_name(j->setup.precision) : "");
    j->setup.variant = choice;
    j->next = j->done = 0;
    run_all(j);
    for (size_t i = 0; i < j->cases.count; i++)
        if (j->results[i].passed_over)
            passed_over++;
        else
            verdicts[j->results[i].verdict]++;
    totals->passed += verdicts[VERDICT_PASSED];
    totals->failed += verdicts[VERDICT_FAILED];
    totals->unused += passed_over == j->cases.count;
    printf("%-36s %5llu passed %3llu failed %5llu passed over %5.1f s%s\n", name,
           (unsigned long long)verdicts[VERDICT_PASSED],
           (unsigned long long)verdicts[VERDICT_FAILED], (unsigned long long)passed_over,
           j->report.seconds, passed_over == j->cases.count ? "  not possible here" : "");
    fflush(stdout);
    j->setup.variant = NULL;
}

/* The precisions to run a family in: its own, or the caller's. */
static bool runs_in(const job *j, const choice_family *family, rlxvk_precision precision)
{
    if (family->precisions == 0 || j->options->precision)
        return precision == j->options->precision;
    return family->precisions >> precision & 1;
}

static rlxvk_status run_variants(job *j)
{
    const variant_totals *totals = &j->variants;
    size_t count = j->cases.count;
    conform_case *all = memory_zeroed(count + 1, sizeof *all);
    rlxvk_status status = RLXVK_OK;
    if (!all)
        return status_fail_memory("cases");
    memcpy(all, j->cases.items, count * sizeof *all);
    j->setup.only_variant = true;
    for (size_t f = 0; f < CHOICE_COUNT; f++) {
        const choice_family *family = &choice_families[f];
        TRY(take_cases(j, family, all, count));
        for (size_t i = 0; j->cases.count && choice_row_name(family, i); i++)
            for (int p = 0; p <= RLXVK_PRECISION_SPLIT; p++) {
                j->setup.precision = (rlxvk_precision)p;
                if (runs_in(j, family, j->setup.precision))
                    run_variant(j, family, choice_row_name(family, i));
            }
    }
    if (totals->unused)
        printf("%zu variants are not possible on this device or in these cases\n", totals->unused);
    printf("%llu passed, %llu failed\n", (unsigned long long)totals->passed,
           (unsigned long long)totals->failed);
error:
    memory_free(all);
    return status;
}

/* ---- Report ---- */

static rlxvk_status add_failure(job *j, size_t i, const char *row)
{
    const conform_case *c = &j->cases.items[i];
    conform_failure failure = {memory_copy_string(row), memory_copy_string(c->line),
                               memory_copy_string(j->results[i].message), rerun_line(j, c),
                               c->number};
    if (failure.row && failure.line && failure.message && failure.rerun &&
        VECTOR_PUSH(&j->report.failures, failure))
        return RLXVK_OK;
    memory_free(failure.row);
    memory_free(failure.line);
    memory_free(failure.message);
    memory_free(failure.rerun);
    return status_fail_memory("report");
}

static rlxvk_status collect(job *j)
{
    char name[40];
    size_t kept = 0;
    for (size_t i = 0; i < j->cases.count; i++) {
        const conform_result *result = &j->results[i];
        conform_row *row = find_row(j, row_of(&j->cases.items[i], name));
        row->cases++;
        row->verdicts[result->verdict]++;
        row->worst = MAX(row->worst, result->error);
        if (result->verdict == VERDICT_FAILED && add_failure(j, i, row->name) != RLXVK_OK)
            return RLXVK_E_OUT_OF_HOST_MEMORY;
    }
    for (size_t i = 0; i < j->report.rows.count; i++)
        if (j->report.rows.items[i].cases)
            j->report.rows.items[kept++] = j->report.rows.items[i];
    j->report.rows.count = kept;
    return RLXVK_OK;
}

static void job_destroy(job *j)
{
    for (size_t i = 0; i < j->report.failures.count; i++) {
        memory_free(j->report.failures.items[i].row);
        memory_free(j->report.failures.items[i].line);
        memory_free(j->report.failures.items[i].message);
        memory_free(j->report.failures.items[i].rerun);
    }
    VECTOR_FREE(&j->report.failures);
    VECTOR_FREE(&j->report.rows);
    VECTOR_FREE(&j->cases);
    memory_free(j->rows);
    memory_free(j->results);
    case_list_destroy(&j->lines);
    golden_close(&j->golden);
    rlxvk_context_destroy(j->setup.context);
    pthread_mutex_destroy(&j->lock);
}

static rlxvk_status conform(job *j)
{
    const options *o = j->options;
    rlxvk_context_options context_options = {.tuning = o->tuned ? RLXVK_ON : RLXVK_OFF};
    rlxvk_device_info found;
    rlxvk_status status;
    if (o->html)
        TRY(new_file_check(o->html));
    TRY(choose_cases(j));
    if (o->list) {
        list_cases(j);
        return RLXVK_OK;
    }
    TRY(option_device(o->device, &found, &context_options));
    TRY(rlxvk_context_create(&context_options, &j->setup.context));
    rlxvk_context_device(j->setup.context, &j->report.device);
    describe_run(j);
    if (o->each_variant) {
        TRY(run_variants(j));
    } else {
        run_all(j);
        TRY(collect(j));
        (o->json ? conform_write_json : conform_write_text)(&j->report, stdout);
    }
    fflush(stdout); /* the page may go to the same place */
    if (o->html)
        TRY(conform_write_html(&j->report, o->html));
    uint32_t messages = j->setup.context->device->validation_messages;
    if (messages)
        status = status_fail(RLXVK_E_VULKAN, "the validation layer had %u messages", messages);
error:
    return status;
}

int command_conform(int argc, char **argv)
{
    options o;
    if (!parse_options(&o, argc, argv))
        return EXIT_USAGE;
    if (o.help)
        return print_help(help);
    job j = {.options = &o,
             .setup = {.seed = o.seed,
                       .force_host = o.force_host,
                       .precision = o.precision,
                       .variant = o.variant},
             .report = {.seed = o.seed},
             .lock = PTHREAD_MUTEX_INITIALIZER};
    rlxvk_status status = conform(&j);
    if (status != RLXVK_OK)
        report_status(status);
    bool good = status == RLXVK_OK && conform_total(&j.report, VERDICT_FAILED) == 0 &&
                j.variants.failed == 0;
    job_destroy(&j);
    return good ? EXIT_OK : EXIT_FAILED;
}
