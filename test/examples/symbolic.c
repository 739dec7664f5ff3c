/*
 * One graph for every batch size and length. x is [BATCH, SEQ, 16], and the graph averages
 * softmax(x w x^T) x over SEQ. A pair of sizes is compiled when it first comes up. If it comes up
 * again, nothing is compiled. The weights are uploaded once.
 */
#include <math.h>
#include <rlxvk.h>
#include <rlxvk_ops.h>
#include <rlxvk_symbols.h>
#include <stdio.h>

enum { WIDTH = 16, BATCHES = 3, LENGTHS = 12, RUNS = 5 };

static float x[BATCHES * LENGTHS * WIDTH], w[WIDTH * WIDTH], y[BATCHES * WIDTH];

static rlxvk_status compile(rlxvk_context *context, rlxvk_executable **out_executable)
{
    rlxvk_graph *g = NULL;
    rlxvk_status status = rlxvk_graph_create(&g);
    rlxvk_shape shape = RLXVK_SHAPE(rlxvk_symbol(RLXVK_BATCH), rlxvk_symbol(RLXVK_SEQ), WIDTH);
    rlxvk_tensor input = rlxvk_input(g, "x", RLXVK_F32, shape);
    rlxvk_tensor weight = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(WIDTH, WIDTH));
    rlxvk_matmul_options transposed = {.transpose_b = true};
    rlxvk_tensor scores = rlxvk_matmul_with(g, rlxvk_matmul(g, input, weight), input, &transposed);
    rlxvk_tensor mixed = rlxvk_matmul(g, rlxvk_softmax(g, scores, -1), input);
    rlxvk_graph_output(g, rlxvk_reduce_mean(g, mixed, (int32_t[]){1}, 1, false));
    if (!status) /* also returns the first error of the calls above */
        status = rlxvk_compile(context, g, NULL, out_executable);
    rlxvk_graph_destroy(g);
    return status;
}

/* Element `j` of the mean over `length` rows that begin at `rows`, in plain C. */
static double expected(const float *rows, int length, int j)
{
    double mean = 0;
    for (int i = 0; i < length; i++) {
        double sum = 0, mixed = 0;
        for (int k = 0; k < length; k++) {
            double score = 0;
            for (int a = 0; a < WIDTH; a++)
                for (int b = 0; b < WIDTH; b++)
                    score += (double)rows[i * WIDTH + a] * w[a * WIDTH + b] * rows[k * WIDTH + b];
            sum += exp(score);
            mixed += exp(score) * rows[k * WIDTH + j];
        }
        mean += mixed / sum / length;
    }
    return mean;
}

int main(void)
{
    static const int sizes[RUNS][2] = {{1, 4}, {3, 12}, {2, 5}, {1, 4}, {3, 12}};
    rlxvk_context *context = NULL;
    rlxvk_executable *executable = NULL;
    rlxvk_cached_bindings_report report = {0};
    int wrong = 0, runs = 0;
    for (int i = 0; i < BATCHES * LENGTHS * WIDTH; i++)
        x[i] = sinf((float)(i * i % 1009));
    for (int i = 0; i < WIDTH * WIDTH; i++)
        w[i] = 0.1f * sinf((float)(i * i % 1013));
    if (rlxvk_context_create(NULL, &context) || compile(context, &executable) ||
        rlxvk_set_param(executable, "w", w, WIDTH * WIDTH)) /* set once, before sizes are bound */
        goto error;
    for (; runs < RUNS; runs++) {
        int batch = sizes[runs][0], length = sizes[runs][1];
        size_t count = (size_t)(batch * WIDTH);
        rlxvk_run_input in = {.name = "x", .data = x, .length = count * (size_t)length};
        rlxvk_run_output out = {.index = 0, .buffer = y, .length = count};
        rlxvk_binding now[] = {{RLXVK_BATCH, batch}, {RLXVK_SEQ, length}};
        /* Both sizes are bound here, because the length of x cannot tell two symbols. If an input
         * has only one unknown symbol, rlxvk_run finds its size from the length. */
        if (rlxvk_bind_symbols(executable, now, 2) || rlxvk_run(executable, &in, 1, &out, 1))
            goto error;
        for (int i = 0; i < batch * WIDTH; i++)
            wrong +=
                !(fabs(y[i] - expected(x + i / WIDTH * length * WIDTH, length, i % WIDTH)) < 1e-4);
        printf("batch %d of length %2d: the last output is %f\n", batch, length, y[count - 1]);
    }
    rlxvk_executable_cached_bindings(executable, &report);
    printf("%u programs, found again %u times\n", report.members, (unsigned)report.hits);
    goto done;
error:
    fprintf(stderr, "%s\n", rlxvk_last_error());
done:
    rlxvk_executable_destroy(executable);
    rlxvk_context_destroy(context);
    return wrong || runs != RUNS || report.members != 3 || report.hits != 2;
}
