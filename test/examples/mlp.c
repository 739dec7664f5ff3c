/*
 * A multilayer perceptron for several batch sizes. Each size is compiled once. With share_with all
 * of them read the params of the first one, so the weights are set and stored only once.
 */
#include <math.h>
#include <rlxvk.h>
#include <rlxvk_ops.h>
#include <stdio.h>

enum { INPUTS = 64, HIDDEN = 128, OUTPUTS = 10, SIZES = 3, MOST = 32 };

static const size_t batches[SIZES] = {1, 8, MOST};
static float x[MOST * INPUTS], w1[INPUTS * HIDDEN], w2[HIDDEN * OUTPUTS], y[MOST * OUTPUTS];

static rlxvk_status compile(rlxvk_context *context, size_t batch, rlxvk_executable *first,
                            rlxvk_executable **out_executable)
{
    rlxvk_compile_options options = {.share_with = first};
    rlxvk_graph *g = NULL;
    rlxvk_status status = rlxvk_graph_create(&g);
    rlxvk_tensor input = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE((int64_t)batch, INPUTS));
    rlxvk_tensor weight1 = rlxvk_param(g, "w1", RLXVK_F32, RLXVK_SHAPE(INPUTS, HIDDEN));
    rlxvk_tensor weight2 = rlxvk_param(g, "w2", RLXVK_F32, RLXVK_SHAPE(HIDDEN, OUTPUTS));
    rlxvk_tensor hidden = rlxvk_relu(g, rlxvk_matmul(g, input, weight1));
    rlxvk_graph_output(g, rlxvk_matmul(g, hidden, weight2));
    if (!status) /* also returns the first error of the calls above */
        status = rlxvk_compile(context, g, &options, out_executable);
    rlxvk_graph_destroy(g);
    return status;
}

/* Output `j` of row `i`, in plain C. */
static double expected(size_t i, size_t j)
{
    double sum = 0;
    for (size_t h = 0; h < HIDDEN; h++) {
        double z = 0;
        for (size_t k = 0; k < INPUTS; k++)
            z += (double)x[i * INPUTS + k] * w1[k * HIDDEN + h];
        sum += fmax(z, 0) * w2[h * OUTPUTS + j];
    }
    return sum;
}

int main(void)
{
    rlxvk_context *context = NULL;
    rlxvk_executable *executables[SIZES] = {NULL};
    size_t right = 0;
    for (int i = 0; i < MOST * INPUTS; i++)
        x[i] = sinf((float)(i * i % 1009));
    for (int i = 0; i < INPUTS * HIDDEN; i++)
        w1[i] = 0.2f * sinf((float)(i * i % 1013));
    for (int i = 0; i < HIDDEN * OUTPUTS; i++)
        w2[i] = 0.1f * sinf((float)(i * i % 1019));
    if (rlxvk_context_create(NULL, &context) ||
        compile(context, batches[0], NULL, &executables[0]) ||
        rlxvk_set_param(executables[0], "w1", w1, INPUTS * HIDDEN) ||
        rlxvk_set_param(executables[0], "w2", w2, HIDDEN * OUTPUTS))
        goto error;
    for (size_t s = 0; s < SIZES; s++) {
        size_t rows = batches[s], count = rows * OUTPUTS;
        rlxvk_run_input in = {.name = "x", .data = x, .length = rows * INPUTS};
        rlxvk_run_output out = {.index = 0, .buffer = y, .length = count};
        if (s > 0 && compile(context, rows, executables[0], &executables[s]))
            goto error;
        if (rlxvk_run(executables[s], &in, 1, &out, 1))
            goto error;
        for (size_t i = 0; i < count; i++)
            right += fabs(y[i] - expected(i / OUTPUTS, i % OUTPUTS)) < 1e-4;
        printf("batch %2zu: %3zu outputs, the last %f\n", rows, count, y[count - 1]);
    }
    goto done;
error:
    fprintf(stderr, "%s\n", rlxvk_last_error());
done:
    for (size_t s = 0; s < SIZES; s++)
        rlxvk_executable_destroy(executables[s]);
    rlxvk_context_destroy(context);
    return right != (1 + 8 + MOST) * OUTPUTS;
}
