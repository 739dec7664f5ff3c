/*
 * A custom op with its gradient: softsign, x / (1 + |x|). A host function computes the op. If
 * rlxvk_grad reaches the op, it calls a second function, which appends the gradient to the graph,
 * made of the library's own ops. The result is compared with finite differences.
 */
#include <math.h>
#include <rlxvk.h>
#include <rlxvk_ops.h>
#include <rlxvk_train.h>
#include <stdio.h>

enum { COUNT = 100 };

static bool infer(const rlxvk_shape *inputs, size_t count, const void *attributes, size_t size,
                  rlxvk_shape *out_shape, rlxvk_dtype *out_dtype)
{
    (void)count, (void)attributes, (void)size, (void)out_dtype; /* the dtype is the operand's */
    *out_shape = inputs[0];
    return inputs[0].rank == 1;
}

static int host(const rlxvk_custom_view *inputs, size_t count, const void *attributes, size_t size,
                const rlxvk_shape *shape, float *out)
{
    (void)count, (void)attributes, (void)size;
    for (int64_t i = 0; i < shape->dims[0]; i++)
        out[i] = inputs[0].values[i] / (1 + fabsf(inputs[0].values[i]));
    return 0; /* any other value fails the run */
}

/* dx = dy / (1 + |x|)^2 */
static bool gradient(const rlxvk_custom_gradient *call)
{
    rlxvk_graph *g = call->graph;
    rlxvk_tensor t = rlxvk_add(g, rlxvk_abs(g, call->inputs[0]), rlxvk_scalar(g, 1));
    call->d_inputs[0] = rlxvk_div(g, call->d_output, rlxvk_mul(g, t, t));
    return true;
}

int main(void)
{
    const rlxvk_custom_op op = {
        .name = "my_softsign", .input_count = 1, .infer = infer, .host = host, .vjp = gradient};
    rlxvk_context *context = NULL;
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    float x[COUNT], y[COUNT], dx[COUNT];
    int right = 0;
    for (int i = 0; i < COUNT; i++)
        x[i] = 3 * sinf((float)i);
    if (rlxvk_custom_register(&op) || rlxvk_context_create(NULL, &context) ||
        rlxvk_graph_create(&g))
        goto error;
    rlxvk_tensor in = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(COUNT)), d;
    rlxvk_tensor result = rlxvk_custom(g, op.name, &in, 1, NULL, 0);
    rlxvk_grad(g, rlxvk_reduce_sum(g, result, (int32_t[]){0}, 1, false), RLXVK_NONE, &in, 1, &d);
    rlxvk_graph_output(g, result);
    rlxvk_graph_output(g, d);
    const rlxvk_run_output out[] = {RLXVK_RUN_OUTPUT(0, y), RLXVK_RUN_OUTPUT(1, dx)};
    if (rlxvk_compile(context, g, NULL, &e) || rlxvk_run(e, &RLXVK_RUN_INPUT("x", x), 1, out, 2))
        goto error;
    for (int i = 0; i < COUNT; i++) {
        double up = x[i] + 1e-5, down = x[i] - 1e-5;
        double slope = (up / (1 + fabs(up)) - down / (1 + fabs(down))) / (up - down);
        right += fabs(dx[i] - slope) < 1e-4 && fabs(y[i] - x[i] / (1 + fabs(x[i]))) < 1e-6;
    }
    printf("%d of %d values and slopes are right, the last are %f and %f\n", right, COUNT,
           y[COUNT - 1], dx[COUNT - 1]);
    goto done;
error:
    fprintf(stderr, "%s\n", rlxvk_last_error());
done:
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    rlxvk_context_destroy(context);
    return right != COUNT;
}
