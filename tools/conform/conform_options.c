/* See conform_options.h. */
#include "conform/conform_options.h"
#include "cli/option.h"
#include "cli/output.h"
#include "conform/conform.h"
#include "base/system.h"
#include "vk/limits.h"

#include <getopt.h>
#include <string.h>

enum { SPARSE = 8 }; /* --sparse without a number: one case in 8 */

const char conform_help[] =
    "usage: rlxvk conform [OPTION]...\n\n"
    "Runs every case of every op on a device and compares with the host reference. Each plan is\n"
    "proved sound, as with RLXVK_CHECK=plan.\n\n"
    "  --device D     index, part of the name, UUID, or PCI address (default: RLXVK_DEVICE, else\n"
    "                 the best)\n"
    "  --op NAME,...  only the cases of these ops\n"
    "  --case N       only case N of that op\n"
    "  --golden DIR   the golden vectors of DIR instead of the built-in cases\n"
    "  --seed S,...   contents of the inputs (default 1); with several, each case is compiled "
    "once\n"
    "                 and runs with each\n"
    "  --sparse[=N]   every Nth case of each op (eighth): a quick look, or one under a slow layer\n"
    "  --phase P      with --sparse=N: start at case P of each op, so that N processes share them\n"
    "  --pipelines=N[:P]  leave out cases that would have more pipelines compiled, but the first "
    "of\n"
    "                 each kernel, and every Nth from number P (default 0): most cases still run, "
    "in a\n"
    "                 fraction of the time on a software driver\n"
    "  --jobs N       so many processes share the cases (default: 2, or 1 on a single processor);\n"
    "                 one that crashes, hangs or loses the device fails the case it was at, and\n"
    "                 another takes its place; 0: this process runs all, for debuggers\n"
    "  --timeout S    seconds for one case, 0 for any time (default: 300, with RLXVK_VALIDATION\n"
    "                 1200); a process that takes longer is killed\n"
    "  --resume FILE  note in FILE how each case ends, and go on behind what it has: after a "
    "crash\n"
    "                 of the machine, the same command runs the rest. Cases that were running "
    "then\n"
    "                 run last, and fail if that happens twice\n"
    "  --precision P  of matrix products: f32 (default), f16, bf16, split\n"
    "  --variant V    kernel variants by name, as RLXVK_VARIANT: kind=row,...\n"
    "  --each-variant each kernel variant in turn, with all cases that dispatch it (--sparse=N: "
    "each\n"
    "                 Nth of them, and the first of each kernel); a variant or a kernel that no "
    "case\n"
    "                 dispatches has failed, unless the device lacks what it needs, which is "
    "named\n"
    "  --tuned        let measured choices decide, too (rlxvk bench --tune); otherwise the tables\n"
    "  --gradients    check the gradients of what each case computes instead, against\n"
    "                 differences of the host reference; passed over: cases too large for\n"
    "                 that, and those that are no smooth function of their leaves\n"
    "  --force-host   run every op's host function through the executable\n"
    "  --canary       fail a case whose kernels write outside their operands, as "
    "RLXVK_CHECK=canary\n"
    "  --invocations O\n"
    "                 reversed, permuted or permuted:SEED, as RLXVK_INVOCATIONS: cases fail whose\n"
    "                 kernels lack a barrier and are right by the order of invocations\n"
    "  --limits NAME  the device seen through a smaller one, as RLXVK_LIMITS: v3d, vulkan-1.2, "
    "...;\n"
    "                 a wrong name lists all\n"
    "  --folded       grids three workgroups wide, so that most have some without work\n"
    "  --sliced       cut each dispatch into up to 64 ranges of workgroups, each in a submission\n"
    "  --shifted      operands and results that begin inside larger tensors\n"
    "  --bounds       test the bounds, too: each element moved by 1.5 bounds must fail, by half a\n"
    "                 bound pass; some case of each op must fail if its result is zeros; lists "
    "the\n"
    "                 errors that ops reach, in units of their bounds\n"
    "  --json         the report as JSON on standard output, failures on standard error\n"
    "  --html FILE    the report as a page, too\n"
    "  --list         print the cases instead of running them; with --each-variant, count what "
    "each\n"
    "                 would dispatch\n\n"
    "An element whose bound is infinite is unjudged. If all cases of an op ran and left more than "
    "2 %\n"
    "of their elements unjudged, the op has failed.\n\n"
    "Exit status 0 only if nothing failed.\n";

static const struct option long_options[] = {
    {"device", required_argument, NULL, 'd'},
    {"op", required_argument, NULL, 'o'},
    {"case", required_argument, NULL, 'c'},
    {"golden", required_argument, NULL, 'g'},
    {"seed", required_argument, NULL, 's'},
    {"jobs", required_argument, NULL, 'j'},
    {"timeout", required_argument, NULL, 'L'},
    {"resume", required_argument, NULL, 'R'},
    {"html", required_argument, NULL, 'H'},
    {"precision", required_argument, NULL, 'p'},
    {"variant", required_argument, NULL, 'v'},
    {"each-variant", no_argument, NULL, 'e'},
    {"tuned", no_argument, NULL, 't'},
    {"force-host", no_argument, NULL, 'f'},
    {"bounds", no_argument, NULL, 'b'},
    {"json", no_argument, NULL, 'J'},
    {"canary", no_argument, NULL, 'C'},
    {"invocations", required_argument, NULL, 'I'},
    {"limits", required_argument, NULL, 'M'},
    {"folded", no_argument, NULL, 'F'},
    {"sliced", no_argument, NULL, 'i'},
    {"shifted", no_argument, NULL, 'T'},
    {"list", no_argument, NULL, 'l'},
    {"sparse", optional_argument, NULL, 'S'},
    {"phase", required_argument, NULL, 'P'},
    {"pipelines", required_argument, NULL, 'K'},
    {"gradients", no_argument, NULL, 'G'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

/* "1,7,3" */
static bool parse_seeds(conform_options *o, const char *list)
{
    char number[24];
    o->seed_count = 0;
    for (const char *at = list, *end; at; at = *end ? end + 1 : NULL) {
        end = at + strcspn(at, ",");
        snprintf(number, sizeof number, "%.*s", (int)MIN(end - at, 23), at);
        if (o->seed_count == ARRAY_COUNT(o->seeds)) {
            report_error("--seed '%s': at most %zu seeds", list, ARRAY_COUNT(o->seeds));
            return false;
        }
        if (!parse_number("seed", number, 0, UINT64_MAX, &o->seeds[o->seed_count++]))
            return false;
    }
    return true;
}

/* "64" or "3:1" */
static bool parse_pipelines(conform_options *o, const char *number)
{
    char every[24];
    const char *colon = strchr(number, ':');
    snprintf(every, sizeof every, "%.*s", (int)strcspn(number, ":"), number);
    return parse_number("pipelines", every, 1, UINT32_MAX, &o->pipelines) &&
           (!colon ||
            parse_number("pipelines=N:", colon + 1, 0, o->pipelines - 1, &o->pipelines_phase));
}

static bool set_option(conform_options *o, int letter)
{
    const char **const words[128] = {
        ['d'] = &o->device,  ['o'] = &o->ops,         ['g'] = &o->golden, ['H'] = &o->html,
        ['v'] = &o->variant, ['I'] = &o->invocations, ['R'] = &o->resume, ['M'] = &o->limits};
    bool *const flags[128] = {
        ['f'] = &o->force_host, ['J'] = &o->json,   ['e'] = &o->each_variant, ['t'] = &o->tuned,
        ['l'] = &o->list,       ['h'] = &o->help,   ['G'] = &o->gradients,    ['C'] = &o->canary,
        ['b'] = &o->bounds,     ['F'] = &o->folded, ['T'] = &o->shifted,      ['i'] = &o->sliced};
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
        return parse_seeds(o, optarg);
    else if (letter == 'S' && !optarg)
        o->sparse = SPARSE;
    else if (letter == 'S')
        return parse_number("sparse", optarg, 1, UINT32_MAX, &o->sparse);
    else if (letter == 'K')
        return parse_pipelines(o, optarg);
    else if (letter == 'P')
        return parse_number("phase", optarg, 0, UINT32_MAX, &o->phase);
    else if (letter == 'L')
        return parse_number("timeout", optarg, 0, 1000000, &o->timeout);
    else
        return parse_number("jobs", optarg, 0, 64, &o->jobs);
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

/* Checks that every name of the list is known and not empty. */
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

/* The slowest case takes seconds on software drivers, and the library itself waits up to a minute
 * for one submission. */
static uint64_t default_timeout(void)
{
    switches s;
    bool checked = switches_read(&s) == RLXVK_OK && s.validation;
    return checked ? 1200 : 300;
}

bool conform_options_parse(conform_options *o, int argc, char **argv)
{
    *o = (conform_options){.seeds = {1},
                           .seed_count = 1,
                           .timeout = default_timeout(),
                           .jobs = system_processor_count() > 1 ? 2 : 1};
    for (int letter; (letter = getopt_long(argc, argv, "hj:", long_options, NULL)) != -1;)
        if (!set_option(o, letter))
            return false;
    if (!parse_end(argc, argv, optind) || !check_ops(o->ops))
        return false;
    const device_limits *limits;
    if (limits_find(o->limits ? o->limits : "", "--limits", &limits) != RLXVK_OK)
        report_error("%s", rlxvk_last_error());
    else if (o->invocations &&
             switches_parse_invocations(o->invocations, "--invocations", &o->order) != RLXVK_OK)
        report_error("%s", rlxvk_last_error());
    else if (o->phase >= MAX(o->sparse, 1))
        report_error("--phase %llu: it must be less than the N of --sparse=N, which is %llu",
                     (unsigned long long)o->phase, (unsigned long long)MAX(o->sparse, 1));
    else if (o->one_case && (!o->ops || strchr(o->ops, ',')))
        report_error("--case needs one --op, whose case it is");
    else if (o->each_variant &&
             (o->variant || o->json || o->html || o->force_host || o->gradients || o->bounds))
        report_error("--each-variant goes with no --variant, --json, --html, --force-host, "
                     "--gradients or --bounds");
    else if (o->resume && (o->each_variant || o->list))
        report_error("--resume goes with no --each-variant or --list");
    else if (o->pipelines && (o->golden || o->gradients || o->each_variant))
        report_error("--pipelines goes with no --golden, --gradients or --each-variant");
    else if (o->gradients && (o->force_host || o->variant || o->bounds))
        report_error("--gradients goes with no --force-host, --variant or --bounds");
    else
        return true;
    return false;
}
