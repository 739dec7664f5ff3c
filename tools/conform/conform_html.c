/*
 * The conformance report as one HTML page that loads nothing. It follows the reader's light or dark
 * mode. On narrow screens, columns of verdicts that no case got are hidden. The script only sorts,
 * so the page is complete without it.
 */
#include "cli/commands.h"
#include "conform/conform.h"
#include "base/new_file.h"
#include "cli/output.h"

#include <math.h>
#include <string.h>

static const char style[] =
    ":root{color-scheme:light dark;--paper:#fff;--ink:#1c2024;--soft:#5b6470;--line:#d9dee3;"
    "--panel:#f4f6f8;--bar:#3f7fbf;--bad:#b3261e;--badpaper:#fbe9e7;--good:#1d6f42;"
    "--hostpaper:#fdf3d7}\n"
    "@media(prefers-color-scheme:dark){:root{--paper:#15181c;--ink:#e4e8ec;--soft:#9aa5b1;"
    "--line:#343b43;--panel:#1e2329;--bar:#6ea8dc;--bad:#ff8a80;--badpaper:#3a1d1b;"
    "--good:#7fd1a0;--hostpaper:#352c13}}\n"
    "*{box-sizing:border-box}body{font:15px/1.45 system-ui,sans-serif;max-width:64em;"
    "margin:0 auto;padding:1em;background:var(--paper);color:var(--ink)}\n"
    "h1{font-size:1.4em;margin:.2em 0}h2{font-size:1.15em;margin:1.6em 0 .4em}"
    "h3{font-size:1em;margin:1.2em 0 .3em}p{margin:.4em 0}\n"
    ".verdict{font-size:1.15em;font-weight:600;color:var(--good)}.verdict.bad,.failed b,h3 b"
    "{color:var(--bad)}\n"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.1em 1em;margin:.8em 0}"
    "dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}\n"
    "code,pre{font:13px/1.4 ui-monospace,monospace;overflow-wrap:anywhere;white-space:pre-wrap}\n"
    ".frame{overflow-x:auto}table{border-collapse:collapse;width:100%}"
    "td,th{padding:.2em .6em;text-align:right;border-bottom:1px solid var(--line);"
    "font-variant-numeric:tabular-nums}td:first-child,th:first-child{text-align:left}"
    "td:last-child{white-space:nowrap}\n"
    "th{position:sticky;top:0;background:var(--paper);vertical-align:bottom}"
    "th button{all:unset;cursor:pointer;font-weight:600}th button:focus-visible"
    "{outline:2px solid var(--bar)}th[aria-sort=ascending] button:after{content:' \\2191'}"
    "th[aria-sort=descending] button:after{content:' \\2193'}\n"
    "tr.failed{background:var(--badpaper)}tr.partly{background:var(--hostpaper)}\n"
    ".bar{display:inline-block;width:8em;height:.6em;margin-left:.6em;border-radius:2px;"
    "background:var(--line)}.bar i{display:block;height:100%;border-radius:2px;"
    "background:var(--bar)}.failed .bar i{background:var(--bad)}.exact{color:var(--soft)}\n"
    "ul.legend{padding-left:1.2em;color:var(--soft);margin:.6em 0}ul.legend .bar{width:3em;"
    "margin:0 .3em 0 0}.swatch{display:inline-block;width:1em;height:.8em;"
    "border:1px solid var(--line);margin-right:.3em}\n"
    ".failure{background:var(--panel);border-left:3px solid var(--bad);padding:.4em .7em;"
    "margin:.5em 0}.failure p{margin:0 0 .2em;overflow-wrap:anywhere}.failure ul{margin:0;"
    "padding-left:1.1em}\n"
    "svg.errors{display:block;width:100%;max-width:42em;height:auto;margin:.3em 0 .6em;"
    "font:11px system-ui,sans-serif;fill:var(--soft)}.errors .within{fill:var(--bar)}"
    ".errors .wrong,.errors .worst{fill:var(--bad)}.errors line{stroke:var(--line)}"
    ".errors .bound{stroke:var(--ink);stroke-dasharray:4 3}\n"
    "@media(max-width:640px){body{padding:.7em}td,th{padding:.2em .3em;font-size:13px}"
    ".none{display:none}td .bar{display:block;width:4.5em;margin:.15em 0 .15em auto}}\n";

static const char script[] =
    "document.querySelectorAll('th button').forEach(function(b){b.onclick=function(){"
    "var h=b.parentNode,n=h.cellIndex,t=h.closest('table'),s=h.getAttribute('aria-sort'),"
    "d=n?s=='descending'?1:-1:s=='ascending'?-1:1;"
    "t.querySelectorAll('th').forEach(function(o){o.removeAttribute('aria-sort')});"
    "h.setAttribute('aria-sort',d>0?'ascending':'descending');"
    "Array.from(t.tBodies[0].rows).sort(function(a,c){var x=a.cells[n].dataset.sort,"
    "y=c.cells[n].dataset.sort;return d*(n?x-y:x.localeCompare(y))})"
    ".forEach(function(r){t.tBodies[0].append(r)})}});";

static const struct column {
    const char *title;
    int verdict; /* -1: the number of cases */
} columns[] = {{"Cases", -1},
               {"Passed", VERDICT_PASSED},
               {"Failed", VERDICT_FAILED},
               {"Unsup&shy;ported", VERDICT_UNSUPPORTED},
               {"On the host", VERDICT_HOST_ONLY}};

static uint64_t column_value(const struct column *c, const conform_row *row)
{
    return c->verdict < 0 ? row->cases : row->verdicts[c->verdict];
}

static bool column_is_empty(const struct column *c, const conform_report *report)
{
    return c->verdict > VERDICT_FAILED && conform_total(report, (verdict)c->verdict) == 0;
}

/* ---- Head ---- */

static void write_term(FILE *file, const char *term, const char *value)
{
    fprintf(file, "<dt>%s<dd>", term);
    print_html(file, value);
    fputc('\n', file);
}

static void write_verdict(const conform_report *report, FILE *file)
{
    uint64_t failed = conform_total(report, VERDICT_FAILED);
    fprintf(file, "<p class='verdict%s'>%llu passed, %llu failed<p>", failed ? " bad" : "",
            (unsigned long long)conform_total(report, VERDICT_PASSED), (unsigned long long)failed);
    fprintf(file, "%llu unsupported, %llu on the host only",
            (unsigned long long)conform_total(report, VERDICT_UNSUPPORTED),
            (unsigned long long)conform_total(report, VERDICT_HOST_ONLY));
    if (report->without_op)
        fprintf(file, ", %llu golden cases without an op in this build",
                (unsigned long long)report->without_op);
    fputc('\n', file);
}

static void write_head(const conform_report *report, FILE *file)
{
    const rlxvk_device_info *d = &report->device;
    char line[64], date[64] = "";
    const struct tm *time = gmtime(&report->started);
    if (time)
        strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", time);
    fprintf(file,
            "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport "
            "content='width=device-width,initial-scale=1'><title>rlxvk conformance</title>"
            "<style>%s</style>\n<h1>rlxvk conformance</h1>\n",
            style);
    write_verdict(report, file);
    fprintf(file, "<dl>");
    write_term(file, "Device", d->name);
    write_term(file, "Driver", d->driver);
    snprintf(line, sizeof line, "%u.%u.%u", d->api_version >> 22 & 127, d->api_version >> 12 & 1023,
             d->api_version & 4095);
    write_term(file, "Vulkan", line);
    write_term(file, "rlxvk", rlxvk_version());
    write_term(file, "Date", date);
    snprintf(line, sizeof line, "%.1f s", report->seconds);
    write_term(file, "Duration", line);
    write_term(file, "Command", report->command);
    fprintf(file, "</dl>\n");
}

/* ---- Table ---- */

static void write_legend(FILE *file)
{
    fprintf(file,
            "<ul class=legend><li><b>Worst error</b>: the largest difference from the reference "
            "in any element, as a share of what the op allows; up to 1 passes. "
            "<span class=bar><i style='width:40%%'></i></span>a full bar is all that is allowed."
            "<li><b>exact</b>: every element is the reference, rounded once."
            "<li><b>beyond</b>: wrong by more than can be measured so (NaN, infinity, or an op "
            "that must be exact)."
            "<li><span class=swatch style='background:var(--badpaper)'></span>a case failed; "
            "<span class=swatch style='background:var(--hostpaper)'></span>cases that this device "
            "cannot do, or that ran on the host."
            "<li>Select a column's title to sort by it.</ul>\n");
}

static void write_titles(const conform_report *report, FILE *file)
{
    fprintf(file, "<div class=frame><table><thead><tr><th><button>Op</button>");
    for (size_t i = 0; i < ARRAY_COUNT(columns); i++)
        fprintf(file, "<th%s><button>%s</button>",
                column_is_empty(&columns[i], report) ? " class=none" : "", columns[i].title);
    fprintf(file, "<th><button>Worst error</button></thead><tbody>\n");
}

static void write_error(const conform_row *row, FILE *file)
{
    double percent = 100 * fmin(row->worst, 1);
    if (row->worst == 0)
        fprintf(file, "<td data-sort=0><span class=exact>%s</span>",
                row->verdicts[VERDICT_PASSED] && !row->verdicts[VERDICT_FAILED] ? "exact"
                                                                                : "&ndash;");
    else if (isinf(row->worst))
        fprintf(file, "<td data-sort=1e999>beyond");
    else
        fprintf(file, "<td data-sort=%.9g>%.3g", row->worst, row->worst);
    if (row->worst > 0)
        fprintf(file, "<span class=bar><i style='width:%.1f%%'></i></span>", percent);
}

/* Lets long names break after an underscore. */
static void write_name(const char *name, FILE *file)
{
    for (; *name; name++) {
        fputc(*name, file);
        if (*name == '_')
            fputs("<wbr>", file);
    }
}

static void write_row(const conform_report *report, const conform_row *row, FILE *file)
{
    bool failed = row->verdicts[VERDICT_FAILED];
    const char *mark = failed                                       ? " class=failed"
                       : row->verdicts[VERDICT_PASSED] < row->cases ? " class=partly"
                                                                    : "";
    fprintf(file, "<tr%s><td data-sort=%s>", mark, row->name);
    if (failed)
        fprintf(file, "<a href='#%s'>", row->name);
    write_name(row->name, file);
    fputs(failed ? "</a>" : "", file);
    for (size_t i = 0; i < ARRAY_COUNT(columns); i++) {
        unsigned long long value = column_value(&columns[i], row);
        bool bold = columns[i].verdict == VERDICT_FAILED && value;
        fprintf(file, "<td%s data-sort=%llu>%s%llu%s",
                column_is_empty(&columns[i], report) ? " class=none" : "", value, bold ? "<b>" : "",
                value, bold ? "</b>" : "");
    }
    write_error(row, file);
    fprintf(file, "</tr>\n");
}

/* ---- Failures ---- */

static bool same_reason(const conform_failure *a, const conform_failure *b)
{
    return strcmp(a->row, b->row) == 0 && strcmp(a->message, b->message) == 0;
}

/* Writes a reason once, with all cases that failed for it. Does nothing if an earlier case had the
 * same reason. */
static void write_reason(const conform_report *report, size_t first, FILE *file)
{
    const conform_failure *all = report->failures.items;
    for (size_t i = 0; i < first; i++)
        if (same_reason(&all[i], &all[first]))
            return;
    fprintf(file, "<div class=failure><p>");
    print_html(file, all[first].message);
    fprintf(file, "<ul>");
    for (size_t i = first; i < report->failures.count; i++)
        if (same_reason(&all[i], &all[first])) {
            fprintf(file, "<li>case %llu: <code>", (unsigned long long)all[i].number);
            print_html(file, all[i].line);
            fprintf(file, "</code>");
            conform_picture_write(&all[i].picture, file);
        }
    fprintf(file, "</ul></div>\n");
}

static void write_row_failures(const conform_report *report, const conform_row *row, FILE *file)
{
    bool begun = false;
    for (size_t i = 0; i < report->failures.count; i++) {
        const conform_failure *failure = &report->failures.items[i];
        if (strcmp(failure->row, row->name) != 0)
            continue;
        if (!begun) {
            fprintf(file,
                    "<h3 id='%s'>%s: <b>%llu of %llu failed</b></h3><p>The first again: <code>",
                    row->name, row->name, (unsigned long long)row->verdicts[VERDICT_FAILED],
                    (unsigned long long)row->cases);
            print_html(file, failure->rerun);
            fprintf(file, "</code>\n");
        }
        begun = true;
        write_reason(report, i, file);
    }
}

static void write_html(const conform_report *report, FILE *file)
{
    write_head(report, file);
    if (report->failures.count)
        fprintf(file, "<p><a href='#failures'>What failed, and why</a>\n");
    fprintf(file, "<h2>Ops</h2>\n");
    write_legend(file);
    write_titles(report, file);
    for (size_t i = 0; i < report->rows.count; i++)
        write_row(report, &report->rows.items[i], file);
    fprintf(file, "</tbody></table></div>\n");
    if (report->failures.count)
        fprintf(file, "<h2 id=failures>Failures</h2>\n");
    for (size_t i = 0; i < report->rows.count; i++)
        write_row_failures(report, &report->rows.items[i], file);
    fprintf(file, "<script>%s</script>\n", script);
}

rlxvk_status conform_write_html(const conform_report *report, const char *path)
{
    new_file file;
    rlxvk_status status = new_file_open(path, &file);
    if (status != RLXVK_OK)
        return status;
    write_html(report, file.stream);
    return new_file_close(&file);
}
