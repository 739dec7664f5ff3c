/*
 * Ops that are built from other ops, compared with loops that follow their formulas, and the pinned
 * example of the gate. After an error they must leave nothing behind. On a device, a singular
 * matrix must end the run with E_SINGULAR and must not spoil other results.
 */
#include "op/op.h"
#include "support/harness.h"
#include "support/rewritten.h"

#include <rlxvk_ops_math.h>
#include <rlxvk_train.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { B = 2, S = 3, H = 2, D = 4, I = H * D, E = 5, F = 7 };

/* `count` values in [-1, 1] that depend on the seed. */
static float *noise(uint64_t seed, size_t count)
{
    random_source r = {seed};
    float *values = malloc((count + 1) * sizeof *values);
    random_fill(&r, false, values, count);
    return values;
}

static void expect_near(const rlxvk_graph *g, const double *wanted, size_t count, double tolerance)
{
    size_t got_count;
    expect_ok(rlxvk_graph_status(g));
    float *got = evaluate_seeded(g, 1, false, &got_count);
    assert_int_equal(got_count, count);
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)got[i] - wanted[i]) <= tolerance)) {
            print_error("element %zu: got %g, wanted %g\n", i, (double)got[i], wanted[i]);
            assert_true(false);
        }
    free(got);
}

/* ---- The encoder layer, by its formulas ---- */

typedef struct weights {
    float *hidden, *qkv_w, *qkv_b, *out_w, *out_b, *g1, *b1, *fc1_w, *fc1_b, *fc2_w, *fc2_b, *g2,
        *b2, *cos, *sin;
} weights;

static weights make_weights(void)
{
    return (weights){noise(1, B * S * E), noise(2, E * 3 * I),  noise(3, 3 * I),
                     noise(4, I * E),     noise(5, E),          noise(6, E),
                     noise(7, E),         noise(8, E * F),      noise(9, F),
                     noise(10, F * E),    noise(11, E),         noise(12, E),
                     noise(13, E),        noise(14, S * D / 2), noise(15, S * D / 2)};
}

static void free_weights(weights *w)
{
    float *all[] = {w->hidden, w->qkv_w, w->qkv_b, w->out_w, w->out_b, w->g1,  w->b1, w->fc1_w,
                    w->fc1_b,  w->fc2_w, w->fc2_b, w->g2,    w->b2,    w->cos, w->sin};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static const float mask[B * S] = {1, 0, 1, 1, 1, 0};

static void affine(const double *x, const float *w, const float *bias, int rows, int k, int n,
                   double *y)
{
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < n; j++) {
            double sum = bias ? bias[j] : 0;
            for (int p = 0; p < k; p++)
                sum += x[r * k + p] * w[p * n + j];
            y[r * n + j] = sum;
        }
}

/* Rotary embedding: rotates the pairs (i, i + D/2) of each head of q and k. The rows are [q, k,
 * v]. */
static void turn(double *packed, const float *cosines, const float *sines)
{
    for (int row = 0; row < B * S; row++)
        for (int head = 0; head < 2 * H; head++)
            for (int i = 0; i < D / 2; i++) {
                double *a = packed + row * 3 * I + head * D + i, *b = a + D / 2, before = *a;
                double c = cosines[row % S * D / 2 + i], s = sines[row % S * D / 2 + i];
                *a = before * c - *b * s;
                *b = before * s + *b * c;
            }
}

/* Attention of one query of one head. */
static void attend(const double *packed, int batch, int head, int query, double *y)
{
    double weight[S], sum = 0;
    const double *q = packed + (batch * S + query) * 3 * I + head * D;
    for (int j = 0; j < S; j++) {
        const double *k = packed + (batch * S + j) * 3 * I + I + head * D;
        double score = 0;
        for (int d = 0; d < D; d++)
            score += q[d] * k[d];
        weight[j] = mask[batch * S + j] < 0.5f ? 0 : exp(score / sqrt(D));
        sum += weight[j];
    }
    for (int d = 0; d < D; d++) {
        y[d] = 0;
        for (int j = 0; j < S; j++)
            y[d] += weight[j] / sum * packed[(batch * S + j) * 3 * I + 2 * I + head * D + d];
    }
}

static void block_formula(const weights *w, bool biases, bool rope, double *y)
{
    double x[B * S * E], packed[B * S * 3 * I], heads[B * S * I];
    for (int i = 0; i < B * S * E; i++)
        x[i] = w->hidden[i];
    affine(x, w->qkv_w, biases ? w->qkv_b : NULL, B * S, E, 3 * I, packed);
    if (rope)
        turn(packed, w->cos, w->sin);
    for (int i = 0; i < B * S * H; i++)
        attend(packed, i / H / S, i % H, i / H % S, heads + i * D);
    affine(heads, w->out_w, biases ? w->out_b : NULL, B * S, I, E, y);
}

static void norm_formula(double *x, const float *gamma, const float *beta, double eps)
{
    for (int row = 0; row < B * S; row++) {
        double mean = 0, variance = 0, *r = x + row * E;
        for (int i = 0; i < E; i++)
            mean += r[i] / E;
        for (int i = 0; i < E; i++)
            variance += (r[i] - mean) * (r[i] - mean) / E;
        for (int i = 0; i < E; i++)
            r[i] = (r[i] - mean) / sqrt(variance + eps) * gamma[i] + (beta ? beta[i] : 0);
    }
}

static void layer_formula(const weights *w, bool biases, double *y)
{
    double h[B * S * E], f[B * S * F];
    block_formula(w, biases, false, h);
    for (int i = 0; i < B * S * E; i++)
        h[i] += w->hidden[i];
    norm_formula(h, w->g1, biases ? w->b1 : NULL, 0.5);
    affine(h, w->fc1_w, biases ? w->fc1_b : NULL, B * S, E, F, f);
    for (int i = 0; i < B * S * F; i++)
        f[i] = fmax(f[i], 0);
    affine(f, w->fc2_w, biases ? w->fc2_b : NULL, B * S, F, E, y);
    for (int i = 0; i < B * S * E; i++)
        y[i] += h[i];
    norm_formula(y, w->g2, biases ? w->b2 : NULL, 0.25);
}

static void the_attention_block_is_its_formula(void **state)
{
    weights w = make_weights();
    double wanted[B * S * E];
    (void)state;
    for (int way = 0; way < 4; way++) {
        bool biases = way & 1, rope = way & 2;
        rlxvk_graph *g = new_graph();
        rlxvk_attention_block block = {
            .hidden = floats(g, RLXVK_SHAPE(B, S, E), w.hidden),
            .qkv_w = floats(g, RLXVK_SHAPE(E, 3 * I), w.qkv_w),
            .out_w = floats(g, RLXVK_SHAPE(I, E), w.out_w),
            .mask = floats(g, RLXVK_SHAPE(B, S), mask),
            .qkv_b = biases ? floats(g, RLXVK_SHAPE(3 * I), w.qkv_b) : RLXVK_NONE,
            .out_b = biases ? floats(g, RLXVK_SHAPE(E), w.out_b) : RLXVK_NONE,
            .cos = rope ? floats(g, RLXVK_SHAPE(S, D / 2), w.cos) : RLXVK_NONE,
            .sin = rope ? floats(g, RLXVK_SHAPE(S, D / 2), w.sin) : RLXVK_NONE,
            .num_heads = H,
            .head_dim = D};
        rlxvk_graph_output(g, rlxvk_fused_attention_block(g, &block));
        block_formula(&w, biases, rope, wanted);
        expect_near(g, wanted, B * S * E, 1e-5);
        rlxvk_graph_destroy(g);
    }
    free_weights(&w);
}

static void the_transformer_layer_is_its_formula(void **state)
{
    weights w = make_weights();
    double wanted[B * S * E];
    (void)state;
    for (int biases = 0; biases < 2; biases++) {
        rlxvk_graph *g = new_graph();
        rlxvk_transformer_layer layer = {.hidden = floats(g, RLXVK_SHAPE(B, S, E), w.hidden),
                                         .qkv_w = floats(g, RLXVK_SHAPE(E, 3 * I), w.qkv_w),
                                         .out_w = floats(g, RLXVK_SHAPE(I, E), w.out_w),
                                         .ln1_g = floats(g, RLXVK_SHAPE(E), w.g1),
                                         .fc1_w = floats(g, RLXVK_SHAPE(E, F), w.fc1_w),
                                         .fc2_w = floats(g, RLXVK_SHAPE(F, E), w.fc2_w),
                                         .ln2_g = floats(g, RLXVK_SHAPE(E), w.g2),
                                         .mask = floats(g, RLXVK_SHAPE(B, S), mask),
                                         .num_heads = H,
                                         .head_dim = D,
                                         .intermediate_size = F,
                                         .eps1 = 0.5f,
                                         .eps2 = 0.25f,
                                         .activation = RLXVK_ACTIVATION_RELU};
        if (biases) {
            layer.qkv_b = floats(g, RLXVK_SHAPE(3 * I), w.qkv_b);
            layer.out_b = floats(g, RLXVK_SHAPE(E), w.out_b);
            layer.ln1_b = floats(g, RLXVK_SHAPE(E), w.b1);
            layer.fc1_b = floats(g, RLXVK_SHAPE(F), w.fc1_b);
            layer.fc2_b = floats(g, RLXVK_SHAPE(E), w.fc2_b);
            layer.ln2_b = floats(g, RLXVK_SHAPE(E), w.b2);
        }
        rlxvk_graph_output(g, rlxvk_fused_transformer_layer(g, &layer));
        layer_formula(&w, biases, wanted);
        expect_near(g, wanted, B * S * E, 1e-4);
        rlxvk_graph_destroy(g);
    }
    free_weights(&w);
}

static void lora_is_its_formula(void **state)
{
    float *x = noise(1, 6), *w = noise(2, 12), *a = noise(3, 6), *b = noise(4, 8);
    rlxvk_graph *g = new_graph();
    double wanted[8], wide[6], low[4], high[8];
    (void)state;
    for (int i = 0; i < 6; i++)
        wide[i] = x[i];
    affine(wide, w, NULL, 2, 3, 4, wanted);
    affine(wide, a, NULL, 2, 3, 2, low);
    affine(low, b, NULL, 2, 2, 4, high);
    for (int i = 0; i < 8; i++)
        wanted[i] += -1.5 * high[i];
    rlxvk_graph_output(g, rlxvk_lora_matmul(g, floats(g, RLXVK_SHAPE(2, 3), x),
                                            floats(g, RLXVK_SHAPE(3, 4), w),
                                            floats(g, RLXVK_SHAPE(3, 2), a),
                                            floats(g, RLXVK_SHAPE(2, 4), b), -1.5f));
    expect_near(g, wanted, 8, 1e-6);
    rlxvk_graph_destroy(g);
    free(x);
    free(w);
    free(a);
    free(b);
}

/* ---- dot_general ---- */

/* y[b, c, a, e] = sum over d, f of l[c, d, b, f, a] r[f, b, e, d]. The axes of no operand are in
 * the order of matmul. */
static void dot_general_takes_any_axes(void **state)
{
    enum { A = 2, BB = 3, C = 2, DD = 4, EE = 5, FF = 3 };
    float *l = noise(1, C * DD * BB * FF * A), *r = noise(2, FF * BB * EE * DD);
    double wanted[BB * C * A * EE];
    const rlxvk_dot_general_options options = {
        (const int32_t[]){3, 1}, (const int32_t[]){0, -1}, 2,
        (const int32_t[]){2},    (const int32_t[]){1},     1};
    (void)state;
    for (int i = 0; i < BB * C * A * EE; i++) {
        int e = i % EE, a = i / EE % A, c = i / EE / A % C, b = i / EE / A / C;
        wanted[i] = 0;
        for (int d = 0; d < DD; d++)
            for (int f = 0; f < FF; f++)
                wanted[i] += (double)l[(((c * DD + d) * BB + b) * FF + f) * A + a] *
                             (double)r[((f * BB + b) * EE + e) * DD + d];
    }
    rlxvk_graph *g = new_graph();
    rlxvk_graph_output(g, rlxvk_dot_general(g, floats(g, RLXVK_SHAPE(C, DD, BB, FF, A), l),
                                            floats(g, RLXVK_SHAPE(FF, BB, EE, DD), r), &options));
    expect_near(g, wanted, BB * C * A * EE, 1e-5);
    rlxvk_graph_destroy(g);
    free(l);
    free(r);
}

/* If the operands are matrices, transposed or not, they are not copied. */
static void dot_general_copies_no_plain_swap(void **state)
{
    (void)state;
    for (int32_t way = 0; way < 4; way++) {
        int32_t left = 1 + (way & 1), right = 1 + (way >> 1);
        const rlxvk_dot_general_options options = {
            &left, &right, 1, (const int32_t[]){0}, (const int32_t[]){0}, 1};
        rlxvk_graph *g = new_graph();
        rlxvk_graph_output(g, rlxvk_dot_general(g, input(g, "l", RLXVK_SHAPE(2, 3, 3)),
                                                input(g, "r", RLXVK_SHAPE(2, 3, 3)), &options));
        expect_ok(rlxvk_graph_status(g));
        assert_int_equal(count_op(g, OP_transpose), 0);
        assert_int_equal(count_op(g, OP_matmul), 1);
        rlxvk_graph_destroy(g);
    }
}

/* ---- Scaled sums ---- */

/* The gradient of log_sum_exp is exp(x - y), that of l2_norm x / y, and that of l1_norm the sign of
 * x. This also holds if a plain sum would overflow, and at 0. */
static void scaled_sums_have_plain_gradients(void **state)
{
    enum { ROWS = 4, N = 3 };
    float x[ROWS * N] = {1, -2, 0.5f, 90, 89, -100, 3e30f, -4e30f, 0, 0, 0, 0};
    const int32_t last = 1;
    (void)state;
    for (int op = 0; op < 3; op++) {
        double wanted[ROWS * N];
        rlxvk_graph *g = new_graph();
        rlxvk_tensor in = floats(g, RLXVK_SHAPE(ROWS, N), x), gradient;
        rlxvk_tensor y = op == 0   ? rlxvk_log_sum_exp(g, in, &last, 1, false)
                         : op == 1 ? rlxvk_l1_norm(g, in, &last, 1, true)
                                   : rlxvk_l2_norm(g, in, &last, 1, false);
        for (int r = 0; r < ROWS; r++) {
            double largest = -INFINITY, sum = 0, squares = 0;
            for (int i = 0; i < N; i++)
                largest = fmax(largest, (double)x[r * N + i]);
            for (int i = 0; i < N; i++) {
                sum += exp((double)x[r * N + i] - largest);
                squares += (double)x[r * N + i] * (double)x[r * N + i];
            }
            for (int i = 0; i < N; i++) {
                double v = (double)x[r * N + i];
                wanted[r * N + i] = op == 0        ? exp(v - largest) / sum
                                    : op == 1      ? (v > 0) - (v < 0)
                                    : squares == 0 ? 0
                                                   : v / sqrt(squares);
            }
        }
        rlxvk_tensor sum = rlxvk_reduce_sum(g, y, (int32_t[]){0}, 1, false);
        if (op == 1)
            sum = rlxvk_reshape(g, sum, RLXVK_SCALAR);
        rlxvk_grad(g, sum, RLXVK_NONE, &in, 1, &gradient);
        rlxvk_graph_output(g, gradient);
        expect_near(g, wanted, ROWS * N, 1e-6);
        rlxvk_graph_destroy(g);
    }
}

/* ---- einsum ---- */

/* Computes an einsum by its definition: a loop over all values of the indices a to h. `shapes` are
 * those of the operands. */
static void expect_einsum(const char *equation, size_t count, const rlxvk_shape *shapes)
{
    int64_t dims[8] = {1, 1, 1, 1, 1, 1, 1, 1}, at[8] = {0}, places = 1, size = 1;
    const char *letters[4] = {equation}, *result = strchr(equation, '>') + 1;
    float *content[4];
    rlxvk_tensor operands[4];
    rlxvk_graph *g = new_graph();
    for (size_t i = 0; i < count; i++) {
        letters[i] = i ? strchr(letters[i - 1], ',') + 1 : equation;
        content[i] = noise(i + 1, (size_t)shape_numel(&shapes[i]));
        operands[i] = floats(g, shapes[i], content[i]);
        for (uint32_t k = 0; k < shapes[i].rank; k++)
            dims[letters[i][k] - 'a'] = shapes[i].dims[k];
    }
    for (int i = 0; i < 8; i++)
        places *= dims[i];
    for (const char *c = result; *c; c++)
        size *= dims[*c - 'a'];
    double *wanted = calloc((size_t)size + 1, sizeof *wanted);
    for (int64_t place = 0; place < places; place++) {
        double product = 1;
        int64_t to = 0, rest = place;
        for (int i = 0; i < 8; rest /= dims[i++])
            at[i] = rest % dims[i];
        for (size_t i = 0; i < count; i++) {
            int64_t from = 0;
            for (uint32_t k = 0; k < shapes[i].rank; k++)
                from = from * shapes[i].dims[k] + at[letters[i][k] - 'a'];
            product *= (double)content[i][from];
        }
        for (const char *c = result; *c; c++)
            to = to * dims[*c - 'a'] + at[*c - 'a'];
        wanted[to] += product;
    }
    rlxvk_graph_output(g, rlxvk_einsum(g, equation, operands, count));
    expect_near(g, wanted, (size_t)size, 1e-5);
    rlxvk_graph_destroy(g);
    free(wanted);
    for (size_t i = 0; i < count; i++)
        free(content[i]);
}

static void einsum_is_its_definition(void **state)
{
    (void)state;
    expect_einsum("ab,bc->ac", 2, (rlxvk_shape[]){RLXVK_SHAPE(3, 4), RLXVK_SHAPE(4, 5)});
    expect_einsum("ab,bc->ca", 2, (rlxvk_shape[]){RLXVK_SHAPE(3, 4), RLXVK_SHAPE(4, 5)});
    expect_einsum("acbd,aebd->abce", 2,
                  (rlxvk_shape[]){RLXVK_SHAPE(2, 3, 2, 4), RLXVK_SHAPE(2, 5, 2, 4)});
    expect_einsum("aab->b", 1, (rlxvk_shape[]){RLXVK_SHAPE(3, 3, 4)});
    expect_einsum("abab->ba", 1, (rlxvk_shape[]){RLXVK_SHAPE(3, 4, 3, 4)});
    expect_einsum("aaa->a", 1, (rlxvk_shape[]){RLXVK_SHAPE(3, 3, 3)});
    expect_einsum("ab,cab->c", 2, (rlxvk_shape[]){RLXVK_SHAPE(3, 4), RLXVK_SHAPE(2, 3, 4)});
    expect_einsum("ab,cd->bd", 2, (rlxvk_shape[]){RLXVK_SHAPE(3, 4), RLXVK_SHAPE(2, 5)});
    expect_einsum("ab,ab->ba", 2, (rlxvk_shape[]){RLXVK_SHAPE(3, 4), RLXVK_SHAPE(3, 4)});
    expect_einsum("ab,cbd,ad,ec->ea", 4,
                  (rlxvk_shape[]){RLXVK_SHAPE(3, 4), RLXVK_SHAPE(2, 4, 5), RLXVK_SHAPE(3, 5),
                                  RLXVK_SHAPE(2, 2)});
}

/* Vectors follow the rule of numpy.matmul. */
static void vectors_are_multiplied(void **state)
{
    static const double dot = 1 * 4 + 2 * 5 + 3 * 6, row[] = {14, 32}, column[] = {14, 32};
    float v[] = {1, 2, 3}, w[] = {4, 5, 6}, m[] = {1, 2, 3, 4, 5, 6}, turned[] = {1, 4, 2, 5, 3, 6};
    rlxvk_graph *g[3] = {new_graph(), new_graph(), new_graph()};
    (void)state;
    rlxvk_graph_output(g[0], rlxvk_matmul(g[0], floats(g[0], RLXVK_SHAPE(3), v),
                                          floats(g[0], RLXVK_SHAPE(3), w)));
    expect_near(g[0], &dot, 1, 0);
    rlxvk_graph_output(g[1], rlxvk_matmul(g[1], floats(g[1], RLXVK_SHAPE(3), v),
                                          floats(g[1], RLXVK_SHAPE(3, 2), turned)));
    expect_near(g[1], row, 2, 0);
    rlxvk_graph_output(g[2], rlxvk_matmul(g[2], floats(g[2], RLXVK_SHAPE(2, 3), m),
                                          floats(g[2], RLXVK_SHAPE(3), v)));
    expect_near(g[2], column, 2, 0);
    for (int i = 0; i < 3; i++)
        rlxvk_graph_destroy(g[i]);
}

static void a_failing_part_leaves_nothing_behind(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_attention_block block = {.hidden = input(g, "x", RLXVK_SHAPE(B, S, E)),
                                   .qkv_w = input(g, "w", RLXVK_SHAPE(E, 3 * I)),
                                   .out_w = input(g, "o", RLXVK_SHAPE(I, E)),
                                   .mask = input(g, "m", RLXVK_SHAPE(B, S + 1)),
                                   .num_heads = H,
                                   .head_dim = D};
    size_t count = g->nodes.count;
    (void)state;
    assert_int_equal(rlxvk_fused_attention_block(g, &block).id, 0);
    assert_int_equal(g->nodes.count, count);
    expect_error(rlxvk_graph_status(g), RLXVK_E_SHAPE,
                 "fused_attention_block (node 4): attention (of an inner step, ");
    assert_string_equal(rlxvk_graph_error(g), rlxvk_last_error());
    rlxvk_graph_destroy(g);
}

/* ---- group_limited_gate ---- */

/* The group that has the best single expert loses, because the groups' sums are 1.0 and 1.1. */
static void the_gate_adds_two_routes_of_a_group(void **state)
{
    const float route[] = {.9f, .1f, .6f, .5f}, sig[] = {.2f, .3f, .4f, .1f};
    const double wanted[] = {2, 3, 1.6, 0.4};
    const rlxvk_gate_options options = {.n_group = 2,
                                        .topk_group = 1,
                                        .top_k = 2,
                                        .routed_scaling = 2};
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_graph_output(g, rlxvk_group_limited_gate(g, floats(g, RLXVK_SHAPE(1, 4), sig),
                                                   floats(g, RLXVK_SHAPE(1, 4), route), &options));
    expect_near(g, wanted, 4, 1e-6);
    rlxvk_graph_destroy(g);
}

/* ---- dense solves ---- */

static void a_singular_slice_spoils_only_itself(void **state)
{
    const float a[] = {2, 0, 0, 4, 1, 1, 1, 1, 0, 1, 1, 0}, b[] = {2, 4, 1, 1, 5, 6};
    float x[6], doubled[6];
    rlxvk_context *c = open_context(NULL);
    rlxvk_executable *e = NULL;
    rlxvk_graph *g = new_graph();
    rlxvk_tensor right = input(g, "b", RLXVK_SHAPE(3, 2));
    rlxvk_tensor solved = rlxvk_batched_dense_solve(g, input(g, "a", RLXVK_SHAPE(3, 2, 2)), right);
    (void)state;
    rlxvk_graph_output(g, rlxvk_neg(g, solved));
    rlxvk_graph_output(g, rlxvk_add(g, right, right));
    expect_ok(rlxvk_compile(c, g, NULL, &e));
    const rlxvk_run_input inputs[] = {{"a", a, 12, RLXVK_F32}, {"b", b, 6, RLXVK_F32}};
    const rlxvk_run_output outputs[] = {{0, x, 6, RLXVK_F32}, {1, doubled, 6, RLXVK_F32}};
    for (int turn = 0; turn < 2; turn++) {
        expect_error(rlxvk_run(e, inputs, 2, outputs, 2), RLXVK_E_SINGULAR, "slice 1");
        assert_true(x[0] == -1 && x[1] == -1 && x[4] == -6 && x[5] == -5);
        assert_true(isnan(x[2]) && isnan(x[3]));
        assert_true(doubled[0] == 4 && doubled[5] == 12);
    }
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    close_context(c);
}

/* A size of -1 is not a wildcard here. A scalar is a single constant node. */
static void constants_have_the_shape_they_are_given(void **state)
{
    const rlxvk_shape shapes[] = {RLXVK_SCALAR, RLXVK_SHAPE(1), RLXVK_SHAPE(3, 0),
                                  RLXVK_SHAPE(2, 1, 3)};
    const rlxvk_shape refused[] = {RLXVK_SHAPE(-1), RLXVK_SHAPE(2, -1), RLXVK_SHAPE(-7, 2)};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(shapes); i++) {
        const double wanted[] = {2.5, 2.5, 2.5, 2.5, 2.5, 2.5};
        rlxvk_graph *g = new_graph();
        rlxvk_tensor t = rlxvk_full(g, shapes[i], 2.5f);
        assert_true(rlxvk_shape_equal(rlxvk_tensor_shape(g, t), shapes[i]));
        assert_int_equal(g->nodes.count, shapes[i].rank ? 2 : 1);
        rlxvk_graph_output(g, t);
        expect_near(g, wanted, shape_product(&shapes[i], 0, shapes[i].rank), 0);
        rlxvk_graph_destroy(g);
    }
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++) {
        rlxvk_graph *g = new_graph();
        assert_int_equal(rlxvk_full(g, refused[i], 1).id, 0);
        assert_int_equal(rlxvk_graph_status(g), RLXVK_E_ATTR);
        assert_non_null(strstr(rlxvk_graph_error(g), "full (node "));
        rlxvk_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_attention_block_is_its_formula),
        cmocka_unit_test(the_transformer_layer_is_its_formula),
        cmocka_unit_test(lora_is_its_formula),
        cmocka_unit_test(constants_have_the_shape_they_are_given),
        cmocka_unit_test(dot_general_takes_any_axes),
        cmocka_unit_test(dot_general_copies_no_plain_swap),
        cmocka_unit_test(scaled_sums_have_plain_gradients),
        cmocka_unit_test(einsum_is_its_definition),
        cmocka_unit_test(vectors_are_multiplied),
        cmocka_unit_test(a_failing_part_leaves_nothing_behind),
        cmocka_unit_test(the_gate_adds_two_routes_of_a_group),
        cmocka_unit_test(a_singular_slice_spoils_only_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
