/*
 * Text generation by a GPT with a KV cache. One executable takes the whole prompt in one run.
 * Another, compiled for a single row, takes each later token. With share_with both read the same
 * weights and write the same caches. The caches are states, so they begin as zeros. A third
 * executable runs the whole text without a cache and must find the same tokens.
 */
#include <math.h>
#include <rlxvk.h>
#include <rlxvk_ops.h>
#include <rlxvk_train.h>
#include <stdio.h>
#include <string.h>

enum { VOCABULARY = 61, WIDTH = 32, HEADS = 4, LAYERS = 2, PROMPT = 6, LENGTH = 24 };

static rlxvk_tensor weight(rlxvk_graph *g, const char *name, int layer, rlxvk_shape shape)
{
    char full[32];
    snprintf(full, sizeof full, "%s.%d", name, layer);
    return rlxvk_param(g, full, RLXVK_F32, shape);
}

static rlxvk_tensor cache(rlxvk_graph *g, const char *name, int layer)
{
    char full[32];
    snprintf(full, sizeof full, "%s.%d", name, layer);
    return rlxvk_state(g, full, RLXVK_F32, RLXVK_SHAPE(1, HEADS, LENGTH, WIDTH / HEADS));
}

/* x w, with w [inputs, outputs]. */
static rlxvk_tensor dense(rlxvk_graph *g, rlxvk_tensor x, const char *name, int layer, int inputs,
                          int outputs)
{
    return rlxvk_matmul(g, x, weight(g, name, layer, RLXVK_SHAPE(inputs, outputs)));
}

static rlxvk_tensor normalize(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_layer_norm(g, x, RLXVK_NONE, RLXVK_NONE, -1, 1e-5f);
}

/* Attention of the new rows. With `first` they are appended to the cache, and each attends to the
 * cache up to itself. Without it, each attends to the rows up to itself. */
static rlxvk_tensor attend(rlxvk_graph *g, rlxvk_tensor x, int layer, int rows, rlxvk_tensor first)
{
    const rlxvk_attention_options whole = {.num_heads = HEADS, .mask = RLXVK_MASK_CAUSAL};
    const rlxvk_attention_step_options step = {.heads = HEADS, .head_dim = WIDTH / HEADS};
    rlxvk_tensor all = dense(g, x, "qkv", layer, WIDTH, 3 * WIDTH), part[3];
    for (int i = 0; i < 3; i++)
        part[i] = rlxvk_reshape(g, rlxvk_narrow(g, all, 1, (int64_t)i * WIDTH, WIDTH),
                                RLXVK_SHAPE(1, rows, WIDTH));
    x = first.id
            ? rlxvk_attention_step(g, part[0], part[1], part[2], cache(g, "keys", layer),
                                   cache(g, "values", layer), first, RLXVK_NONE, RLXVK_NONE, &step)
            : rlxvk_attention(g, part[0], part[1], part[2], RLXVK_NONE, &whole);
    return rlxvk_reshape(g, x, RLXVK_SHAPE(rows, WIDTH));
}

/* Compiles the net for `rows` tokens. Its output is the most likely token after each of them. If it
 * is cached, the input "first" is the position of the first token. */
static rlxvk_status compile(rlxvk_context *context, int rows, bool cached, rlxvk_executable *shared,
                            rlxvk_executable **out)
{
    const rlxvk_compile_options options = {.share_with = shared};
    rlxvk_graph *g = NULL;
    rlxvk_status status = rlxvk_graph_create(&g);
    rlxvk_tensor tokens = rlxvk_input(g, "tokens", RLXVK_I32, RLXVK_SHAPE(rows));
    rlxvk_tensor first = RLXVK_NONE, places = rlxvk_arange(g, 0, 1, rows);
    if (cached) {
        first = rlxvk_input(g, "first", RLXVK_F32, RLXVK_SHAPE(1));
        places = rlxvk_add(g, places, first);
    }
    rlxvk_tensor table = weight(g, "tokens", 0, RLXVK_SHAPE(VOCABULARY, WIDTH));
    rlxvk_tensor x = rlxvk_gather(g, table, tokens, 0);
    x = rlxvk_add(g, x,
                  rlxvk_gather(g, weight(g, "places", 0, RLXVK_SHAPE(LENGTH, WIDTH)), places, 0));
    for (int i = 0; i < LAYERS; i++) {
        rlxvk_tensor y = attend(g, normalize(g, x), i, rows, first);
        x = rlxvk_add(g, x, dense(g, y, "out", i, WIDTH, WIDTH));
        y = rlxvk_gelu(g, dense(g, normalize(g, x), "up", i, WIDTH, 4 * WIDTH));
        x = rlxvk_add(g, x, dense(g, y, "down", i, 4 * WIDTH, WIDTH));
    }
    x = rlxvk_matmul_with(g, normalize(g, x), table, &(rlxvk_matmul_options){.transpose_b = true});
    rlxvk_graph_output(g, rlxvk_argmax(g, x, 1, false));
    if (!status) /* also returns the first error of the calls above */
        status = rlxvk_compile(context, g, &options, out);
    rlxvk_graph_destroy(g);
    return status;
}

/* Sets every param that is not a state to some numbers. */
static rlxvk_status set_weights(rlxvk_executable *e)
{
    static float values[4 * WIDTH * WIDTH];
    rlxvk_tensor_info params[4 + 6 * LAYERS];
    size_t count;
    rlxvk_status status =
        rlxvk_executable_params(e, params, sizeof params / sizeof *params, &count);
    for (size_t i = 0; i < count && !status; i++) {
        size_t length = (size_t)(params[i].shape.dims[0] * params[i].shape.dims[1]);
        if (params[i].written) /* a state, which is zeros already */
            continue;
        for (size_t k = 0; k < length; k++)
            values[k] = 0.4f * sinf((float)((k + 7 * i) * (k + 3 * i) % 10007));
        status = rlxvk_set_param(e, params[i].name, values, length);
    }
    return status;
}

static rlxvk_status run(rlxvk_executable *e, const int32_t *tokens, size_t rows, float first,
                        int32_t *next)
{
    const rlxvk_run_input in[] = {
        {.name = "tokens", .data = tokens, .length = rows, .dtype = RLXVK_I32},
        {.name = "first", .data = &first, .length = 1}};
    const rlxvk_run_output out = {.buffer = next, .length = rows, .dtype = RLXVK_I32};
    return rlxvk_run(e, in, first < 0 ? 1 : 2, &out, 1);
}

int main(void)
{
    rlxvk_context *context = NULL;
    rlxvk_executable *prompt = NULL, *step = NULL, *whole = NULL;
    int32_t text[LENGTH] = {1, 5, 25, 3, 15, 14}, next[LENGTH];
    int right = 0;
    if (rlxvk_context_create(NULL, &context) || compile(context, PROMPT, true, NULL, &prompt) ||
        compile(context, 1, true, prompt, &step) ||
        compile(context, LENGTH, false, prompt, &whole) || set_weights(prompt) ||
        run(prompt, text, PROMPT, 0, next))
        goto error;
    text[PROMPT] = next[PROMPT - 1];
    for (int i = PROMPT; i < LENGTH - 1; i++)
        if (run(step, &text[i], 1, (float)i, &text[i + 1]))
            goto error;
    if (run(whole, text, LENGTH, -1, next))
        goto error;
    for (int i = PROMPT; i < LENGTH; i++) {
        right += text[i] == next[i - 1];
        printf("%d%s", text[i], i < LENGTH - 1 ? " " : "\n");
    }
    printf("%d of %d tokens are those found without a cache\n", right, LENGTH - PROMPT);
    goto done;
error:
    fprintf(stderr, "%s\n", rlxvk_last_error());
done:
    rlxvk_executable_destroy(whole);
    rlxvk_executable_destroy(step);
    rlxvk_executable_destroy(prompt);
    rlxvk_context_destroy(context);
    return right != LENGTH - PROMPT;
}
