/* The rlxvk program: a table of subcommands. Each one parses its own options and has --help. It
 * never calls setlocale, so that its output is the same everywhere. */
#include "cli/commands.h"
#include "base/nearest.h"
#include "cli/output.h"
#include "system/program.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} command;

static const command commands[] = {
    {"info", command_info, "devices, what was chosen for them and why, environment switches"},
    {"conform", command_conform, "check every op on a device against the host reference"},
    {"bench", command_bench, "time the kernels and relate them to the device's ceilings"},
    {"run", command_run, "run a model from an ONNX or GGUF file"},
    {"show", command_show, "print what is in a model file, and draw its graph"},
    {"generate", command_generate, "run a language model from a GGUF file"},
    {"train", command_train, "train a net on the device"},
    {"ops", command_ops, "print the op table"},
};

static int usage(FILE *file)
{
    fprintf(file, "usage: rlxvk COMMAND [OPTION]...\n\n"
                  "Machine-learning graphs on any Vulkan 1.2 device.\n\n");
    for (size_t i = 0; i < ARRAY_COUNT(commands); i++)
        fprintf(file, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fprintf(file, "\n  --help     this text; after a command, that command's options\n"
                  "  --version  the version\n\n"
                  "Exit status: 0 done, 1 failed, 2 wrong usage.\n");
    return file == stdout ? EXIT_OK : EXIT_USAGE;
}

static int refuse(const char *name)
{
    nearest known = nearest_to(name);
    for (size_t i = 0; i < ARRAY_COUNT(commands); i++)
        nearest_consider(&known, commands[i].name);
    if (*name)
        report_error("no command '%s'%s%s%s", name, known.word ? "; did you mean " : "",
                     known.word ? known.word : "", known.word ? "?" : "");
    return usage(stderr);
}

static int run(int argc, char **argv)
{
    static char program[32];
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return usage(stdout);
    if (strcmp(name, "--version") == 0) {
        printf("rlxvk %s\n", rlxvk_version());
        return EXIT_OK;
    }
    for (size_t i = 0; i < ARRAY_COUNT(commands); i++)
        if (strcmp(name, commands[i].name) == 0) {
            snprintf(program, sizeof program, "rlxvk %s", name);
            report_errors_as(program);
            argv[1] = program; /* getopt_long begins its errors with it */
            optind = 1;
            return commands[i].run(argc - 1, argv + 1);
        }
    return refuse(name);
}

int main(int argc, char **argv)
{
    program_begin(&argc, &argv);
    int code = run(argc, argv);
    return print_completed() || code != EXIT_OK ? code : EXIT_FAILED;
}
