/*
 * Fine-tuning with quantized weights (LoRA, Hu et al. 2021). Two layers keep their 4.5-bit weights
 * W and learn y = x W + scale (x A) B, in which A and B have a small rank. The gradients of the
 * first layer pass through the quantized weights of the second. AdamW writes A and B in place. The
 * learning rate and the bias corrections change from step to step. They are an input, because then
 * every step can replay the same recording.
 */
#include <math.h>
#include <rlxvk.h>
#include <rlxvk_ops.h>
#include <rlxvk_quant.h>
#include <rlxvk_train.h>
#include <stdio.h>
#include <string.h>

enum { D = 128, ROWS = 64, RANK = 4, STEPS = 150, BYTES = D * D / 32 * 18 };

static const rlxvk_quant_format format = RLXVK_Q4_0;
static const char *const packed_names[] = {"w.1", "w.2"};
static const char *const trained_names[] = {"a.1", "b.1", "a.2", "b.2"};
static float x[ROWS * D], target[ROWS * D], row[D];
static unsigned char packed[2][BYTES], after[BYTES];

/* Appends layer `i` and puts its A and B into `trained`. */
static rlxvk_tensor layer(rlxvk_graph *g, int i, rlxvk_tensor h, rlxvk_tensor trained[2])
{
    static const float scale = 2;
    trained[0] = rlxvk_param(g, trained_names[2 * i], RLXVK_F32, RLXVK_SHAPE(D, RANK));
    trained[1] = rlxvk_state(g, trained_names[2 * i + 1], RLXVK_F32, RLXVK_SHAPE(RANK, D));
    rlxvk_tensor w = rlxvk_param(g, packed_names[i], RLXVK_U8, RLXVK_SHAPE(BYTES));
    rlxvk_tensor low = rlxvk_matmul(g, rlxvk_matmul(g, h, trained[0]), trained[1]);
    low = rlxvk_mul(g, low, rlxvk_constant(g, RLXVK_F32, RLXVK_SCALAR, &scale, sizeof scale));
    return rlxvk_add(g, rlxvk_dequant_matmul(g, h, w, format), low);
}

/* Builds one training step. Its output is the loss. */
static void build(rlxvk_graph *g)
{
    static const rlxvk_adamw_options options = {.beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-8f};
    static const int32_t axes[] = {0, 1};
    rlxvk_tensor trained[4], gradients[4];
    rlxvk_tensor wanted = rlxvk_input(g, "target", RLXVK_F32, RLXVK_SHAPE(ROWS, D));
    rlxvk_tensor h = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(ROWS, D));
    h = layer(g, 1, rlxvk_tanh(g, layer(g, 0, h, trained)), trained + 2);
    rlxvk_tensor off = rlxvk_sub(g, h, wanted);
    rlxvk_tensor loss = rlxvk_reduce_mean(g, rlxvk_mul(g, off, off), axes, 2, false);
    rlxvk_optimizer_data data = {.schedule = rlxvk_input(g, "schedule", RLXVK_F32, RLXVK_SHAPE(3))};
    rlxvk_grad(g, loss, RLXVK_NONE, trained, 4, gradients);
    rlxvk_graph_output(g, loss);
    rlxvk_adamw_all(g, trained, gradients, 4, &options, &data);
}

/* Quantizes both matrices W and sets A. B is a state and begins as zeros, so the first step sees
 * the layers without any change. */
static rlxvk_status set_weights(rlxvk_executable *e)
{
    rlxvk_status status = RLXVK_OK;
    for (int i = 0; i < 2; i++) {
        float a[D * RANK];
        for (int n = 0; n < D && !status; n++) {
            for (int k = 0; k < D; k++)
                row[k] = sinf((float)((n * D + k) * (n + 3 * i + k) % 10007)) / 8;
            status = rlxvk_quant_encode_row(format, row, D, packed[i] + n * (BYTES / D));
        }
        for (int k = 0; k < D * RANK; k++)
            a[k] = sinf((float)(k * k % 1009 + i)) / 8;
        if (!status)
            status = rlxvk_set_param_bytes(e, packed_names[i], packed[i], BYTES);
        if (!status)
            status = rlxvk_set_param(e, trained_names[2 * i], a, D * RANK);
    }
    return status;
}

int main(void)
{
    rlxvk_context *context = NULL;
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    float loss = 0, before = 0;
    int kept = 0;
    for (int i = 0; i < ROWS * D; i++) {
        x[i] = sinf((float)(i * i % 10009));
        target[i] = sinf((float)(i / D * (i / D) % 31 + i % D)); /* waves of low rank */
    }
    if (rlxvk_context_create(NULL, &context) || rlxvk_graph_create(&g))
        goto error;
    build(g);
    if (rlxvk_compile(context, g, NULL, &e) || set_weights(e))
        goto error;
    for (int step = 1; step <= STEPS; step++) {
        float schedule[] = {0.01f, (float)(1 - pow(0.9, step)), (float)(1 - pow(0.99, step))};
        rlxvk_run_input in[] = {{.name = "x", .data = x, .length = ROWS * D},
                                {.name = "target", .data = target, .length = ROWS * D},
                                {.name = "schedule", .data = schedule, .length = 3}};
        rlxvk_run_output out = {.index = 0, .buffer = &loss, .length = 1};
        if (rlxvk_run(e, in, 3, &out, 1))
            goto error;
        before = step == 1 ? loss : before;
    }
    for (int i = 0; i < 2; i++)
        kept += !rlxvk_read_param_bytes(e, packed_names[i], after, BYTES) &&
                memcmp(after, packed[i], BYTES) == 0;
    printf("loss %f, after %d steps %f; %d of 2 packed matrices are as they were\n", before, STEPS,
           loss, kept);
    goto done;
error:
    fprintf(stderr, "%s\n", rlxvk_last_error());
done:
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    rlxvk_context_destroy(context);
    return kept != 2 || !(loss < before / 10);
}
