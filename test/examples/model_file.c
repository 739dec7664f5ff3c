/*
 * Runs a language model from a file: ./model_file MODEL.gguf TOKEN... prints, for each position of
 * the text, the token that the model finds most likely to follow. Without arguments it shows how it
 * is called.
 */
#include <rlxvk.h>
#include <rlxvk_model.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_TOKENS = 256 };

static rlxvk_status run(rlxvk_executable *e, const int32_t *tokens, size_t count, float *logits,
                        size_t words)
{
    const rlxvk_run_input in = {.name = "tokens",
                                .data = tokens,
                                .length = count,
                                .dtype = RLXVK_I32};
    const rlxvk_run_output out = {.buffer = logits, .length = count * words};
    return rlxvk_run(e, &in, 1, &out, 1);
}

static void print_best(const float *logits, size_t words)
{
    size_t best = 0;
    for (size_t i = 1; i < words; i++)
        if (logits[i] > logits[best])
            best = i;
    printf("%zu ", best);
}

static rlxvk_status predict(const char *path, const int32_t *tokens, size_t count)
{
    const rlxvk_model_binding dims[] = {{.name = "batch", .size = 1},
                                        {.name = "length", .size = (int64_t)count}};
    const rlxvk_model_graph_options options = {.bindings = dims, .binding_count = 2};
    rlxvk_model_info logits;
    rlxvk_context *context = NULL;
    rlxvk_model *model = NULL;
    rlxvk_executable *e = NULL;
    float *y = NULL;
    size_t outputs;
    rlxvk_status status = rlxvk_context_create(NULL, &context);
    if (!status)
        status = rlxvk_model_open(path, NULL, &model);
    if (!status)
        status = rlxvk_model_executable(model, context, &options, NULL, &e);
    if (!status)
        status = rlxvk_model_outputs(model, &logits, 1, &outputs);
    if (!status) {
        size_t words = (size_t)logits.shape.dims[2];
        y = malloc(count * words * sizeof *y);
        status = y ? run(e, tokens, count, y, words) : RLXVK_E_OUT_OF_HOST_MEMORY;
        for (size_t i = 0; !status && i < count; i++)
            print_best(y + i * words, words);
    }
    if (status)
        fprintf(stderr, "%s\n", rlxvk_last_error());
    else
        printf("\n");
    free(y);
    rlxvk_executable_destroy(e);
    rlxvk_model_destroy(model);
    rlxvk_context_destroy(context);
    return status;
}

int main(int argc, char **argv)
{
    int32_t tokens[MOST_TOKENS];
    size_t count = 0;
    if (argc < 3) {
        printf("usage: %s MODEL.gguf TOKEN...\n", argv[0]);
        return 0;
    }
    for (int i = 2; i < argc && count < MOST_TOKENS; i++)
        tokens[count++] = (int32_t)strtol(argv[i], NULL, 10);
    return predict(argv[1], tokens, count) != RLXVK_OK;
}
