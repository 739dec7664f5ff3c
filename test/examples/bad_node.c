/*
 * Finds the node at which a NaN or an infinity begins. The output of this graph is infinite or NaN
 * if an input is 0. rlxvk_first_bad_node tells the first bad node, its first bad element, and the
 * elements around that.
 */
#include <math.h>
#include <rlxvk.h>
#include <rlxvk_ops.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 1000, ZERO = 617 };

static float x[COUNT];

/* mean((log x - mean(log x))^2). The node that will go bad, the logarithm, gets a name. */
static void build(rlxvk_graph *g)
{
    const int32_t axis = 0;
    rlxvk_tensor logs = rlxvk_log(g, rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(COUNT)));
    rlxvk_graph_set_name(g, logs, "log_density");
    rlxvk_tensor apart = rlxvk_sub(g, logs, rlxvk_reduce_mean(g, logs, &axis, 1, true));
    rlxvk_graph_output(g, rlxvk_reduce_mean(g, rlxvk_mul(g, apart, apart), &axis, 1, false));
}

/* Runs as usual, then looks for the first bad node. Prints both. */
static rlxvk_status look(rlxvk_executable *executable, rlxvk_bad_node *out_bad)
{
    float variance;
    rlxvk_run_input in = {.name = "x", .data = x, .length = COUNT};
    rlxvk_run_output out = {.index = 0, .buffer = &variance, .length = 1};
    rlxvk_status status = rlxvk_run(executable, &in, 1, &out, 1);
    if (!status)
        status = rlxvk_first_bad_node(executable, &in, 1, out_bad);
    if (!status && out_bad->found)
        printf("result %f: node %u, %s '%s', has %d NaN and %d infinite elements, the first at %d "
               "between %f and %f\n",
               variance, out_bad->node, out_bad->op, out_bad->name, (int)out_bad->nan_count,
               (int)out_bad->infinity_count, (int)out_bad->first_index, out_bad->neighbours[1],
               out_bad->neighbours[3]);
    else if (!status)
        printf("result %f: no bad node\n", variance);
    return status;
}

int main(void)
{
    rlxvk_context *context = NULL;
    rlxvk_graph *g = NULL;
    rlxvk_executable *executable = NULL;
    rlxvk_bad_node clean, bad;
    bool verified = false;
    for (int i = 0; i < COUNT; i++)
        x[i] = 1.5f + sinf((float)i);
    if (rlxvk_context_create(NULL, &context) || rlxvk_graph_create(&g))
        goto error;
    build(g);
    if (rlxvk_compile(context, g, NULL, &executable) || look(executable, &clean))
        goto error;
    x[ZERO] = 0;
    if (look(executable, &bad))
        goto error;
    verified = !clean.found && bad.found && strcmp(bad.name, "log_density") == 0 &&
               bad.nan_count == 0 && bad.infinity_count == 1 && bad.first_index == ZERO &&
               fabsf(bad.neighbours[1] - logf(x[ZERO - 1])) < 1e-5f &&
               fabsf(bad.neighbours[3] - logf(x[ZERO + 1])) < 1e-5f;
    goto done;
error:
    fprintf(stderr, "%s\n", rlxvk_last_error());
done:
    rlxvk_executable_destroy(executable);
    rlxvk_graph_destroy(g);
    rlxvk_context_destroy(context);
    return !verified;
}
