/*
 * rlxvk train: runs jobs that train a net on the device. Each step is one recorded run. Ctrl-C ends
 * a job after the current step, and the parameters are saved.
 */
#include "cli/clock.h"
#include "cli/commands.h"
#include "system/program.h"
#include "base/new_file.h"
#include "cli/option.h"
#include "cli/output.h"
#include "train/job.h"

#include <getopt.h>
#include <string.h>

static const char help[] =
    "usage: rlxvk train JOB [OPTION]...\n\n"
    "Trains a net on the device. Jobs:\n\n"
    "  digits         a small convolutional net on handwritten digits, and how many of those held\n"
    "                 back it tells right\n"
    "  lm             a language model over bytes, of llama's architecture, on text files\n\n"
    "  --epochs N     digits: times through the examples in all (default 12, or the checkpoint's)\n"
    "  --data DIR     digits: where digits.x.npy and digits.y.npy are (default: test/data, else\n"
    "                 share/rlxvk beside the program's bin)\n"
    "  --text FILE... lm: the text; every twentieth part of it is held back\n"
    "  --out FILE     lm: write the model as GGUF, for rlxvk generate\n"
    "  --exact        lm: ... with weights of f32, not f16\n"
    "  --steps N      lm: steps in all (default 3000, or the checkpoint's)\n"
    "  --width N      lm: of the residual stream (default 256)\n"
    "  --blocks N     lm: layers (default 6)\n"
    "  --heads N      lm: attention heads (default 4)\n"
    "  --kv-heads N   lm: heads of keys and values (default 2)\n"
    "  --ffn N        lm: width of the feed-forward layers (default 3 times the width)\n"
    "  --context N    lm: bytes of a window of text (default 512)\n"
    "  --recompute    lm: keep only each block's result for the backward pass: less memory, more\n"
    "                 time\n"
    "  --batch N      examples a step (default 64; lm: 16)\n"
    "  --rate R       the learning rate, at its highest (default 0.003; lm: 0.002)\n"
    "  --seed S       of first values and order (default 1); the same seed learns the same\n"
    "  --device D     index, part of the name, UUID, or PCI address\n"
    "  --precision P  of matrix products: f32 (default), f16, bf16, split\n"
    "  --save FILE    write a checkpoint at the end, or when interrupted\n"
    "  --resume FILE  go on from a checkpoint, to its number of steps or the one given here\n"
    "  --curve FILE   draw the loss of every step as SVG\n"
    "  --json         a line of JSON now and then, and one of results\n";

static const struct option long_options[] = {
    {"epochs", required_argument, NULL, 'e'},   {"text", required_argument, NULL, 't'},
    {"out", required_argument, NULL, 'O'},      {"exact", no_argument, NULL, 'F'},
    {"steps", required_argument, NULL, 'n'},    {"width", required_argument, NULL, 'w'},
    {"blocks", required_argument, NULL, 'B'},   {"heads", required_argument, NULL, 'H'},
    {"kv-heads", required_argument, NULL, 'K'}, {"ffn", required_argument, NULL, 'f'},
    {"context", required_argument, NULL, 'C'},  {"recompute", no_argument, NULL, 'm'},
    {"batch", required_argument, NULL, 'b'},    {"rate", required_argument, NULL, 'r'},
    {"seed", required_argument, NULL, 's'},     {"data", required_argument, NULL, 'D'},
    {"device", required_argument, NULL, 'd'},   {"precision", required_argument, NULL, 'p'},
    {"save", required_argument, NULL, 'o'},     {"resume", required_argument, NULL, 'R'},
    {"curve", required_argument, NULL, 'c'},    {"json", no_argument, NULL, 'J'},
    {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0},
};

static const struct job {
    const char *name;
    rlxvk_status (*run)(const train_options *o, rlxvk_context *context);
    uint64_t batch;
    float rate;
    bool takes_text;
} jobs[] = {{"digits", train_digits, 64, 3e-3f, false}, {"lm", train_lm, 16, 2e-3f, true}};

/* ---- Options ---- */

static bool set_option(train_options *o, int letter)
{
    const char **const words[128] = {['D'] = &o->data, ['d'] = &o->device, ['o'] = &o->save,
                                     ['O'] = &o->out,  ['R'] = &o->resume, ['c'] = &o->curve};
    if (letter < 0 || letter >= 128)
        return false;
    if (words[letter]) {
        *words[letter] = optarg;
        return true;
    }
    switch (letter) {
    case 'e':
        return parse_number("epochs", optarg, 1, 1000000, &o->epochs);
    case 'b':
        return parse_number("batch", optarg, 1, 1024, &o->batch);
    case 'r':
        return parse_real("rate", optarg, 1e-9f, 10, &o->rate);
    case 's':
        return parse_number("seed", optarg, 0, UINT64_MAX, &o->seed);
    case 'p':
        return parse_precision(optarg, &o->precision);
    case 'n':
        return parse_number("steps", optarg, 1, 100000000, &o->steps);
    case 'w':
        return parse_number("width", optarg, 2, 16384, &o->width);
    case 'B':
        return parse_number("blocks", optarg, 1, 256, &o->blocks);
    case 'H':
        return parse_number("heads", optarg, 1, 256, &o->heads);
    case 'K':
        return parse_number("kv-heads", optarg, 1, 256, &o->kv_heads);
    case 'f':
        return parse_number("ffn", optarg, 1, 65536, &o->ffn);
    case 'C':
        return parse_number("context", optarg, 2, 65536, &o->context);
    case 't':
        o->texts[o->text_count++] = optarg;
        return true;
    case 'F':
        return o->exact = true;
    case 'm':
        return o->recompute = true;
    case 'J':
        return o->json = true;
    case 'h':
        return o->help = true;
    default:
        return false;
    }
}

static const struct job *find_job(const char *name)
{
    for (size_t i = 0; name && i < ARRAY_COUNT(jobs); i++)
        if (strcmp(jobs[i].name, name) == 0)
            return &jobs[i];
    report_error("%s%s%s; the jobs are: digits, lm", name ? "no job '" : "which job?",
                 name ? name : "", name ? "'" : "");
    return NULL;
}

/* ---- While it runs ---- */

bool train_stopped(void)
{
    return program_interrupted();
}

void train_report(const train_options *o, const trainer *t, const char *unit, double examples,
                  double seconds)
{
    static double last;
    double now = clock_seconds(), rate = examples / MAX(seconds, 1e-9);
    double left = seconds / MAX((double)t->losses.count, 1) * (double)(t->steps - t->step);
    char line[160];
    if (now - last < 0.5 && t->step != t->steps)
        return;
    last = now;
    float loss = t->losses.items[t->losses.count - 1];
    if (o->json) {
        printf("{\"step\":%llu,\"steps\":%llu,\"loss\":%.6g,\"%s_per_second\":%.1f}\n",
               (unsigned long long)t->step, (unsigned long long)t->steps, (double)loss, unit, rate);
        fflush(stdout);
        return;
    }
    snprintf(line, sizeof line, "step %llu of %llu, loss %.4f, %.0f %s a second, %.0f s left",
             (unsigned long long)t->step, (unsigned long long)t->steps, (double)loss, rate, unit,
             left);
    print_progress(line);
}

static rlxvk_status run_job(const struct job *job, const train_options *o)
{
    rlxvk_context_options options = {0};
    rlxvk_device_info found;
    rlxvk_context *context = NULL;
    rlxvk_status status;
    const char *const files[] = {o->save, o->curve, o->out};
    for (size_t i = 0; i < ARRAY_COUNT(files); i++)
        if (files[i])
            TRY(new_file_check(files[i]));
    program_watch_interrupt();
    TRY(option_device(o->device, &found, &options));
    TRY(rlxvk_context_create(&options, &context));
    status = job->run(o, context);
    print_progress(NULL);
    if (status == RLXVK_OK && program_interrupted())
        report_error("interrupted; %s%s",
                     o->save ? "go on by --resume " : "what was learned is lost: --save keeps it",
                     o->save ? o->save : "");
error:
    program_end_interrupt();
    rlxvk_context_destroy(context);
    return status;
}

/* Takes the words that are not options: the job, and then files of text. */
static const struct job *take_words(train_options *o, int argc, char **argv)
{
    const struct job *job = find_job(optind < argc ? argv[optind] : NULL);
    for (int i = optind + 1; job && job->takes_text && i < argc; i++)
        o->texts[o->text_count++] = argv[i];
    if (!job || (!job->takes_text && !parse_end(argc, argv, optind + 1)))
        return NULL;
    if (!o->batch)
        o->batch = job->batch;
    if (o->rate == 0)
        o->rate = job->rate;
    if (!o->ffn)
        o->ffn = 3 * o->width;
    return job;
}

static int run(train_options *o, int argc, char **argv)
{
    for (int letter; (letter = getopt_long(argc, argv, "h", long_options, NULL)) != -1;)
        if (!set_option(o, letter))
            return EXIT_USAGE;
    if (o->help)
        return print_help(help);
    const struct job *job = take_words(o, argc, argv);
    if (!job)
        return EXIT_USAGE;
    rlxvk_status status = run_job(job, o);
    if (status != RLXVK_OK)
        report_status(status);
    return status == RLXVK_OK ? EXIT_OK : EXIT_FAILED;
}

int command_train(int argc, char **argv)
{
    train_options o = {
        .seed = 1, .width = 256, .blocks = 6, .heads = 4, .kv_heads = 2, .context = 512};
    o.texts = memory_zeroed((size_t)argc, sizeof *o.texts);
    if (!o.texts) {
        report_status(status_fail_memory("options"));
        return EXIT_FAILED;
    }
    int code = run(&o, argc, argv);
    memory_free(o.texts);
    return code;
}
