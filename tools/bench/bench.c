/*
 * rlxvk bench: measures kernel times and compares them with the device's ceilings, which the same
 * run measures. There are two ceilings. One is the bytes a second of rlxvk_copy, on memory that no
 * cache holds. The other is the f32 fused multiply-adds a second of a kernel that does nothing
 * else. A case's `ceiling` is the larger of its two fractions, because that resource limits it.
 */
#include "bench/bench.h"
#include "bench/pattern.h"
#include "bench/bench_survey.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/probe.h"
#include "cli/option.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

typedef struct bench_job {
    const char *device, *filter, *variant, *kind;
    rlxvk_precision precision;
    float seconds;   /* of each case; 0: the default */
    uint64_t sparse; /* --pipelines: every Nth case; 0: all */
    bool json, tune, replay, start, start_child, pipelines, training, inference, help;
    bool statistics, each_variant; /* with --pipelines */
    bool chosen;                   /* with --statistics */
    uint64_t at_most;              /* with --each-variant; 0: all */
    const char *shapes, *modules;  /* also; a file and a folder */
    uint64_t subgroup_size;        /* with --modules; 0: the device's */
    rlxvk_context *context;
    bench_ceilings ceilings;
    uint32_t printed, skipped;
} bench_job;

static void print_result(bench_job *j, const char *label, const bench_result *r)
{
    double gbps = r->bytes / r->microseconds * 1e-3, gflops = r->flops / r->microseconds * 1e-3;
    double share = bench_share(&j->ceilings, r->bytes, r->flops, r->microseconds);
    print_progress(NULL);
    if (j->json) {
        printf("%s\n  {\"kernel\": ", j->printed ? "," : "");
        print_json_string(stdout, r->kernel);
        printf(", \"case\": ");
        print_json_string(stdout, label);
        const json_figure figures[] = {{"us", r->microseconds},
                                       {"gbps", gbps},
                                       {"gflops", gflops},
                                       {"ceiling", share}};
        print_json_figures(stdout, figures, ARRAY_COUNT(figures));
        printf("}");
    } else
        printf("%-38s %-20s %11.1f %9.1f %10.1f %7.1f%%%s\n", label, r->kernel, r->microseconds,
               gbps, gflops, 100 * share, r->host ? "  on the host" : "");
    fflush(stdout);
    j->printed++;
}

/* If an error means "not on this device", it leaves a note and goes on. */
static rlxvk_status run_case(bench_job *j, const bench_case *c)
{
    static const rlxvk_status skipped[] = {RLXVK_E_UNSUPPORTED, RLXVK_E_TOO_LARGE,
                                           RLXVK_E_OUT_OF_DEVICE_MEMORY,
                                           RLXVK_E_OUT_OF_HOST_MEMORY};
    bench_result result;
    print_progress(c->label);
    rlxvk_status status = bench_run(&(bench_setup){.context = j->context,
                                                   .precision = j->precision,
                                                   .variant = j->variant,
                                                   .warm_up = j->seconds,
                                                   .seconds = j->seconds},
                                    c->line, &result);
    if (status == RLXVK_OK) {
        print_result(j, c->label, &result);
        return RLXVK_OK;
    }
    for (size_t i = 0; i < ARRAY_COUNT(skipped); i++)
        if (status == skipped[i]) {
            report_error("skipped %s: %s", c->label, rlxvk_last_error());
            j->skipped++;
            return RLXVK_OK;
        }
    return status_fail_within(status, "%s: ", c->label);
}

static void print_head(const bench_job *j, const rlxvk_device_info *device)
{
    print_progress(NULL);
    if (j->json) {
        printf("[");
        return;
    }
    printf("%s (%s)\nceilings: copy %.1f GB/s, fused multiply-add %.1f GFLOP/s%s\n\n", device->name,
           device->driver, j->ceilings.copy_bytes * 1e-9, j->ceilings.fma_flops * 1e-9,
           device->timestamps ? "" : "\nno timestamps on this device: times are wall times");
    printf("%-38s %-20s %11s %9s %10s %8s\n", "case", "kernel", "us", "GB/s", "GFLOP/s", "ceiling");
}

static bool is_wanted(const bench_job *j, const bench_case *c)
{
    return !j->filter || pattern_matches(j->filter, c->label);
}

static rlxvk_status survey_pipelines(const bench_job *j)
{
    bench_survey_setup setup = {.device = j->device,
                                .variant = j->variant,
                                .filter = j->filter,
                                .sparse = j->sparse,
                                .precision = j->precision,
                                .statistics = j->statistics,
                                .each_variant = j->each_variant,
                                .chosen = j->chosen,
                                .at_most = j->at_most,
                                .json = j->json,
                                .shapes = j->shapes,
                                .modules = j->modules,
                                .subgroup_size = j->subgroup_size};
    return (j->statistics || j->each_variant || j->modules ? bench_survey
                                                           : bench_pipelines)(&setup);
}

/* Child processes measure the start. So the parent looks whether the device executes anything. */
static rlxvk_status measure_start(const bench_job *j)
{
    rlxvk_context_options options = {.cache_directory = ""};
    rlxvk_context *probed = NULL;
    rlxvk_device_info device;
    rlxvk_status status;
    TRY(option_device(j->device, &device, &options));
    TRY(rlxvk_context_create(&options, &probed));
    TRY(probe_require(probed));
    TRY(bench_start(j->device));
error:
    rlxvk_context_destroy(probed);
    return status;
}

static rlxvk_status bench(bench_job *j)
{
    rlxvk_context_options options = {.tuning = j->tune ? RLXVK_OFF : RLXVK_DEFAULT};
    rlxvk_device_info device;
    rlxvk_status status;
    if (j->start_child)
        return bench_start_child(j->device);
    if (j->start)
        return measure_start(j);
    if (j->pipelines)
        return survey_pipelines(j);
    TRY(option_device(j->device, &device, &options));
    TRY(rlxvk_context_create(&options, &j->context));
    TRY(probe_require(j->context));
    if (j->tune)
        return bench_tune(j->context, j->kind);
    if (j->replay)
        return bench_replay(j->context);
    rlxvk_context_device(j->context, &device);
    bool cpu = device.kind == RLXVK_DEVICE_CPU;
    if (j->training || j->inference)
        return (j->training ? bench_training
                            : bench_inference)(&(bench_net_setup){.context = j->context,
                                                                  .precision = j->precision,
                                                                  .filter = j->filter,
                                                                  .share = cpu ? 8 : 1,
                                                                  .json = j->json});
    const bench_case *cases = cpu ? bench_cpu_cases : bench_gpu_cases;
    size_t count = cpu ? bench_cpu_case_count : bench_gpu_case_count;
    size_t wanted = 0;
    for (size_t i = 0; i < count; i++)
        wanted += is_wanted(j, &cases[i]);
    if (wanted == 0)
        TRY(status_fail(RLXVK_E_INDEX, "none of the %zu cases matches --filter '%s'", count,
                        j->filter));
    print_progress("ceilings");
    TRY(bench_measure_ceilings(j->context, 0, &j->ceilings));
    print_head(j, &device);
    for (size_t i = 0; i < count; i++)
        if (is_wanted(j, &cases[i]))
            TRY(run_case(j, &cases[i]));
error:
    if (j->json && j->ceilings.fma_flops > 0)
        printf("\n]\n");
    return status;
}

/* ---- Command ---- */

static const char help[] =
    "usage: rlxvk bench [OPTION]...\n\n"
    "Times the kernels by GPU timestamps and relates them to the copy and multiply-add ceilings\n"
    "measured in the same run.\n\n"
    "  --filter RE   only the cases whose name matches this extended regular expression\n"
    "  --device D    index, part of the name, UUID, or PCI address (default: RLXVK_DEVICE, else "
    "the\n"
    "                best)\n"
    "  --precision P of matrix products: f32 (default), f16, bf16, split\n"
    "  --variant V   kernel variants by name, as RLXVK_VARIANT: kind=row,...\n"
    "  --seconds S   to warm up and to measure each case for (default: 0.5 and 0.4 on GPUs)\n"
    "  --tune        measure the variants of every kernel kind on a grid of shapes and write "
    "the\n"
    "                fastest to a file of the cache directory, which contexts read from then on\n"
    "  --kind K      tune this kernel kind only and keep what the file says of others\n"
    "  --replay      the cost of dispatches, barriers, the host's part of a run and few rows of "
    "many\n"
    "                instead\n"
    "  --start       time to the first result of fresh processes, caches cold and warm, instead\n"
    "  --pipelines   creation times of the conformance cases' pipelines (--filter: of these\n"
    "                cases) instead, slowest first\n"
    "  --statistics  with --pipelines: what the driver's compiler says of each pipeline, worst\n"
    "                first: registers, spills, scratch memory, instructions; nothing is run\n"
    "  --each-variant\n"
    "                with --pipelines: every variant of every kernel kind, not only those "
    "chosen\n"
    "  --chosen      with --statistics: without the pipelines of variants that cases name\n"
    "  --at-most N   with --each-variant: of each variant and kernel only N pipelines, and none "
    "of\n"
    "                those that are chosen, too\n"
    "  --sparse N    with --pipelines: only every Nth case\n"
    "  --shapes FILE with --statistics or --each-variant: the case lines of this file instead; "
    "the\n"
    "                JSON also has their dispatches\n"
    "  --modules DIR with --pipelines: write each pipeline's SPIR-V into this folder instead\n"
    "  --subgroups N with --modules: as a GPU with subgroups of N gets it, not as this device\n"
    "  --training    whole training steps of GPT-2 124M, the byte model and ResNet-18 instead (on\n"
    "                CPUs, of small ones like them), kept and recomputed, with their memory\n"
    "  --inference   whole runs of ResNet-50 and BERT-base instead (on CPUs, of small ones)\n"
    "  --json        an array of {\"kernel\", \"case\", \"us\", \"gbps\", \"gflops\", "
    "\"ceiling\"}\n"
    "                with --training of {\"net\", \"precision\", \"recompute\", \"ms\", "
    "\"items_per_second\",\n"
    "                \"bytes\", \"scratch_bytes\", ..}, with --inference without "
    "\"recompute\";\n"
    "                with --pipelines --statistics an object of \"device\", \"driver\", "
    "\"pipelines\":\n"
    "                [{\"kernel\", \"constants\", \"case\", \"spills\", ..}] and "
    "\"failures\"\n";

static const struct option long_options[] = {{"filter", required_argument, NULL, 'f'},
                                             {"device", required_argument, NULL, 'd'},
                                             {"precision", required_argument, NULL, 'p'},
                                             {"variant", required_argument, NULL, 'v'},
                                             {"seconds", required_argument, NULL, 'n'},
                                             {"tune", no_argument, NULL, 't'},
                                             {"replay", no_argument, NULL, 'r'},
                                             {"start", no_argument, NULL, 's'},
                                             {"start-child", no_argument, NULL, 'S'},
                                             {"pipelines", no_argument, NULL, 'P'},
                                             {"statistics", no_argument, NULL, 'X'},
                                             {"each-variant", no_argument, NULL, 'E'},
                                             {"chosen", no_argument, NULL, 'C'},
                                             {"at-most", required_argument, NULL, 'D'},
                                             {"sparse", required_argument, NULL, 'N'},
                                             {"shapes", required_argument, NULL, 'A'},
                                             {"modules", required_argument, NULL, 'M'},
                                             {"subgroups", required_argument, NULL, 'G'},
                                             {"training", no_argument, NULL, 'T'},
                                             {"inference", no_argument, NULL, 'I'},
                                             {"kind", required_argument, NULL, 'F'},
                                             {"json", no_argument, NULL, 'J'},
                                             {"help", no_argument, NULL, 'h'},
                                             {NULL, 0, NULL, 0}};

static bool parse_options(bench_job *j, int argc, char **argv)
{
    for (int letter; (letter = getopt_long(argc, argv, "h", long_options, NULL)) != -1;) {
        if (letter == '?')
            return false;
        if (letter == 'f')
            j->filter = optarg;
        if (letter == 'F')
            j->kind = optarg;
        if (letter == 'd')
            j->device = optarg;
        if (letter == 'v')
            j->variant = optarg;
        if (letter == 'p' && !parse_precision(optarg, &j->precision))
            return false;
        if (letter == 'n' && !parse_real("seconds", optarg, 0.001f, 60.0f, &j->seconds))
            return false;
        if (letter == 'N' && !parse_number("sparse", optarg, 1, UINT32_MAX, &j->sparse))
            return false;
        if (letter == 'D' && !parse_number("at-most", optarg, 1, UINT32_MAX, &j->at_most))
            return false;
        if (letter == 'A')
            j->shapes = optarg;
        if (letter == 'M')
            j->modules = optarg;
        if (letter == 'G' && !parse_number("subgroups", optarg, 1, 128, &j->subgroup_size))
            return false;
        j->tune |= letter == 't';
        j->statistics |= letter == 'X';
        j->each_variant |= letter == 'E';
        j->chosen |= letter == 'C';
        j->replay |= letter == 'r';
        j->start |= letter == 's';
        j->start_child |= letter == 'S';
        j->pipelines |= letter == 'P';
        j->training |= letter == 'T';
        j->inference |= letter == 'I';
        j->json |= letter == 'J';
        j->help |= letter == 'h';
    }
    if (!parse_end(argc, argv, optind))
        return false;
    if (!j->pipelines && (j->statistics || j->each_variant || j->sparse || j->modules)) {
        report_error("--statistics, --each-variant, --sparse and --modules need --pipelines");
        return false;
    }
    if (j->shapes && !j->statistics && !j->each_variant) {
        report_error("--shapes needs --statistics or --each-variant");
        return false;
    }
    if (j->at_most && (!j->each_variant || j->shapes)) {
        report_error("--at-most needs --each-variant without --shapes");
        return false;
    }
    if (j->chosen && (!j->statistics || j->each_variant || j->variant)) {
        report_error("--chosen needs --statistics without --each-variant or --variant");
        return false;
    }
    if (j->subgroup_size && !j->modules) {
        report_error("--subgroups needs --modules");
        return false;
    }
    if (j->filter && !pattern_is_valid(j->filter)) {
        report_error("--filter '%s' is no extended regular expression", j->filter);
        return false;
    }
    return true;
}

int command_bench(int argc, char **argv)
{
    bench_job j = {0};
    if (!parse_options(&j, argc, argv))
        return EXIT_USAGE;
    if (j.help)
        return print_help(help);
    bool table = !(j.tune || j.replay || j.start || j.start_child || j.pipelines || j.training ||
                   j.inference);
    rlxvk_status status = bench(&j);
    if (status != RLXVK_OK)
        report_status(status);
    rlxvk_context_destroy(j.context);
    return status == RLXVK_OK && (j.printed || !table) ? EXIT_OK : EXIT_FAILED;
}
