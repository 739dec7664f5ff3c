/* See bench_nets.h. */
#include "bench/bench_nets.h"
#include "graph/graph.h"
#include "train/lm_net.h"

#include <math.h>
#include <stdio.h>

static rlxvk_tensor add_parameter(bench_net *n, rlxvk_shape shape, double deviation, double base,
                                  bool trained)
{
    char name[16];
    snprintf(name, sizeof name, "p%zu", n->parameters.count);
    bench_parameter p = {.tensor = rlxvk_param(n->graph, name, RLXVK_F32, shape),
                         .length = 1,
                         .deviation = (float)deviation,
                         .base = (float)base,
                         .trained = trained};
    for (uint32_t i = 0; i < shape.rank; i++)
        p.length *= (uint64_t)shape.dims[i];
    if (VECTOR_PUSH(&n->parameters, p))
        return p.tensor;
    (void)graph_fail(n->graph, status_fail_memory(name));
    return RLXVK_NONE;
}

float bench_uniform(uint32_t *random)
{
    *random = *random * 1664525u + 1013904223u;
    return (float)(int32_t)*random * 0x1p-31f;
}

rlxvk_status bench_set_parameters(const bench_net *n, rlxvk_executable *e, uint32_t *random)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < n->parameters.count && status == RLXVK_OK; i++) {
        const bench_parameter *p = &n->parameters.items[i];
        char name[24];
        float *values = memory_allocate(p->length * sizeof *values);
        if (!values)
            return status_fail_memory("parameters");
        for (uint64_t k = 0; k < p->length; k++)
            values[k] = p->base + 1.7f * p->deviation * bench_uniform(random);
        snprintf(name, sizeof name, "p%zu", i);
        status = rlxvk_set_param(e, name, values, p->length);
        memory_free(values);
    }
    return status;
}

static rlxvk_tensor weight(bench_net *n, rlxvk_shape shape, double deviation)
{
    return add_parameter(n, shape, deviation, 0, true);
}

static rlxvk_tensor vector(bench_net *n, int64_t length, double base)
{
    return add_parameter(n, RLXVK_SHAPE(length), 0, base, true);
}

static rlxvk_tensor mean_loss(bench_net *n, rlxvk_tensor logits, rlxvk_tensor y)
{
    rlxvk_tensor losses = rlxvk_softmax_cross_entropy(n->graph, logits, y);
    return rlxvk_reduce_mean(n->graph, losses, (int32_t[]){0}, 1, false);
}

/* ---- GPT-2 ---- */

enum {
    GPT2_BLOCKS = 12,
    GPT2_HEADS = 12,
    GPT2_HEAD = 64,
    GPT2_CONTEXT = 1024,
    GPT2_TOKENS = 50257
};

static rlxvk_tensor linear(bench_net *n, rlxvk_tensor x, int64_t inputs, int64_t outputs)
{
    rlxvk_tensor w = weight(n, RLXVK_SHAPE(inputs, outputs), 0.02);
    return rlxvk_add(n->graph, rlxvk_matmul(n->graph, x, w), vector(n, outputs, 0));
}

static rlxvk_tensor normalize(bench_net *n, rlxvk_tensor x, int64_t width)
{
    return rlxvk_layer_norm(n->graph, x, vector(n, width, 1), vector(n, width, 0), -1, 1e-5f);
}

static rlxvk_tensor gpt2_block(bench_net *n, rlxvk_tensor x, int64_t batch, int64_t heads)
{
    rlxvk_graph *g = n->graph;
    int64_t width = heads * GPT2_HEAD, rows = batch * GPT2_CONTEXT;
    rlxvk_shape apart = RLXVK_SHAPE(batch, GPT2_CONTEXT, heads, GPT2_HEAD);
    rlxvk_attention_options options = {.layout = RLXVK_LAYOUT_BSHD, .mask = RLXVK_MASK_CAUSAL};
    rlxvk_tensor part[3], all = linear(n, normalize(n, x, width), width, 3 * width);
    for (int64_t i = 0; i < 3; i++)
        part[i] = rlxvk_reshape(g, rlxvk_narrow(g, all, 1, i * width, width), apart);
    rlxvk_tensor y = rlxvk_attention(g, part[0], part[1], part[2], RLXVK_NONE, &options);
    y = rlxvk_reshape(g, y, RLXVK_SHAPE(rows, width));
    x = rlxvk_add(g, x, linear(n, y, width, width));
    y = rlxvk_gelu_approx(g, linear(n, normalize(n, x, width), width, 4 * width));
    return rlxvk_add(g, x, linear(n, y, 4 * width, width));
}

rlxvk_tensor bench_gpt2(bench_net *n, int64_t share, uint64_t *out_items)
{
    rlxvk_graph *g = n->graph;
    int64_t batch = MAX(8 / share, 1), heads = MAX(GPT2_HEADS / share, 1);
    int64_t width = heads * GPT2_HEAD, rows = batch * GPT2_CONTEXT, tokens = GPT2_TOKENS / share;
    rlxvk_tensor x = n->x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(rows));
    rlxvk_tensor embedding = weight(n, RLXVK_SHAPE(tokens, width), 0.02);
    rlxvk_tensor places = weight(n, RLXVK_SHAPE(GPT2_CONTEXT, width), 0.02);
    rlxvk_tensor h =
        rlxvk_reshape(g, rlxvk_gather(g, embedding, x, 0), RLXVK_SHAPE(batch, GPT2_CONTEXT, width));
    h = rlxvk_reshape(g, rlxvk_add(g, h, places), RLXVK_SHAPE(rows, width));
    for (int i = 0; i < MAX(GPT2_BLOCKS / (int)share, 1); i++) {
        if (n->recompute)
            rlxvk_checkpoint(g, h);
        h = gpt2_block(n, h, batch, heads);
    }
    rlxvk_matmul_options tied = {.transpose_b = true};
    *out_items = (uint64_t)rows;
    rlxvk_tensor y = rlxvk_input(g, "y", RLXVK_F32, RLXVK_SHAPE(rows));
    return mean_loss(n, rlxvk_matmul_with(g, normalize(n, h, width), embedding, &tied), y);
}

/* ---- The byte model ---- */

rlxvk_tensor bench_byte_model(bench_net *n, int64_t share, uint64_t *out_items)
{
    const lm_shape shape = {.width = 256,
                            .ffn = 768,
                            .blocks = MAX(6 / share, 1),
                            .heads = 4,
                            .kv_heads = 2,
                            .context = MAX(512 / share, 16)};
    int64_t batch = MAX(16 / share, 1), rows = batch * shape.context;
    uint32_t count = lm_tensor_count(&shape);
    rlxvk_tensor *p = memory_zeroed(count, sizeof *p), loss;
    if (!p)
        (void)graph_fail(n->graph, status_fail_memory("parameters"));
    for (uint32_t i = 0; p && i < count; i++) {
        lm_tensor t = lm_tensor_at(&shape, i);
        p[i] = add_parameter(n, lm_tensor_shape(&t), t.deviation, t.base, true);
    }
    rlxvk_tensor x = n->x = rlxvk_input(n->graph, "x", RLXVK_F32, RLXVK_SHAPE(rows));
    rlxvk_tensor y = rlxvk_input(n->graph, "y", RLXVK_F32, RLXVK_SHAPE(rows));
    loss = p ? lm_loss(n->graph, &shape, p, x, y, batch, n->recompute) : RLXVK_NONE;
    memory_free(p);
    *out_items = (uint64_t)rows;
    return loss;
}

/* ---- ResNet-18 ---- */

/* Convolution and batch norm. The running averages are parameters that are not trained. */
static rlxvk_tensor conv_norm(bench_net *n, rlxvk_tensor x, int64_t outputs, int64_t kernel,
                              int64_t stride)
{
    rlxvk_graph *g = n->graph;
    int64_t inputs = rlxvk_tensor_shape(g, x).dims[1];
    rlxvk_conv_options options = {.stride = {stride, stride}, .padding = {kernel / 2, kernel / 2}};
    rlxvk_batch_norm_options norm = {.eps = 1e-5f, .momentum = 0.1f};
    rlxvk_tensor w = weight(n, RLXVK_SHAPE(outputs, inputs, kernel, kernel),
                            sqrt(2.0 / (double)(inputs * kernel * kernel)));
    x = rlxvk_conv(g, x, w, RLXVK_NONE, &options);
    rlxvk_tensor gamma = vector(n, outputs, 1), beta = vector(n, outputs, 0);
    rlxvk_tensor mean = add_parameter(n, RLXVK_SHAPE(outputs), 0, 0, false);
    rlxvk_tensor variance = add_parameter(n, RLXVK_SHAPE(outputs), 0, 1, false);
    if (n->infer)
        return rlxvk_batch_norm_inference(g, x, gamma, beta, mean, variance, norm.eps, 1);
    return rlxvk_batch_norm_training(g, x, gamma, beta, mean, variance, &norm);
}

static rlxvk_tensor residual(bench_net *n, rlxvk_tensor x, int64_t outputs, int64_t stride)
{
    rlxvk_graph *g = n->graph;
    rlxvk_tensor y = rlxvk_relu(g, conv_norm(n, x, outputs, 3, stride));
    y = conv_norm(n, y, outputs, 3, 1);
    if (stride != 1)
        x = conv_norm(n, x, outputs, 1, stride);
    return rlxvk_relu(g, rlxvk_add(g, y, x));
}

static rlxvk_tensor stem(bench_net *n, rlxvk_tensor x)
{
    static const rlxvk_pool_options pool = {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
    return rlxvk_pool_max(n->graph, rlxvk_relu(n->graph, conv_norm(n, x, 64, 7, 2)), &pool);
}

/* Logits from the mean of each plane. */
static rlxvk_tensor classify(bench_net *n, rlxvk_tensor x, int64_t width, int64_t classes)
{
    rlxvk_graph *g = n->graph;
    x = rlxvk_reduce_mean(g, x, (int32_t[]){2, 3}, 2, false);
    rlxvk_tensor w = weight(n, RLXVK_SHAPE(width, classes), 0.04);
    return rlxvk_add(g, rlxvk_matmul(g, x, w), vector(n, classes, 0));
}

rlxvk_tensor bench_resnet18(bench_net *n, int64_t share, uint64_t *out_items)
{
    rlxvk_graph *g = n->graph;
    int64_t batch = MAX(64 / (share * share), 2), side = MAX(224 / share, 32), classes = 1000;
    rlxvk_tensor x = n->x = rlxvk_param(g, "x", RLXVK_F32, RLXVK_SHAPE(batch, 3, side, side));
    rlxvk_tensor y = rlxvk_param(g, "y", RLXVK_F32, RLXVK_SHAPE(batch));
    x = stem(n, x);
    for (int64_t stage = 0, width = 64; stage < 4; stage++, width *= 2)
        for (int block = 0; block < 2; block++) {
            if (n->recompute)
                rlxvk_checkpoint(g, x);
            x = residual(n, x, width, stage && !block ? 2 : 1);
        }
    *out_items = (uint64_t)batch;
    return mean_loss(n, classify(n, x, 512, classes), y);
}

/* ---- ResNet-50 ---- */

static rlxvk_tensor bottleneck(bench_net *n, rlxvk_tensor x, int64_t width, int64_t stride)
{
    rlxvk_graph *g = n->graph;
    bool widens = rlxvk_tensor_shape(g, x).dims[1] != 4 * width;
    rlxvk_tensor y = rlxvk_relu(g, conv_norm(n, x, width, 1, 1));
    y = rlxvk_relu(g, conv_norm(n, y, width, 3, stride));
    y = conv_norm(n, y, 4 * width, 1, 1);
    if (widens)
        x = conv_norm(n, x, 4 * width, 1, stride);
    return rlxvk_relu(g, rlxvk_add(g, y, x));
}

rlxvk_tensor bench_resnet50(bench_net *n, int64_t share, uint64_t *out_items)
{
    static const int blocks[] = {3, 4, 6, 3};
    rlxvk_graph *g = n->graph;
    int64_t batch = MAX(32 / (share * share), 1), side = MAX(224 / share, 32);
    rlxvk_tensor x = n->x = rlxvk_param(g, "x", RLXVK_F32, RLXVK_SHAPE(batch, 3, side, side));
    x = stem(n, x);
    for (int64_t stage = 0, width = 64; stage < 4; stage++, width *= 2)
        for (int block = 0; block < blocks[stage]; block++)
            x = bottleneck(n, x, width, stage && !block ? 2 : 1);
    *out_items = (uint64_t)batch;
    return classify(n, x, 2048, 1000);
}

/* ---- BERT ---- */

enum { BERT_BLOCKS = 12, BERT_HEADS = 12, BERT_HEAD = 64, BERT_CONTEXT = 128, BERT_TOKENS = 30522 };

static rlxvk_tensor bert_block(bench_net *n, rlxvk_tensor x, int64_t batch, int64_t heads)
{
    rlxvk_graph *g = n->graph;
    int64_t width = heads * BERT_HEAD, rows = batch * n->tokens;
    rlxvk_shape apart = RLXVK_SHAPE(batch, n->tokens, heads, BERT_HEAD);
    rlxvk_attention_options options = {.layout = RLXVK_LAYOUT_BSHD};
    rlxvk_tensor part[3], all = linear(n, x, width, 3 * width);
    for (int64_t i = 0; i < 3; i++)
        part[i] = rlxvk_reshape(g, rlxvk_narrow(g, all, 1, i * width, width), apart);
    rlxvk_tensor y = rlxvk_attention(g, part[0], part[1], part[2], RLXVK_NONE, &options);
    y = linear(n, rlxvk_reshape(g, y, RLXVK_SHAPE(rows, width)), width, width);
    x = normalize(n, rlxvk_add(g, x, y), width);
    y = linear(n, rlxvk_gelu(g, linear(n, x, width, 4 * width)), 4 * width, width);
    return normalize(n, rlxvk_add(g, x, y), width);
}

rlxvk_tensor bench_bert(bench_net *n, int64_t share, uint64_t *out_items)
{
    rlxvk_graph *g = n->graph;
    int64_t batch = MAX(32 / share, 1), heads = MAX(BERT_HEADS / share, 1);
    n->tokens = n->tokens ? n->tokens : BERT_CONTEXT;
    int64_t width = heads * BERT_HEAD, rows = batch * n->tokens, words = BERT_TOKENS / share;
    rlxvk_shape sequences = RLXVK_SHAPE(batch, n->tokens);
    rlxvk_tensor x = n->x = n->is_given ? rlxvk_input(g, "x", RLXVK_F32, sequences)
                                        : rlxvk_param(g, "x", RLXVK_F32, sequences);
    rlxvk_tensor embedding = weight(n, RLXVK_SHAPE(words, width), 0.02);
    rlxvk_tensor places = weight(n, RLXVK_SHAPE(n->tokens, width), 0.02);
    rlxvk_tensor h = rlxvk_add(g, rlxvk_gather(g, embedding, x, 0), places);
    h = normalize(n, rlxvk_reshape(g, h, RLXVK_SHAPE(rows, width)), width);
    for (int i = 0; i < MAX(BERT_BLOCKS / (int)share, 1); i++)
        h = bert_block(n, h, batch, heads);
    h = rlxvk_narrow(g, rlxvk_reshape(g, h, RLXVK_SHAPE(batch, n->tokens, width)), 1, 0, 1);
    *out_items = (uint64_t)rows;
    return rlxvk_tanh(g, linear(n, rlxvk_reshape(g, h, RLXVK_SHAPE(batch, width)), width, width));
}
