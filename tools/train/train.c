/*
 * rlxvk train: jobs that train a net on the device, each step one recorded run. Ctrl-C ends a job
 * after the step under way; what it has learned is saved.
 */
#include "cli/clock.h"
#include "cli/commands.h"
#include "cli/new_file.h"
#include "cli/option.h"
#include "cli/output.h"
#include "train/job.h"

#include <getopt.h>
#include <signal.h>
#include <string.h>

static const char help[] =
    "usage: rlxvk train JOB [OPTION]...\n\n"
    "Trains a net on the device. Jobs:\n\n"
    "  digits         a small convolutional net on handwritten digits, and how many of those held\n"
    "                 back it tells right\n\n"
    "  --epochs N     times through the examples (default 12)\n"
    "  --batch N      examples a step (default 64)\n"
    "  --rate R       the learning rate, at its highest (default 0.003)\n"
    "  --seed S       of first values and order (default 1); the same seed learns the same\n"
    "  --data DIR     where the examples are (default test/data)\n"
    "  --device D     index, part of the name, or UUID\n"
    "  --precision P  of matrix products: f32 (default), f16, bf16, split\n"
    "  --save FILE    write a checkpoint at the end, or when interrupted\n"
    "  --resume FILE  go on from a checkpoint\n"
    "  --curve FILE   draw the loss of every step as SVG\n"
    "  --json         a line of JSON now and then, and one of results\n";

static const struct option long_options[] = {
    {"epochs", required_argument, NULL, 'e'},
    {"batch", required_argument, NULL, 'b'},
    {"rate", required_argument, NULL, 'r'},
    {"seed", required_argument, NULL, 's'},
    {"data", required_argument, NULL, 'D'},
    {"device", required_argument, NULL, 'd'},
    {"precision", required_argument, NULL, 'p'},
    {"save", required_argument, NULL, 'o'},
    {"resume", required_argument, NULL, 'R'},
    {"curve", required_argument, NULL, 'c'},
    {"json", no_argument, NULL, 'J'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const struct job {
    const char *name;
    rlxvk_status (*run)(const train_options *o, rlxvk_context *context);
} jobs[] = {{"digits", train_digits}};

/* ---- Options ---- */

static bool set_option(train_options *o, int letter)
{
    const char **const words[128] = {['D'] = &o->data,
                                     ['d'] = &o->device,
                                     ['o'] = &o->save,
                                     ['R'] = &o->resume,
                                     ['c'] = &o->curve};
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
    report_error("%s%s%s; the jobs are: digits", name ? "no job '" : "which job?", name ? name : "",
                 name ? "'" : "");
    return NULL;
}

/* ---- While it runs ---- */

static volatile sig_atomic_t stopped;

static void stop(int signal_number)
{
    (void)signal_number;
    stopped = 1;
}

bool train_stopped(void)
{
    return stopped;
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
    for (int i = 0; i < 2; i++)
        if (i ? o->save : o->curve)
            TRY(new_file_check(i ? o->save : o->curve));
    TRY(option_device(o->device, &found, &options));
    TRY(rlxvk_context_create(&options, &context));
    signal(SIGINT, stop);
    status = job->run(o, context);
    signal(SIGINT, SIG_DFL);
    print_progress(NULL);
error:
    rlxvk_context_destroy(context);
    return status;
}

int command_train(int argc, char **argv)
{
    train_options o = {.data = "test/data", .epochs = 12, .batch = 64, .seed = 1, .rate = 3e-3f};
    for (int letter; (letter = getopt_long(argc, argv, "h", long_options, NULL)) != -1;)
        if (!set_option(&o, letter))
            return EXIT_USAGE;
    if (o.help)
        return print_help(help);
    const struct job *job = find_job(optind < argc ? argv[optind] : NULL);
    if (!job || !parse_end(argc, argv, optind + 1))
        return EXIT_USAGE;
    rlxvk_status status = run_job(job, &o);
    if (status != RLXVK_OK)
        report_status(status);
    return status == RLXVK_OK ? EXIT_OK : EXIT_FAILED;
}
