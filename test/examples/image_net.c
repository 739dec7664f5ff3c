/*
 * A small convolutional net: two convolutions, each with ReLU and max pooling, then the mean of
 * each class's channel. Activations are [N, C, H, W], weights [C out, C in, 3, 3].
 */
#include <math.h>
#include <rlxvk.h>
#include <rlxvk_ops.h>
#include <stdio.h>

enum { SIDE = 32, COLORS = 3, CHANNELS = 16, CLASSES = 10, LEFT = SIDE / 4 * SIDE / 4 };

static float image[COLORS * SIDE * SIDE], w1[CHANNELS * COLORS * 9], w2[CLASSES * CHANNELS * 9];

static rlxvk_tensor layer(rlxvk_graph *g, rlxvk_tensor x, const char *name, int64_t in, int64_t out)
{
    rlxvk_conv_options around = {.padding = {1, 1}};
    rlxvk_pool_options halves = {.kernel = {2, 2}, .stride = {2, 2}};
    rlxvk_tensor w = rlxvk_param(g, name, RLXVK_F32, RLXVK_SHAPE(out, in, 3, 3));
    return rlxvk_pool_max(g, rlxvk_relu(g, rlxvk_conv(g, x, w, RLXVK_NONE, &around)), &halves);
}

/* The same layer in plain C, on one image x [in, side, side]. */
static void expected_layer(const float *x, const float *w, int in, int out, int side, float *y)
{
    for (int o = 0; o < out * side * side; o++) {
        int row = o / side % side, column = o % side, half = side / 2;
        float *cell = &y[(o / side / side * half + row / 2) * half + column / 2];
        double sum = 0;
        for (int t = 0; t < in * 9; t++) {
            int i = row + t / 3 % 3 - 1, j = column + t % 3 - 1;
            if (i >= 0 && i < side && j >= 0 && j < side)
                sum += (double)x[(t / 9 * side + i) * side + j] * w[o / side / side * in * 9 + t];
        }
        *cell = fmaxf(*cell, (float)sum); /* y begins as 0, so this is the ReLU, too */
    }
}

int main(void)
{
    static float a[CHANNELS * SIDE / 2 * SIDE / 2], b[CLASSES * LEFT];
    rlxvk_context *context = NULL;
    rlxvk_graph *g = NULL;
    rlxvk_executable *executable = NULL;
    float scores[CLASSES];
    rlxvk_run_input in = {.name = "image", .data = image, .length = COLORS * SIDE * SIDE};
    rlxvk_run_output out = {.index = 0, .buffer = scores, .length = CLASSES};
    int right = 0;
    for (int i = 0; i < COLORS * SIDE * SIDE; i++)
        image[i] = sinf((float)(i * i % 1009));
    for (int i = 0; i < CHANNELS * COLORS * 9; i++)
        w1[i] = 0.3f * sinf((float)(i * i % 1013));
    for (int i = 0; i < CLASSES * CHANNELS * 9; i++)
        w2[i] = 0.3f * sinf((float)(i * i % 1019));
    if (rlxvk_context_create(NULL, &context) || rlxvk_graph_create(&g))
        goto error;
    rlxvk_tensor x = rlxvk_input(g, "image", RLXVK_F32, RLXVK_SHAPE(1, COLORS, SIDE, SIDE));
    x = layer(g, layer(g, x, "w1", COLORS, CHANNELS), "w2", CHANNELS, CLASSES);
    rlxvk_graph_output(g, rlxvk_reduce_mean(g, x, (int32_t[]){2, 3}, 2, false));
    if (rlxvk_compile(context, g, NULL, &executable) ||
        rlxvk_set_param(executable, "w1", w1, CHANNELS * COLORS * 9) ||
        rlxvk_set_param(executable, "w2", w2, CLASSES * CHANNELS * 9) ||
        rlxvk_run(executable, &in, 1, &out, 1))
        goto error;
    expected_layer(image, w1, COLORS, CHANNELS, SIDE, a);
    expected_layer(a, w2, CHANNELS, CLASSES, SIDE / 2, b);
    for (int c = 0; c < CLASSES; c++) {
        double mean = 0;
        for (int i = 0; i < LEFT; i++)
            mean += b[c * LEFT + i] / LEFT;
        printf("class %d: %f\n", c, scores[c]);
        right += fabs(scores[c] - mean) < 1e-4;
    }
    goto done;
error:
    fprintf(stderr, "%s\n", rlxvk_last_error());
done:
    rlxvk_executable_destroy(executable);
    rlxvk_graph_destroy(g);
    rlxvk_context_destroy(context);
    return right != CLASSES;
}
