/*
 * rlxvk conform: selects the cases, runs them in one or more processes, and reports the results.
 * Results are stored by case and reported in the order of the cases, in whatever order they ran.
 */
#include "conform/conform_job.h"
#include "base/atomic.h"
#include "conform/conform_plan.h"
#include "conform/conform_pool.h"
#include "conform/conform_resume.h"
#include "cli/clock.h"
#include "cli/probe.h"
#include "cli/commands.h"
#include "program/context.h"
#include "base/new_file.h"
#include "op/choice/choice.h"
#include "cli/output.h"
#include "system/program.h"
#include "system/worker.h"

#include <stdlib.h>
#include <string.h>

/* ---- Which cases ---- */

static conform_row *find_row(conform_job *j, const char *name)
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

bool conform_is_of_share(const conform_options *o, uint64_t number)
{
    return !o->sparse || number % o->sparse == o->phase;
}

/* Numbers the case within its op, and adds it if the options select it. `row` must outlive the
 * report. */
static rlxvk_status add_case(conform_job *j, const char *row, const char *line,
                             const golden_case *golden)
{
    conform_row *counted = find_row(j, row);
    if (!counted)
        return status_fail_memory("cases");
    uint64_t number = counted->cases++;
    uint32_t index = (uint32_t)j->cases.count;
    const conform_options *o = j->options;
    if (!takes_op(o, row) || (o->one_case && o->number != number) ||
        (!o->pipelines && !o->each_variant && !conform_is_of_share(o, number)))
        return RLXVK_OK;
    return VECTOR_PUSH(&j->cases, (conform_case){line, golden, number, index})
               ? RLXVK_OK
               : status_fail_memory("cases");
}

static rlxvk_status choose_golden(conform_job *j)
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

static rlxvk_status choose_generated(conform_job *j)
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

/* Names the reason if no case is left. Only the ops' names select; all other options leave cases
 * out, so the sentence says how many cases there were before that. */
static rlxvk_status fail_none(const conform_job *j)
{
    size_t all = 0;
    for (size_t i = 0; i < j->report.rows.count; i++)
        if (takes_op(j->options, j->report.rows.items[i].name))
            all += j->report.rows.items[i].all_cases;
    if (all == 0)
        return status_fail(RLXVK_E_INDEX, "no case matches these options");
    return status_fail(RLXVK_E_INDEX,
                       "none of the %zu cases of these ops matches the options; --list prints them",
                       all);
}

static rlxvk_status choose_cases(conform_job *j)
{
    rlxvk_status status = j->options->golden ? choose_golden(j) : choose_generated(j);
    if (status != RLXVK_OK)
        return status;
    for (size_t i = 0; i < j->report.rows.count; i++) {
        j->report.rows.items[i].all_cases = j->report.rows.items[i].cases;
        j->report.rows.items[i].cases = 0; /* from here on this counts cases that ran */
    }
    if (j->cases.count == 0)
        return fail_none(j);
    j->common_bytes = sizeof *j->common + j->cases.count * sizeof *j->common->results;
    j->common = worker_memory(j->common_bytes);
    return j->common ? conform_plan_create(j) : status_fail_memory("cases");
}

const char *conform_row_of(const conform_case *c, char out[40])
{
    const char *line = c->golden ? c->golden->spec.row : c->line;
    snprintf(out, 40, "%.*s", (int)strcspn(line, " "), line);
    return out;
}

static void list_cases(const conform_job *j)
{
    char row[40];
    for (size_t i = 0; i < j->cases.count; i++)
        printf("%s %llu: %s\n", conform_row_of(&j->cases.items[i], row),
               (unsigned long long)j->cases.items[i].number, j->cases.items[i].line);
}

/* ---- Running ---- */

/* Appends the part that all command lines of this job share: "rlxvk conform" and options. */
static void append_command(const conform_job *j, text *line)
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
    if (o->shifted)
        text_append(line, " --shifted");
    if (o->folded)
        text_append(line, " --folded");
    if (*j->report.limits)
        text_append(line, " --limits %s", j->report.limits);
    if (o->sliced)
        text_append(line, " --sliced");
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

/* A command line that runs only this case, as it ran here. */
static char *rerun_line(const conform_job *j, const conform_case *c, uint64_t seed)
{
    char buffer[1024] = "", row[40];
    text line = {buffer, sizeof buffer, 0};
    append_command(j, &line);
    text_append(&line, " --seed %llu --op %s --case %llu", (unsigned long long)seed,
                conform_row_of(c, row), (unsigned long long)c->number);
    return memory_copy_string(buffer);
}

static void describe_run(conform_job *j)
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
        text_append(&line, " --pipelines=%llu:%llu", (unsigned long long)o->pipelines,
                    (unsigned long long)o->pipelines_phase);
    j->report.started = time(NULL);
}

static void print_failure(const conform_job *j, const conform_case *c, const conform_result *result)
{
    char row[40], *rerun = rerun_line(j, c, result->seed);
    print_progress(NULL);
    fprintf(j->options->json ? stderr : stdout, "FAILED %s case %llu: %s\n  %s\n  rerun: %s\n",
            conform_row_of(c, row), (unsigned long long)c->number, c->line, result->message,
            rerun ? rerun : "");
    memory_free(rerun);
}

/* The case of an item of the present pool. */
static size_t case_at(const conform_job *j, size_t item)
{
    return j->order ? j->order[item] : item;
}

static void compute_case(conform_job *j, size_t i)
{
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
    run(&j->setup, &(conform_case){c->line, &loaded, c->number, c->index}, result);
    golden_unload(&loaded);
}

/* Returns false if the case lost the device, which no other case of this process can use then. */
static bool run_case(void *user, size_t item)
{
    conform_job *j = user;
    conform_resume_begin(j, case_at(j, item));
    compute_case(j, case_at(j, item));
    conform_resume_end(j, case_at(j, item));
    return !vk_is_lost(j->setup.context->device);
}

static void note_end(conform_job *j, size_t i)
{
    char line[96], row[40];
    j->done++;
    j->common->results[i].ran = true;
    if (j->common->results[i].verdict == VERDICT_FAILED)
        print_failure(j, &j->cases.items[i], &j->common->results[i]);
    snprintf(line, sizeof line, "[%zu/%zu] %s", j->done, j->cases.count,
             conform_row_of(&j->cases.items[i], row));
    print_progress(line);
}

static void note_done(void *user, size_t item)
{
    conform_job *j = user;
    note_end(j, case_at(j, item));
}

static void fail_case(conform_job *j, size_t i, const char *format, const char *how)
{
    conform_result *result = &j->common->results[i];
    uint64_t seed = result->seed ? result->seed : j->setup.seeds[0];
    *result = (conform_result){.verdict = VERDICT_FAILED, .seed = seed};
    snprintf(result->message, sizeof result->message, format, how);
    conform_resume_end(j, i);
    note_end(j, i);
}

static void crash(void *user, size_t item, const char *how)
{
    conform_job *j = user;
    fail_case(j, case_at(j, item), "the process that ran it %s", how);
}

void conform_fold_grids(rlxvk_context *context)
{
    context->device->setup.profile.max_group_count[0] = 3;
}

static rlxvk_status open_device(void *user)
{
    conform_job *j = user;
    rlxvk_context_options options = {.tuning = j->options->tuned ? RLXVK_ON : RLXVK_OFF};
    rlxvk_device_info found;
    rlxvk_status status = RLXVK_OK;
    if (j->setup.context)
        return RLXVK_OK;
    TRY(option_device(j->options->device, &found, &options));
    context_needs needs = {.checks =
                               CHECK_PLAN | CHECK_LOSS | (j->options->canary ? CHECK_CANARY : 0)};
    TRY(context_create(&options, needs, &j->setup.context));
    if (!j->options->list)
        TRY(probe_require(j->setup.context));
    if (j->options->folded)
        conform_fold_grids(j->setup.context);
    j->setup.context->switches.sliced = j->options->sliced;
    if (j->options->invocations)
        j->setup.context->device->invocations = j->options->order;
    rlxvk_context_device(j->setup.context, &found);
    j->common->device = found;
    return RLXVK_OK;
error:
    rlxvk_context_destroy(j->setup.context);
    j->setup.context = NULL;
    return status;
}

static void close_device(void *user)
{
    conform_job *j = user;
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

/* Marks in the results, which are still empty, the cases to leave out. */
static bool mark_cases(void *user, size_t item)
{
    conform_job *j = user;
    conform_pipelines *of_row = memory_zeroed(j->report.rows.count + 1, sizeof *of_row);
    char name[40];
    (void)item;
    for (size_t i = 0; of_row && i < j->cases.count; i++) {
        const conform_case *c = &j->cases.items[i];
        conform_pipelines *needed =
            &of_row[find_row(j, conform_row_of(c, name)) - j->report.rows.items];
        j->common->results[i].passed_over =
            !conform_take(needed, &j->setup, c, j->options->pipelines, j->options->pipelines_phase);
    }
    for (size_t i = 0; of_row && i < j->report.rows.count; i++)
        VECTOR_FREE(&of_row[i].known);
    memory_free(of_row);
    return true;
}

static void ignore_done(void *user, size_t item)
{
    (void)user, (void)item;
}

static void ignore_crash(void *user, size_t item, const char *how)
{
    (void)user, (void)item, (void)how;
}

/* Either all pools of a job run in the caller's process, or none. If a process forks while it has
 * the device open, the child lacks the driver's threads and waits for them forever. */
static rlxvk_status run_pool(conform_job *j, conform_pool pool)
{
    pool.user = j;
    pool.processes = MIN(j->options->jobs, pool.processes);
    if (!worker_is_restarted())
        conform_plan_write(j, &pool);
    pool.open_seconds = (double)j->options->timeout;
    pool.open = open_device;
    pool.close = close_device;
    pool.stopped = j->options->each_variant ? NULL : program_interrupted;
    return conform_pool_run(&pool);
}

rlxvk_status conform_look(conform_job *j, bool (*look)(void *job, size_t item))
{
    return run_pool(j, (conform_pool){.items = 1,
                                      .processes = 1,
                                      .run = look,
                                      .done = ignore_done,
                                      .crashed = ignore_crash});
}

/* Leaves out cases by the pipelines that they need (--pipelines). A case that cannot be lowered
 * stays, so that its run reports why. If the process that decides crashes, all cases stay. */
static rlxvk_status choose_pipelines(conform_job *j)
{
    rlxvk_status status;
    size_t kept = 0;
    TRY(conform_look(j, mark_cases));
    for (size_t i = 0; i < j->cases.count; i++)
        if (!j->common->results[i].passed_over &&
            conform_is_of_share(j->options, j->cases.items[i].number))
            j->cases.items[kept++] = j->cases.items[i];
    memset(j->common->results, 0, j->cases.count * sizeof *j->common->results);
    j->cases.count = kept;
error:
    return status;
}

static rlxvk_status run_items(conform_job *j, size_t items, size_t processes)
{
    return run_pool(j, (conform_pool){.items = items,
                                      .processes = processes,
                                      .item_seconds = (double)j->options->timeout,
                                      .run = run_case,
                                      .done = note_done,
                                      .crashed = crash});
}

/* ---- Resuming ---- */

static bool look_at_nothing(void *user, size_t item)
{
    (void)user, (void)item;
    return true;
}

/* Tells what the file has. Cases that were running when two runs ended have failed. */
static void report_resumed(conform_job *j)
{
    FILE *out = j->options->json ? stderr : stdout;
    char row[40];
    for (size_t i = 0; i < j->cases.count; i++)
        j->done += j->common->results[i].ran;
    if (j->done)
        fprintf(out, "%zu of %zu cases are in %s\n", j->done, j->cases.count, j->options->resume);
    for (size_t i = 0; i < j->cases.count; i++) {
        if (j->common->results[i].ran || !j->begun[i])
            continue;
        if (j->begun[i] > 1)
            fail_case(j, i, "%s",
                      "was running when the last run ended, and when one before it did");
        else
            fprintf(out, "%s case %llu was running when the last run ended; it runs at the end\n",
                    conform_row_of(&j->cases.items[i], row),
                    (unsigned long long)j->cases.items[i].number);
    }
}

/* Orders the cases that have not ended: begun in an earlier run, or not. Returns their number. */
static size_t order_cases(conform_job *j, bool begun)
{
    size_t count = 0;
    for (size_t i = 0; i < j->cases.count; i++)
        if (!j->common->results[i].ran && (j->begun[i] != 0) == begun)
            j->order[count++] = i;
    return count;
}

/* Cases that were running when the last run ended come last. They run one after the other, so that
 * if the machine ends again, it is known which of them did it. */
static rlxvk_status run_rest(conform_job *j)
{
    rlxvk_status status = RLXVK_OK;
    j->order = memory_zeroed(j->cases.count + 1, sizeof *j->order);
    if (!j->order)
        return status_fail_memory("cases");
    report_resumed(j);
    size_t count = order_cases(j, false);
    if (count)
        TRY(run_items(j, count, SIZE_MAX));
    count = order_cases(j, true);
    if (count && !program_interrupted())
        TRY(run_items(j, count, 1));
    if (j->common->resume_error)
        TRY(status_fail(RLXVK_E_FILE, "--resume %s: %s; it lacks results", j->options->resume,
                        strerror(j->common->resume_error)));
error:
    memory_free(j->order);
    j->order = NULL;
    return status;
}

rlxvk_status conform_run_all(conform_job *j)
{
    double begin = clock_seconds();
    j->done = 0;
    rlxvk_status status = j->resumes ? run_rest(j) : run_items(j, j->cases.count, SIZE_MAX);
    print_progress(NULL);
    j->report.seconds = clock_seconds() - begin;
    j->report.device = j->common->device;
    return status;
}

/* ---- Report ---- */

static rlxvk_status add_failure(conform_job *j, size_t i, const char *row)
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

static rlxvk_status add_reason(conform_job *j, size_t i, const char *row)
{
    const char *message = j->common->results[i].message;
    for (size_t k = 0; k < j->report.reasons.count; k++)
        if (strcmp(j->report.reasons.items[k].message, message) == 0) {
            j->report.reasons.items[k].cases++;
            return RLXVK_OK;
        }
    return VECTOR_PUSH(&j->report.reasons,
                       (conform_reason){row, message, j->cases.items[i].number, 1})
               ? RLXVK_OK
               : status_fail_memory("report");
}

/* Adds up the counts of a case's elements. */
static rlxvk_status add_elements(conform_job *j, conform_row *row, uint64_t number,
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

static rlxvk_status collect(conform_job *j)
{
    char name[40];
    size_t kept = 0;
    for (size_t i = 0; i < j->cases.count; i++) {
        const conform_result *result = &j->common->results[i];
        conform_row *row = find_row(j, conform_row_of(&j->cases.items[i], name));
        if (result->passed_over || !result->ran)
            continue;
        row->cases++;
        row->verdicts[result->verdict]++;
        if (add_elements(j, row, j->cases.items[i].number, result) != RLXVK_OK)
            return RLXVK_E_OUT_OF_HOST_MEMORY;
        if (result->verdict == VERDICT_FAILED && add_failure(j, i, row->name) != RLXVK_OK)
            return RLXVK_E_OUT_OF_HOST_MEMORY;
        if (result->verdict == VERDICT_UNSUPPORTED && add_reason(j, i, row->name) != RLXVK_OK)
            return RLXVK_E_OUT_OF_HOST_MEMORY;
    }
    for (size_t i = 0; i < j->report.rows.count; i++)
        if (j->report.rows.items[i].cases)
            j->report.rows.items[kept++] = j->report.rows.items[i];
    j->report.rows.count = kept;
    return RLXVK_OK;
}

static void job_destroy(conform_job *j)
{
    for (size_t i = 0; i < j->report.failures.count; i++) {
        memory_free(j->report.failures.items[i].row);
        memory_free(j->report.failures.items[i].line);
        memory_free(j->report.failures.items[i].message);
        memory_free(j->report.failures.items[i].rerun);
    }
    VECTOR_FREE(&j->report.failures);
    VECTOR_FREE(&j->report.unjudged);
    VECTOR_FREE(&j->report.reasons);
    VECTOR_FREE(&j->report.rows);
    VECTOR_FREE(&j->cases);
    memory_free(j->rows);
    conform_resume_close(j);
    case_list_destroy(&j->lines);
    golden_close(&j->golden);
    conform_plan_destroy(j);
    worker_memory_free(j->common, j->common_bytes);
}

/* If the run ends early, for example because no process can open the device any more, the report
 * has what ran. */
static rlxvk_status run_and_report(conform_job *j)
{
    status_sentence why;
    rlxvk_status status, ending = conform_run_all(j);
    status_save(&why);
    if (ending != RLXVK_OK && !j->done)
        return ending;
    TRY(collect(j));
    (j->options->json ? conform_write_json : conform_write_text)(&j->report, stdout);
    status_restore(&why);
    return ending;
error:
    return status;
}

/* Takes part in the pool of the process that started this one. */
static rlxvk_status take_part(conform_job *j)
{
    conform_pool pool;
    rlxvk_status status;
    TRY(choose_cases(j));
    TRY(conform_plan_read(j, &pool));
    TRY(run_pool(j, pool));
error:
    return status;
}

static rlxvk_status conform(conform_job *j)
{
    const conform_options *o = j->options;
    rlxvk_status status;
    if (worker_is_restarted())
        return take_part(j);
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
    if (o->resume) {
        TRY(conform_look(j, look_at_nothing)); /* for the device's name */
        TRY(conform_resume_open(j));
    }
    if (o->each_variant)
        TRY(conform_run_variants(j));
    else
        TRY(run_and_report(j));
    fflush(stdout); /* because the page may go to the same stream */
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

/* The option takes the place of the switch, so that devices are listed, found and opened alike. */
static bool set_limits(const conform_options *o, switches *out)
{
    if (o->limits && !system_environment_set("RLXVK_LIMITS", o->limits)) {
        report_error("--limits: no memory for the environment");
        return false;
    }
    if (switches_read_limits(out) == RLXVK_OK)
        return true;
    report_error("%s", rlxvk_last_error());
    return false;
}

/* A case may take --timeout for everything. Software drivers compile in its first submission, which
 * can take minutes on a busy machine. */
static uint64_t timeout_of_waits(const conform_options *o)
{
    return o->timeout ? o->timeout * UINT64_C(1000000000) : UINT64_MAX;
}

int command_conform(int argc, char **argv)
{
    conform_options o;
    switches environment;
    if (!conform_options_parse(&o, argc, argv) || !set_limits(&o, &environment))
        return EXIT_USAGE;
    if (o.help)
        return print_help(conform_help);
    conform_job j = {.options = &o,
                     .setup = {.seed_count = o.seed_count,
                               .force_host = o.force_host,
                               .precision = o.precision,
                               .variant = o.variant,
                               .timeout_ns = timeout_of_waits(&o),
                               .shifted = o.shifted,
                               .bounds = o.bounds},
                     .report = {.bounds = o.bounds, .limits = environment.limits}};
    memcpy(j.setup.seeds, o.seeds, sizeof o.seeds);
    j.report.seed = o.seeds[0];
    j.report.seeds = o.seeds;
    j.report.seed_count = o.seed_count;
    if (!o.each_variant)
        program_watch_interrupt();
    rlxvk_status status = conform(&j);
    if (status != RLXVK_OK)
        report_status(status);
    else if (program_interrupted())
        report_error("interrupted; %zu of %zu cases ran", j.done, j.cases.count);
    bool good = status == RLXVK_OK && !program_interrupted() &&
                conform_total(&j.report, VERDICT_FAILED) == 0 &&
                conform_unjudged_ops(&j.report) == 0 && conform_loose_ops(&j.report) == 0 &&
                j.variants.failed == 0;
    job_destroy(&j);
    return good ? EXIT_OK : EXIT_FAILED;
}
