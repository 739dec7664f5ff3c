/*
 * rlxvk conform: which cases to run, in how many processes, and what is made of the results.
 * Results are kept by case and reported in the order of the cases, however the processes ran.
 */
#include "conform/conform.h"
#include "conform/conform_options.h"
#include "conform/conform_pool.h"
#include "cli/clock.h"
#include "cli/commands.h"
#include "exec/context.h"
#include "cli/new_file.h"
#include "op/choice/choice.h"
#include "cli/output.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct variant_totals {
    uint64_t passed, failed;
    size_t unused; /* variants that the device cannot run */
} variant_totals;

/* What the processes that run the cases write. */
typedef struct in_common {
    rlxvk_device_info device;
    _Atomic uint32_t messages;            /* of the validation layer */
    _Atomic uint64_t pipelines, permuted; /* made, and those of another order of invocations */
    _Atomic bool permutes;                /* such an order was asked for */
    conform_use use;                      /* of --each-variant: of the variant in hand */
    char lack[256];                       /* ... and what the device would need for it */
    uint64_t kernels[KERNEL_COUNT];       /* ... and dispatches of each in all that was lowered */
    conform_result results[];             /* of each case */
} in_common;

typedef struct job {
    const conform_options *options;
    conform_setup setup;
    case_list lines;
    golden_set golden;
    VECTOR(conform_case) cases;
    char (*rows)[40]; /* the row of each case */
    in_common *common;
    size_t common_bytes;
    conform_report report;
    variant_totals variants;     /* of --each-variant */
    const choice_family *family; /* ... in hand */
    size_t done;
} job;

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

static bool takes_op(const conform_options *o, const char *row)
{
    size_t length = strlen(row);
    for (const char *at = o->ops; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, row, length) == 0 && (at[length] == ',' || at[length] == 0))
            return true;
    return !o->ops;
}

/* Whether a case is one of those that --sparse takes. */
static bool is_of_share(const conform_options *o, uint64_t number)
{
    return !o->sparse || number % o->sparse == o->phase;
}

/* Numbers the case within its row and takes it when the options want it. What pipelines a run needs
 * decides before the share that it takes of them does. `row` must outlive the report. */
static rlxvk_status add_case(job *j, const char *row, const char *line, const golden_case *golden)
{
    conform_row *counted = find_row(j, row);
    if (!counted)
        return status_fail_memory("cases");
    uint64_t number = counted->cases++;
    const conform_options *o = j->options;
    if (!takes_op(o, row) || (o->one_case && o->number != number) ||
        (!o->pipelines && !o->each_variant && !is_of_share(o, number)))
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
    for (size_t i = 0; i < j->report.rows.count; i++) {
        j->report.rows.items[i].all_cases = j->report.rows.items[i].cases;
        j->report.rows.items[i].cases = 0; /* from here on: cases that ran */
    }
    if (j->cases.count == 0)
        return status_fail(RLXVK_E_INDEX, "no case matches these options");
    j->common_bytes = sizeof *j->common + j->cases.count * sizeof *j->common->results;
    j->common = conform_pool_memory(j->common_bytes);
    return j->common ? RLXVK_OK : status_fail_memory("cases");
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
    const conform_options *o = j->options;
    text_append(line, "rlxvk conform");
    if (o->device)
        text_append(line, " --device '%s'", o->device);
    if (o->golden)
        text_append(line, " --golden '%s'", o->golden);
    if (o->force_host)
        text_append(line, " --force-host");
    if (o->bounds)
        text_append(line, " --bounds");
    if (o->gradients)
        text_append(line, " --gradients");
    if (o->tuned)
        text_append(line, " --tuned");
    if (o->canary)
        text_append(line, " --canary");
    if (o->invocations)
        text_append(line, " --invocations %s", o->invocations);
    if (j->setup.precision)
        text_append(line, " --precision %s", rlxvk_precision_name(j->setup.precision));
    if (j->setup.variant)
        text_append(line, " --variant '%s'", j->setup.variant);
}

static void append_seeds(const conform_setup *setup, text *line)
{
    for (size_t i = 0; i < setup->seed_count; i++)
        text_append(line, "%s%llu", i ? "," : " --seed ", (unsigned long long)setup->seeds[i]);
}

/* A command line that runs this case alone, as it ran here. */
static char *rerun_line(const job *j, const conform_case *c, uint64_t seed)
{
    char buffer[1024] = "", row[40];
    text line = {buffer, sizeof buffer, 0};
    append_command(j, &line);
    text_append(&line, " --seed %llu --op %s --case %llu", (unsigned long long)seed, row_of(c, row),
                (unsigned long long)c->number);
    return memory_copy_string(buffer);
}

static void describe_run(job *j)
{
    const conform_options *o = j->options;
    text line = {j->report.command, sizeof j->report.command, 0};
    append_command(j, &line);
    append_seeds(&j->setup, &line);
    if (o->ops)
        text_append(&line, " --op %s", o->ops);
    if (o->one_case)
        text_append(&line, " --case %llu", (unsigned long long)o->number);
    if (o->sparse)
        text_append(&line, " --sparse=%llu --phase %llu", (unsigned long long)o->sparse,
                    (unsigned long long)o->phase);
    if (o->pipelines)
        text_append(&line, " --pipelines=%llu", (unsigned long long)o->pipelines);
    j->report.started = time(NULL);
}

static void print_failure(const job *j, const conform_case *c, const conform_result *result)
{
    char row[40], *rerun = rerun_line(j, c, result->seed);
    print_progress(NULL);
    fprintf(j->options->json ? stderr : stdout, "FAILED %s case %llu: %s\n  %s\n  rerun: %s\n",
            row_of(c, row), (unsigned long long)c->number, c->line, result->message,
            rerun ? rerun : "");
    memory_free(rerun);
}

static void run_case(void *user, size_t i)
{
    job *j = user;
    conform_result *result = &j->common->results[i];
    const conform_case *c = &j->cases.items[i];
    golden_case loaded;
    void (*run)(const conform_setup *, const conform_case *, conform_result *) =
        j->options->gradients ? conform_run_gradients : conform_run;
    if (!c->golden) {
        run(&j->setup, c, result);
        return;
    }
    loaded = *c->golden;
    if (golden_load(&j->golden, &loaded) != RLXVK_OK) {
        result->verdict = VERDICT_FAILED;
        snprintf(result->message, sizeof result->message, "%s", rlxvk_last_error());
        return;
    }
    run(&j->setup, &(conform_case){c->line, &loaded, c->number}, result);
    golden_unload(&loaded);
}

static void note_done(void *user, size_t i)
{
    job *j = user;
    char line[96], row[40];
    j->done++;
    if (j->common->results[i].verdict == VERDICT_FAILED)
        print_failure(j, &j->cases.items[i], &j->common->results[i]);
    snprintf(line, sizeof line, "[%zu/%zu] %s", j->done, j->cases.count,
             row_of(&j->cases.items[i], row));
    print_progress(line);
}

static void crash(void *user, size_t i, const char *how)
{
    job *j = user;
    conform_result *result = &j->common->results[i];
    *result = (conform_result){.verdict = VERDICT_FAILED, .seed = result->seed};
    snprintf(result->message, sizeof result->message, "the process that ran it %s", how);
    note_done(j, i);
}

static rlxvk_status open_device(void *user)
{
    job *j = user;
    rlxvk_context_options options = {.tuning = j->options->tuned ? RLXVK_ON : RLXVK_OFF};
    rlxvk_device_info found;
    rlxvk_status status = RLXVK_OK;
    if (j->setup.context)
        return RLXVK_OK;
    TRY(option_device(j->options->device, &found, &options));
    TRY(rlxvk_context_create(&options, &j->setup.context));
    if (j->options->canary)
        j->setup.context->switches.check |= CHECK_CANARY;
    if (j->options->invocations)
        j->setup.context->device->invocations = j->options->order;
    rlxvk_context_device(j->setup.context, &found);
    j->common->device = found;
error:
    return status;
}

static void close_device(void *user)
{
    job *j = user;
    if (j->setup.context) {
        device *d = j->setup.context->device;
        j->common->messages += d->validation_messages;
        j->common->pipelines += pipeline_count_made(d);
        j->common->permuted += pipeline_count_permuted(d);
        j->common->permutes |= d->invocations.order != INVOCATIONS_IN_ORDER;
    }
    rlxvk_context_destroy(j->setup.context);
    j->setup.context = NULL;
}

/* Notes in the results, which are no case's yet, what is left out. */
static void mark_cases(void *user, size_t item)
{
    job *j = user;
    conform_pipelines *of_row = memory_zeroed(j->report.rows.count + 1, sizeof *of_row);
    char name[40];
    (void)item;
    for (size_t i = 0; of_row && i < j->cases.count; i++) {
        const conform_case *c = &j->cases.items[i];
        conform_pipelines *needed = &of_row[find_row(j, row_of(c, name)) - j->report.rows.items];
        j->common->results[i].passed_over =
            !conform_take(needed, &j->setup, c, j->options->pipelines);
    }
    for (size_t i = 0; of_row && i < j->report.rows.count; i++)
        VECTOR_FREE(&of_row[i].made);
    memory_free(of_row);
}

static void ignore_done(void *user, size_t item)
{
    (void)user, (void)item;
}

static void ignore_crash(void *user, size_t item, const char *how)
{
    (void)user, (void)item, (void)how;
}

/* Leaves out cases by the pipelines that they need (--pipelines), in another process where others
 * are to run them. What cannot be lowered is left in, for its run to say why; so is everything if
 * that process crashes. */
static rlxvk_status choose_pipelines(job *j)
{
    const conform_pool pool = {j,           1,           j->options->jobs,
                               open_device, mark_cases,  close_device,
                               ignore_done, ignore_crash};
    rlxvk_status status;
    size_t kept = 0;
    TRY(conform_pool_run(&pool));
    for (size_t i = 0; i < j->cases.count; i++)
        if (!j->common->results[i].passed_over && is_of_share(j->options, j->cases.items[i].number))
            j->cases.items[kept++] = j->cases.items[i];
    memset(j->common->results, 0, j->cases.count * sizeof *j->common->results);
    j->cases.count = kept;
error:
    return status;
}

static rlxvk_status run_all(job *j)
{
    const conform_pool pool = {.user = j,
                               .items = j->cases.count,
                               .processes = MIN(j->options->jobs, j->cases.count),
                               .open = open_device,
                               .run = run_case,
                               .close = close_device,
                               .done = note_done,
                               .crashed = crash};
    double begin = clock_seconds();
    j->done = 0;
    rlxvk_status status = conform_pool_run(&pool);
    print_progress(NULL);
    j->report.seconds = clock_seconds() - begin;
    j->report.device = j->common->device;
    return status;
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

static size_t count_kernels(const conform_use *use)
{
    size_t count = 0;
    for (size_t k = 0; k < KERNEL_COUNT; k++)
        count += use->kernels[k] != 0;
    return count;
}

/* Of the family's cases, those with dispatches of the variant: counted in another process if others
 * are to run them. */
static void count_dispatches(void *user, size_t item)
{
    job *j = user;
    (void)item;
    for (size_t i = 0; i < j->cases.count; i++) {
        conform_result *result = &j->common->results[i];
        size_t kernels = count_kernels(&j->common->use);
        result->dispatches = conform_count(&j->setup, &j->cases.items[i], NULL, &j->common->use);
        result->new_kernel = count_kernels(&j->common->use) > kernels;
    }
}

static void add_kernels(job *j)
{
    for (size_t k = 0; k < KERNEL_COUNT; k++)
        j->common->kernels[k] += j->common->use.all[k];
}

static rlxvk_status count_uses(job *j)
{
    const conform_pool pool = {
        j,           1,           j->options->jobs, open_device, count_dispatches, close_device,
        ignore_done, ignore_crash};
    rlxvk_status status;
    memset(&j->common->use, 0, sizeof j->common->use);
    memset(j->common->results, 0, j->cases.count * sizeof *j->common->results);
    TRY(conform_pool_run(&pool));
    add_kernels(j);
error:
    return status;
}

/* Of the cases that have dispatches, every Nth (--sparse), and the first of each kernel. */
static void keep_reaching(job *j)
{
    size_t kept = 0, reaching = 0;
    for (size_t i = 0; i < j->cases.count; i++)
        if (j->common->results[i].dispatches &&
            (is_of_share(j->options, reaching++) || j->common->results[i].new_kernel))
            j->cases.items[kept++] = j->cases.items[i];
    j->cases.count = kept;
    memset(j->common->results, 0, kept * sizeof *j->common->results);
}

/* The precisions to run a family in: its own, or the caller's. */
static bool runs_in(const job *j, const choice_family *family, rlxvk_precision precision)
{
    if (family->precisions == 0 || j->options->precision)
        return precision == j->options->precision;
    return family->precisions >> precision & 1;
}

static void find_lack(void *user, size_t item)
{
    job *j = user;
    text out = {j->common->lack, sizeof j->common->lack, 0};
    bool found = false;
    (void)item;
    j->common->lack[0] = 0;
    for (int own = 1; own >= 0; own--)
        for (int p = 0; p <= RLXVK_PRECISION_SPLIT && !found; p++) {
            j->setup.precision = (rlxvk_precision)p;
            found = runs_in(j, j->family, j->setup.precision) == own &&
                    conform_lacks(&j->setup, j->cases.items, j->cases.count, &out);
        }
}

/* A variant that no case dispatches: has the device no way to run it, or is a case missing? */
static rlxvk_status report_unused(job *j)
{
    const conform_pool pool = {j,           1,           j->options->jobs,
                               open_device, find_lack,   close_device,
                               ignore_done, ignore_crash};
    rlxvk_status status = conform_pool_run(&pool);
    bool lacks = status == RLXVK_OK && j->common->lack[0];
    j->variants.unused += lacks;
    j->variants.failed += !lacks;
    printf("%-36s %5d %10d  %s%s\n", j->setup.variant, 0, 0,
           lacks ? "not possible here, for want of " : "FAILED: no case dispatches it",
           j->common->lack);
    return status;
}

static void report_variant(job *j, const char *name)
{
    const conform_use *use = &j->common->use;
    variant_totals *totals = &j->variants;
    uint64_t passed = 0, failed = 0;
    for (size_t i = 0; i < j->cases.count; i++) {
        const conform_result *result = &j->common->results[i];
        bool good = result->verdict == VERDICT_PASSED && !result->passed_over;
        passed += good;
        failed += !good;
    }
    totals->passed += j->options->list ? 1 : passed;
    totals->failed += failed;
    printf("%-36s %5llu %10llu %6llu %6llu %7.1f s ", name, (unsigned long long)use->cases,
           (unsigned long long)use->dispatches, (unsigned long long)passed,
           (unsigned long long)failed, j->report.seconds);
    for (size_t k = 0; k < KERNEL_COUNT; k++)
        if (use->kernels[k])
            printf(" %s:%llu", kernel_table[k].name, (unsigned long long)use->kernels[k]);
    printf("\n");
}

/* In one precision, with the cases in hand; no line if none has a dispatch of the variant. */
static rlxvk_status run_in_precision(job *j, rlxvk_precision precision, uint64_t *dispatches)
{
    char name[160];
    rlxvk_status status;
    j->setup.precision = precision;
    snprintf(name, sizeof name, "%s%s%s", j->setup.variant, precision ? " in " : "",
             precision ? rlxvk_precision_name(precision) : "");
    TRY(count_uses(j));
    *dispatches += j->common->use.dispatches;
    if (j->common->use.dispatches == 0)
        return RLXVK_OK;
    if (j->options->list)
        j->cases.count = 0;
    keep_reaching(j);
    if (j->cases.count)
        TRY(run_all(j));
    report_variant(j, name);
    fflush(stdout);
error:
    return status;
}

/* In the family's precisions; if it is dispatched in none of them, in the others. */
static rlxvk_status run_variant(job *j, const choice_family *family, const char *row,
                                const conform_case *all, size_t count)
{
    char choice[128];
    uint64_t dispatches = 0;
    rlxvk_status status = RLXVK_OK;
    snprintf(choice, sizeof choice, "%s=%s", family->name, row);
    j->setup.variant = choice;
    j->setup.row = row;
    j->family = family;
    for (int own = 1; own >= 0 && dispatches == 0; own--)
        for (int p = 0; p <= RLXVK_PRECISION_SPLIT; p++) {
            if (runs_in(j, family, (rlxvk_precision)p) != own || (!own && j->options->precision))
                continue;
            TRY(take_cases(j, family, all, count));
            if (j->cases.count)
                TRY(run_in_precision(j, (rlxvk_precision)p, &dispatches));
        }
    TRY(take_cases(j, family, all, count));
    if (dispatches == 0 && j->cases.count)
        TRY(report_unused(j));
error:
    j->setup.variant = j->setup.row = NULL;
    return status;
}

/* ---- Kernels ---- */

/* What the device would need for the kernel; empty if no case reaches it on any device. */
static void find_kernel_lack(job *j, size_t kernel, const size_t *first)
{
    text out = {j->common->lack, sizeof j->common->lack, 0};
    j->common->lack[0] = 0;
    j->setup.kernel = (uint16_t)(kernel + 1);
    for (int p = 0; p <= RLXVK_PRECISION_SPLIT && !j->common->lack[0]; p++) {
        size_t i = first[(size_t)p * KERNEL_COUNT + kernel];
        j->setup.precision = (rlxvk_precision)p;
        if (i < j->cases.count)
            (void)conform_lacks(&j->setup, &j->cases.items[i], 1, &out);
    }
    j->setup.kernel = 0;
}

/* Kernels that are no op's: of feeds, of the probe of matrix units, of rlxvk bench. */
static bool is_of_no_op(size_t kernel)
{
    static const uint32_t kernels[] = {KERNEL_FEED_ROW, KERNEL_MATRIX_PROBE_F16,
                                       KERNEL_MATRIX_PROBE_BF16, KERNEL_FMA_PEAK};
    bool found = false;
    for (size_t i = 0; i < ARRAY_COUNT(kernels); i++)
        found = found || kernels[i] == kernel;
    return found;
}

static void report_kernels(job *j, const size_t *first)
{
    size_t unreached = 0;
    for (size_t k = 0; k < KERNEL_COUNT; k++) {
        if (j->common->kernels[k] || is_of_no_op(k))
            continue;
        find_kernel_lack(j, k, first);
        unreached++;
        j->variants.failed += !j->common->lack[0];
        printf("kernel %-29s %5d %10d  %s%s\n", kernel_table[k].name, 0, 0,
               j->common->lack[0] ? "not possible here, for want of "
                                  : "FAILED: no case dispatches it",
               j->common->lack);
    }
    printf("%zu kernels, %zu of them in no dispatch\n", (size_t)KERNEL_COUNT, unreached);
}

/* A kernel that no case reaches, in no precision and by no variant, fails unless the device lacks
 * what it needs. */
static rlxvk_status check_kernels(job *j)
{
    enum { PRECISIONS = RLXVK_PRECISION_SPLIT + 1 };
    size_t *first = memory_zeroed(PRECISIONS * KERNEL_COUNT, sizeof *first);
    rlxvk_status status = first ? RLXVK_OK : status_fail_memory("kernels");
    for (size_t p = 0; p < PRECISIONS && status == RLXVK_OK; p++) {
        j->setup.precision = (rlxvk_precision)p;
        status = count_uses(j);
    }
    if (status == RLXVK_OK)
        status = open_device(j);
    for (size_t p = 0; p < PRECISIONS && status == RLXVK_OK; p++) {
        j->setup.precision = (rlxvk_precision)p;
        conform_find_kernels(&j->setup, j->cases.items, j->cases.count, first + p * KERNEL_COUNT);
    }
    if (status == RLXVK_OK)
        report_kernels(j, first);
    memory_free(first);
    return status;
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
    printf("%-36s %5s %10s %6s %6s %9s  %s\n", "variant", "cases", "dispatches", "passed", "failed",
           "time", "kernels");
    for (size_t f = 0; f < CHOICE_COUNT; f++) {
        const choice_family *family = &choice_families[f];
        for (size_t i = 0; choice_row_name(family, i); i++)
            TRY(run_variant(j, family, choice_row_name(family, i), all, count));
    }
    if (!j->options->ops) {
        j->cases.count = 0;
        for (size_t i = 0; i < count; i++)
            TRY(VECTOR_PUSH(&j->cases, all[i]) ? RLXVK_OK : status_fail_memory("cases"));
        TRY(check_kernels(j));
    }
    if (totals->unused)
        printf("%zu variants are not possible on this device\n", totals->unused);
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
    conform_failure failure = {memory_copy_string(row),
                               memory_copy_string(c->line),
                               memory_copy_string(j->common->results[i].message),
                               rerun_line(j, c, j->common->results[i].seed),
                               c->number,
                               j->common->results[i].picture};
    if (failure.row && failure.line && failure.message && failure.rerun &&
        VECTOR_PUSH(&j->report.failures, failure))
        return RLXVK_OK;
    memory_free(failure.row);
    memory_free(failure.line);
    memory_free(failure.message);
    memory_free(failure.rerun);
    return status_fail_memory("report");
}

/* Adds up what the case compared. */
static rlxvk_status add_elements(job *j, conform_row *row, uint64_t number,
                                 const conform_result *result)
{
    row->elements += result->elements;
    row->unjudged += result->unjudged;
    row->bounded += result->bounded;
    row->take_zeros += result->takes_zeros;
    row->worst = MAX(row->worst, result->error);
    if (result->unjudged &&
        !VECTOR_PUSH(&j->report.unjudged,
                     (conform_unjudged){row->name, number, result->elements, result->unjudged}))
        return status_fail_memory("report");
    return RLXVK_OK;
}

static rlxvk_status collect(job *j)
{
    char name[40];
    size_t kept = 0;
    for (size_t i = 0; i < j->cases.count; i++) {
        const conform_result *result = &j->common->results[i];
        conform_row *row = find_row(j, row_of(&j->cases.items[i], name));
        if (result->passed_over)
            continue;
        row->cases++;
        row->verdicts[result->verdict]++;
        if (add_elements(j, row, j->cases.items[i].number, result) != RLXVK_OK)
            return RLXVK_E_OUT_OF_HOST_MEMORY;
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
    VECTOR_FREE(&j->report.unjudged);
    VECTOR_FREE(&j->report.rows);
    VECTOR_FREE(&j->cases);
    memory_free(j->rows);
    case_list_destroy(&j->lines);
    golden_close(&j->golden);
    conform_pool_release(j->common, j->common_bytes);
}

static rlxvk_status conform(job *j)
{
    const conform_options *o = j->options;
    rlxvk_status status;
    if (o->html)
        TRY(new_file_check(o->html));
    TRY(choose_cases(j));
    if (o->pipelines)
        TRY(choose_pipelines(j));
    if (o->list && !o->each_variant) {
        list_cases(j);
        return RLXVK_OK;
    }
    describe_run(j);
    if (o->each_variant) {
        TRY(run_variants(j));
    } else {
        TRY(run_all(j));
        TRY(collect(j));
        (o->json ? conform_write_json : conform_write_text)(&j->report, stdout);
    }
    fflush(stdout); /* the page may go to the same place */
    if (o->html)
        TRY(conform_write_html(&j->report, o->html));
    close_device(j);
    if (j->common->permutes)
        fprintf(
            o->json ? stderr : stdout,
            "invocations in another order in %llu of %llu pipelines; the others use subgroups\n",
            (unsigned long long)j->common->permuted, (unsigned long long)j->common->pipelines);
    if (j->common->messages)
        status = status_fail(RLXVK_E_VULKAN, "the validation layer had %u messages",
                             j->common->messages);
error:
    close_device(j);
    return status;
}

int command_conform(int argc, char **argv)
{
    conform_options o;
    if (!conform_options_parse(&o, argc, argv))
        return EXIT_USAGE;
    if (o.help)
        return print_help(conform_help);
    job j = {.options = &o,
             .setup = {.seed_count = o.seed_count,
                       .force_host = o.force_host,
                       .precision = o.precision,
                       .variant = o.variant,
                       .bounds = o.bounds},
             .report = {.bounds = o.bounds}};
    memcpy(j.setup.seeds, o.seeds, sizeof o.seeds);
    j.report.setup = &j.setup;
    rlxvk_status status = conform(&j);
    if (status != RLXVK_OK)
        report_status(status);
    bool good = status == RLXVK_OK && conform_total(&j.report, VERDICT_FAILED) == 0 &&
                conform_unjudged_ops(&j.report) == 0 && conform_loose_ops(&j.report) == 0 &&
                j.variants.failed == 0;
    job_destroy(&j);
    return good ? EXIT_OK : EXIT_FAILED;
}
