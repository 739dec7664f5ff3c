/*
 * Training: logistic regression. Model, gradient and optimizer are one graph, so a training step is
 * one run. It writes the weights in place. Points with the label -1 do not count in the loss; they
 * test the result.
 */
#include <math.h>
#include <rlxvk.h>
#include <rlxvk_ops.h>
#include <rlxvk_train.h>
#include <stdio.h>

enum { POINTS = 512, HELD = 128, DIMS = 8, STEPS = 100 };

static float x[POINTS][DIMS], truth[POINTS], labels[POINTS], logits[POINTS][2];

int main(void)
{
    rlxvk_context *context = NULL;
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    int right = 0;
    for (int i = 0; i < POINTS; i++) {
        float side = 0;
        for (int k = 0; k < DIMS; k++) {
            x[i][k] = sinf((float)((i * DIMS + k) * (i * DIMS + k) % 10007));
            side += x[i][k] * cosf((float)k);
        }
        truth[i] = side > 0;
        labels[i] = i < POINTS - HELD ? truth[i] : -1;
    }
    if (rlxvk_context_create(NULL, &context) || rlxvk_graph_create(&g))
        goto error;
    rlxvk_tensor points = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(POINTS, DIMS));
    rlxvk_tensor classes = rlxvk_input(g, "labels", RLXVK_F32, RLXVK_SHAPE(POINTS));
    rlxvk_tensor w = rlxvk_state(g, "w", RLXVK_F32, RLXVK_SHAPE(DIMS, 2)), gradient;
    rlxvk_tensor z = rlxvk_matmul(g, points, w);
    rlxvk_tensor loss = rlxvk_softmax_cross_entropy(g, z, classes);
    loss = rlxvk_reduce_mean(g, loss, (int32_t[]){0}, 1, false);
    rlxvk_grad(g, loss, RLXVK_NONE, &w, 1, &gradient);
    rlxvk_sgd_all(g, &w, &gradient, 1, &(rlxvk_sgd_options){.learning_rate = 8}, NULL);
    rlxvk_graph_output(g, z);
    rlxvk_run_input in[] = {{.name = "x", .data = x, .length = POINTS * DIMS},
                            {.name = "labels", .data = labels, .length = POINTS}};
    rlxvk_run_output out = {.index = 0, .buffer = logits, .length = POINTS * 2};
    if (rlxvk_compile(context, g, NULL, &e))
        goto error;
    for (int step = 0; step < STEPS; step++)
        if (rlxvk_run(e, in, 2, &out, 1))
            goto error;
    for (int i = POINTS - HELD; i < POINTS; i++)
        right += (logits[i][1] > logits[i][0]) == (truth[i] > 0);
    printf("accuracy %.3f on %d points it was not told of\n", (double)right / HELD, HELD);
    goto done;
error:
    fprintf(stderr, "%s\n", rlxvk_last_error());
done:
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    rlxvk_context_destroy(context);
    return right < HELD * 9 / 10;
}
