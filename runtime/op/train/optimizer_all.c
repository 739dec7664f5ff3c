/* Updates each param of a list. Its averages are states that begin as zeros and are named after
 * it. */
#include "op/op.h"

#include <rlxvk_train.h>

#include <stdio.h>

#define LONGEST_NAME 256 /* leaves refuse longer names */

typedef enum stepper { STEP_ADAMW, STEP_SGD, STEP_LION } stepper;

/* Shared by all params of a call. */
typedef struct step_all {
    stepper stepper;
    const char *call;
    const void *options;
    const rlxvk_optimizer_data *data;
} step_all;

/* The param's state, named "NAME.suffix". */
static rlxvk_tensor state_of(rlxvk_graph *g, rlxvk_tensor parameter, const char *suffix)
{
    char name[2 * LONGEST_NAME];
    snprintf(name, sizeof name, "%.*s.%s", LONGEST_NAME, graph_node(g, parameter.id - 1)->name,
             suffix);
    return rlxvk_state(g, name, RLXVK_F32, rlxvk_tensor_shape(g, parameter));
}

static void step(rlxvk_graph *g, const step_all *s, rlxvk_tensor p, rlxvk_tensor gradient)
{
    rlxvk_tensor first, second;
    switch (s->stepper) {
    case STEP_ADAMW:
        first = state_of(g, p, "first");
        second = state_of(g, p, "second");
        (void)rlxvk_adamw(g, p, gradient, first, second, s->options, s->data, NULL);
        break;
    case STEP_SGD:
        (void)rlxvk_sgd(g, p, gradient, state_of(g, p, "momentum"), s->options, s->data, NULL);
        break;
    case STEP_LION:
        (void)rlxvk_lion(g, p, gradient, state_of(g, p, "average"), s->options, s->data, NULL);
        break;
    }
}

static rlxvk_status step_each(rlxvk_graph *g, const step_all *s, const rlxvk_tensor *parameters,
                              const rlxvk_tensor *gradients, size_t count)
{
    rlxvk_status status;
    TRY(status_require(g, s->call, "graph"));
    TRY(g->status);
    TRY(graph_fail(g, status_require_items(parameters, count, s->call, "parameters")));
    TRY(graph_fail(g, status_require_items(gradients, count, s->call, "gradients")));
    for (size_t i = 0; i < count; i++) {
        if (!gradients[i].id)
            continue;
        TRY(graph_fail(g, graph_take(g, parameters[i], s->call, "parameter", i)));
        const node *n = graph_node(g, parameters[i].id - 1);
        if (!node_is_param(n))
            TRY(graph_fail(g, status_fail(RLXVK_E_ATTR,
                                          "%s: parameter %zu is no param but '%s'; what it steps "
                                          "it writes",
                                          s->call, i, node_row(n)->name)));
        step(g, s, parameters[i], gradients[i]);
        TRY(g->status);
    }
error:
    return status;
}

rlxvk_status rlxvk_adamw_all(rlxvk_graph *g, const rlxvk_tensor *parameters,
                             const rlxvk_tensor *gradients, size_t count,
                             const rlxvk_adamw_options *options, const rlxvk_optimizer_data *data)
{
    return step_each(g, &(step_all){STEP_ADAMW, "adamw_all", options, data}, parameters, gradients,
                     count);
}

rlxvk_status rlxvk_sgd_all(rlxvk_graph *g, const rlxvk_tensor *parameters,
                           const rlxvk_tensor *gradients, size_t count,
                           const rlxvk_sgd_options *options, const rlxvk_optimizer_data *data)
{
    return step_each(g, &(step_all){STEP_SGD, "sgd_all", options, data}, parameters, gradients,
                     count);
}

rlxvk_status rlxvk_lion_all(rlxvk_graph *g, const rlxvk_tensor *parameters,
                            const rlxvk_tensor *gradients, size_t count,
                            const rlxvk_lion_options *options, const rlxvk_optimizer_data *data)
{
    return step_each(g, &(step_all){STEP_LION, "lion_all", options, data}, parameters, gradients,
                     count);
}
