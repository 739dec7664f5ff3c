/*
 * A training step gives the same bits however it is run. Five steps from the same start must give
 * one hash of all params, averages and losses. They are run with and without reuse of memory, in
 * the order of the graph, with full barriers, and recorded again. They are also run in another
 * executable, in a clone, and with other work before and in between.
 *
 * The net has the usual parts: a convolution, norms, an embedding, attention, dropout, cross
 * entropy, clipping and AdamW. Scratch memory is filled with NaN.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "exec/allocate.h"
#include "graph/graph.h"
#include "support/harness.h"

#include <rlxvk_train.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define STEPS       5
#define BATCH       6
#define SIDE        8
#define WIDTH       16
#define WORDS       7
#define TOKENS      (SIDE * SIDE / 4 + 1) /* of the pooled image, and one word */
#define CLASSES     4
#define MOST_PARAMS 16
#define MOST        1024 /* elements of a param */

typedef struct net {
    rlxvk_graph *graph;
    size_t count;
    char names[MOST_PARAMS][8];
    rlxvk_shape shapes[MOST_PARAMS];
    rlxvk_tensor params[MOST_PARAMS];
} net;

/* ---- The net ---- */

static rlxvk_tensor param(net *n, const char *name, rlxvk_shape shape)
{
    assert_true(n->count < MOST_PARAMS && shape_numel(&shape) <= MOST);
    snprintf(n->names[n->count], sizeof n->names[0], "%s", name);
    n->shapes[n->count] = shape;
    return n->params[n->count++] = rlxvk_param(n->graph, name, RLXVK_F32, shape);
}

static rlxvk_tensor product(net *n, rlxvk_tensor x, const char *name, int64_t rows, int64_t columns)
{
    return rlxvk_matmul(n->graph, x, param(n, name, RLXVK_SHAPE(rows, columns)));
}

static rlxvk_tensor mean(rlxvk_graph *g, rlxvk_tensor t, int32_t axis)
{
    return rlxvk_reduce_mean(g, t, &axis, 1, false);
}

static rlxvk_tensor drop(rlxvk_graph *g, rlxvk_tensor x, uint64_t seed)
{
    return rlxvk_dropout(g, x, &(rlxvk_dropout_options){0.1f, seed}, RLXVK_NONE);
}

/* The tokens: first the embedded word, then the pixels of the convolved and pooled image. */
static rlxvk_tensor tokens(net *n)
{
    static const rlxvk_conv_options conv = {.padding = {1, 1}};
    static const rlxvk_pool_options pool = {.kernel = {2, 2}, .stride = {2, 2}};
    static const int32_t turned[] = {0, 2, 1};
    rlxvk_graph *g = n->graph;
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(BATCH, 3, SIDE, SIDE));
    rlxvk_tensor word = rlxvk_input(g, "word", RLXVK_I32, RLXVK_SHAPE(BATCH));
    rlxvk_tensor h = rlxvk_conv(g, x, param(n, "conv", RLXVK_SHAPE(WIDTH, 3, 3, 3)),
                                param(n, "bias", RLXVK_SHAPE(WIDTH)), &conv);
    h = rlxvk_group_norm(g, h, param(n, "gg", RLXVK_SHAPE(WIDTH)),
                         param(n, "gb", RLXVK_SHAPE(WIDTH)), 4, 1e-5f);
    h = rlxvk_pool_max(g, rlxvk_silu(g, h), &pool);
    h = rlxvk_reshape(g, h, RLXVK_SHAPE(BATCH, WIDTH, TOKENS - 1));
    h = rlxvk_transpose(g, h, turned, 3);
    rlxvk_tensor e = rlxvk_gather(g, param(n, "words", RLXVK_SHAPE(WORDS, WIDTH)), word, 0);
    e = rlxvk_reshape(g, e, RLXVK_SHAPE(BATCH, 1, WIDTH));
    return rlxvk_concat(g, (rlxvk_tensor[]){e, h}, 2, 1);
}

static rlxvk_tensor attend(net *n, rlxvk_tensor x)
{
    static const rlxvk_attention_options options = {.num_heads = 2,
                                                    .num_kv_heads = 2,
                                                    .head_dim = WIDTH / 2,
                                                    .mask = RLXVK_MASK_CAUSAL,
                                                    .layout = RLXVK_LAYOUT_BSHD};
    const rlxvk_shape heads = RLXVK_SHAPE(BATCH, TOKENS, 2, WIDTH / 2);
    rlxvk_graph *g = n->graph;
    rlxvk_tensor q = rlxvk_reshape(g, product(n, x, "q", WIDTH, WIDTH), heads);
    rlxvk_tensor k = rlxvk_reshape(g, product(n, x, "k", WIDTH, WIDTH), heads);
    rlxvk_tensor v = rlxvk_reshape(g, product(n, x, "v", WIDTH, WIDTH), heads);
    rlxvk_tensor y = rlxvk_attention(g, q, k, v, RLXVK_NONE, &options);
    return product(n, rlxvk_reshape(g, y, RLXVK_SHAPE(BATCH, TOKENS, WIDTH)), "o", WIDTH, WIDTH);
}

static rlxvk_tensor loss_of(net *n)
{
    rlxvk_graph *g = n->graph;
    rlxvk_tensor label = rlxvk_input(g, "label", RLXVK_I32, RLXVK_SHAPE(BATCH)), h = tokens(n);
    rlxvk_tensor y = rlxvk_layer_norm(g, h, param(n, "lg", RLXVK_SHAPE(WIDTH)),
                                      param(n, "lb", RLXVK_SHAPE(WIDTH)), -1, 1e-5f);
    h = rlxvk_add(g, h, drop(g, attend(n, y), 1));
    y = rlxvk_rms_norm(g, h, param(n, "rg", RLXVK_SHAPE(WIDTH)), RLXVK_NONE, -1, 1e-6f);
    y = rlxvk_gelu(g, product(n, y, "up", WIDTH, 2 * WIDTH));
    h = rlxvk_add(g, h, drop(g, product(n, y, "down", 2 * WIDTH, WIDTH), 2));
    y = product(n, mean(g, h, 1), "out", WIDTH, CLASSES);
    return mean(g, rlxvk_softmax_cross_entropy(g, y, label), 0);
}

static net build(void)
{
    static const rlxvk_adamw_options options = {.beta1 = 0.9f,
                                                .beta2 = 0.99f,
                                                .eps = 1e-6f,
                                                .weight_decay = 0.01f};
    net n = {0};
    rlxvk_tensor gradients[MOST_PARAMS];
    expect_ok(rlxvk_graph_create(&n.graph));
    rlxvk_graph *g = n.graph;
    rlxvk_tensor loss = loss_of(&n);
    rlxvk_grad(g, loss, RLXVK_NONE, n.params, n.count, gradients);
    rlxvk_optimizer_data data = {rlxvk_input(g, "schedule", RLXVK_F32, RLXVK_SHAPE(3)),
                                 rlxvk_gradient_clip(g, gradients, n.count, 0.5f)};
    rlxvk_graph_output(g, loss);
    for (size_t i = 0; i < n.count; i++) {
        char first[16], second[16];
        snprintf(first, sizeof first, "m.%s", n.names[i]);
        snprintf(second, sizeof second, "v.%s", n.names[i]);
        rlxvk_adamw(g, n.params[i], gradients[i], rlxvk_param(g, first, RLXVK_F32, n.shapes[i]),
                    rlxvk_param(g, second, RLXVK_F32, n.shapes[i]), &options, &data, NULL);
    }
    expect_ok(rlxvk_graph_status(g));
    return n;
}

/* ---- A run ---- */

/* The name of a state: a param, or its m or v. */
static size_t state_name(const net *n, size_t i, char name[16])
{
    static const char *const prefixes[] = {"", "m.", "v."};
    snprintf(name, 16, "%s%s", prefixes[i / n->count], n->names[i % n->count]);
    return shape_numel(&n->shapes[i % n->count]);
}

static void set_start(const net *n, rlxvk_executable *e, const rlxvk_rng_options *rng)
{
    random_source r = {5};
    char name[16];
    for (size_t i = 0; i < 3 * n->count; i++) {
        float values[MOST] = {0};
        size_t length = state_name(n, i, name);
        for (size_t k = 0; i < n->count && k < length; k++)
            values[k] = (n->shapes[i].rank == 1) + 0.3f * random_real(&r);
        expect_ok(rlxvk_set_param(e, name, values, length));
    }
    expect_ok(rlxvk_set_rng(e, rng));
}

static float run_step(rlxvk_executable *e, int index)
{
    static float x[BATCH * 3 * SIDE * SIDE];
    random_source r = {100 + (uint64_t)index};
    float word[BATCH], label[BATCH], loss;
    const float schedule[] = {0.01f, (float)(1 - pow(0.9f, index + 1)),
                              (float)(1 - pow(0.99f, index + 1))};
    random_fill(&r, false, x, sizeof x / sizeof *x);
    for (int i = 0; i < BATCH; i++) {
        word[i] = (float)random_below(&r, WORDS);
        label[i] = (float)random_below(&r, CLASSES);
    }
    const rlxvk_run_input in[] = {
        {.name = "x", .data = x, .length = sizeof x / sizeof *x},
        {.name = "word", .data = word, .length = BATCH, .f32_words = true},
        {.name = "label", .data = label, .length = BATCH, .f32_words = true},
        {.name = "schedule", .data = schedule, .length = 3}};
    const rlxvk_run_output out = {.index = 0, .buffer = &loss, .length = 1};
    expect_ok(rlxvk_run(e, in, 4, &out, 1));
    assert_true(isfinite(loss));
    return loss;
}

static uint64_t hash_states(const net *n, rlxvk_executable *e)
{
    static float all[3 * MOST_PARAMS * MOST];
    size_t count = 0;
    char name[16];
    for (size_t i = 0; i < 3 * n->count; i++) {
        size_t length = state_name(n, i, name);
        expect_ok(rlxvk_read_param(e, name, all + count, length));
        count += length;
    }
    return hash_floats(all, count);
}

static const rlxvk_rng_options counting = {.advance_per_run = true};

typedef struct other_work {
    rlxvk_graph *graph;
    rlxvk_executable *executable;
} other_work;

static void work(other_work *w, uint64_t seed)
{
    size_t count;
    if (w)
        free(run_seeded(w->executable, w->graph, seed, false, &count));
}

/* Takes five steps from the start. If `w` is given, it does other work before each step. */
static uint64_t train(const net *n, rlxvk_executable *e, const rlxvk_rng_options *rng,
                      other_work *w)
{
    float losses[STEPS];
    set_start(n, e, rng);
    for (int i = 0; i < STEPS; i++) {
        work(w, (uint64_t)i);
        losses[i] = run_step(e, i);
    }
    return hash_states(n, e) ^ hash_floats(losses, STEPS);
}

static rlxvk_executable *compile(const net *n, const rlxvk_compile_options *options)
{
    rlxvk_executable *e = NULL;
    rlxvk_plan_report plan;
    expect_ok(rlxvk_compile(shared_context, n->graph, options, &e));
    rlxvk_executable_plan(e, &plan);
    assert_int_equal(plan.host_steps, 0);
    return e;
}

static uint64_t train_with(const net *n, rlxvk_compile_options options)
{
    options.check_plan = RLXVK_ON;
    rlxvk_executable *e = compile(n, &options);
    uint64_t hash = train(n, e, &counting, NULL);
    rlxvk_executable_destroy(e);
    return hash;
}

/* ---- Tests ---- */

static void every_way_of_running_trains_alike(void **state)
{
    static const struct {
        const char *name;
        rlxvk_compile_options options;
    } ways[] = {{"no reuse of memory", {.reuse_memory = RLXVK_OFF}},
                {"in the graph's order", {.reorder = RLXVK_OFF}},
                {"full barriers", {.full_barrier = RLXVK_ON}},
                {"full barriers, no reuse", {.full_barrier = RLXVK_ON, .reuse_memory = RLXVK_OFF}},
                {"recorded for every run", {.cached = RLXVK_OFF}},
                {"profiled", {.profile = RLXVK_ON}},
                {"another executable", {0}}};
    net n = build();
    uint64_t wanted = train_with(&n, (rlxvk_compile_options){0});
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        uint64_t hash = train_with(&n, ways[i].options);
        if (hash != wanted)
            print_error("%s: another hash\n", ways[i].name);
        assert_true(hash == wanted);
    }
    rlxvk_graph_destroy(n.graph);
}

/* Repeats the training with the graph built anew, with other work in between, in a clone, and in
 * the same executable after five steps with other masks. Those steps must give a different hash. */
static void what_else_happens_does_not_matter(void **state)
{
    static const rlxvk_rng_options elsewhere = {.step = 77, .advance_per_run = true};
    net n = build(), twin = build();
    random_source r = {9};
    other_work w = {0};
    rlxvk_executable *e = compile(&n, NULL), *other = compile(&twin, NULL), *clone = NULL;
    (void)state;
    expect_ok(rlxvk_graph_create(&w.graph));
    random_graph(w.graph, &r, 40, false);
    expect_ok(rlxvk_compile(shared_context, w.graph, NULL, &w.executable));
    uint64_t wanted = train(&n, e, &counting, NULL);
    assert_true(train(&n, e, &elsewhere, NULL) != wanted);
    assert_true(train(&n, e, &counting, NULL) == wanted);
    assert_true(train(&twin, other, &counting, &w) == wanted);
    expect_ok(rlxvk_clone(e, &clone));
    assert_true(train(&n, clone, &counting, &w) == wanted);
    rlxvk_executable_destroy(clone);
    rlxvk_executable_destroy(other);
    rlxvk_executable_destroy(e);
    rlxvk_executable_destroy(w.executable);
    rlxvk_graph_destroy(w.graph);
    rlxvk_graph_destroy(twin.graph);
    rlxvk_graph_destroy(n.graph);
}

static int set_up(void **state)
{
    exec_scratch_fill = 0x7fc00001u;
    return open_shared_context(state);
}

static int tear_down(void **state)
{
    exec_scratch_fill = 0;
    return close_shared_context(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_way_of_running_trains_alike),
                                       cmocka_unit_test(what_else_happens_does_not_matter)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
