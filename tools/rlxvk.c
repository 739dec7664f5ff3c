/* The program: a table of subcommands. Each parses its own options and answers --help. */
#include "commands.h"

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
    {"generate", command_generate, "run a language model from a GGUF file"},
    {"ops", command_ops, "print the op table"},
};

static int usage(FILE *file)
{
    fprintf(file, "usage: rlxvk COMMAND [OPTION]...\n\n"
                  "Machine-learning graphs on any Vulkan 1.2 device.\n\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf(file, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fprintf(file, "\n  --help     this text; after a command, that command's options\n"
                  "  --version  the version\n\n"
                  "Exit status: 0 done, 1 failed, 2 wrong usage.\n");
    return file == stdout ? EXIT_OK : EXIT_USAGE;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return usage(stdout);
    if (strcmp(name, "--version") == 0)
        return printf("rlxvk %s\n", RLXVK_VERSION) < 0;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(name, commands[i].name) == 0 && commands[i].run) {
            optind = 1;
            return commands[i].run(argc - 1, argv + 1);
        }
    if (*name)
        fprintf(stderr, "rlxvk: no command '%s'\n", name);
    return usage(stderr);
}
