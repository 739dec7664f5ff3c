/*
 * Symbolic dims: if a graph is built with symbols and bound to sizes, it equals the graph built
 * with these numbers, node by node. Also tests the text of shapes, and errors if something cannot
 * be symbolic.
 */
#include "op/bind.h"
#include "support/fuzz_graph.h"
#include "support/rewritten.h"

#include <rlxvk_train.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define B rlxvk_symbol(RLXVK_BATCH)
#define S rlxvk_symbol(RLXVK_SEQ)

/* ---- One graph, with numbers or with symbols ---- */

typedef void (*builder)(rlxvk_graph *g, int64_t b, int64_t s);

static void out(rlxvk_graph *g, rlxvk_tensor t)
{
    rlxvk_graph_output(g, t);
}

static void build_elementwise(rlxvk_graph *g, int64_t b, int64_t s)
{
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(b, s, 8)), w = param(g, "w", RLXVK_SHAPE(8));
    rlxvk_tensor p = input(g, "p", RLXVK_SHAPE(s, 1));
    out(g, rlxvk_gelu(g, rlxvk_mul(g, rlxvk_add(g, x, w), p)));
    out(g, rlxvk_where(g, rlxvk_gt(g, x, p), x, rlxvk_cast(g, p, RLXVK_I32)));
    out(g, rlxvk_fma(g, x, w, p));
}

static void build_rows(rlxvk_graph *g, int64_t b, int64_t s)
{
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(b, s, 8)), gamma = param(g, "g", RLXVK_SHAPE(8));
    int32_t axes[] = {0, 2};
    out(g, rlxvk_softmax(g, x, 1));
    out(g, rlxvk_reduce_sum(g, x, axes, 2, true));
    out(g, rlxvk_reduce_mean(g, x, axes, 1, false));
    out(g, rlxvk_layer_norm(g, x, gamma, RLXVK_NONE, -1, 1e-5f));
    out(g, rlxvk_cumsum(g, x, 1, false));
    out(g, rlxvk_argmax(g, x, 1, false));
    out(g, rlxvk_topk(g, x, 3));
    out(g, rlxvk_softmax_cross_entropy(g, x, input(g, "labels", RLXVK_SHAPE(b, s))));
    out(g, rlxvk_softmax_cross_entropy_dense(g, x, x));
}

static void build_layout(rlxvk_graph *g, int64_t b, int64_t s)
{
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(b, s, 8)), one = input(g, "o", RLXVK_SHAPE(1, 8));
    rlxvk_tensor past = input(g, "past", RLXVK_SHAPE(b, 3, 8)), parts[] = {past, x, x};
    rlxvk_tensor rows = rlxvk_reshape(g, x, RLXVK_SHAPE(-1, 8));
    out(g, rows);
    out(g, rlxvk_reshape(g, rows, RLXVK_SHAPE(b, s, 2, 4)));
    out(g, rlxvk_reshape(g, x, RLXVK_SHAPE(rlxvk_dim_multiply(g, b, s), 8)));
    out(g, rlxvk_transpose(g, x, (int32_t[]){1, 2, 0}, 3));
    out(g, rlxvk_concat(g, parts, 3, 1));
    out(g, rlxvk_expand(g, one, RLXVK_SHAPE(s, 8)));
    out(g, rlxvk_narrow(g, rlxvk_concat(g, parts, 2, 1), 1, s, 3));
    out(g, rlxvk_narrow(g, rlxvk_concat(g, parts, 2, 1), 1, 3, s));
    out(g, rlxvk_narrow_with(g, x, 1, 100, 2, &(rlxvk_narrow_options){.clamp_tail = true}));
    out(g, rlxvk_reverse(g, x, (int32_t[]){1}, 1));
    out(g, rlxvk_gather(g, x, input(g, "i", RLXVK_SHAPE(4, s)), 2));
    out(g, rlxvk_topk(g, rlxvk_transpose(g, x, (int32_t[]){0, 2, 1}, 3), s));
    out(g, rlxvk_scatter_add(g, rows,
                             rlxvk_reshape(g, input(g, "at", RLXVK_SHAPE(b, s)), RLXVK_SHAPE(-1)),
                             rlxvk_dim_add(g, s, 2)));
}

static void build_products(rlxvk_graph *g, int64_t b, int64_t s)
{
    static const int32_t last = 2, first = 0;
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(b, s, 8)), w = param(g, "w", RLXVK_SHAPE(8, 6));
    rlxvk_tensor y = input(g, "y", RLXVK_SHAPE(b, 8, s));
    rlxvk_dot_general_options with_w = {.lhs_contracting = &last,
                                        .rhs_contracting = &first,
                                        .contracting_count = 1};
    rlxvk_dot_general_options with_y = {.lhs_contracting = (int32_t[]){1, 2},
                                        .rhs_contracting = (int32_t[]){2, 1},
                                        .contracting_count = 2,
                                        .lhs_batch = &first,
                                        .rhs_batch = &first,
                                        .batch_count = 1};
    out(g, rlxvk_matmul(g, x, w));
    out(g, rlxvk_matmul(g, x, y));
    out(g, rlxvk_fused_matmul_bias_act(g, x, w, param(g, "b", RLXVK_SHAPE(6)),
                                       RLXVK_ACTIVATION_GELU, false));
    out(g, rlxvk_dot_general(g, x, w, &with_w));
    out(g, rlxvk_dot_general(g, x, y, &with_y));
    out(g, rlxvk_lora_matmul(g, x, w, param(g, "a", RLXVK_SHAPE(8, 2)),
                             param(g, "c", RLXVK_SHAPE(2, 6)), 0.5f));
    rlxvk_tensor square = rlxvk_matmul(g, x, y), side = input(g, "side", RLXVK_SHAPE(b, s, 2));
    out(g, rlxvk_batched_dense_solve(g, square, side));
    out(g, rlxvk_det(g, square));
    out(g, rlxvk_slogdet(g, square, NULL));
    out(g, rlxvk_cofactor(g, square));
    out(g, rlxvk_inverse(g, square));
}

static void build_attention(rlxvk_graph *g, int64_t b, int64_t s)
{
    const rlxvk_attention_layout layouts[] = {RLXVK_LAYOUT_BHSD, RLXVK_LAYOUT_BSHD};
    int64_t keys = rlxvk_dim_add(g, s, 5);
    char names[4][16];
    for (uint32_t i = 0; i < 2; i++) {
        rlxvk_shape q = RLXVK_SHAPE(b, 4, s, 8), k = RLXVK_SHAPE(b, 2, keys, 8);
        if (i)
            q = RLXVK_SHAPE(b, s, 4, 8), k = RLXVK_SHAPE(b, keys, 2, 8);
        for (uint32_t n = 0; n < 4; n++)
            snprintf(names[n], sizeof names[n], "%c%u", "qkvm"[n], i);
        rlxvk_attention_options o = {.mask = RLXVK_MASK_CAUSAL, .layout = layouts[i]};
        rlxvk_tensor lse,
            inputs[] = {input(g, names[0], q), input(g, names[1], k), input(g, names[2], k)};
        out(g, rlxvk_attention_with_lse(g, inputs[0], inputs[1], inputs[2], RLXVK_NONE, &o, &lse));
        out(g, lse);
        o.mask = RLXVK_MASK_CUSTOM;
        out(g, rlxvk_attention(g, inputs[0], inputs[1], inputs[2],
                               input(g, names[3], RLXVK_SHAPE(b, keys)), &o));
    }
    rlxvk_shape flat = RLXVK_SHAPE(rlxvk_dim_multiply(g, b, 4), s, 8);
    rlxvk_tensor q = input(g, "qf", flat), lse;
    rlxvk_attention_options o = {.num_heads = 4, .layout = RLXVK_LAYOUT_BH_SD};
    out(g, rlxvk_attention_with_lse(g, q, q, q, RLXVK_NONE, &o, &lse));
    out(g, lse);
    rlxvk_rope_options rope = {.head_dim = 8, .n_rot = 8};
    rlxvk_tensor tables[] = {input(g, "cos", RLXVK_SHAPE(s, 4)),
                             input(g, "sin", RLXVK_SHAPE(s, 4))};
    out(g, rlxvk_rope(g, input(g, "r", RLXVK_SHAPE(b, 4, s, 8)), tables[0], tables[1], &rope));
}

static void build_windows(rlxvk_graph *g, int64_t b, int64_t s)
{
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(b, 3, s, s)),
                 w = param(g, "w", RLXVK_SHAPE(4, 3, 3, 3));
    rlxvk_conv_options conv = {.stride = {2, 2}, .padding = {1, 1}};
    rlxvk_pool_options pool = {.kernel = {2, 2}, .stride = {2, 2}};
    rlxvk_tensor y = rlxvk_conv(g, x, w, RLXVK_NONE, &conv);
    out(g, y);
    out(g, rlxvk_pool_max(g, y, &pool));
    out(g, rlxvk_pool_mean(g, x, &(rlxvk_pool_options){.kernel = {s, s}}));
    rlxvk_pool_options uneven =
        RLXVK_SIZED(rlxvk_pool_options, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 0},
                    .dilation = {1, 2}, .padding_after = {0, 2},
                    .padding_kind = RLXVK_POOL_PADDING_SEPARATE, .rounding = RLXVK_POOL_CEIL);
    out(g, rlxvk_pool_mean(g, x, &uneven));
    out(g, rlxvk_pool_max_indices(g, x, &uneven));
    out(g, rlxvk_conv_transpose2d(g, y, param(g, "t", RLXVK_SHAPE(4, 3, 3, 3)), RLXVK_NONE, &conv));
    out(g, rlxvk_resize_nearest2x(g, x));
    out(g, rlxvk_group_norm(g, y, RLXVK_NONE, RLXVK_NONE, 2, 1e-5f));
    rlxvk_conv_options patch = {.kernel = {3, 3}};
    out(g, rlxvk_col2im(g, rlxvk_im2col(g, x, &patch), s, s, &patch));
    out(g, rlxvk_conv_backward_input(g, w, y, (int64_t[]){s, s}, &conv));
    out(g,
        rlxvk_conv(g, input(g, "line", RLXVK_SHAPE(b, 3, s)), param(g, "k", RLXVK_SHAPE(2, 3, 5)),
                   RLXVK_NONE, &(rlxvk_conv_options){.dilation = {1}}));
}

static void build_sequences(rlxvk_graph *g, int64_t b, int64_t s)
{
    rlxvk_recurrent_options o = {.hidden_size = 4, .num_layers = 1};
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(b, s, 3)), h, c;
    rlxvk_tensor state = input(g, "h", RLXVK_SHAPE(1, b, 4)),
                 cell = input(g, "c", RLXVK_SHAPE(1, b, 4));
    out(g, rlxvk_lstm(g, x, param(g, "wi", RLXVK_SHAPE(1, 16, 3)),
                      param(g, "wh", RLXVK_SHAPE(1, 16, 4)), param(g, "bias", RLXVK_SHAPE(1, 16)),
                      state, cell, &o, &h, &c));
    out(g, h);
    out(g, c);
    rlxvk_tensor wide = input(g, "wide", RLXVK_SHAPE(b, s, 2, 4)), last;
    rlxvk_tensor decay = input(g, "decay", RLXVK_SHAPE(b, s, 2));
    out(g, rlxvk_gated_delta_net(g, wide, wide, wide, decay, decay,
                                 input(g, "st", RLXVK_SHAPE(b, 2, 4, 4)), false, &last));
    out(g, last);
    out(g, rlxvk_linear_attention(g, wide, input(g, "key", RLXVK_SHAPE(b, s, 1, 4)),
                                  input(g, "value", RLXVK_SHAPE(b, s, 1, 3)), RLXVK_NONE,
                                  RLXVK_NONE, RLXVK_NONE, NULL, NULL));
}

static void build_spectra(rlxvk_graph *g, int64_t b, int64_t s)
{
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(b, s, 16)), im;
    out(g, rlxvk_rfft(g, x, 0, RLXVK_FFT_INVERSE, &im));
    out(g, rlxvk_stft(g, x, RLXVK_NONE, &(rlxvk_stft_options){.length = 8, .hop = 4}));
    out(g, rlxvk_welch(g, x, RLXVK_NONE, &(rlxvk_welch_frame_options){.length = 8, .hop = 4}));
    out(g, rlxvk_welch(g, x, RLXVK_NONE, &(rlxvk_welch_frame_options){.length = 16, .hop = 1, 17}));
    out(g, rlxvk_welch(g, input(g, "signal", RLXVK_SHAPE(b, s)), RLXVK_NONE,
                       &(rlxvk_welch_frame_options){.length = 2, .hop = 1}));
    out(g, rlxvk_fft_conv1d(g, x, x));
    out(g, rlxvk_pad_last(g, x, 20));
    out(g, rlxvk_fft_axis(g, rlxvk_cast(g, x, RLXVK_C64), 1, false, RLXVK_FFT_NONE));
}

static void build_random(rlxvk_graph *g, int64_t b, int64_t s)
{
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(b, s));
    out(g, rlxvk_rng_uniform(g, RLXVK_SHAPE(s, b, 2), 0, 1, NULL));
    out(g, rlxvk_rng_normal_like(g, x, 0, 1, NULL));
    out(g, rlxvk_sample(g, rlxvk_softmax(g, x, -1), NULL));
}

/* If the graph is symbolic, so is the body. */
static void build_control(rlxvk_graph *g, int64_t b, int64_t s)
{
    rlxvk_graph *body = new_graph(), *go_on = new_graph(), *step = new_graph();
    rlxvk_tensor x = input(body, "x", RLXVK_SHAPE(b, s)), result;
    rlxvk_tensor noise = rlxvk_rng_uniform(body, RLXVK_SHAPE(b, s), 0, 1, NULL);
    rlxvk_tensor flat =
        rlxvk_reshape(body, rlxvk_add(body, x, noise), RLXVK_SHAPE(rlxvk_dim_multiply(body, s, b)));
    out(body, rlxvk_mul(body, rlxvk_reshape(body, flat, RLXVK_SHAPE(b, s)),
                        param(body, "w", RLXVK_SHAPE(s))));
    out(go_on, rlxvk_gt(go_on, input(go_on, "x", RLXVK_SHAPE(b, s)),
                        floats(go_on, RLXVK_SCALAR, (float[]){2})));
    rlxvk_tensor carry = input(step, "c", RLXVK_SHAPE(b, s)), at = input(step, "t", RLXVK_SHAPE(b));
    out(step, rlxvk_add(step, carry, rlxvk_reshape(step, at, RLXVK_SHAPE(b, 1))));
    rlxvk_tensor given = input(g, "x", RLXVK_SHAPE(b, s));
    rlxvk_call(g, body, &given, 1, &result, 1);
    rlxvk_while(g, go_on, body, 2, &result, 1, &result);
    out(g, rlxvk_if(g, input(g, "p", RLXVK_SCALAR), body, body, &result, 1));
    rlxvk_tensor values[] = {result, input(g, "seq", RLXVK_SHAPE(3, b))};
    out(g, rlxvk_scan(g, step, values, 2,
                      &(rlxvk_scan_options){.length = 3, .save_trajectory = true}));
    rlxvk_graph_destroy(body);
    rlxvk_graph_destroy(go_on);
    rlxvk_graph_destroy(step);
}

/* Reads the shapes of the graph and uses them as sizes. */
static void build_told(rlxvk_graph *g, int64_t b, int64_t s)
{
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(b, 3, s)), w = param(g, "w", RLXVK_SHAPE(4, 3, 3));
    rlxvk_conv_options o = {.stride = {2}, .padding = {1}};
    rlxvk_tensor y = rlxvk_conv(g, x, w, RLXVK_NONE, &o);
    rlxvk_shape shape = rlxvk_tensor_shape(g, y);
    out(g,
        rlxvk_reshape(g, y, RLXVK_SHAPE(rlxvk_dim_multiply(g, shape.dims[0], shape.dims[2]), 4)));
    out(g, rlxvk_rng_uniform(g, shape, 0, 1, NULL));
    rlxvk_graph_set_name(g, y, "y");
}

static const builder builders[] = {build_elementwise, build_rows,      build_layout,
                                   build_products,    build_attention, build_windows,
                                   build_sequences,   build_spectra,   build_random,
                                   build_control,     build_told};

/* ---- Bound and built alike ---- */

static rlxvk_graph *build_at(builder build, int64_t b, int64_t s)
{
    rlxvk_graph *g = new_graph();
    build(g, b, s);
    if (rlxvk_graph_status(g) != RLXVK_OK)
        fail_msg("%s", rlxvk_graph_error(g));
    return g;
}

static void expect_alike(const rlxvk_graph *got, const rlxvk_graph *wanted)
{
    assert_null(got->symbols);
    assert_int_equal(got->nodes.count, wanted->nodes.count);
    for (uint32_t id = 0; id < wanted->nodes.count; id++) {
        char lines[2][1024] = {"", ""};
        const node *n = graph_node(got, id), *m = graph_node(wanted, id);
        op_node_describe(got, id, &(text){.buffer = lines[0], .size = sizeof lines[0]});
        op_node_describe(wanted, id, &(text){.buffer = lines[1], .size = sizeof lines[1]});
        assert_string_equal(lines[0], lines[1]);
        assert_int_equal(n->data_size, m->data_size);
        if (m->data_size)
            assert_memory_equal(n->data, m->data, m->data_size);
    }
    assert_int_equal(got->outputs.count, wanted->outputs.count);
    for (size_t i = 0; i < wanted->outputs.count; i++)
        assert_int_equal(got->outputs.items[i], wanted->outputs.items[i]);
}

static rlxvk_graph *bound_at(const rlxvk_graph *g, int64_t b, int64_t s)
{
    const rlxvk_binding sizes[] = {{RLXVK_BATCH, b}, {RLXVK_SEQ, s}};
    rlxvk_graph *bound = NULL;
    expect_ok(rlxvk_graph_bind(g, sizes, 2, &bound));
    return bound;
}

static void bound_is_as_built(void **state)
{
    static const int64_t sizes[][2] = {{1, 8}, {2, 7}, {3, 16}, {5, 33}, {1, 64}};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(builders); i++) {
        rlxvk_graph *g = build_at(builders[i], B, S);
        expect_ok(op_verify(g));
        for (size_t k = 0; k < ARRAY_COUNT(sizes); k++) {
            rlxvk_graph *wanted = build_at(builders[i], sizes[k][0], sizes[k][1]);
            rlxvk_graph *bound = bound_at(g, sizes[k][0], sizes[k][1]);
            expect_alike(bound, wanted);
            expect_ok(op_verify(bound));
            rlxvk_graph_destroy(wanted);
            rlxvk_graph_destroy(bound);
        }
        rlxvk_graph_destroy(g);
    }
}

/* Binding one symbol after the other gives the same as binding both at once. */
static void bound_one_by_one(void **state)
{
    const rlxvk_binding sizes[] = {{RLXVK_SEQ, 16}, {RLXVK_BATCH, 3}};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(builders); i++) {
        rlxvk_graph *g = build_at(builders[i], B, S), *half = NULL, *bound = NULL;
        rlxvk_graph *wanted = build_at(builders[i], 3, 16), *same = NULL;
        expect_ok(rlxvk_graph_bind(g, NULL, 0, &same));
        expect_ok(rlxvk_graph_bind(same, &sizes[0], 1, &half));
        assert_non_null(half->symbols);
        expect_ok(rlxvk_graph_bind(half, &sizes[1], 1, &bound));
        expect_alike(bound, wanted);
        rlxvk_graph *all[] = {g, same, half, bound, wanted};
        for (size_t k = 0; k < ARRAY_COUNT(all); k++)
            rlxvk_graph_destroy(all[k]);
    }
}

/* ---- Every builder: dims of one length become a symbol ---- */

/* Builds the graph again with the symbol in place of each size `length`. Sizes of constants stay.
 */
static rlxvk_graph *symbolized(const rlxvk_graph *g, int64_t length)
{
    rlxvk_graph *to = new_graph();
    expect_ok(graph_keep_all(to, g));
    rlxvk_set_symbol_example(to, RLXVK_USER_SYMBOL, length);
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        instance_attributes room;
        int64_t *at[OP_MOST_SIZES];
        node n = instance_given(g, id, &room);
        uint32_t count =
            node_is_constant(&n) ? 0 : instance_sizes(&n, n.attributes ? &room : NULL, at);
        bool own = n.name && strncmp(n.name, "rlxvk.", 6) == 0;
        for (uint32_t i = 0; i < count && !own; i++)
            if (*at[i] == length)
                *at[i] = rlxvk_symbol(RLXVK_USER_SYMBOL);
        uint32_t made =
            own ? op_append_leaf(to, &n) : op_append_given(to, &n, n.attributes ? &room : NULL);
        if (made == NODE_NONE)
            fail_msg("%s", rlxvk_graph_error(to));
    }
    for (size_t i = 0; i < g->outputs.count; i++)
        rlxvk_graph_output(to, tensor_of(to, g->outputs.items[i]));
    return to;
}

static int64_t some_length(const rlxvk_graph *g, random_source *r)
{
    int64_t length = 3;
    for (uint32_t id = 0, seen = 0; id < g->nodes.count; id++) {
        const node *n = graph_node(g, id);
        for (uint32_t i = 0; i < n->shape.rank && !n->input_count; i++)
            if (n->shape.dims[i] > 1 && n->shape.dims[i] <= INT32_MAX &&
                random_below(r, ++seen) == 0)
                length = n->shape.dims[i];
    }
    return length;
}

static void every_builder_takes_symbols(void **state)
{
    random_source r = {7};
    uint64_t nodes = 0, others = 0;
    (void)state;
    fuzz_register();
    for (int i = 0; i < 500; i++) {
        uint8_t bytes[200];
        fuzz_input in = {bytes, sizeof bytes};
        fuzz_maker m = {.in = &in};
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (uint8_t)random_next(&r);
        m.g = new_graph();
        fuzz_build(&m, 16);
        fuzz_finish(&m, random_next(&r));
        rlxvk_binding size = {RLXVK_USER_SYMBOL, some_length(m.g, &r)};
        rlxvk_graph *g = symbolized(m.g, size.size), *bound = NULL, *other = NULL;
        expect_ok(rlxvk_graph_bind(g, &size, 1, &bound));
        expect_alike(bound, m.g);
        size.size *= 2;
        if (rlxvk_graph_bind(g, &size, 1, &other) == RLXVK_OK)
            expect_ok(op_verify(other));
        others += other != NULL;
        nodes += bound->nodes.count;
        rlxvk_graph *all[] = {m.g, g, bound, other};
        for (size_t k = 0; k < ARRAY_COUNT(all); k++)
            rlxvk_graph_destroy(all[k]);
    }
    printf("%llu nodes; %llu graphs have twice the size, too\n", (unsigned long long)nodes,
           (unsigned long long)others);
    assert_true(nodes > 5000 && others > 50);
}

/* ---- Texts ---- */

static void expect_shape(const rlxvk_graph *g, rlxvk_tensor t, const char *wanted)
{
    char got[SHAPE_TEXT];
    expect_ok(rlxvk_shape_text(g, rlxvk_tensor_shape(g, t), got, sizeof got));
    assert_string_equal(got, wanted);
}

static void shapes_are_recognized(void **state)
{
    rlxvk_graph *g = new_graph();
    int64_t past = rlxvk_symbol(RLXVK_PAST_SEQ);
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(B, S, 64)),
                 k = input(g, "k", RLXVK_SHAPE(B, past, 64));
    rlxvk_tensor both[] = {k, x}, image = input(g, "i", RLXVK_SHAPE(B, 3, rlxvk_symbol(17)));
    (void)state;
    rlxvk_tensor joined = rlxvk_concat(g, both, 2, 1);
    expect_shape(g, x, "BATCHxSEQx64");
    expect_shape(g, joined, "BATCHx(SEQ+PAST_SEQ)x64");
    expect_shape(g, rlxvk_reshape(g, x, RLXVK_SHAPE(-1, 64)), "(BATCH*SEQ)x64");
    expect_shape(g, rlxvk_reshape(g, x, RLXVK_SHAPE(-1)), "((BATCH*SEQ)*64)");
    expect_shape(g, rlxvk_matmul_with(g, x, joined, &(rlxvk_matmul_options){.transpose_b = true}),
                 "BATCHxSEQx(SEQ+PAST_SEQ)");
    expect_shape(g, rlxvk_narrow(g, joined, 1, 2, past), "BATCHxPAST_SEQx64");
    expect_shape(g, rlxvk_reshape(g, x, RLXVK_SHAPE(B, -1)), "BATCHx(SEQ*64)");
    rlxvk_tensor w = param(g, "w", RLXVK_SHAPE(8, 3, 3));
    expect_shape(g, rlxvk_conv(g, image, w, RLXVK_NONE, NULL), "BATCHx8x(S17-2)");
    expect_shape(g,
                 rlxvk_conv(g, image, w, RLXVK_NONE,
                            &(rlxvk_conv_options){.stride = {2}, .padding = {1}}),
                 "BATCHx8x((S17+1)/2)");
    expect_shape(g, rlxvk_resize_nearest2x(g, rlxvk_reshape(g, image, RLXVK_SHAPE(B, 3, -1, 1))),
                 "BATCHx3x(S17*2)x2");
    expect_shape(g, rlxvk_reduce_sum(g, x, (int32_t[]){1}, 1, false), "BATCHx64");
    expect_shape(g, param(g, "scalar", RLXVK_SCALAR), "scalar");
    expect_ok(rlxvk_graph_status(g));
    rlxvk_graph_destroy(g);
}

/* If no form describes a dim, it prints as ? and cannot be used as a size. */
static bool odd_infer(const rlxvk_shape *inputs, size_t count, const void *attributes, size_t size,
                      rlxvk_shape *out_shape, rlxvk_dtype *out_dtype)
{
    int64_t n = inputs[0].dims[0];
    (void)count, (void)attributes, (void)size, (void)out_dtype;
    *out_shape = RLXVK_SHAPE(n * n * n + n % 3);
    return true;
}

static int odd_host(const rlxvk_custom_view *inputs, size_t count, const void *attributes,
                    size_t size, const rlxvk_shape *shape, float *out_words)
{
    (void)inputs, (void)count, (void)attributes, (void)size, (void)shape, (void)out_words;
    return 0;
}

static void opaque_dims_are_no_sizes(void **state)
{
    const rlxvk_custom_op op = {.name = "odd",
                                .input_count = 1,
                                .infer = odd_infer,
                                .host = odd_host};
    rlxvk_graph *g = new_graph(), *bound = NULL;
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(S));
    (void)state;
    expect_ok(rlxvk_custom_register(&op));
    rlxvk_tensor odd = rlxvk_custom(g, "odd", &x, 1, NULL, 0);
    expect_shape(g, odd, "?");
    expect_shape(g, rlxvk_neg(g, odd), "?");
    out(g, odd);
    expect_ok(rlxvk_graph_bind(g, &(rlxvk_binding){RLXVK_SEQ, 4}, 1, &bound));
    assert_int_equal(rlxvk_tensor_shape(bound, tensor_of(bound, 1)).dims[0], 65);
    rlxvk_graph_destroy(bound);
    rlxvk_reshape(g, odd, rlxvk_tensor_shape(g, odd));
    assert_int_equal(rlxvk_graph_status(g), RLXVK_E_UNSUPPORTED);
    assert_non_null(strstr(rlxvk_graph_error(g), "prints as ?"));
    rlxvk_graph_destroy(g);
}

/* ---- Symbols combined with numbers ---- */

static void mixed_meetings_are_checked_at_bind(void **state)
{
    rlxvk_graph *g = new_graph(), *bound = NULL;
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(B, S)), w = param(g, "w", RLXVK_SHAPE(48, 6));
    (void)state;
    out(g, rlxvk_matmul(g, x, w));
    expect_ok(rlxvk_graph_status(g));
    bound = bound_at(g, 3, 48);
    assert_int_equal(rlxvk_tensor_shape(bound, tensor_of(bound, 2)).dims[1], 6);
    rlxvk_graph_destroy(bound);
    const rlxvk_binding sizes[] = {{RLXVK_BATCH, 3}, {RLXVK_SEQ, 47}};
    expect_error(rlxvk_graph_bind(g, sizes, 2, &bound), RLXVK_E_SHAPE, "47");
    rlxvk_graph_destroy(g);
}

/* Lengths must be divisible. The search finds a fitting example, or the caller names one. */
static void examples_are_found(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(B, S));
    (void)state;
    status_fail(RLXVK_E_FILE, "an error of before");
    rlxvk_tensor folded = rlxvk_reshape(g, x, RLXVK_SHAPE(B, -1, 24));
    expect_shape(g, folded, "BATCHx(SEQ/24)x24");
    rlxvk_tensor tail = rlxvk_narrow(g, x, 1, 1000, 8);
    expect_shape(g, tail, "BATCHx8");
    assert_string_equal(rlxvk_last_error(), "an error of before"); /* attempts set no error */
    expect_ok(rlxvk_graph_status(g));
    rlxvk_graph_destroy(g);
    g = new_graph();
    rlxvk_set_symbol_example(g, RLXVK_SEQ, 1021);
    x = input(g, "x", RLXVK_SHAPE(B, S));
    expect_shape(g, rlxvk_reshape(g, x, RLXVK_SHAPE(B, -1, 1021)), "BATCHx(SEQ/1021)x1021");
    rlxvk_set_symbol_example(g, RLXVK_SEQ, 2042);
    expect_ok(rlxvk_graph_status(g));
    rlxvk_set_symbol_example(g, RLXVK_SEQ, 2043);
    assert_int_equal(rlxvk_graph_status(g), RLXVK_E_SHAPE);
    rlxvk_graph_destroy(g);
}

/* ROWS can be used before BATCH and SEQ, and still depends on them. */
static void rows_are_batch_times_seq(void **state)
{
    rlxvk_graph *g = new_graph(), *bound;
    rlxvk_tensor r = input(g, "r", RLXVK_SHAPE(rlxvk_symbol(RLXVK_ROWS), 4));
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(B, S, 4));
    (void)state;
    out(g, rlxvk_add(g, r, rlxvk_reshape(g, x, RLXVK_SHAPE(-1, 4))));
    expect_shape(g, tensor_of(g, 3), "ROWSx4");
    bound = bound_at(g, 3, 5);
    assert_int_equal(rlxvk_tensor_shape(bound, r = tensor_of(bound, 0)).dims[0], 15);
    rlxvk_graph_destroy(bound);
    const rlxvk_binding own[] = {{RLXVK_BATCH, 3}, {RLXVK_SEQ, 5}, {RLXVK_ROWS, 16}};
    expect_error(rlxvk_graph_bind(g, own, 3, &bound), RLXVK_E_SHAPE, "15x4");
    rlxvk_graph_destroy(g);
}

/* If the caller read a shape from the examples and used it as a number, it must also hold at the
 * bound sizes. */
static void told_shapes_must_hold(void **state)
{
    rlxvk_graph *g = new_graph(), *bound = NULL;
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(1, 1, S));
    rlxvk_pool_options far = {.kernel = {1}, .stride = {1000}};
    rlxvk_tensor y = rlxvk_pool_max(g, x, &far);
    (void)state;
    out(g, y);
    expect_ok(rlxvk_graph_bind(g, &(rlxvk_binding){RLXVK_SEQ, 1001}, 1, &bound));
    rlxvk_graph_destroy(bound);
    expect_shape(g, y, "1x1x1");
    expect_error(rlxvk_graph_bind(g, &(rlxvk_binding){RLXVK_SEQ, 1001}, 1, &bound), RLXVK_E_SHAPE,
                 "was taken for 1x1x1");
    expect_ok(rlxvk_graph_bind(g, &(rlxvk_binding){RLXVK_SEQ, 1000}, 1, &bound));
    rlxvk_graph_destroy(bound);
    rlxvk_graph_destroy(g);
}

/* ---- Errors ---- */

typedef void (*misuse)(rlxvk_graph *g, rlxvk_tensor x); /* x is [BATCH, SEQ, 8] */

static void misuse_shape(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_matmul(g, x, param(g, "w", RLXVK_SHAPE(7, 3)));
}
static void misuse_constant(rlxvk_graph *g, rlxvk_tensor x)
{
    (void)x;
    rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(S), "", 0);
}
static void misuse_foreign(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_graph *other = new_graph();
    int64_t made[9];
    for (int64_t i = 0; i < 9; i++)
        made[i] = rlxvk_dim_add(other, S, i + 1);
    rlxvk_graph_destroy(other);
    rlxvk_reshape(g, x, RLXVK_SHAPE(made[8], 8));
}
static void misuse_fft(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_frames(g, rlxvk_transpose(g, x, (int32_t[]){0, 2, 1}, 3), 4, 2);
}
static void misuse_pad(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_pad_last(g, x, S);
}
static void misuse_scan(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_graph *body = new_graph();
    out(body, input(body, "c", RLXVK_SHAPE(S, 8)));
    rlxvk_scan(g, body, &x, 1, &(rlxvk_scan_options){.length = S});
    rlxvk_graph_destroy(body);
}
static void misuse_body(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_graph *body = new_graph();
    rlxvk_tensor y;
    out(body, input(body, "c", RLXVK_SHAPE(B, 16, 8)));
    rlxvk_call(g, body, &x, 1, &y, 1);
    rlxvk_graph_destroy(body);
}
static void misuse_dot(rlxvk_graph *g, rlxvk_tensor x)
{
    static const int32_t one = 1;
    rlxvk_dot_general(g, x, input(g, "y", RLXVK_SHAPE(8, 16)),
                      &(rlxvk_dot_general_options){.lhs_contracting = &one,
                                                   .rhs_contracting = &one,
                                                   .contracting_count = 1});
}
static void misuse_dim(rlxvk_graph *g, rlxvk_tensor x)
{
    (void)x;
    rlxvk_dim_add(g, -7, S);
}
static void misuse_overflow(rlxvk_graph *g, rlxvk_tensor x)
{
    (void)x;
    rlxvk_dim_multiply(g, INT64_MAX, 2);
}
static void misuse_size(rlxvk_graph *g, rlxvk_tensor x)
{
    (void)x;
    rlxvk_set_symbol_example(g, RLXVK_SEQ, -1);
}
static void misuse_custom_function(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_graph *body = new_graph(), *vjp = new_graph();
    out(body, input(body, "c", RLXVK_SHAPE(B, S, 8)));
    for (int i = 0; i < 3; i++)
        out(vjp, input(vjp, i == 0 ? "a" : i == 1 ? "b" : "c", RLXVK_SHAPE(B, S, 8)));
    vjp->outputs.count = 1;
    rlxvk_custom_function(g, body, vjp, &x, 1);
    rlxvk_graph_destroy(body);
    rlxvk_graph_destroy(vjp);
}

static void misuses_are_named(void **state)
{
    static const struct {
        misuse call;
        rlxvk_status status;
        const char *part;
    } rows[] = {
        {misuse_shape, RLXVK_E_SHAPE, "BATCHxSEQx8, 7x3"},
        {misuse_shape, RLXVK_E_SHAPE, "rlxvk_set_symbol_example"},
        {misuse_constant, RLXVK_E_UNSUPPORTED, "expand one"},
        {misuse_foreign, RLXVK_E_SHAPE, "another graph"},
        {misuse_fft, RLXVK_E_UNSUPPORTED, "last dim is SEQ"},
        {misuse_pad, RLXVK_E_UNSUPPORTED, "n is SEQ"},
        {misuse_scan, RLXVK_E_UNSUPPORTED, "length is SEQ"},
        {misuse_body, RLXVK_E_SHAPE, "given F32 BATCHxSEQx8"},
        {misuse_dot, RLXVK_E_SHAPE, "lhs axis 1 is SEQ"},
        {misuse_dim, RLXVK_E_SHAPE, "-7 is no dim"},
        {misuse_overflow, RLXVK_E_TOO_LARGE, "2^63"},
        {misuse_size, RLXVK_E_RANGE, "size -1"},
        {misuse_custom_function, RLXVK_E_UNSUPPORTED, "vjp has symbols"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        rlxvk_graph *g = new_graph(), *bound = NULL;
        rows[i].call(g, input(g, "x", RLXVK_SHAPE(B, S, 8)));
        expect_error(rlxvk_graph_status(g), rows[i].status, "");
        if (!strstr(rlxvk_graph_error(g), rows[i].part))
            fail_msg("row %zu: %s", i, rlxvk_graph_error(g));
        expect_error(rlxvk_graph_bind(g, NULL, 0, &bound), rows[i].status, rows[i].part);
        rlxvk_graph_destroy(g);
    }
}

static void bindings_are_checked(void **state)
{
    rlxvk_graph *g = new_graph(), *bound = NULL;
    const rlxvk_binding two[] = {{RLXVK_SEQ, 4}, {RLXVK_SEQ, 5}}, same[] = {two[0], two[0]};
    const rlxvk_binding below[] = {{20, -1}}, strange[] = {{RLXVK_SEQ, 4}, {99, 3}};
    const rlxvk_binding large[] = {{RLXVK_SEQ, INT32_MAX}, {RLXVK_BATCH, 1}};
    const rlxvk_binding larger[] = {{RLXVK_SEQ, (int64_t)INT32_MAX + 1}};
    const rlxvk_binding none[] = {{RLXVK_SEQ, 0}, {RLXVK_SEQ, 3}};
    binding_list sizes = {0};
    (void)state;
    out(g, rlxvk_neg(g, input(g, "x", RLXVK_SHAPE(S, 64))));
    expect_error(rlxvk_graph_bind(g, two, 2, &bound), RLXVK_E_BIND_CONFLICT, "SEQ");
    expect_error(rlxvk_graph_bind(g, below, 1, &bound), RLXVK_E_RANGE, "S20 is -1");
    expect_error(rlxvk_graph_bind(g, large, 1, &bound), RLXVK_E_TOO_LARGE, "2147483647x64");
    expect_error(rlxvk_graph_bind(g, larger, 1, &bound), RLXVK_E_RANGE, "SEQ is 2147483648");
    expect_error(rlxvk_graph_bind(g, none, 2, &bound), RLXVK_E_BIND_CONFLICT, "to 0 and to 3");
    expect_ok(bind_resolve(large, 2, &sizes));
    assert_int_equal(symbol_size(sizes.items, sizes.count, RLXVK_ROWS), INT32_MAX);
    VECTOR_FREE(&sizes);
    expect_ok(rlxvk_graph_bind(g, none, 1, &bound));
    assert_int_equal(graph_node(bound, 0)->shape.dims[0], 0);
    rlxvk_graph_destroy(bound);
    expect_ok(rlxvk_graph_bind(g, same, 2, &bound));
    rlxvk_graph_destroy(bound);
    expect_ok(rlxvk_graph_bind(g, strange, 2, &bound));
    assert_null(bound->symbols);
    rlxvk_graph_destroy(bound);
    rlxvk_graph_destroy(g);
    g = build_at(build_rows, 2, 5); /* only numbers, so the result is a copy */
    expect_ok(rlxvk_graph_bind(g, two, 1, &bound));
    expect_alike(bound, g);
    rlxvk_graph_destroy(bound);
    rlxvk_graph_destroy(g);
}

/* A bound graph can be differentiated. */
static void bound_graphs_have_gradients(void **state)
{
    rlxvk_graph *g = new_graph(), *bound;
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(B, 8)), w = param(g, "w", RLXVK_SHAPE(8, 4)), d;
    (void)state;
    rlxvk_checkpoint(g, x);
    out(g, rlxvk_reduce_sum(g, rlxvk_tanh(g, rlxvk_matmul(g, x, w)), (int32_t[]){0, 1}, 2, false));
    bound = bound_at(g, 6, 1);
    assert_int_equal(bound->checkpoints.count, 1);
    rlxvk_grad(bound, tensor_of(bound, bound->outputs.items[0]), RLXVK_NONE,
               (rlxvk_tensor[]){tensor_of(bound, w.id - 1)}, 1, &d);
    expect_ok(rlxvk_graph_status(bound));
    assert_true(rlxvk_shape_equal(rlxvk_tensor_shape(bound, d), RLXVK_SHAPE(8, 4)));
    rlxvk_graph_destroy(bound);
    rlxvk_graph_destroy(g);
}

/* If no node uses the symbol yet, binding resolves only the dims made from it. The nodes stay as
 * they were. */
static void unused_symbols_bind(void **state)
{
    rlxvk_graph *g = build_at(build_rows, 2, 5), *wanted = build_at(build_rows, 2, 5);
    rlxvk_graph *same = NULL, *bound = NULL;
    (void)state;
    assert_int_equal(rlxvk_dim_add(g, rlxvk_dim_add(g, S, 2), -2 + 5), rlxvk_dim_add(g, S, 5));
    expect_ok(rlxvk_graph_bind(g, NULL, 0, &same));
    expect_ok(rlxvk_graph_bind(same, &(rlxvk_binding){RLXVK_SEQ, 3}, 1, &bound));
    expect_alike(bound, wanted);
    rlxvk_graph *all[] = {g, wanted, same, bound};
    for (size_t k = 0; k < ARRAY_COUNT(all); k++)
        rlxvk_graph_destroy(all[k]);
}

/* A size of 0 can be bound, too. */
static void empty_batches_bind(void **state)
{
    (void)state;
    rlxvk_graph *g = build_at(build_elementwise, B, S), *wanted = build_at(build_elementwise, 0, 5);
    rlxvk_graph *bound = bound_at(g, 0, 5);
    expect_alike(bound, wanted);
    rlxvk_graph_destroy(bound);
    rlxvk_graph_destroy(wanted);
    rlxvk_graph_destroy(g);
}

/* If an allocation fails, the error is reported and nothing leaks. */
static void running_out_of_memory_is_told(void **state)
{
    int64_t live = memory_live_count();
    (void)state;
    for (uint64_t nth = 1; nth < 2000; nth += nth < 100 ? 1 : 17) {
        rlxvk_graph *g = new_graph(), *bound = NULL;
        memory_fail_at(nth);
        build_layout(g, B, S);
        const rlxvk_binding sizes[] = {{RLXVK_BATCH, 2}, {RLXVK_SEQ, 7}};
        rlxvk_status status = rlxvk_graph_bind(g, sizes, 2, &bound);
        memory_fail_at(0);
        assert_true(status == RLXVK_OK || status == RLXVK_E_OUT_OF_HOST_MEMORY);
        rlxvk_graph_destroy(bound);
        rlxvk_graph_destroy(g);
        assert_int_equal(memory_live_count(), live);
        if (status == RLXVK_OK)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bound_is_as_built),
        cmocka_unit_test(bound_one_by_one),
        cmocka_unit_test(every_builder_takes_symbols),
        cmocka_unit_test(shapes_are_recognized),
        cmocka_unit_test(opaque_dims_are_no_sizes),
        cmocka_unit_test(mixed_meetings_are_checked_at_bind),
        cmocka_unit_test(examples_are_found),
        cmocka_unit_test(rows_are_batch_times_seq),
        cmocka_unit_test(told_shapes_must_hold),
        cmocka_unit_test(misuses_are_named),
        cmocka_unit_test(bindings_are_checked),
        cmocka_unit_test(bound_graphs_have_gradients),
        cmocka_unit_test(unused_symbols_bind),
        cmocka_unit_test(empty_batches_bind),
        cmocka_unit_test(running_out_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
