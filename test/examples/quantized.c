/*
 * Quantized weights. A matrix is quantized to 4.5 bits a weight (GGUF's Q4_K) and stored like that.
 * It is multiplied without being unpacked in memory. The program checks the product against the
 * weights that the quantized bytes stand for. It prints how far these are from the original
 * weights.
 */
#include <math.h>
#include <rlxvk.h>
#include <rlxvk_ops.h>
#include <rlxvk_quant.h>
#include <stdio.h>
#include <stdlib.h>

enum { K = 1024, N = 256 }; /* N rows of K weights; K is a multiple of the format's 256 */

static float x[K], w[N][K], decoded[N][K], y[N];

int main(void)
{
    const rlxvk_quant_format format = RLXVK_Q4_K;
    const size_t row_bytes = rlxvk_quant_row_bytes(format, K), size = N * row_bytes;
    rlxvk_context *context = NULL;
    rlxvk_graph *g = NULL;
    rlxvk_executable *executable = NULL;
    uint8_t *packed = malloc(size);
    int right = 0;
    for (int k = 0; k < K; k++)
        x[k] = sinf((float)(k * k));
    for (int i = 0; i < N * K; i++)
        w[i / K][i % K] = sinf((float)(i % 1009 * i % 1013));
    if (!packed || rlxvk_context_create(NULL, &context) || rlxvk_graph_create(&g))
        goto error;
    for (size_t n = 0; n < N; n++)
        if (rlxvk_quant_encode_row(format, w[n], K, &packed[n * row_bytes]) ||
            rlxvk_quant_decode_row(format, &packed[n * row_bytes], K, decoded[n]))
            goto error;
    rlxvk_tensor input = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1, K));
    rlxvk_tensor weight = rlxvk_param(g, "w", RLXVK_U8, RLXVK_SHAPE((int64_t)size));
    rlxvk_graph_output(g, rlxvk_dequant_matmul(g, input, weight, format));
    rlxvk_run_input in = {.name = "x", .data = x, .length = K};
    rlxvk_run_output out = {.index = 0, .buffer = y, .length = N};
    if (rlxvk_compile(context, g, NULL, &executable) ||
        rlxvk_set_param_bytes(executable, "w", packed, size) ||
        rlxvk_run(executable, &in, 1, &out, 1))
        goto error;
    double lost = 0, all = 0;
    for (int n = 0; n < N; n++) {
        double sum = 0;
        for (int k = 0; k < K; k++) {
            sum += (double)x[k] * decoded[n][k];
            lost += pow(decoded[n][k] - w[n][k], 2);
            all += pow(w[n][k], 2);
        }
        right += fabs(y[n] - sum) < 1e-3;
    }
    printf("%zu bytes for %zu, relative error of the weights %.3f; %d of %d products are right\n",
           size, sizeof w, sqrt(lost / all), right, N);
    goto done;
error:
    fprintf(stderr, "%s\n", rlxvk_last_error());
done:
    rlxvk_executable_destroy(executable);
    rlxvk_graph_destroy(g);
    rlxvk_context_destroy(context);
    free(packed);
    return right != N;
}
