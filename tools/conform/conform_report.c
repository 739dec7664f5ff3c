/* Writes a conformance report as text for people or as JSON for programs. */
#include "conform/conform.h"
#include "cli/output.h"

#include <math.h>
#include <string.h>

uint64_t conform_total(const conform_report *report, verdict v)
{
    uint64_t total = 0;
    for (size_t i = 0; i < report->rows.count; i++)
        total += report->rows.items[i].verdicts[v];
    return total;
}

static uint64_t total_cases(const conform_report *report)
{
    uint64_t total = 0;
    for (size_t i = 0; i < report->rows.count; i++)
        total += report->rows.items[i].cases;
    return total;
}

bool conform_too_unjudged(const conform_row *row)
{
    return row->cases == row->all_cases &&
           (double)row->unjudged > CONFORM_MOST_UNJUDGED * (double)row->elements;
}

uint64_t conform_unjudged_ops(const conform_report *report)
{
    uint64_t total = 0;
    for (size_t i = 0; i < report->rows.count; i++)
        total += conform_too_unjudged(&report->rows.items[i]);
    return total;
}

/* Why --bounds fails the op; NULL if it does not. */
static const char *looseness(const conform_report *report, const conform_row *row)
{
    if (!report->bounds || 2 * row->cases < row->all_cases)
        return NULL;
    if (row->take_zeros && row->take_zeros == row->cases)
        return "FAILED: zeros pass in every case";
    return row->worst > 0 && row->worst < CONFORM_LEAST_USE ? "FAILED: loose" : NULL;
}

uint64_t conform_loose_ops(const conform_report *report)
{
    uint64_t total = 0;
    for (size_t i = 0; i < report->rows.count; i++)
        total += looseness(report, &report->rows.items[i]) != NULL;
    return total;
}

static void write_seeds(const conform_report *report, FILE *file, const char *between)
{
    const uint64_t *seeds = report->seeds ? report->seeds : &report->seed;
    for (size_t i = 0; i < (report->seeds ? report->seed_count : 1); i++)
        fprintf(file, "%s%llu", i ? between : "", (unsigned long long)seeds[i]);
}

static bool has_limits(const conform_report *report)
{
    return report->limits && *report->limits;
}

/* ---- Text ---- */

static double share(const conform_row *row)
{
    return 100.0 * (double)row->unjudged / (double)MAX(row->elements, 1);
}

/* For each op with unjudged elements: how many there are, and in which cases. */
static void write_unjudged(const conform_report *report, FILE *file)
{
    size_t at = 0;
    if (report->unjudged.count)
        fprintf(file, "\nunjudged, because their bound is infinite: elements (case: elements)\n");
    for (size_t i = 0; i < report->rows.count; i++) {
        const conform_row *row = &report->rows.items[i];
        if (!row->unjudged)
            continue;
        fprintf(file, "%-24s %6.3f %% %10llu of %llu (", row->name, share(row),
                (unsigned long long)row->unjudged, (unsigned long long)row->elements);
        for (at = 0; at < report->unjudged.count; at++)
            if (report->unjudged.items[at].row == row->name)
                fprintf(file, " %llu:%llu", (unsigned long long)report->unjudged.items[at].number,
                        (unsigned long long)report->unjudged.items[at].unjudged);
        fprintf(file, " )%s\n", conform_too_unjudged(row) ? "  FAILED: more than 2 %" : "");
    }
}

/* Writes the findings of --bounds. If an op has bounds and is always exact, it uses 0 of them. */
static void write_slack(const conform_report *report, FILE *file)
{
    fprintf(file, "\nbounds: largest error in units of its bound; elements with a bound; cases in "
                  "which zeros pass\n");
    for (size_t i = 0; i < report->rows.count; i++) {
        const conform_row *row = &report->rows.items[i];
        const char *fault = looseness(report, row);
        if (row->bounded)
            fprintf(file, "%-28s %9.3g %10llu of %llu %6llu of %llu  %s\n", row->name, row->worst,
                    (unsigned long long)row->bounded, (unsigned long long)row->elements,
                    (unsigned long long)row->take_zeros, (unsigned long long)row->cases,
                    fault ? fault : "");
    }
}

/* Why the library cannot do some cases on this device. */
static void write_reasons(const conform_report *report, FILE *file)
{
    if (report->reasons.count)
        fprintf(file, "\nunsupported: cases, the first of them, and why\n");
    for (size_t i = 0; i < report->reasons.count; i++) {
        const conform_reason *r = &report->reasons.items[i];
        fprintf(file, "%6llu  %s case %llu: %s\n", (unsigned long long)r->cases, r->row,
                (unsigned long long)r->number, r->message);
    }
}

void conform_write_text(const conform_report *report, FILE *file)
{
    fprintf(file, "%-24s %6s %6s %6s %11s %9s %9s\n", "op", "cases", "passed", "failed",
            "unsupported", "host only", "worst");
    for (size_t i = 0; i < report->rows.count; i++) {
        const conform_row *row = &report->rows.items[i];
        fprintf(file, "%-24s", row->name);
        fprintf(file, " %6llu %6llu %6llu %11llu %9llu %9.3g\n", (unsigned long long)row->cases,
                (unsigned long long)row->verdicts[VERDICT_PASSED],
                (unsigned long long)row->verdicts[VERDICT_FAILED],
                (unsigned long long)row->verdicts[VERDICT_UNSUPPORTED],
                (unsigned long long)row->verdicts[VERDICT_HOST_ONLY], row->worst);
    }
    write_unjudged(report, file);
    write_reasons(report, file);
    if (report->bounds)
        write_slack(report, file);
    fprintf(file, "\n%s (%s)%s%s, seed ", report->device.name, report->device.driver,
            has_limits(report) ? ", seen through limits " : "",
            has_limits(report) ? report->limits : "");
    write_seeds(report, file, ", ");
    fprintf(file, ": %llu cases of %zu ops in %.1f s\n", (unsigned long long)total_cases(report),
            report->rows.count, report->seconds);
    fprintf(file, "worst: largest error of a case in units of its bound\n");
    if (report->without_op)
        fprintf(file, "%llu golden cases have no op in this build\n",
                (unsigned long long)report->without_op);
    if (conform_unjudged_ops(report))
        fprintf(file, "%llu ops leave more than 2 %% of their elements unjudged: failed\n",
                (unsigned long long)conform_unjudged_ops(report));
    if (conform_loose_ops(report))
        fprintf(file, "%llu ops have bounds that do not bind: failed\n",
                (unsigned long long)conform_loose_ops(report));
    if (conform_total(report, VERDICT_UNSUPPORTED))
        fprintf(file, "%llu unsupported\n",
                (unsigned long long)conform_total(report, VERDICT_UNSUPPORTED));
    if (conform_total(report, VERDICT_HOST_ONLY))
        fprintf(file, "%llu ran on the host only\n",
                (unsigned long long)conform_total(report, VERDICT_HOST_ONLY));
    fprintf(file, "%llu passed, %llu failed\n",
            (unsigned long long)conform_total(report, VERDICT_PASSED),
            (unsigned long long)conform_total(report, VERDICT_FAILED));
}

/* ---- JSON ---- */

static const char *const verdict_names[VERDICT_COUNT] = {"passed", "failed", "unsupported",
                                                         "host_only"};

static void write_counts(FILE *file, const char *cases, uint64_t count,
                         const uint64_t verdicts[VERDICT_COUNT])
{
    fprintf(file, "\"%s\": %llu", cases, (unsigned long long)count);
    for (int v = 0; v < VERDICT_COUNT; v++)
        fprintf(file, ", \"%s\": %llu", verdict_names[v], (unsigned long long)verdicts[v]);
}

static void write_json_failures(const conform_report *report, FILE *file)
{
    fprintf(file, "  \"failures\": [");
    for (size_t i = 0; i < report->failures.count; i++) {
        const conform_failure *failure = &report->failures.items[i];
        fprintf(file, "%s\n    {\"op\": \"%s\", \"case\": %llu, \"text\": ", i ? "," : "",
                failure->row, (unsigned long long)failure->number);
        print_json_string(file, failure->line);
        fprintf(file, ", \"message\": ");
        print_json_string(file, failure->message);
        fprintf(file, ", \"rerun\": ");
        print_json_string(file, failure->rerun);
        fputc('}', file);
    }
    fprintf(file, "%s]\n", report->failures.count ? "\n  " : "");
}

static void write_json_unjudged(const conform_report *report, FILE *file)
{
    fprintf(file, "  \"unjudged\": [");
    for (size_t i = 0; i < report->unjudged.count; i++) {
        const conform_unjudged *u = &report->unjudged.items[i];
        fprintf(file,
                "%s\n    {\"op\": \"%s\", \"case\": %llu, \"elements\": %llu, "
                "\"unjudged\": %llu}",
                i ? "," : "", u->row, (unsigned long long)u->number,
                (unsigned long long)u->elements, (unsigned long long)u->unjudged);
    }
    fprintf(file, "%s],\n", report->unjudged.count ? "\n  " : "");
}

static void write_json_reasons(const conform_report *report, FILE *file)
{
    fprintf(file, "  \"unsupported_reasons\": [");
    for (size_t i = 0; i < report->reasons.count; i++) {
        const conform_reason *r = &report->reasons.items[i];
        fprintf(file, "%s\n    {\"op\": \"%s\", \"case\": %llu, \"cases\": %llu, \"message\": ",
                i ? "," : "", r->row, (unsigned long long)r->number, (unsigned long long)r->cases);
        print_json_string(file, r->message);
        fputc('}', file);
    }
    fprintf(file, "%s],\n", report->reasons.count ? "\n  " : "");
}

void conform_write_json(const conform_report *report, FILE *file)
{
    uint64_t totals[VERDICT_COUNT];
    for (int v = 0; v < VERDICT_COUNT; v++)
        totals[v] = conform_total(report, (verdict)v);
    fprintf(file, "{\n  \"device\": ");
    print_json_string(file, report->device.name);
    fprintf(file, ",\n  \"driver\": ");
    print_json_string(file, report->device.driver);
    fprintf(file, ",\n  \"limits\": ");
    if (has_limits(report))
        print_json_string(file, report->limits);
    else
        fprintf(file, "null");
    fprintf(file, ",\n  \"seed\": %llu,\n  \"seeds\": [", (unsigned long long)report->seed);
    write_seeds(report, file, ", ");
    fprintf(file, "],\n  ");
    write_counts(file, "cases", total_cases(report), totals);
    fprintf(file, ",\n  \"without_op\": %llu,\n  \"seconds\": %.3f,\n  \"ops\": [",
            (unsigned long long)report->without_op, report->seconds);
    for (size_t i = 0; i < report->rows.count; i++) {
        const conform_row *row = &report->rows.items[i];
        fprintf(file, "%s\n    {\"op\": \"%s\", ", i ? "," : "", row->name);
        write_counts(file, "cases", row->cases, row->verdicts);
        fprintf(file,
                ", \"elements\": %llu, \"unjudged\": %llu, \"too_unjudged\": %s, "
                "\"bounded\": %llu, \"worst\": ",
                (unsigned long long)row->elements, (unsigned long long)row->unjudged,
                conform_too_unjudged(row) ? "true" : "false", (unsigned long long)row->bounded);
        print_json_number(file, row->worst);
        fputc('}', file);
    }
    fprintf(file, "%s],\n", report->rows.count ? "\n  " : "");
    write_json_unjudged(report, file);
    write_json_reasons(report, file);
    write_json_failures(report, file);
    fprintf(file, "}\n");
}
