/*
 * rlxvk bench --start: measures how long a fresh process takes to its first result. Cold is with an
 * empty cache directory, warm with the contents that the cold process left there. Each process is a
 * child, timed from its start to its first result. The child with the small graph also reports
 * where its time went.
 */
#include "bench/bench.h"
#include "system/program.h"
#include "system/worker.h"

#include <stdio.h>
#include <string.h>

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
        (void)system_environment_set("RLXVK_DEVICE", device);
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

/* Drivers keep caches of their own in directories that these variables name. */
static bool set_directories(const char *directory)
{
    static const char *const names[] = {"XDG_CACHE_HOME",        "HOME",
                                        "LOCALAPPDATA",          "__GL_SHADER_DISK_CACHE_PATH",
                                        "MESA_SHADER_CACHE_DIR", "CUDA_CACHE_PATH"};
    bool set = true;
    for (size_t i = 0; i < ARRAY_COUNT(names) && set; i++)
        set = system_environment_set(names[i], directory);
    return set;
}

/* Returns milliseconds to the first output and to the end, and that output. */
static rlxvk_status time_child(const char *const argv[], double times[2], char *line, size_t size)
{
    uint64_t begin = system_nanoseconds(), first;
    if (spawn_self(argv, line, size, &first) != SPAWN_DONE)
        return status_fail(RLXVK_E_FILE, "the child process '%s' failed", argv[1]);
    times[0] = (double)(first - begin) * 1e-6;
    times[1] = (double)(system_nanoseconds() - begin) * 1e-6;
    return RLXVK_OK;
}

static rlxvk_status report_child(const char *label, const char *const argv[], bool says)
{
    static const char *const states[] = {"cold", "warm", "warm again"};
    char directory[1024], line[512];
    double times[2] = {0};
    rlxvk_status status = RLXVK_OK;
    if (!program_make_temporary(directory, sizeof directory))
        return status_fail(RLXVK_E_FILE, "a folder for caches cannot be made");
    if (!set_directories(directory))
        TRY(status_fail_memory("environment"));
    for (size_t i = 0; i < ARRAY_COUNT(states); i++) {
        TRY(time_child(argv, times, line, sizeof line));
        line[strcspn(line, "\r\n")] = 0;
        printf("%-32s %-10s %8.1f ms to the first output, %8.1f ms to the end%s%s\n", label,
               states[i], times[0], times[1], says ? ": " : "", says ? line : "");
        fflush(stdout);
    }
error:
    program_remove_folder(directory);
    return status;
}

rlxvk_status bench_start(const char *device)
{
    const char *const small[] = {"rlxvk", "bench", "--start-child", NULL};
    const char *const model[] = {"rlxvk",    "generate", MODEL,      "-p", "The",
                                 "--tokens", "1",        "--greedy", NULL};
    rlxvk_status status;
    if (device)
        (void)system_environment_set("RLXVK_DEVICE", device);
    TRY(report_child("matmul and softmax", small, true));
    if (system_may_read(MODEL) == 0)
        TRY(report_child("first token of the bundled model", model, false));
error:
    return status;
}
