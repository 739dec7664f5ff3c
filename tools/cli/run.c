/*
 * rlxvk run: runs a model from a file, prints its outputs and times, and compares them. With --list
 * it runs many models in one process and prints a line for each.
 */
#include "cli/commands.h"
#include "cli/file.h"
#include "cli/option.h"
#include "cli/output.h"
#include "cli/run.h"

#include <rlxvk_symbols.h>

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: rlxvk run MODEL.onnx [OPTION]...\n"
    "       rlxvk run --list FILE [OPTION]...\n\n"
    "Runs a model and prints its outputs and times.\n\n"
    "      --input NAME=FILE  an input's array, .npy or .pb; a picture, .png; a sound, .wav;\n"
    "                         NAME=random makes numbers up. Inputs without a file are random\n"
    "      --data DIR         inputs are DIR/input_0.pb and so on, or .npy, or DIR/NAME.npy\n"
    "      --bind NAME=N      the size of a named dim. Those of files are bound by themselves\n"
    "      --bind NAME=N,N    the value of an input that decides sizes\n"
    "      --output DIR       write the outputs there, as output_0.npy and so on\n"
    "      --compare DIR      compare with DIR/output_0.pb and so on, or .npy, or DIR/NAME.npy\n"
    "      --rtol R           relative tolerance of that (default 1e-3); integers must be equal\n"
    "      --atol A           absolute tolerance (default 1e-7; at least 2^-22 of the largest)\n"
    "      --repeat N         run N times more and tell the medians, by the clock and on the\n"
    "                         device\n"
    "      --profile          print the time of each node of the file, and its share of what the\n"
    "                         device can copy or compute in that time, which is measured then\n"
    "      --check            compare each node with its host reference; name the first wrong one\n"
    "      --precision P      of matrix products: f32 (default), f16, bf16, split\n"
    "      --device D         index, part of the name, UUID, or PCI address\n"
    "      --list FILE        run each line of FILE, MODEL or MODEL DIR; DIR has its inputs and\n"
    "                         expected outputs. A verdict a line: passed, wrong, refused, failed\n"
    "      --json             figures as JSON\n\n"
    "Pictures, sounds and classes:\n"
    "      --fit F            to the input's size: stretch (default), crop\n"
    "      --layout L         of pictures, if the input's shape does not tell it: nchw, nhwc\n"
    "      --bgr              the input's channels are blue, green, red\n"
    "      --scale S          white and the loudest sample become S (default 1, for U8 255)\n"
    "      --mean R,G,B       then subtract these from the channels, or one number from all\n"
    "      --std R,G,B        then divide by these\n"
    "      --rate N           refuse sounds that have not N samples a second\n"
    "      --labels FILE      print the best classes; the file has their names, one a line\n"
    "      --top N            how many of them (default 5)\n";

static const struct option long_options[] = {
    {"input", required_argument, NULL, 'i'},
    {"data", required_argument, NULL, 'D'},
    {"bind", required_argument, NULL, 'b'},
    {"output", required_argument, NULL, 'o'},
    {"compare", required_argument, NULL, 'c'},
    {"rtol", required_argument, NULL, 'r'},
    {"atol", required_argument, NULL, 'a'},
    {"repeat", required_argument, NULL, 'n'},
    {"profile", no_argument, NULL, 'p'},
    {"check", no_argument, NULL, 'k'},
    {"precision", required_argument, NULL, 'x'},
    {"device", required_argument, NULL, 'd'},
    {"list", required_argument, NULL, 'l'},
    {"json", no_argument, NULL, 'J'},
    {"fit", required_argument, NULL, 'f'},
    {"layout", required_argument, NULL, 'y'},
    {"bgr", no_argument, NULL, 'g'},
    {"scale", required_argument, NULL, 's'},
    {"mean", required_argument, NULL, 'm'},
    {"std", required_argument, NULL, 'v'},
    {"rate", required_argument, NULL, 'R'},
    {"labels", required_argument, NULL, 'L'},
    {"top", required_argument, NULL, 't'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

/* ---- Options ---- */

static bool add(const char *option, const char **items, size_t *count)
{
    if (*count == RUN_MOST) {
        report_error("more than %d times --%s", RUN_MOST, option);
        return false;
    }
    items[(*count)++] = optarg;
    return true;
}

/* One number for all colours, or three. */
static bool parse_colours(const char *option, float lowest, float out[3])
{
    const char *at = optarg;
    size_t count = 0;
    for (; count < 3; count++) {
        char number[32];
        size_t length = strcspn(at, ",");
        snprintf(number, sizeof number, "%.*s", (int)MIN(length, sizeof number), at);
        if (!parse_real(option, number, lowest, 1e30f, &out[count]))
            return false;
        at += length;
        if (!*at)
            break;
        at++;
    }
    if (count == 0)
        out[1] = out[2] = out[0];
    if (count == 0 || count == 2)
        return true;
    report_error("--%s takes one number or three, not '%s'", option, optarg);
    return false;
}

/* One of two words; *out: the second one. */
static bool parse_word(const char *option, const char *first, const char *second, bool *out)
{
    *out = strcmp(optarg, second) == 0;
    if (*out || strcmp(optarg, first) == 0)
        return true;
    report_error("--%s takes %s or %s, not '%s'", option, first, second, optarg);
    return false;
}

static bool set_media_option(run_options *o, int letter)
{
    media_options *m = &o->media;
    bool last;
    switch (letter) {
    case 'f':
        return parse_word("fit", "stretch", "crop", &m->crop);
    case 'y':
        if (!parse_word("layout", "nchw", "nhwc", &last))
            return false;
        m->layout = last ? MEDIA_NHWC : MEDIA_NCHW;
        return true;
    case 'g':
        return m->bgr = true;
    case 's':
        return parse_real("scale", optarg, 1e-30f, 1e30f, &m->scale);
    case 'm':
        return parse_colours("mean", -1e30f, m->mean);
    case 'v':
        return parse_colours("std", 1e-30f, m->std);
    case 'R':
        return parse_number("rate", optarg, 1, UINT32_MAX, &m->rate);
    case 't':
        return parse_number("top", optarg, 1, 1000000, &o->top);
    default: /* getopt_long has already printed the mistake */
        return false;
    }
}

static bool set_option(run_options *o, int letter)
{
    const char **const words[128] = {['D'] = &o->data,   ['o'] = &o->output, ['c'] = &o->compare,
                                     ['d'] = &o->device, ['l'] = &o->list,   ['L'] = &o->labels};
    if (letter > 0 && letter < 128 && words[letter]) {
        *words[letter] = optarg;
        return true;
    }
    switch (letter) {
    case 'i':
        return add("input", o->inputs, &o->input_count);
    case 'b':
        return add("bind", o->binds, &o->bind_count);
    case 'r':
        return parse_real("rtol", optarg, 0, 1e30f, &o->rtol);
    case 'a':
        return parse_real("atol", optarg, 0, 1e30f, &o->atol);
    case 'n':
        return parse_number("repeat", optarg, 0, 1000000, &o->repeat);
    case 'x':
        return parse_precision(optarg, &o->precision);
    case 'p':
        return o->profile = true;
    case 'k':
        return o->check = true;
    case 'J':
        return o->json = true;
    case 'h':
        return o->help = true;
    default:
        return set_media_option(o, letter);
    }
}

static bool parse_options(run_options *o, int argc, char **argv)
{
    *o = (run_options){.rtol = 1e-3f, .atol = 1e-7f, .top = 5, .media = media_defaults()};
    for (int letter; (letter = getopt_long(argc, argv, "h", long_options, NULL)) != -1;)
        if (!set_option(o, letter))
            return false;
    if (o->help)
        return true;
    if (optind < argc)
        o->model = argv[optind++];
    if (!o->model == !o->list) {
        report_error("name a model file, or a list: rlxvk run MODEL.onnx, rlxvk run --list FILE");
        return false;
    }
    return parse_end(argc, argv, optind);
}

/* ---- Printing ---- */

static void print_output(const run_output *o)
{
    char shape[128] = "";
    (void)!rlxvk_shape_text(NULL, o->value.shape, shape, sizeof shape);
    printf("%s  %s %s", o->name, rlxvk_dtype_name(o->value.dtype), shape);
    if (o->value.numel > o->not_finite)
        printf("  min %.6g  max %.6g  mean %.6g", o->lowest, o->highest, o->mean);
    if (o->not_finite)
        printf("  %llu not finite", (unsigned long long)o->not_finite);
    printf("\n");
}

/* The best classes, with a line before each item. */
static void print_best(const run_result *r)
{
    for (size_t i = 0; i < r->best_count; i++) {
        const run_class *c = &r->best[i];
        if (i == 0 || c->item != r->best[i - 1].item)
            printf("best of %s%s, item %zu:\n", r->best_softmax ? "the softmax of " : "",
                   r->best_of, c->item);
        printf("%10.4f  %s (%zu)\n", c->score, c->label, c->number);
    }
}

static double total_time(const run_result *r)
{
    double total = 0;
    for (size_t i = 0; i < r->row_count; i++)
        total += r->rows[i].microseconds;
    return total;
}

static void print_profile(const run_result *r)
{
    double total = total_time(r);
    if (r->fma_flops > 0)
        printf("ceilings: copy %.1f GB/s, fused multiply-add %.1f GFLOP/s\n", r->copy_bytes * 1e-9,
               r->fma_flops * 1e-9);
    else
        printf("ceilings: not measured, because the model leaves too little memory\n");
    printf("%10s %6s %8s  %-24s %-32s %s\n", "us", "share", "ceiling", "op", "node", "kernels");
    for (size_t i = 0; i < r->row_count; i++)
        printf("%10.1f %5.1f%% %7.1f%%  %-24s %-32s %s\n", r->rows[i].microseconds,
               total > 0 ? 100 * r->rows[i].microseconds / total : 0, 100 * r->rows[i].share,
               r->rows[i].op, r->rows[i].name, r->rows[i].kernels);
    printf("%10.1f total\n", total);
}

static void print_text(const run_options *o, const run_result *r)
{
    for (size_t i = 0; i < r->output_count; i++)
        print_output(&r->outputs[i]);
    print_best(r);
    printf("load %.1f ms, compile %.1f ms, first run %.2f ms", r->load_ms, r->compile_ms,
           r->first_ms);
    if (o->repeat)
        printf(", median of %llu %.2f ms", (unsigned long long)o->repeat, r->median_ms);
    if (o->repeat && r->device_ms > 0)
        printf(", %.2f ms on the device", r->device_ms);
    printf("\n");
    if (o->profile)
        print_profile(r);
    if (*r->check)
        printf("%s\n", r->check);
    if (o->compare && r->verdict == RUN_DONE)
        printf("equal to %s within the tolerance\n", o->compare);
}

static void print_json_profile(const run_result *r)
{
    printf(", \"nodes\": [");
    for (size_t i = 0; i < r->row_count; i++) {
        printf("%s{\"name\": ", i ? ", " : "");
        print_json_string(stdout, r->rows[i].name);
        printf(", \"op\": ");
        print_json_string(stdout, r->rows[i].op);
        printf(", \"kernels\": ");
        print_json_string(stdout, r->rows[i].kernels);
        print_json_figures(stdout,
                           (json_figure[]){{"microseconds", r->rows[i].microseconds},
                                           {"steps", (double)r->rows[i].steps},
                                           {"bytes", r->rows[i].bytes},
                                           {"flops", r->rows[i].flops},
                                           {"ceiling", r->rows[i].share}},
                           5);
        printf("}");
    }
    printf("]");
    print_json_figures(stdout,
                       (json_figure[]){{"copy_bytes_per_second", r->copy_bytes},
                                       {"fma_flops_per_second", r->fma_flops}},
                       2);
}

static void print_json_best(const run_result *r)
{
    printf(", \"best_of\": ");
    print_json_string(stdout, r->best_of);
    printf(", \"softmax\": %s, \"best\": [", r->best_softmax ? "true" : "false");
    for (size_t i = 0; i < r->best_count; i++) {
        const run_class *c = &r->best[i];
        printf("%s{\"label\": ", i ? ", " : "");
        print_json_string(stdout, c->label);
        print_json_figures(stdout,
                           (json_figure[]){{"item", (double)c->item},
                                           {"class", (double)c->number},
                                           {"score", c->score}},
                           3);
        printf("}");
    }
    printf("]");
}

static void print_json(const run_result *r)
{
    printf("{\"outputs\": [");
    for (size_t i = 0; i < r->output_count; i++) {
        const run_output *o = &r->outputs[i];
        printf("%s{\"name\": ", i ? ", " : "");
        print_json_string(stdout, o->name);
        printf(", \"dtype\": \"%s\", \"shape\": [", rlxvk_dtype_name(o->value.dtype));
        for (uint32_t k = 0; k < o->value.shape.rank; k++)
            printf("%s%lld", k ? ", " : "", (long long)o->value.shape.dims[k]);
        printf("]");
        print_json_figures(stdout,
                           (json_figure[]){{"min", o->lowest},
                                           {"max", o->highest},
                                           {"mean", o->mean},
                                           {"not_finite", (double)o->not_finite}},
                           4);
        printf("}");
    }
    printf("]");
    if (r->row_count)
        print_json_profile(r);
    if (r->best_count)
        print_json_best(r);
    print_json_figures(stdout,
                       (json_figure[]){{"load_ms", r->load_ms},
                                       {"compile_ms", r->compile_ms},
                                       {"first_ms", r->first_ms},
                                       {"median_ms", r->median_ms},
                                       {"device_ms", r->device_ms},
                                       {"wrong", r->verdict == RUN_WRONG}},
                       6);
    printf("}\n");
}

/* ---- Runs ---- */

static int run_one(const run_options *o, rlxvk_context *context)
{
    run_result r;
    int code = EXIT_OK;
    run_model(o, context, &r);
    if (r.verdict == RUN_DONE || r.verdict == RUN_WRONG) {
        if (o->json)
            print_json(&r);
        else
            print_text(o, &r);
    }
    if (r.verdict != RUN_DONE) {
        report_error("%s", r.why);
        code = EXIT_FAILED;
    }
    run_free(&r);
    return code;
}

static const char *verdict_name(run_verdict verdict)
{
    static const char *const names[] = {"passed", "wrong", "refused", "failed"};
    return names[verdict];
}

/* One job of a list: MODEL, or MODEL and DIR behind a tab. */
static run_verdict run_line(const run_options *o, rlxvk_context *context, char *line)
{
    char *tab = strchr(line, '\t');
    run_options own = *o;
    run_result r;
    run_verdict verdict;
    if (tab)
        *tab = 0;
    own.model = line;
    own.data = own.compare = tab ? tab + 1 : NULL;
    own.profile = false; /* a line has no room for it */
    run_model(&own, context, &r);
    for (char *c = r.why; *c; c++)
        if (*c == '\n' || *c == '\t')
            *c = ' ';
    printf("%s\t%s\t%s\n", verdict_name(r.verdict), line, r.why);
    fflush(stdout);
    verdict = r.verdict;
    run_free(&r);
    return verdict;
}

static rlxvk_status run_list(const run_options *o, rlxvk_context *context, bool *out_good)
{
    file_content list = {0};
    char *text = NULL;
    rlxvk_status status;
    TRY(file_read(o->list, &list));
    text = memory_zeroed((size_t)list.length + 1, 1);
    if (!text)
        TRY(status_fail_memory("list"));
    memcpy(text, list.data, (size_t)list.length);
    for (char *line = text; *line;) {
        char *end = line + strcspn(line, "\n");
        bool last = *end == 0;
        *end = 0;
        if (*line && run_line(o, context, line) != RUN_DONE)
            *out_good = false;
        line = last ? end : end + 1;
    }
error:
    memory_free(text);
    file_free(&list);
    return status;
}

int command_run(int argc, char **argv)
{
    static run_options o;
    rlxvk_device_info device;
    rlxvk_context_options options = {0};
    rlxvk_context *context = NULL;
    bool good = true;
    rlxvk_status status;
    if (!parse_options(&o, argc, argv))
        return EXIT_USAGE;
    if (o.help)
        return print_help(help);
    TRY(option_device(o.device, &device, &options));
    TRY(rlxvk_context_create(&options, &context));
    if (o.list)
        TRY(run_list(&o, context, &good));
    else
        good = run_one(&o, context) == EXIT_OK;
error:
    rlxvk_context_destroy(context);
    if (status != RLXVK_OK)
        report_status(status);
    return status == RLXVK_OK && good ? EXIT_OK : EXIT_FAILED;
}
