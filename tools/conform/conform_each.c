/*
 * rlxvk conform --each-variant: runs every kernel variant with the cases that dispatch it, and
 * finds kernels that no case dispatches. Lowering tells which cases dispatch a variant
 * (conform_variants.c).
 */
#include "conform/conform_job.h"

#include <string.h>

enum { PRECISIONS = RLXVK_PRECISION_SPLIT + 1 };

/* Takes the cases of the kind's ops. */
static rlxvk_status take_cases(conform_job *j, const kernel_kind *kind, const conform_case *all,
                               size_t count)
{
    char row[40];
    j->cases.count = 0;
    for (size_t i = 0; i < count; i++)
        if (choice_reaches(kind, conform_row_of(&all[i], row)) && !VECTOR_PUSH(&j->cases, all[i]))
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

/* Counts which cases of the kind dispatch the variant. Unless --jobs is 0, this runs
 * in a child. */
static bool count_dispatches(void *user, size_t item)
{
    conform_job *j = user;
    (void)item;
    for (size_t i = 0; i < j->cases.count; i++) {
        conform_result *result = &j->common->results[i];
        size_t kernels = count_kernels(&j->common->use);
        result->dispatches = conform_count(&j->setup, &j->cases.items[i], NULL, &j->common->use);
        result->new_kernel = count_kernels(&j->common->use) > kernels;
    }
    return true;
}

static void add_kernels(conform_job *j)
{
    for (size_t k = 0; k < KERNEL_COUNT; k++)
        j->common->kernels[k] += j->common->use.all[k];
}

static rlxvk_status count_uses(conform_job *j)
{
    rlxvk_status status;
    memset(&j->common->use, 0, sizeof j->common->use);
    memset(j->common->results, 0, j->cases.count * sizeof *j->common->results);
    TRY(conform_look(j, count_dispatches));
    add_kernels(j);
error:
    return status;
}

/* Of the cases that dispatch the variant, keeps every Nth (--sparse), and the first of each kernel.
 */
static void keep_reaching(conform_job *j)
{
    size_t kept = 0, reaching = 0;
    for (size_t i = 0; i < j->cases.count; i++)
        if (j->common->results[i].dispatches &&
            (conform_is_of_share(j->options, reaching++) || j->common->results[i].new_kernel))
            j->cases.items[kept++] = j->cases.items[i];
    j->cases.count = kept;
    memset(j->common->results, 0, kept * sizeof *j->common->results);
}

static bool runs_in(const conform_job *j, const kernel_kind *kind, rlxvk_precision precision)
{
    return conform_runs_in(kind, j->options->precision, precision);
}

static bool find_lack(void *user, size_t item)
{
    conform_job *j = user;
    text out = {j->common->lack, sizeof j->common->lack, 0};
    bool found = false;
    (void)item;
    j->common->lack[0] = 0;
    for (int own = 1; own >= 0; own--)
        for (int p = 0; p <= RLXVK_PRECISION_SPLIT && !found; p++) {
            j->setup.precision = (rlxvk_precision)p;
            found = runs_in(j, j->kind, j->setup.precision) == own &&
                    conform_lacks(&j->setup, j->cases.items, j->cases.count, &out);
        }
    return true;
}

/* Reports a variant that no case dispatches: either the device cannot run it, or a case is missing.
 */
static rlxvk_status report_unused(conform_job *j)
{
    rlxvk_status status = conform_look(j, find_lack);
    bool lacks = status == RLXVK_OK && j->common->lack[0];
    j->variants.unused += lacks;
    j->variants.failed += !lacks;
    printf("%-36s %5d %10d  %s%s\n", j->setup.variant, 0, 0,
           lacks ? "not possible here, for want of " : "FAILED: no case dispatches it",
           j->common->lack);
    return status;
}

static void report_variant(conform_job *j, const char *name)
{
    const conform_use *use = &j->common->use;
    conform_variant_totals *totals = &j->variants;
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

/* Runs the selected cases in one precision. Prints no line if none of them dispatches the variant.
 */
static rlxvk_status run_in_precision(conform_job *j, rlxvk_precision precision,
                                     uint64_t *dispatches)
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
        TRY(conform_run_all(j));
    report_variant(j, name);
    fflush(stdout);
error:
    return status;
}

/* Runs the variant in its kind's precisions. If none dispatches it, tries the other precisions.
 */
static rlxvk_status run_variant(conform_job *j, const kernel_kind *kind, const char *row,
                                const conform_case *all, size_t count)
{
    char choice[128];
    uint64_t dispatches = 0;
    rlxvk_status status = RLXVK_OK;
    snprintf(choice, sizeof choice, "%s=%s", kind->name, row);
    j->setup.variant = choice;
    j->setup.row = row;
    j->kind = kind;
    for (int own = 1; own >= 0 && dispatches == 0; own--)
        for (int p = 0; p <= RLXVK_PRECISION_SPLIT; p++) {
            if (runs_in(j, kind, (rlxvk_precision)p) != own || (!own && j->options->precision))
                continue;
            TRY(take_cases(j, kind, all, count));
            if (j->cases.count)
                TRY(run_in_precision(j, (rlxvk_precision)p, &dispatches));
        }
    TRY(take_cases(j, kind, all, count));
    if (dispatches == 0 && j->cases.count)
        TRY(report_unused(j));
error:
    j->setup.variant = j->setup.row = NULL;
    return status;
}

/* ---- Kernels ---- */

/* Finds which features the device lacks for the kernel. Empty if no case dispatches it on any
 * device. */
static void find_kernel_lack(conform_job *j, size_t kernel, const size_t *first)
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

/* Whether the kernel belongs to no op, but to feeds, the probe of matrix units, or rlxvk bench. */
static bool is_of_no_op(size_t kernel)
{
    static const uint32_t kernels[] = {KERNEL_FEED_ROW, KERNEL_MATRIX_PROBE_F16,
                                       KERNEL_MATRIX_PROBE_BF16, KERNEL_FMA_PEAK};
    bool found = false;
    for (size_t i = 0; i < ARRAY_COUNT(kernels); i++)
        found = found || kernels[i] == kernel;
    return found;
}

static void report_kernels(conform_job *j, const size_t *first)
{
    size_t unreached = 0, failed = 0;
    for (size_t k = 0; k < KERNEL_COUNT; k++) {
        if (j->common->kernels[k] || is_of_no_op(k))
            continue;
        find_kernel_lack(j, k, first);
        unreached++;
        failed += !j->common->lack[0];
        printf("kernel %-29s %5d %10d  %s%s\n", kernel_table[k].name, 0, 0,
               j->common->lack[0] ? "not possible here, for want of "
                                  : "FAILED: no case dispatches it",
               j->common->lack);
    }
    printf("%zu kernels, %zu of them in no dispatch\n", (size_t)KERNEL_COUNT, unreached);
    j->common->failed_kernels = failed;
}

static bool look_at_kernels(void *user, size_t item)
{
    conform_job *j = user;
    size_t *first = memory_zeroed(PRECISIONS * KERNEL_COUNT, sizeof *first);
    (void)item;
    for (size_t p = 0; first && p < PRECISIONS; p++) {
        j->setup.precision = (rlxvk_precision)p;
        conform_find_kernels(&j->setup, j->cases.items, j->cases.count, first + p * KERNEL_COUNT);
    }
    if (first)
        report_kernels(j, first);
    memory_free(first);
    return true;
}

/* A kernel fails if no case dispatches it, in any precision and with any variant. If the device
 * lacks a feature that it needs, it does not fail. */
static rlxvk_status check_kernels(conform_job *j)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t p = 0; p < PRECISIONS && status == RLXVK_OK; p++) {
        j->setup.precision = (rlxvk_precision)p;
        status = count_uses(j);
    }
    j->common->failed_kernels = KERNEL_COUNT; /* stays so if the check below does not finish */
    if (status == RLXVK_OK)
        status = conform_look(j, look_at_kernels);
    j->variants.failed += j->common->failed_kernels;
    return status;
}

rlxvk_status conform_run_variants(conform_job *j)
{
    const conform_variant_totals *totals = &j->variants;
    size_t count = j->cases.count;
    conform_case *all = memory_zeroed(count + 1, sizeof *all);
    rlxvk_status status = RLXVK_OK;
    if (!all)
        return status_fail_memory("cases");
    memcpy(all, j->cases.items, count * sizeof *all);
    printf("%-36s %5s %10s %6s %6s %9s  %s\n", "variant", "cases", "dispatches", "passed", "failed",
           "time", "kernels");
    for (size_t f = 0; f < CHOICE_COUNT; f++) {
        const kernel_kind *kind = &choice_kinds[f];
        for (size_t i = 0; choice_row_name(kind, i); i++)
            TRY(run_variant(j, kind, choice_row_name(kind, i), all, count));
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
