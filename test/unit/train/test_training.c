/*
 * Twenty steps of AdamW, against another framework in double precision (test/golden/train).
 * Compares the loss of each step, the gradients of the first step and the final parameters.
 *
 * A step is one recorded run: one graph has the gradients and the optimizer. Values that change
 * from step to step are its data.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "conform/npy.h"
#include "support/harness.h"

#include <rlxvk_train.h>

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FOLDER      "test/golden/train/"
#define STEPS       20
#define MOST_PARAMS 32

typedef struct task {
    const char *name;
    rlxvk_tensor (*loss)(const struct task *t, rlxvk_tensor x, rlxvk_tensor y);
    rlxvk_graph *graph;
    size_t count;
    char names[MOST_PARAMS][16];
    npy_array start[MOST_PARAMS];
    rlxvk_tensor params[MOST_PARAMS], updated[MOST_PARAMS];
} task;

/* ---- Files ---- */

static npy_array read_array(const char *task_name, const char *format, ...)
{
    char name[64], path[160];
    npy_array array = {0};
    va_list list;
    va_start(list, format);
    vsnprintf(name, sizeof name, format, list);
    va_end(list);
    snprintf(path, sizeof path, FOLDER "%s/%s.npy", task_name, name);
    expect_ok(npy_read(path, &array));
    return array;
}

/* Reads the parameters by the names of their files, in alphabetical order. */
static void read_params(task *t)
{
    char pattern[160];
    glob_t found;
    snprintf(pattern, sizeof pattern, FOLDER "%s/param.*.npy", t->name);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_true(found.gl_pathc <= MOST_PARAMS);
    for (t->count = 0; t->count < found.gl_pathc; t->count++) {
        const char *name = strstr(found.gl_pathv[t->count], "/param.") + strlen("/param.");
        snprintf(t->names[t->count], sizeof t->names[0], "%.*s",
                 (int)(strlen(name) - strlen(".npy")), name);
        t->start[t->count] = read_array(t->name, "param.%s", t->names[t->count]);
    }
    globfree(&found);
}

static void read_options(const char *task_name, rlxvk_adamw_options *out)
{
    char path[160];
    int steps = 0;
    snprintf(path, sizeof path, FOLDER "%s/task.txt", task_name);
    FILE *file = fopen(path, "r");
    *out = (rlxvk_adamw_options){0};
    assert_non_null(file);
    assert_int_equal(fscanf(file, "lr %f beta1 %f beta2 %f eps %f weight_decay %f steps %d",
                            &out->learning_rate, &out->beta1, &out->beta2, &out->eps,
                            &out->weight_decay, &steps),
                     6);
    assert_int_equal(steps, STEPS);
    fclose(file);
}

/* ---- The nets ---- */

static rlxvk_tensor param(const task *t, const char *format, ...)
{
    char name[16];
    va_list list;
    va_start(list, format);
    vsnprintf(name, sizeof name, format, list);
    va_end(list);
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->names[i], name) == 0)
            return t->params[i];
    fail_msg("no param '%s'", name);
    return RLXVK_NONE;
}

static rlxvk_tensor mean(rlxvk_graph *g, rlxvk_tensor t)
{
    static const int32_t axes[] = {0, 1, 2, 3};
    return rlxvk_reduce_mean(g, t, axes, rlxvk_tensor_shape(g, t).rank, false);
}

static rlxvk_tensor mean_cross_entropy(rlxvk_graph *g, rlxvk_tensor logits, rlxvk_tensor labels)
{
    return mean(g, rlxvk_softmax_cross_entropy(g, logits, labels));
}

static rlxvk_tensor linear(const task *t, rlxvk_tensor x, const char *w, const char *b)
{
    return rlxvk_add(t->graph, rlxvk_matmul(t->graph, x, param(t, w)), param(t, b));
}

static rlxvk_tensor mlp(const task *t, rlxvk_tensor x, rlxvk_tensor y)
{
    rlxvk_tensor h = rlxvk_gelu(t->graph, linear(t, x, "w1", "b1"));
    h = rlxvk_layer_norm(t->graph, h, param(t, "g"), param(t, "be"), -1, 1e-5f);
    return mean_cross_entropy(t->graph, linear(t, h, "w2", "b2"), y);
}

static rlxvk_tensor cnn(const task *t, rlxvk_tensor x, rlxvk_tensor y)
{
    static const int32_t pixels[] = {2, 3};
    static const rlxvk_pool_options pool = {.kernel = {2, 2}, .stride = {2, 2}};
    static const rlxvk_conv_options conv = {.padding = {1, 1}};
    rlxvk_graph *g = t->graph;
    rlxvk_tensor h = rlxvk_conv(g, x, param(t, "k1"), param(t, "c1"), &conv);
    h = rlxvk_pool_max(g, rlxvk_relu(g, h), &pool);
    h = rlxvk_conv(g, h, param(t, "k2"), param(t, "c2"), &conv);
    h = rlxvk_silu(g, rlxvk_group_norm(g, h, param(t, "g"), param(t, "be"), 4, 1e-5f));
    h = rlxvk_reduce_mean(g, h, pixels, 2, false);
    return mean_cross_entropy(g, linear(t, h, "w", "b"), y);
}

/* Splits [B, S, E] into heads, [B, heads, S, D]. If tables are given, they are rotated. */
static rlxvk_tensor heads(rlxvk_graph *g, rlxvk_tensor x, int64_t count, const rlxvk_tensor *tables)
{
    static const int32_t perm[] = {0, 2, 1, 3};
    rlxvk_shape s = rlxvk_tensor_shape(g, x);
    int64_t dim = s.dims[2] / count;
    rlxvk_rope_options rope = {.head_dim = dim,
                               .n_rot = dim,
                               .style = RLXVK_ROPE_NEOX,
                               .table = RLXVK_ROPE_TABLE_PER_POSITION};
    if (tables)
        x = rlxvk_rope(g, x, tables[0], tables[1], &rope);
    x = rlxvk_reshape(g, x, RLXVK_SHAPE(s.dims[0], s.dims[1], count, dim));
    return rlxvk_transpose(g, x, perm, 4);
}

static void rope_tables(rlxvk_graph *g, int64_t positions, int64_t dim, rlxvk_tensor out[2])
{
    float tables[2][1024];
    int64_t half = dim / 2;
    assert_true(positions * half <= 1024);
    for (int64_t p = 0; p < positions; p++)
        for (int64_t i = 0; i < half; i++) {
            double angle = (double)p * pow(10000, -2.0 * (double)i / (double)dim);
            tables[0][p * half + i] = (float)cos(angle);
            tables[1][p * half + i] = (float)sin(angle);
        }
    for (int i = 0; i < 2; i++)
        out[i] = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(positions, half), tables[i],
                                (size_t)(positions * half) * sizeof(float));
}

static rlxvk_tensor attend(const task *t, rlxvk_tensor x, int block, const rlxvk_tensor tables[2])
{
    static const int32_t perm[] = {0, 2, 1, 3};
    rlxvk_graph *g = t->graph;
    rlxvk_shape s = rlxvk_tensor_shape(g, x);
    rlxvk_tensor q = heads(g, rlxvk_matmul(g, x, param(t, "q.%d", block)), 4, tables);
    rlxvk_tensor k = heads(g, rlxvk_matmul(g, x, param(t, "k.%d", block)), 2, tables);
    rlxvk_tensor v = heads(g, rlxvk_matmul(g, x, param(t, "v.%d", block)), 2, NULL);
    rlxvk_attention_options options = {.num_heads = 4,
                                       .num_kv_heads = 2,
                                       .head_dim = 8,
                                       .mask = RLXVK_MASK_CAUSAL,
                                       .layout = RLXVK_LAYOUT_BHSD};
    rlxvk_tensor y = rlxvk_attention(g, q, k, v, RLXVK_NONE, &options);
    y = rlxvk_reshape(g, rlxvk_transpose(g, y, perm, 4), s);
    return rlxvk_matmul(g, y, param(t, "o.%d", block));
}

static rlxvk_tensor lm(const task *t, rlxvk_tensor x, rlxvk_tensor y)
{
    rlxvk_graph *g = t->graph;
    rlxvk_matmul_options tied = {.transpose_b = true};
    rlxvk_shape s = rlxvk_tensor_shape(g, x);
    rlxvk_tensor tables[2], h = rlxvk_gather(g, param(t, "emb"), x, 0);
    rope_tables(g, s.dims[1], 8, tables);
    for (int block = 0; block < 2; block++) {
        rlxvk_tensor n = rlxvk_rms_norm(g, h, param(t, "n1.%d", block), RLXVK_NONE, -1, 1e-6f);
        h = rlxvk_add(g, h, attend(t, n, block, tables));
        n = rlxvk_rms_norm(g, h, param(t, "n2.%d", block), RLXVK_NONE, -1, 1e-6f);
        rlxvk_tensor gate = rlxvk_silu(g, rlxvk_matmul(g, n, param(t, "gate.%d", block)));
        n = rlxvk_mul(g, gate, rlxvk_matmul(g, n, param(t, "up.%d", block)));
        h = rlxvk_add(g, h, rlxvk_matmul(g, n, param(t, "down.%d", block)));
    }
    h = rlxvk_rms_norm(g, h, param(t, "nf"), RLXVK_NONE, -1, 1e-6f);
    rlxvk_tensor logits = rlxvk_matmul_with(g, h, param(t, "emb"), &tied);
    int64_t rows = s.dims[0] * s.dims[1], words = rlxvk_tensor_shape(g, logits).dims[2];
    return mean_cross_entropy(g, rlxvk_reshape(g, logits, RLXVK_SHAPE(rows, words)),
                              rlxvk_reshape(g, y, RLXVK_SHAPE(rows)));
}

static rlxvk_tensor lstm(const task *t, rlxvk_tensor x, rlxvk_tensor y)
{
    rlxvk_graph *g = t->graph;
    rlxvk_recurrent_options options = {.hidden_size = 12};
    rlxvk_shape s = rlxvk_tensor_shape(g, x);
    rlxvk_tensor h = rlxvk_lstm(g, x, param(t, "wih"), param(t, "whh"), param(t, "b"), RLXVK_NONE,
                                RLXVK_NONE, &options, NULL, NULL);
    h = rlxvk_reshape(g, rlxvk_narrow(g, h, 1, s.dims[1] - 1, 1), RLXVK_SHAPE(s.dims[0], 12));
    rlxvk_tensor d = rlxvk_sub(g, rlxvk_matmul(g, h, param(t, "w")), y);
    return mean(g, rlxvk_mul(g, d, d));
}

/* ---- A run ---- */

/* The outputs are the loss and then every gradient. The steps write the params and their
 * averages. */
static void build(task *t, const npy_array *x, const npy_array *y,
                  const rlxvk_adamw_options *options)
{
    rlxvk_tensor gradients[MOST_PARAMS];
    expect_ok(rlxvk_graph_create(&t->graph));
    rlxvk_graph *g = t->graph;
    for (size_t i = 0; i < t->count; i++)
        t->params[i] = rlxvk_param(g, t->names[i], RLXVK_F32, t->start[i].shape);
    rlxvk_tensor loss = t->loss(t, rlxvk_input(g, "x", RLXVK_F32, x->shape),
                                rlxvk_input(g, "y", RLXVK_F32, y->shape));
    rlxvk_grad(g, loss, RLXVK_NONE, t->params, t->count, gradients);
    rlxvk_optimizer_data data = {rlxvk_input(g, "schedule", RLXVK_F32, RLXVK_SHAPE(3)), RLXVK_NONE};
    rlxvk_graph_output(g, loss);
    for (size_t i = 0; i < t->count; i++) {
        char first[32], second[32];
        snprintf(first, sizeof first, "m.%s", t->names[i]);
        snprintf(second, sizeof second, "v.%s", t->names[i]);
        rlxvk_graph_output(g, gradients[i]);
        rlxvk_adamw(g, t->params[i], gradients[i],
                    rlxvk_param(g, first, RLXVK_F32, t->start[i].shape),
                    rlxvk_param(g, second, RLXVK_F32, t->start[i].shape), options, &data, NULL);
    }
    expect_ok(rlxvk_graph_status(g));
}

static void set_params(const task *t, rlxvk_executable *e)
{
    for (size_t i = 0; i < t->count; i++) {
        float *zeros = memory_zeroed(t->start[i].numel, sizeof *zeros);
        char name[32];
        assert_non_null(zeros);
        expect_ok(rlxvk_set_param(e, t->names[i], t->start[i].data, t->start[i].numel));
        for (int k = 0; k < 2; k++) {
            snprintf(name, sizeof name, "%c.%s", "mv"[k], t -> names[i]);
            expect_ok(rlxvk_set_param(e, name, zeros, t->start[i].numel));
        }
        memory_free(zeros);
    }
}

/* Each element may be off by `relative` times the largest wanted element. */
static void expect_near(const char *what, const float *got, const npy_array *wanted,
                        double relative)
{
    double largest = 0, worst = 0;
    for (uint64_t i = 0; i < wanted->numel; i++)
        largest = fmax(largest, fabs(npy_element(wanted, i)));
    for (uint64_t i = 0; i < wanted->numel; i++)
        worst = fmax(worst, fabs(got[i] - npy_element(wanted, i)));
    if (!(worst <= relative * largest))
        print_error("%s: off by %.3g of the largest\n", what, worst / largest);
    assert_true(worst <= relative * largest);
}

static void run_step(const task *t, rlxvk_executable *e, int step, double wanted,
                     const rlxvk_adamw_options *o, float *gradients[])
{
    npy_array x = read_array(t->name, "batch.%d.x", step);
    npy_array y = read_array(t->name, "batch.%d.y", step);
    rlxvk_run_output outputs[1 + MOST_PARAMS];
    float loss, schedule[] = {o->learning_rate, (float)(1 - pow(o->beta1, step + 1)),
                              (float)(1 - pow(o->beta2, step + 1))};
    const rlxvk_run_input inputs[] = {{.name = "x", .data = x.data, .length = x.numel},
                                      {.name = "y", .data = y.data, .length = y.numel},
                                      {.name = "schedule", .data = schedule, .length = 3}};
    outputs[0] = (rlxvk_run_output){.index = 0, .buffer = &loss, .length = 1};
    for (size_t i = 0; i < t->count; i++)
        outputs[1 + i] =
            (rlxvk_run_output){.index = 1 + i, .buffer = gradients[i], .length = t->start[i].numel};
    expect_ok(rlxvk_run(e, inputs, 3, outputs, step ? 1 : 1 + t->count));
    if (!(fabs(loss - wanted) <= 3e-6 * fabs(wanted)))
        print_error("%s: loss of step %d is %.9g, wanted %.9g\n", t->name, step, loss, wanted);
    assert_true(fabs(loss - wanted) <= 3e-6 * fabs(wanted));
    npy_destroy(&x);
    npy_destroy(&y);
}

static void train(task *t)
{
    rlxvk_adamw_options options;
    rlxvk_executable *e = NULL;
    rlxvk_plan_report plan;
    npy_array x = read_array(t->name, "batch.0.x"), y = read_array(t->name, "batch.0.y");
    npy_array losses = read_array(t->name, "loss");
    float *gradients[MOST_PARAMS];
    read_options(t->name, &options);
    read_params(t);
    build(t, &x, &y, &options);
    expect_ok(rlxvk_compile(shared_context, t->graph, NULL, &e));
    rlxvk_executable_plan(e, &plan);
    assert_int_equal(plan.host_steps, 0);
    assert_int_equal(losses.numel, STEPS);
    set_params(t, e);
    for (size_t i = 0; i < t->count; i++)
        assert_non_null(gradients[i] = memory_zeroed(t->start[i].numel, sizeof(float)));
    for (int step = 0; step < STEPS; step++)
        run_step(t, e, step, npy_element(&losses, (uint64_t)step), &options, gradients);
    for (size_t i = 0; i < t->count; i++) {
        npy_array first = read_array(t->name, "grad0.%s", t->names[i]);
        npy_array last = read_array(t->name, "final.%s", t->names[i]);
        expect_near(t->names[i], gradients[i], &first, 2e-5);
        expect_ok(rlxvk_read_param(e, t->names[i], gradients[i], t->start[i].numel));
        expect_near(t->names[i], gradients[i], &last, 3e-5);
        npy_destroy(&first);
        npy_destroy(&last);
        npy_destroy(&t->start[i]);
        memory_free(gradients[i]);
    }
    npy_destroy(&losses);
    npy_destroy(&x);
    npy_destroy(&y);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(t->graph);
}

#define TRAINS(net)                                                                                \
    static void net##_trains_as_elsewhere(void **state)                                            \
    {                                                                                              \
        (void)state;                                                                               \
        train(&(task){.name = #net, .loss = net});                                                 \
    }
TRAINS(mlp)
TRAINS(cnn)
TRAINS(lm)
TRAINS(lstm)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mlp_trains_as_elsewhere),
        cmocka_unit_test(cnn_trains_as_elsewhere),
        cmocka_unit_test(lm_trains_as_elsewhere),
        cmocka_unit_test(lstm_trains_as_elsewhere),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
