/*
 * A custom op, leaky_relu, with a kernel (custom_op.comp) and a host function. It first runs on the
 * device. Then it runs on the host, because the second compile sets the option force_host.
 */
#include <math.h>
#include <rlxvk.h>
#include <rlxvk_ops.h>
#include <stdio.h>
#include <string.h>
#include "custom_op.spv.h"

enum { COUNT = 1000 };
static const float slope = 0.125f; /* the op's attribute */
static float x[COUNT], y[COUNT];

static bool infer(const rlxvk_shape *inputs, size_t count, const void *attributes, size_t size,
                  rlxvk_shape *out_shape, rlxvk_dtype *out_dtype)
{
    (void)count, (void)attributes, (void)out_dtype; /* the dtype is the operand's */
    *out_shape = inputs[0];
    return inputs[0].rank == 1 && size == sizeof slope;
}

static int host(const rlxvk_custom_view *inputs, size_t count, const void *attributes, size_t size,
                const rlxvk_shape *shape, float *out)
{
    float factor;
    memcpy(&factor, attributes, size);
    for (int64_t i = 0; i < shape->dims[0]; i++)
        out[i] = fmaxf(inputs[0].values[i], 0) + factor * fminf(inputs[0].values[i], 0);
    return count != 1; /* any value but 0 fails the run */
}

static bool arguments(const rlxvk_custom_call *call)
{
    call->arguments[0] = (uint32_t)call->shapes[0].dims[0]; /* in the order of custom_op.comp */
    memcpy(&call->arguments[1], call->offsets, 2 * sizeof(uint32_t));
    memcpy(&call->arguments[3], call->attributes, call->attribute_size);
    call->groups[0] = (call->arguments[0] + call->workgroup_size - 1) / call->workgroup_size;
    call->groups[1] = call->groups[2] = 1;
    return true;
}

int main(void)
{
    const rlxvk_custom_kernel kernel = {.words = words,
                                        .word_count = sizeof words / sizeof *words,
                                        .argument_bytes = 16,
                                        .arguments = arguments};
    const rlxvk_custom_op op = {
        .name = "leaky_relu", .input_count = 1, .infer = infer, .host = host, .kernel = &kernel};
    rlxvk_context *context = NULL;
    rlxvk_graph *g = NULL;
    rlxvk_executable *executables[2] = {NULL};
    rlxvk_plan_report plan;
    int right = 0;
    for (int i = 0; i < COUNT; i++)
        x[i] = sinf((float)i);
    if (rlxvk_custom_register(&op) || rlxvk_context_create(NULL, &context) ||
        rlxvk_graph_create(&g))
        goto error;
    rlxvk_tensor input = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(COUNT));
    rlxvk_graph_output(g, rlxvk_custom(g, "leaky_relu", &input, 1, &slope, sizeof slope));
    for (int on_host = 0; on_host < 2; on_host++) {
        rlxvk_compile_options options = {.force_host = on_host ? RLXVK_ON : RLXVK_OFF};
        rlxvk_run_input in = {.name = "x", .data = x, .length = COUNT};
        rlxvk_run_output out = {.index = 0, .buffer = y, .length = COUNT};
        if (rlxvk_compile(context, g, &options, &executables[on_host]) ||
            rlxvk_run(executables[on_host], &in, 1, &out, 1))
            goto error;
        for (int i = 0; i < COUNT; i++)
            right += y[i] == (x[i] > 0 ? x[i] : slope * x[i]);
        rlxvk_executable_plan(executables[on_host], &plan);
        right += plan.host_steps == (uint32_t)on_host;
        printf("%u dispatches, %u host steps\n", plan.dispatches, plan.host_steps);
    }
    goto done;
error:
    fprintf(stderr, "%s\n", rlxvk_last_error());
done:
    rlxvk_executable_destroy(executables[0]);
    rlxvk_executable_destroy(executables[1]);
    rlxvk_graph_destroy(g);
    rlxvk_context_destroy(context);
    return right != 2 * (COUNT + 1);
}
