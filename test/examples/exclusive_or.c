/*
 * Training in one graph: two layers learn exclusive or. The model, its gradients and the optimizer
 * are one graph, so a step is one submission, which changes the weights in place.
 */
#include <rlxvk.h>
#include <rlxvk_ops.h>
#include <rlxvk_train.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    static const float x[8] = {0, 0, 0, 1, 1, 0, 1, 1};
    static const int32_t y[4] = {0, 1, 1, 0};
    static const float w1[16] = {1,   -1,  .5f,  -.5f, .7f, -.7f, .2f,  -.2f,
                                 .6f, .8f, -.6f, -.8f, .1f, .3f,  -.3f, -.1f};
    static const float w2[16] = {.5f, -.5f};
    int32_t found[4] = {0};
    rlxvk_context *context = NULL;
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    if (rlxvk_context_create(NULL, &context) || rlxvk_graph_create(&g))
        goto error;
    rlxvk_tensor w[] = {rlxvk_param(g, "w1", RLXVK_F32, RLXVK_SHAPE(2, 8)),
                        rlxvk_param(g, "w2", RLXVK_F32, RLXVK_SHAPE(8, 2))};
    rlxvk_tensor input = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(4, 2));
    rlxvk_tensor labels = rlxvk_input(g, "y", RLXVK_I32, RLXVK_SHAPE(4)), gradients[2];
    rlxvk_tensor logits = rlxvk_matmul(g, rlxvk_gelu(g, rlxvk_matmul(g, input, w[0])), w[1]);
    rlxvk_tensor loss = rlxvk_softmax_cross_entropy(g, logits, labels);
    loss = rlxvk_reduce_mean(g, loss, (int32_t[]){0}, 1, false);
    rlxvk_grad(g, loss, RLXVK_NONE, w, 2, gradients);
    rlxvk_sgd_options sgd = {.learning_rate = .5f, .momentum = .9f};
    rlxvk_sgd_all(g, w, gradients, 2, &sgd, NULL);
    rlxvk_graph_output(g, rlxvk_argmax(g, logits, 1, false));
    if (rlxvk_compile(context, g, NULL, &e) || rlxvk_set_param(e, "w1", w1, 16) ||
        rlxvk_set_param(e, "w2", w2, 16))
        goto error;
    rlxvk_run_input in[] = {RLXVK_RUN_INPUT("x", x), RLXVK_RUN_INPUT("y", y)};
    rlxvk_run_output out = RLXVK_RUN_OUTPUT(0, found);
    for (int step = 0; step < 200; step++)
        if (rlxvk_run(e, in, 2, &out, 1))
            goto error;
    printf("%d %d %d %d\n", found[0], found[1], found[2], found[3]);
    goto done;
error:
    fprintf(stderr, "%s\n", rlxvk_last_error());
done:
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    rlxvk_context_destroy(context);
    return memcmp(found, y, sizeof y) != 0;
}
