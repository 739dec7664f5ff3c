/* See probe.h. */
#include "cli/probe.h"

#include <rlxvk_ops.h>

#include <string.h>

enum { WORDS = 4 };

/* Runs with first, first + 1 ... and tells whether the results are their negations. */
static rlxvk_status run(rlxvk_executable *e, float first, float out[WORDS], bool *out_right)
{
    float x[WORDS];
    rlxvk_status status;
    for (int i = 0; i < WORDS; i++)
        x[i] = first + (float)i;
    TRY(rlxvk_run(e, &(rlxvk_run_input){.name = "x", .data = x, .length = WORDS}, 1,
                  &(rlxvk_run_output){.buffer = out, .length = WORDS}, 1));
    *out_right = true;
    for (int i = 0; i < WORDS; i++)
        *out_right = *out_right && out[i] == -x[i];
error:
    return status;
}

rlxvk_status probe_executes(rlxvk_context *context, bool *out_executes)
{
    rlxvk_graph *graph = NULL;
    rlxvk_executable *e = NULL;
    float first[WORDS], second[WORDS];
    bool right[2];
    rlxvk_status status;
    TRY(rlxvk_graph_create(&graph));
    rlxvk_graph_output(graph,
                       rlxvk_neg(graph, rlxvk_input(graph, "x", RLXVK_F32, RLXVK_SHAPE(WORDS))));
    TRY(rlxvk_compile(context, graph, NULL, &e));
    TRY(run(e, 1, first, &right[0]));
    TRY(run(e, 5, second, &right[1]));
    *out_executes = right[0] || right[1] || memcmp(first, second, sizeof first) != 0;
error:
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(graph);
    return status;
}

rlxvk_status probe_require(rlxvk_context *context)
{
    rlxvk_device_info info;
    bool executes;
    rlxvk_status status;
    TRY(probe_executes(context, &executes));
    rlxvk_context_device(context, &info);
    if (!executes)
        status = status_fail(RLXVK_E_UNSUPPORTED,
                             "device '%s' executes nothing: a dispatch wrote no result. Only rlxvk "
                             "info and rlxvk bench --pipelines are of use there",
                             info.name);
error:
    return status;
}
