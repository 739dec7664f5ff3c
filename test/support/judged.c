/* See judged.h. */
#include "support/judged.h"
#include "support/rewritten.h"

#include <rlxvk_ops_array.h>
#include <rlxvk_ops_domain.h>
#include <rlxvk_train.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

/* ---- Asking ---- */

judged_answer judged_ask(rlxvk_executable *e)
{
    judged_answer a;
    expect_ok(rlxvk_first_wrong_node(e, NULL, 0, &a.first, a.worst, JUDGED_MOST, &a.count));
    return a;
}

void judged_run(rlxvk_executable *e, const rlxvk_graph *g, uint64_t seed)
{
    size_t count;
    free(run_seeded(e, g, seed, false, &count));
}

void judged_print(const rlxvk_wrong_node *w)
{
    print_error(
        "node %u %s '%s' kernel %s variant %s round %llu written '%s' index %llu: got %.9g, "
        "expected %.9g, bound %.3g; %llu of %llu wrong\n",
        w->node, w->op, w->name, w->kernel, w->variant, (unsigned long long)w->round, w->written,
        (unsigned long long)w->index, w->got, w->expected, w->bound,
        (unsigned long long)w->wrong_count, (unsigned long long)w->judged_count);
}

void judged_expect_clean(const char *what, rlxvk_executable *e)
{
    judged_answer a = judged_ask(e);
    for (size_t i = 0; i < a.count && i < JUDGED_MOST; i++)
        judged_print(&a.worst[i]);
    if (a.count || a.first.found || a.first.error > 1)
        fail_msg("%s: %zu nodes are blamed", what, a.count);
    if (a.first.computed_nodes == 0 || a.first.judged_nodes != a.first.computed_nodes)
        fail_msg("%s: %llu of %llu nodes judged", what, (unsigned long long)a.first.judged_nodes,
                 (unsigned long long)a.first.computed_nodes);
}

/* ---- Graphs ---- */

rlxvk_graph *judged_training(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(8, 12)), w = param(g, "w", RLXVK_SHAPE(12, 10));
    rlxvk_tensor b = param(g, "b", RLXVK_SHAPE(10)), labels = input(g, "labels", RLXVK_SHAPE(8));
    rlxvk_tensor all[] = {w, b}, gradients[2];
    rlxvk_tensor h = rlxvk_gelu(g, rlxvk_add(g, rlxvk_matmul(g, x, w), b));
    h = rlxvk_dropout(g, h, &(rlxvk_dropout_options){.rate = 0.25f, .seed = 7}, RLXVK_NONE);
    rlxvk_tensor loss =
        rlxvk_reduce_mean(g, rlxvk_softmax_cross_entropy(g, h, rlxvk_relu(g, labels)),
                          (int32_t[]){0}, 1, false);
    rlxvk_grad(g, loss, RLXVK_NONE, all, 2, gradients);
    expect_ok(rlxvk_adamw_all(g, all, gradients, 2,
                              &(rlxvk_adamw_options){.step = 1, .weight_decay = 0.01f}, NULL));
    rlxvk_graph_output(g, loss);
    return g;
}

/* carry = tanh(carry w) + x_t, not unrolled; the result is a trajectory. */
rlxvk_graph *judged_loop(void)
{
    rlxvk_graph *g = new_graph(), *body = new_graph();
    rlxvk_graph_set_unroll_limit(g, 1);
    rlxvk_tensor carry = input(body, "carry", RLXVK_SHAPE(2, 6));
    rlxvk_tensor step = input(body, "step", RLXVK_SHAPE(2, 6));
    rlxvk_tensor h = rlxvk_matmul(body, carry, param(body, "w", RLXVK_SHAPE(6, 6)));
    rlxvk_graph_output(body, rlxvk_add(body, rlxvk_tanh(body, rlxvk_softmax(body, h, 1)), step));
    rlxvk_tensor values[] = {input(g, "h", RLXVK_SHAPE(2, 6)), input(g, "x", RLXVK_SHAPE(9, 2, 6))};
    rlxvk_tensor y =
        rlxvk_scan(g, body, values, 2, &(rlxvk_scan_options){.length = 9, .save_trajectory = true});
    rlxvk_graph_destroy(body);
    rlxvk_graph_output(g, rlxvk_cumsum(g, y, 0, false));
    return g;
}

static rlxvk_graph *regions(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(5, 33)), y = input(g, "y", RLXVK_SHAPE(33));
    rlxvk_tensor z = rlxvk_mul(g, rlxvk_sigmoid(g, rlxvk_add(g, x, y)), rlxvk_exp(g, x));
    rlxvk_graph_output(g, rlxvk_softmax(g, z, 0));
    return g;
}

/* Norms of a sum that is read elsewhere are lowered with it as one step. */
rlxvk_graph *judged_norm_pairs(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(7, 32)), w = param(g, "w", RLXVK_SHAPE(32, 32));
    rlxvk_tensor gamma = param(g, "gamma", RLXVK_SHAPE(32));
    for (int i = 0; i < 3; i++) {
        rlxvk_tensor h = rlxvk_layer_norm(g, x, gamma, RLXVK_NONE, -1, 1e-5f);
        h = rlxvk_matmul(g, rlxvk_relu(g, h), w);
        x = rlxvk_add(g, x, h);
        if (i == 0)
            rlxvk_graph_output(g, x);
    }
    rlxvk_graph_output(g, x);
    return g;
}

/* Heads are strided parts of one product. */
static rlxvk_graph *heads(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(2, 9, 32)), w = param(g, "w", RLXVK_SHAPE(32, 96));
    rlxvk_tensor qkv = rlxvk_matmul(g, x, w), parts[3];
    for (int i = 0; i < 3; i++)
        parts[i] = rlxvk_transpose(g,
                                   rlxvk_reshape(g, rlxvk_narrow(g, qkv, 2, 32 * i, 32),
                                                 RLXVK_SHAPE(2, 9, 4, 8)),
                                   (int32_t[]){0, 2, 1, 3}, 4);
    rlxvk_tensor y = rlxvk_attention(g, parts[0], parts[1], parts[2], RLXVK_NONE,
                                     &(rlxvk_attention_options){.mask = RLXVK_MASK_CAUSAL});
    y = rlxvk_reshape(g, rlxvk_transpose(g, y, (int32_t[]){0, 2, 1, 3}, 4), RLXVK_SHAPE(2, 9, 32));
    rlxvk_graph_output(g, rlxvk_matmul(g, y, param(g, "o", RLXVK_SHAPE(32, 32))));
    return g;
}

/* Columns of a product are written as dense parts. */
static rlxvk_graph *parts(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(12, 16));
    rlxvk_tensor both = rlxvk_matmul(g, x, param(g, "w", RLXVK_SHAPE(16, 40)));
    rlxvk_tensor a = rlxvk_narrow(g, both, 1, 0, 24), b = rlxvk_narrow(g, both, 1, 24, 16);
    rlxvk_graph_output(g, rlxvk_matmul(g, a, param(g, "a", RLXVK_SHAPE(24, 8))));
    rlxvk_graph_output(g, rlxvk_softmax(g, b, 1));
    return g;
}

static rlxvk_graph *joined(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(4, 10)), pieces[3];
    pieces[0] = rlxvk_softmax(g, x, 1);
    pieces[1] = x;
    pieces[2] = rlxvk_cumsum(g, x, 1, false);
    rlxvk_graph_output(g, rlxvk_matmul(g, rlxvk_concat(g, pieces, 3, 0),
                                       param(g, "w", RLXVK_SHAPE(10, 6))));
    return g;
}

static rlxvk_graph *halves(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(3, 32));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F16, RLXVK_SHAPE(32, 32));
    rlxvk_tensor v = rlxvk_param(g, "v", RLXVK_BF16, RLXVK_SHAPE(32, 16));
    rlxvk_graph_output(g, rlxvk_matmul(g, rlxvk_silu(g, rlxvk_matmul(g, x, w)), v));
    return g;
}

static rlxvk_graph *packed(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(3, 64));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_U8, RLXVK_SHAPE(20 * 2 * 18));
    rlxvk_graph_output(g, rlxvk_softmax(g, rlxvk_dequant_matmul(g, x, w, RLXVK_Q4_0), 1));
    return g;
}

static rlxvk_graph *complex_numbers(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(3, 16));
    rlxvk_tensor y =
        rlxvk_fft(g, rlxvk_cast(g, rlxvk_exp(g, x), RLXVK_C64), false, RLXVK_FFT_ORTHO);
    y = rlxvk_fft(g, rlxvk_mul(g, y, y), true, RLXVK_FFT_ORTHO);
    rlxvk_graph_output(g, rlxvk_complex_norm_sq(g, y));
    return g;
}

static rlxvk_graph *images(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(2, 3, 9, 9));
    rlxvk_tensor w = param(g, "w", RLXVK_SHAPE(4, 3, 3, 3)), vectors[4];
    for (int i = 0; i < 4; i++)
        vectors[i] = param(g, (const char *[]){"gamma", "beta", "mean", "var"}[i], RLXVK_SHAPE(4));
    rlxvk_tensor y = rlxvk_conv(g, x, w, RLXVK_NONE, &(rlxvk_conv_options){.padding = {1, 1}});
    y = rlxvk_batch_norm_training(g, y, vectors[0], vectors[1], vectors[2],
                                  rlxvk_state(g, "running", RLXVK_F32, RLXVK_SHAPE(4)), NULL);
    y = rlxvk_relu(g, y);
    rlxvk_graph_output(g, rlxvk_reduce_mean(g, y, (int32_t[]){2, 3}, 2, false));
    return g;
}

static rlxvk_graph *indices(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(6, 50));
    rlxvk_tensor order = rlxvk_argsort(g, x, 1, false);
    rlxvk_graph_output(g, rlxvk_take_along_axis(g, x, order, 1));
    rlxvk_graph_output(g, rlxvk_gather(g, x, rlxvk_argmax(g, x, 0, false), 0));
    return g;
}

/* Carries two values until the first is above 20. */
static rlxvk_graph *until(void)
{
    rlxvk_graph *g = new_graph(), *condition = new_graph(), *body = new_graph();
    rlxvk_tensor out[2];
    rlxvk_graph_set_unroll_limit(g, 1);
    rlxvk_tensor c = input(condition, "i", RLXVK_SHAPE(1));
    (void)input(condition, "v", RLXVK_SHAPE(4));
    rlxvk_graph_output(condition, rlxvk_lt(condition, c, rlxvk_scalar(condition, 20)));
    rlxvk_tensor i = input(body, "i", RLXVK_SHAPE(1)), v = input(body, "v", RLXVK_SHAPE(4));
    rlxvk_graph_output(body, rlxvk_add(body, i, rlxvk_scalar(body, 3)));
    rlxvk_graph_output(body, rlxvk_add(body, rlxvk_softmax(body, v, 0), i));
    rlxvk_tensor carried[] = {rlxvk_sigmoid(g, input(g, "x", RLXVK_SHAPE(1))),
                              input(g, "v", RLXVK_SHAPE(4))};
    rlxvk_while(g, condition, body, 100, carried, 2, out);
    rlxvk_graph_destroy(condition);
    rlxvk_graph_destroy(body);
    rlxvk_graph_output(g, rlxvk_cumsum(g, out[1], 0, false));
    return g;
}

/* Two calls advance one state in place. */
static rlxvk_graph *advancing(int64_t hidden)
{
    const rlxvk_recurrent_options o = {.hidden_size = hidden, .num_layers = 4, .in_place = true};
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(4, 6, hidden));
    rlxvk_tensor w = param(g, "w", RLXVK_SHAPE(16 * hidden * hidden));
    rlxvk_tensor u = param(g, "u", RLXVK_SHAPE(16 * hidden * hidden));
    rlxvk_tensor b = param(g, "b", RLXVK_SHAPE(16 * hidden));
    rlxvk_tensor h = input(g, "h", RLXVK_SHAPE(4, 4, hidden));
    rlxvk_tensor c = input(g, "c", RLXVK_SHAPE(4, 4, hidden));
    for (int i = 0; i < 2; i++)
        rlxvk_graph_output(g, rlxvk_lstm(g, rlxvk_narrow(g, x, 1, 3 * i, 3), w, u, b, h, c, &o,
                                         NULL, NULL));
    return g;
}

/* The steps of the two calls lie between each other. */
static rlxvk_graph *recurrent(void)
{
    return advancing(16);
}

/* A layer's state is shorter than the alignment of bindings. So a step also binds the end of the
 * layer before, which is written already. */
static rlxvk_graph *recurrent_unaligned(void)
{
    return advancing(5);
}

static rlxvk_graph *random_numbers(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor noise = rlxvk_rng_uniform(g, RLXVK_SHAPE(40), -1, 1, NULL);
    rlxvk_graph_output(g, rlxvk_cumsum(g, rlxvk_add(g, noise, input(g, "x", RLXVK_SHAPE(40))), 0,
                                       false));
    return g;
}

const judged_graph judged_graphs[JUDGED_GRAPHS] = {
    {"regions", regions, {0}},
    {"regions, nothing fused", regions, {.fusion = RLXVK_OFF}},
    {"regions, on the host", regions, {.force_host = RLXVK_ON}},
    {"norm pairs", judged_norm_pairs, {0}},
    {"norm pairs, prepared", judged_norm_pairs, {.prepared_bytes = 1u << 20}},
    {"norm pairs, f16 weights", judged_norm_pairs, {.weight_storage = RLXVK_WEIGHTS_F16}},
    {"heads", heads, {0}},
    {"heads, keep all", heads, {.keep_all = RLXVK_ON}},
    {"parts", parts, {0}},
    {"joined", joined, {0}},
    {"halves", halves, {0}},
    {"packed", packed, {0}},
    {"complex numbers", complex_numbers, {0}},
    {"images", images, {0}},
    {"images, profiled", images, {.profile = RLXVK_ON, .cached = RLXVK_OFF}},
    {"indices", indices, {.check_index = RLXVK_ON}},
    {"while", until, {0}},
    {"scan", judged_loop, {0}},
    {"scan, on the host", judged_loop, {.force_host = RLXVK_ON}},
    {"recurrent", recurrent, {0}},
    {"recurrent, unaligned", recurrent_unaligned, {0}},
    {"random numbers", random_numbers, {0}},
    {"training", judged_training, {0}},
    {"training, no memory reused", judged_training, {.reuse_memory = RLXVK_OFF}},
};
