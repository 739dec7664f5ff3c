/*
 * Attention with a KV cache that stays on the device. Each run gets the query, key and value of one
 * token. It writes key and value into the next row of the caches and attends to all rows so far.
 * The caches and the number of the next row are handles. So a run uploads only the token and reads
 * back only its result.
 */
#include <math.h>
#include <rlxvk.h>
#include <rlxvk_ops.h>
#include <stdio.h>

enum { HEADS = 4, WIDTH = 32, TOKEN = HEADS * WIDTH, TOKENS = 20, ROWS = 64 };

static float tokens[TOKENS][3][TOKEN], empty[ROWS * TOKEN], numbers[ROWS], y[TOKEN];

/* Returns the cache `name` after a part of the token (1: key, 2: value) is written into row
 * `row`. */
static rlxvk_tensor kept(rlxvk_graph *g, const char *name, rlxvk_tensor token, int part,
                         rlxvk_tensor row)
{
    rlxvk_tensor cache = rlxvk_input(g, name, RLXVK_F32, RLXVK_SHAPE(1, ROWS, TOKEN));
    return rlxvk_write_rows(g, cache, rlxvk_narrow(g, token, 0, part, 1), row);
}

static rlxvk_status build(rlxvk_graph *g)
{
    rlxvk_attention_options options = {.num_heads = HEADS, .mask = RLXVK_MASK_CUSTOM};
    rlxvk_tensor token = rlxvk_input(g, "token", RLXVK_F32, RLXVK_SHAPE(3, 1, TOKEN));
    rlxvk_tensor row = rlxvk_input(g, "row", RLXVK_F32, RLXVK_SHAPE(1));
    rlxvk_tensor rows = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(ROWS), numbers, sizeof numbers);
    rlxvk_tensor seen = rlxvk_le(g, rows, row), query = rlxvk_narrow(g, token, 0, 0, 1);
    rlxvk_tensor keys = kept(g, "keys", token, 1, row), values = kept(g, "values", token, 2, row);
    rlxvk_graph_output(g, rlxvk_attention(g, query, keys, values, seen, &options));
    rlxvk_graph_output(g, rlxvk_reduce_sum(g, seen, (int32_t[]){0}, 1, true)); /* the next row */
    return rlxvk_graph_status(g);
}

/* Element `i` of the result for token `t`, in plain C. */
static double expected(int t, int i)
{
    double sum = 0, total = 0;
    for (int s = 0; s <= t; s++) {
        double score = 0;
        for (int d = i - i % WIDTH, end = d + WIDTH; d < end; d++)
            score += (double)tokens[t][0][d] * tokens[s][1][d] / sqrt(WIDTH);
        sum += exp(score) * tokens[s][2][i];
        total += exp(score);
    }
    return sum / total;
}

int main(void)
{
    rlxvk_context *context = NULL;
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    int right = 0;
    for (int i = 0; i < TOKENS * 3 * TOKEN; i++)
        tokens[i / TOKEN / 3][i / TOKEN % 3][i % TOKEN] = sinf((float)(i * i % 1009));
    for (int i = 0; i < ROWS; i++)
        numbers[i] = (float)i;
    if (rlxvk_context_create(NULL, &context) || rlxvk_graph_create(&g) || build(g) ||
        rlxvk_compile(context, g, NULL, &e) || rlxvk_bind_handle(e, "row", empty, 1) ||
        rlxvk_bind_handle(e, "keys", empty, ROWS * TOKEN) ||
        rlxvk_bind_handle(e, "values", empty, ROWS * TOKEN) || rlxvk_set_handle_feed(e, "row", 1))
        goto error;
    for (int t = 0; t < TOKENS; t++) {
        rlxvk_run_input in = {.name = "token", .data = tokens[t], .length = 3 * TOKEN};
        if (rlxvk_run(e, &in, 1, &(rlxvk_run_output){.buffer = y, .length = TOKEN}, 1))
            goto error;
        for (int i = 0; i < TOKEN; i++)
            right += fabs(y[i] - expected(t, i)) < 1e-4;
    }
    printf("%d of %d elements are right, the last is %f\n", right, TOKENS * TOKEN, y[TOKEN - 1]);
    goto done;
error:
    fprintf(stderr, "%s\n", rlxvk_last_error());
done:
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    rlxvk_context_destroy(context);
    return right != TOKENS * TOKEN;
}
