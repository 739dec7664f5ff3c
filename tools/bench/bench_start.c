/*
 * rlxvk bench --start: measures how long a fresh process takes to its first result. Cold is with an
 * empty cache directory, warm with the contents that the cold process left there. Each process is a
 * child, timed from its start to its first result. The child with the small graph also reports
 * where its time went.
 */
#define _POSIX_C_SOURCE 200809L
#include "bench/bench.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MODEL "test/data/docs-5m-q4_k_m.gguf"

/* ---- The child ---- */

/* `times` are when compile, first run and clone ended. */
static rlxvk_status first_result(rlxvk_context *context, double times[3])
{
    rlxvk_graph *graph = NULL;
    rlxvk_executable *executable = NULL, *copy = NULL;
    float x[64] = {1}, w[64 * 64] = {1}, y[64];
    rlxvk_run_input in = {.name = "x", .data = x, .length = 64};
    rlxvk_run_output out = {.index = 0, .buffer = y, .length = 64};
    rlxvk_status status;
    TRY(rlxvk_graph_create(&graph));
    rlxvk_tensor input = rlxvk_input(graph, "x", RLXVK_F32, RLXVK_SHAPE(1, 64));
    rlxvk_tensor weight = rlxvk_param(graph, "w", RLXVK_F32, RLXVK_SHAPE(64, 64));
    rlxvk_graph_output(graph, rlxvk_softmax(graph, rlxvk_matmul(graph, input, weight), -1));
    TRY(rlxvk_compile(context, graph, NULL, &executable));
    times[0] = clock_seconds();
    TRY(rlxvk_set_param(executable, "w", w, 64 * 64));
    TRY(rlxvk_run(executable, &in, 1, &out, 1));
    times[1] = clock_seconds();
    TRY(rlxvk_clone(executable, &copy));
    times[2] = clock_seconds();
error:
    rlxvk_executable_destroy(copy);
    rlxvk_executable_destroy(executable);
    rlxvk_graph_destroy(graph);
    return status;
}

rlxvk_status bench_start_child(const char *device)
{
    rlxvk_context *context = NULL;
    double begin, opened, times[3];
    rlxvk_status status;
    if (device) /* looking for the device would load the driver before the clock starts */
        setenv("RLXVK_DEVICE", device, 1);
    begin = clock_seconds();
    TRY(rlxvk_context_create(NULL, &context));
    opened = clock_seconds();
    TRY(first_result(context, times));
    printf("context %.1f ms, compile %.2f ms, first run %.2f ms, clone %.2f ms\n",
           (opened - begin) * 1e3, (times[0] - opened) * 1e3, (times[1] - times[0]) * 1e3,
           (times[2] - times[1]) * 1e3);
    fflush(stdout);
error:
    rlxvk_context_destroy(context);
    return status;
}

/* ---- The parent ---- */

static void run_child(char *const argv[], const char *directory, int out)
{
    /* Drivers keep caches of their own in directories that these variables name. */
    static const char *const names[] = {"XDG_CACHE_HOME", "HOME", "__GL_SHADER_DISK_CACHE_PATH",
                                        "MESA_SHADER_CACHE_DIR", "CUDA_CACHE_PATH"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        setenv(names[i], directory, 1);
    dup2(out, STDOUT_FILENO);
    execv("/proc/self/exe", argv);
    _exit(127);
}

/* Returns milliseconds to the first output and to the end, and that output. */
static rlxvk_status time_child(char *const argv[], const char *directory, double times[2],
                               char *line, size_t size)
{
    int ends[2], result = 0;
    size_t length = 0;
    char rest[256];
    double begin = clock_seconds();
    if (pipe(ends))
        return status_fail(RLXVK_E_FILE, "pipe: none to be had");
    pid_t child = fork();
    if (child == 0)
        run_child(argv, directory, ends[1]);
    close(ends[1]);
    ssize_t got = child > 0 ? read(ends[0], line, size - 1) : 0;
    length = got > 0 ? (size_t)got : 0;
    line[length] = 0;
    times[0] = (clock_seconds() - begin) * 1e3;
    while (child > 0 && read(ends[0], rest, sizeof rest) > 0)
        continue;
    close(ends[0]);
    if (child < 0 || waitpid(child, &result, 0) < 0 || result != 0)
        return status_fail(RLXVK_E_FILE, "the child process '%s' failed", argv[1]);
    times[1] = (clock_seconds() - begin) * 1e3;
    return RLXVK_OK;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info, (void)type, (void)where;
    return remove(path);
}

static rlxvk_status report_child(const char *label, char *const argv[], bool says)
{
    static const char *const states[] = {"cold", "warm", "warm again"};
    char directory[] = "/tmp/rlxvk-start-XXXXXX", line[512];
    double times[2] = {0};
    rlxvk_status status = RLXVK_OK;
    if (!mkdtemp(directory))
        return status_fail(RLXVK_E_FILE, "%s: cannot be made", directory);
    for (size_t i = 0; i < ARRAY_COUNT(states); i++) {
        TRY(time_child(argv, directory, times, line, sizeof line));
        line[strcspn(line, "\n")] = 0;
        printf("%-32s %-10s %8.1f ms to the first output, %8.1f ms to the end%s%s\n", label,
               states[i], times[0], times[1], says ? ": " : "", says ? line : "");
        fflush(stdout);
    }
error:
    nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    return status;
}

rlxvk_status bench_start(const char *device)
{
    char *small[] = {"rlxvk", "bench", "--start-child", NULL};
    char *model[] = {"rlxvk", "generate", MODEL, "-p", "The", "--tokens", "1", "--greedy", NULL};
    rlxvk_status status;
    if (device)
        setenv("RLXVK_DEVICE", device, 1);
    TRY(report_child("matmul and softmax", small, true));
    if (access(MODEL, R_OK) == 0)
        TRY(report_child("first token of the bundled model", model, false));
error:
    return status;
}
