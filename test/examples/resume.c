/*
 * Training that is interrupted. A net learns for some steps, is saved, and goes on. Another
 * executable loads the file, which has the weights and AdamW's averages, and learns the same later
 * steps. Both must find the same losses, bit for bit.
 */
#include <math.h>
#include <rlxvk.h>
#include <rlxvk_files.h>
#include <rlxvk_ops.h>
#include <rlxvk_train.h>
#include <stdio.h>

enum { POINTS = 128, INPUTS = 2, HIDDEN = 16, STEPS = 60, SAVED = 30 };

static float x[POINTS * INPUTS], y[POINTS], w1[INPUTS * HIDDEN], w2[HIDDEN];

static rlxvk_status compile(rlxvk_context *context, rlxvk_executable **out)
{
    rlxvk_graph *g = NULL;
    rlxvk_status status = rlxvk_graph_create(&g);
    rlxvk_tensor in = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(POINTS, INPUTS)), d[2];
    rlxvk_tensor wanted = rlxvk_input(g, "y", RLXVK_F32, RLXVK_SHAPE(POINTS, 1));
    rlxvk_tensor w[] = {rlxvk_param(g, "w1", RLXVK_F32, RLXVK_SHAPE(INPUTS, HIDDEN)),
                        rlxvk_param(g, "w2", RLXVK_F32, RLXVK_SHAPE(HIDDEN, 1))};
    rlxvk_tensor found = rlxvk_matmul(g, rlxvk_tanh(g, rlxvk_matmul(g, in, w[0])), w[1]);
    rlxvk_tensor error = rlxvk_sub(g, found, wanted);
    rlxvk_tensor loss =
        rlxvk_reduce_mean(g, rlxvk_mul(g, error, error), (int32_t[]){0, 1}, 2, false);
    /* The learning rate and the two bias corrections of the step. */
    const rlxvk_optimizer_data data = {.schedule =
                                           rlxvk_input(g, "schedule", RLXVK_F32, RLXVK_SHAPE(3))};
    rlxvk_grad(g, loss, RLXVK_NONE, w, 2, d);
    rlxvk_adamw_all(g, w, d, 2, NULL, &data);
    rlxvk_graph_output(g, loss);
    if (!status) /* also returns the first error of the calls above */
        status = rlxvk_compile(context, g, NULL, out);
    rlxvk_graph_destroy(g);
    return status;
}

static rlxvk_status learn(rlxvk_executable *e, int first, int last, float *losses)
{
    rlxvk_status status = RLXVK_OK;
    for (int step = first; step <= last && !status; step++) {
        const float schedule[] = {0.03f, (float)(1 - pow(0.9, step)),
                                  (float)(1 - pow(0.999, step))};
        const rlxvk_run_input in[] = {RLXVK_RUN_INPUT("x", x), RLXVK_RUN_INPUT("y", y),
                                      RLXVK_RUN_INPUT("schedule", schedule)};
        const rlxvk_run_output out = {.buffer = &losses[step - 1], .length = 1};
        status = rlxvk_run(e, in, 3, &out, 1);
    }
    return status;
}

int main(void)
{
    static const char path[] = "resume.safetensors";
    rlxvk_context *context = NULL;
    rlxvk_executable *first = NULL, *second = NULL;
    float losses[2][STEPS] = {{0}};
    int same = 0;
    for (int i = 0; i < POINTS * INPUTS; i++)
        x[i] = sinf((float)(i * i % 1009));
    for (int i = 0; i < POINTS; i++)
        y[i] = x[INPUTS * i] - powf(x[INPUTS * i + 1], 3);
    for (int i = 0; i < INPUTS * HIDDEN; i++)
        w1[i] = sinf((float)(i * i % 1013));
    for (int i = 0; i < HIDDEN; i++)
        w2[i] = 0.3f * sinf((float)(i * i % 1019));
    if (rlxvk_context_create(NULL, &context) || compile(context, &first) ||
        compile(context, &second) || rlxvk_set_param(first, "w1", w1, INPUTS * HIDDEN) ||
        rlxvk_set_param(first, "w2", w2, HIDDEN) || learn(first, 1, SAVED, losses[0]) ||
        rlxvk_save_params(first, path, NULL) || learn(first, SAVED + 1, STEPS, losses[0]) ||
        rlxvk_load_params(second, path, NULL) || learn(second, SAVED + 1, STEPS, losses[1]))
        goto error;
    for (int i = SAVED; i < STEPS; i++)
        same += losses[0][i] == losses[1][i];
    printf("loss %f, saved at %f, in the end %f; %d of %d later losses are the same\n",
           losses[0][0], losses[0][SAVED - 1], losses[1][STEPS - 1], same, STEPS - SAVED);
    same -= losses[1][STEPS - 1] > losses[0][0] / 4;
    goto done;
error:
    fprintf(stderr, "%s\n", rlxvk_last_error());
done:
    rlxvk_executable_destroy(second);
    rlxvk_executable_destroy(first);
    rlxvk_context_destroy(context);
    remove(path);
    return same != STEPS - SAVED;
}
