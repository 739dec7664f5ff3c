/*
 * Calls every builder with every integer argument at the ends of its type and around zero. Operands
 * have ordinary shapes, or are empty and have other dims as large as shapes allow. A builder must
 * return a valid node or an error. If it accepts the arguments and the result is small, the graph
 * is rewritten, lowered and computed on the host. Sanitizers (config=asan) report wrong arithmetic.
 * No device.
 */
#include "op/evaluation.h"
#include "op/op.h"
#include "plan/schedule.h"
#include "rewrite/rewrite.h"
#include "support/harness.h"
#include "support/profiles.h"
#include "support/time_limit.h"

#include <rlxvk_quant.h>
#include <rlxvk_train.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define HUGE_DIM   ((int64_t)1 << 62)
#define LONG_DIM   ((int64_t)1 << 31)
#define MOST_WORDS 4096 /* elements of all nodes, if a graph is to be lowered */

static const rlxvk_shape shapes[] = {
    {0},
    {1, {4}},
    {2, {2, 3}},
    {2, {4, 4}},
    {2, {64, 32}},
    {3, {2, 3, 4}},
    {3, {1, 4, 6}},
    {4, {1, 4, 6, 6}},
    {4, {2, 2, 8, 4}},
    {5, {1, 2, 4, 4, 4}},
    {8, {1, 1, 1, 1, 1, 1, 1, 2}},
    {1, {0}},
    {2, {0, HUGE_DIM}},
    {2, {HUGE_DIM, 0}},
    {2, {0, INT64_MAX}},
    {2, {INT64_MAX, 0}},
    {2, {0, INT32_MAX}},
    {3, {0, HUGE_DIM, 1}},
    {3, {0, LONG_DIM, LONG_DIM}},
    {3, {LONG_DIM, 0, LONG_DIM}},
    {3, {1, 0, INT64_MAX}},
    {3, {1, INT64_MAX, 0}},
    {3, {INT64_MAX, 0, 1}},
    {4, {0, 1, INT64_MAX, 1}},
    {4, {1, 0, 1, HUGE_DIM}},
    {4, {1, 4, 0, HUGE_DIM / 4}},
    {4, {0, 4, LONG_DIM, LONG_DIM / 8}},
    {4, {INT64_MAX, 1, 1, 0}},
    {5, {0, 1, 1, 1, INT64_MAX}},
    {5, {1, 1, 0, LONG_DIM, LONG_DIM}},
    {8, {0, 1, 1, 1, 1, 1, 1, INT64_MAX}},
};

static const int64_t values[] = {INT64_MIN,
                                 INT64_MIN + 1,
                                 (int64_t)INT32_MIN - 1,
                                 INT32_MIN,
                                 -8,
                                 -1,
                                 0,
                                 1,
                                 2,
                                 3,
                                 4,
                                 8,
                                 32,
                                 256,
                                 INT32_MAX - 1,
                                 INT32_MAX,
                                 LONG_DIM,
                                 LONG_DIM * 2,
                                 LONG_DIM * 2 + 1,
                                 HUGE_DIM,
                                 HUGE_DIM + 1,
                                 INT64_MAX - 1,
                                 INT64_MAX};

/* The operands of a call: its own graph, and leaves with two shapes. */
typedef struct scene {
    rlxvk_graph *g;
    rlxvk_tensor a, b, z, q, bytes, one;
    int64_t v;
} scene;

typedef struct choice {
    rlxvk_shape a, b;
    int64_t v;
} choice;

static scene make_scene(const choice *c)
{
    scene s = {.v = c->v};
    expect_ok(rlxvk_graph_create(&s.g));
    s.a = rlxvk_input(s.g, "a", RLXVK_F32, c->a);
    s.b = rlxvk_input(s.g, "b", RLXVK_F32, c->b);
    s.z = rlxvk_input(s.g, "z", RLXVK_C64, c->a);
    s.q = rlxvk_input(s.g, "q", RLXVK_I8, c->a);
    s.bytes = rlxvk_input(s.g, "bytes", RLXVK_U8, c->b);
    s.one = rlxvk_input(s.g, "one", RLXVK_F32, RLXVK_SHAPE(1));
    expect_ok(rlxvk_graph_status(s.g));
    return s;
}

static bool is_small(const rlxvk_graph *g)
{
    uint64_t sum = 0;
    for (uint32_t id = 0; id < g->nodes.count && sum <= MOST_WORDS; id++)
        sum += shape_numel(&graph_node(g, id)->shape);
    return sum <= MOST_WORDS;
}

static size_t call_count, built_count, lowered_count;

/* Rewrites the graph, then lowers it for a large GPU, a GPU with only the minimum limits and a
 * software driver. Each may fail, but only with a message. */
static bool lowers(const rlxvk_graph *g)
{
    device_profile profiles[] = {big_gpu(), baseline(), software()};
    rlxvk_graph *after = NULL;
    bool sound = graph_clone(g, &after) == RLXVK_OK &&
                 rewrite_graph(after, &(rewrite_options){.fusion = true}) == RLXVK_OK &&
                 op_verify(after) == RLXVK_OK;
    for (size_t i = 0; i < ARRAY_COUNT(profiles) && sound; i++) {
        schedule s = {0};
        profiles[i].slot_alignment = 256;
        profiles[i].subgroup_size = 32;
        profiles[i].storage_buffers_per_stage = 8;
        profiles[i].max_group_count[0] = profiles[i].max_group_count[1] = 65535;
        profiles[i].max_group_count[2] = 65535;
        rlxvk_status status =
            schedule_create(after, &(schedule_options){.profile = &profiles[i], .strided = true},
                            &s);
        sound = status == RLXVK_OK || rlxvk_last_error()[0];
        lowered_count += status == RLXVK_OK;
        if (status == RLXVK_OK)
            schedule_destroy(&s);
    }
    rlxvk_graph_destroy(after);
    return sound;
}

static bool computes(const rlxvk_graph *g)
{
    evaluation e;
    if (evaluation_create(g, &e) != RLXVK_OK)
        return false;
    rlxvk_status status = evaluation_run(&e);
    evaluation_destroy(&e);
    return status == RLXVK_OK || rlxvk_last_error()[0];
}

static void finish(const scene *s, rlxvk_tensor result, const choice *c, const char *call)
{
    char a[SHAPE_TEXT], b[SHAPE_TEXT];
    bool built = rlxvk_graph_status(s->g) == RLXVK_OK, fine;
    call_count++;
    built_count += built;
    if (built && result.id)
        rlxvk_graph_output(s->g, result);
    rlxvk_graph_output(s->g, s->a);
    if (built)
        fine = op_verify(s->g) == RLXVK_OK && (!is_small(s->g) || (lowers(s->g) && computes(s->g)));
    else
        fine = rlxvk_graph_error(s->g)[0] && result.id == 0;
    if (!fine)
        print_error("%s\n  with a %s, b %s, v %lld: %s\n", call, shape_text(&c->a, a),
                    shape_text(&c->b, b), (long long)c->v,
                    built ? rlxvk_last_error() : rlxvk_graph_error(s->g));
    rlxvk_graph_destroy(s->g);
    assert_true(fine);
}

/* One call. It is an expression in g, the leaves and v. */
#define CALL(...)                                                                                  \
    do {                                                                                           \
        const scene s = make_scene(c);                                                             \
        rlxvk_graph *const g = s.g;                                                                \
        const rlxvk_tensor a = s.a, b = s.b, z = s.z, q = s.q, bytes = s.bytes, one = s.one;       \
        const int64_t v = s.v;                                                                     \
        const int32_t axis = (int32_t)v;                                                           \
        (void)a, (void)b, (void)z, (void)q, (void)bytes, (void)one, (void)v, (void)axis;           \
        finish(&s, __VA_ARGS__, c, #__VA_ARGS__);                                                  \
    } while (0)
#define OPTIONS(type, ...)                                                                         \
    &(rlxvk_##type)                                                                                \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define SIZED_OPTIONS(type, ...) &RLXVK_SIZED(rlxvk_##type, __VA_ARGS__)
#define NONE                     RLXVK_NONE

/* ---- Arguments ---- */

static void call_axes(const choice *c)
{
    CALL(rlxvk_reduce_sum(g, a, &axis, 1, false));
    CALL(rlxvk_reduce_max(g, a, (int32_t[]){0, axis}, 2, true));
    CALL(rlxvk_softmax(g, a, axis));
    CALL(rlxvk_cumsum(g, a, axis, true));
    CALL(rlxvk_argmax(g, a, axis, false));
    CALL(rlxvk_layer_norm(g, a, NONE, NONE, axis, 0.1f));
    CALL(rlxvk_rms_norm(g, a, b, NONE, axis, 0.1f));
    CALL(rlxvk_batch_norm_inference(g, a, b, b, b, b, 0.1f, axis));
    CALL(rlxvk_group_norm(g, a, NONE, NONE, v, 0.1f));
    CALL(rlxvk_fake_quantize(g, a, NONE, OPTIONS(fake_quantize_options, (uint32_t)v)));
    CALL(rlxvk_fake_quantize(g, a, NONE, OPTIONS(fake_quantize_options, 4, true, axis)));
    CALL(rlxvk_fake_quantize(g, a, b,
                             OPTIONS(fake_quantize_options, 4, true, axis, RLXVK_SCALE_EMA)));
    CALL(rlxvk_fake_quantize_backward(g, a, a, b,
                                      OPTIONS(fake_quantize_options, 4, true, axis,
                                              RLXVK_SCALE_FIXED)));
    CALL(rlxvk_fake_quantize_lsq_backward_scale(g, a, b, a,
                                                OPTIONS(fake_quantize_options, 2, true, axis)));
    CALL(rlxvk_transpose(g, a, (int32_t[]){axis, 0}, 2));
    CALL(rlxvk_transpose(g, a, (int32_t[]){1, axis, 0}, 3));
    CALL(rlxvk_narrow(g, a, axis, 0, 1));
    CALL(rlxvk_narrow(g, a, 0, v, 1));
    CALL(rlxvk_narrow(g, a, -1, 1, v));
    CALL(rlxvk_narrow(g, a, -1, v, v));
    CALL(rlxvk_narrow(g, z, 0, v, v));
    CALL(rlxvk_narrow(g, q, 0, v, 4));
    CALL(rlxvk_concat(g, (rlxvk_tensor[]){a, a, b}, 3, axis));
    CALL(rlxvk_concat(g, (rlxvk_tensor[]){z, z, z}, 3, axis));
    CALL(rlxvk_reverse(g, a, &axis, 1));
    CALL(rlxvk_slice(g, a, &v, (int64_t[]){INT64_MAX}, NULL, 1));
    CALL(rlxvk_slice(g, a, (int64_t[]){INT64_MAX}, (int64_t[]){INT64_MIN}, &v, 1));
    CALL(rlxvk_slice(g, a, (int64_t[]){0, 1}, (int64_t[]){v, v}, (int64_t[]){v, v}, 2));
    CALL(rlxvk_gather(g, a, b, axis));
    CALL(rlxvk_take_along_axis(g, a, b, axis));
    CALL(rlxvk_scatter_add(g, a, b, v));
    CALL(rlxvk_topk(g, a, v));
    CALL(rlxvk_grouped_matmul_backward_weight(g, a, a, b, v, false));
    CALL(rlxvk_grouped_matmul_backward_weight(g, a, b, b, v, true));
    CALL(rlxvk_reshape(g, a, RLXVK_SHAPE(v, -1)));
    CALL(rlxvk_reshape(g, a, RLXVK_SHAPE(v, v, 0)));
    CALL(rlxvk_reshape(g, a, (rlxvk_shape){(uint32_t)v, {v, 2, 3, v}}));
    CALL(rlxvk_expand(g, a, RLXVK_SHAPE(v, -1, -1)));
    CALL(rlxvk_expand(g, one, RLXVK_SHAPE(v, 0, v)));
    CALL(rlxvk_expand(g, one, RLXVK_SHAPE(0, v)));
    CALL(rlxvk_input(g, "n", RLXVK_F32, RLXVK_SHAPE(v, 0, v)));
    CALL(rlxvk_constant(g, RLXVK_F16, RLXVK_SHAPE(v, 2), "abcd", 4));
    CALL(rlxvk_rng_uniform(g, RLXVK_SHAPE(v, 3), 0, 1, NULL));
    CALL(rlxvk_rng_normal(g, RLXVK_SHAPE(v, 0, v), 0, 1, NULL));
    CALL(rlxvk_sample(g, a, OPTIONS(sample_options, 1, (uint32_t)v, 0.5f, (uint64_t)v)));
}

static void call_arrays(const choice *c)
{
    const int64_t pair[] = {1, c->v}, less = c->v > 0 ? -c->v : 0;
    CALL(rlxvk_pad(g, a, &v, &v, 1, NULL));
    CALL(rlxvk_pad(g, a, pair, pair, 2, NULL));
    CALL(rlxvk_pad(g, z, &v, &less, 1, NULL));
    for (int mode = 1; mode < 4; mode++) {
        CALL(rlxvk_pad(g, a, &v, &less, 1, OPTIONS(pad_options, (rlxvk_pad_mode)mode)));
        CALL(rlxvk_pad(g, a, &less, &v, 1, OPTIONS(pad_options, (rlxvk_pad_mode)mode)));
        CALL(rlxvk_pad(g, a, pair, pair, 2, OPTIONS(pad_options, (rlxvk_pad_mode)mode)));
        CALL(rlxvk_pad_backward(g, a, axis, v, 4, (rlxvk_pad_mode)mode));
        CALL(rlxvk_pad_backward(g, a, 0, 1, v, (rlxvk_pad_mode)mode));
        CALL(rlxvk_pad_backward(g, z, 0, v, v, (rlxvk_pad_mode)mode));
    }
    CALL(rlxvk_pad(g, a, pair, pair, 1, OPTIONS(pad_options, (rlxvk_pad_mode)axis)));
    CALL(rlxvk_pad_backward(g, a, 0, 0, 1, (rlxvk_pad_mode)axis));
    CALL(rlxvk_roll(g, a, &v, (int32_t[]){0}, 1));
    CALL(rlxvk_roll(g, a, (int64_t[]){v, v}, (int32_t[]){axis, -1}, 2));
    CALL(rlxvk_tile(g, a, pair, 2));
    CALL(rlxvk_tile(g, one, (int64_t[]){v, 0, v, v}, 4));
    CALL(rlxvk_tile(g, z, &v, 1));
    CALL(rlxvk_sort(g, a, axis, true));
    CALL(rlxvk_argsort(g, a, axis, false));
    for (int mode = 0; mode < 5; mode++) {
        CALL(rlxvk_scatter(g, a, a, a, axis, (rlxvk_scatter_mode)mode));
        CALL(rlxvk_scatter(g, a, b, b, axis, (rlxvk_scatter_mode)mode));
        CALL(rlxvk_scatter_nd(g, a, b, a, (rlxvk_scatter_mode)mode));
    }
    CALL(rlxvk_scatter(g, a, a, a, -1, (rlxvk_scatter_mode)axis));
    CALL(rlxvk_gather_nd(g, a, b));
    CALL(rlxvk_histogram(g, a, v, -1, 1));
    CALL(rlxvk_bincount(g, a, NONE, v));
    CALL(rlxvk_bincount(g, a, a, v));
    CALL(rlxvk_keep_first(g, a, b, axis, 0));
    CALL(rlxvk_pack_first(g, a, b, axis));
    CALL(rlxvk_unpack_first(g, a, b, axis));
    CALL(rlxvk_one_hot(g, a, v, 0, 1, 0));
    CALL(rlxvk_one_hot(g, a, 3, axis, 1, 0));
}

static void call_windows(const choice *c)
{
    CALL(rlxvk_pool_max(g, a, OPTIONS(pool_options, .kernel = {v, v, v}, .padding = {1, 1, 1})));
    CALL(rlxvk_pool_max_take(g, a, a, OPTIONS(pool_options, .kernel = {v, 2}, .stride = {v, v})));
    CALL(rlxvk_pool_min_take(g, a, a, OPTIONS(pool_options, .kernel = {2, 2}, .padding = {v, v})));
    CALL(rlxvk_pool_mean(g, a, OPTIONS(pool_options, .kernel = {2, 2}, .stride = {v, v})));
    CALL(rlxvk_pool_sum(g, a, OPTIONS(pool_options, .kernel = {2, 2}, .padding = {v, v})));
    CALL(rlxvk_pool_min(g, a, OPTIONS(pool_options, .kernel = {2}, .padding = {v})));
    CALL(rlxvk_pool_prod(g, a, OPTIONS(pool_options, {v, 2, 2}, {v, 1, 1}, {v / 2, 0, 1})));
    CALL(rlxvk_pool_mean(g, a, SIZED_OPTIONS(pool_options, .kernel = {v, 2}, .dilation = {2, v})));
    CALL(rlxvk_pool_prod(g, a,
                         SIZED_OPTIONS(pool_options, .kernel = {2, 2}, .stride = {v, 1},
                                       .rounding = RLXVK_POOL_CEIL)));
    CALL(rlxvk_pool_sum(g, a,
                        SIZED_OPTIONS(pool_options, .kernel = {2, v}, .padding_after = {v, v},
                                      .padding_kind = RLXVK_POOL_PADDING_SEPARATE)));
    CALL(rlxvk_pool_max(g, a,
                        SIZED_OPTIONS(pool_options, .kernel = {1, 1},
                                      .padding_kind = (rlxvk_pool_padding)(int)v)));
    CALL(rlxvk_conv(g, a, b, NONE, OPTIONS(conv_options, .kernel = {v, v})));
    CALL(rlxvk_conv(g, a, b, NONE, OPTIONS(conv_options, .stride = {v, v})));
    CALL(rlxvk_conv(g, a, b, NONE, OPTIONS(conv_options, .padding = {v, v})));
    CALL(rlxvk_conv(g, a, b, NONE, OPTIONS(conv_options, .dilation = {v, v})));
    CALL(rlxvk_conv(g, a, b, NONE, OPTIONS(conv_options, .groups = v)));
    CALL(rlxvk_conv(g, a, b, NONE, OPTIONS(conv_options, .output_padding = {0, v})));
    CALL(rlxvk_conv(g, a, b, one, OPTIONS(conv_options, .stride = {v}, .padding = {v})));
    CALL(rlxvk_fused_conv(g, a, b, one, a, OPTIONS(fused_conv_options, .window.padding = {v, v})));
    CALL(rlxvk_fused_conv(g, a, b, NONE, NONE, OPTIONS(fused_conv_options, .activation = 99)));
    CALL(rlxvk_conv_transpose2d(g, a, b, NONE, OPTIONS(conv_options, .kernel = {v, v})));
    CALL(rlxvk_conv_transpose2d(g, a, b, NONE, OPTIONS(conv_options, .stride = {v, v})));
    CALL(rlxvk_conv_transpose2d(g, a, b, NONE, OPTIONS(conv_options, .padding = {v, v})));
    CALL(rlxvk_conv_transpose2d(g, a, b, NONE, OPTIONS(conv_options, .dilation = {v, v})));
    CALL(rlxvk_conv_transpose2d(g, a, b, NONE, OPTIONS(conv_options, .groups = v)));
    CALL(rlxvk_conv_transpose2d(g, a, b, NONE,
                                OPTIONS(conv_options, .stride = {v, v}, .output_padding = {v, v})));
    CALL(rlxvk_im2col(g, a, OPTIONS(conv_options, .kernel = {v, v})));
    CALL(rlxvk_im2col(g, a, OPTIONS(conv_options, .kernel = {1, 1}, .padding = {v, v})));
    CALL(rlxvk_im2col(g, a, OPTIONS(conv_options, .kernel = {2, 2}, .dilation = {v, 1})));
    CALL(rlxvk_im2col(g, a, OPTIONS(conv_options, .kernel = {2, 2}, .stride = {v, v})));
    CALL(rlxvk_col2im(g, a, v, 4, OPTIONS(conv_options, .kernel = {1, 1})));
    CALL(rlxvk_col2im(g, a, 4, v, OPTIONS(conv_options, .kernel = {2, 2}, .padding = {1, v})));
    CALL(rlxvk_col2im(g, a, v, v, OPTIONS(conv_options, .kernel = {v, v}, .padding = {v, v})));
    CALL(rlxvk_qconv2d(g, q, q, NONE, OPTIONS(qconv2d_options, {0, 0, 0, 1}, .kernel = {v, v})));
    CALL(rlxvk_qconv2d(g, q, q, NONE, OPTIONS(qconv2d_options, {0, 0, 0, 1}, .stride = {v, v})));
    CALL(rlxvk_qconv2d(g, q, q, NONE, OPTIONS(qconv2d_options, {0, 0, 0, 1}, .padding = {v, v})));
    CALL(rlxvk_qconv2d(g, q, q, NONE, OPTIONS(qconv2d_options, {0, 0, 0, 1}, .dilation = {v, v})));
    CALL(rlxvk_qconv2d(g, q, q, NONE, OPTIONS(qconv2d_options, {0, 0, 0, 1}, .groups = v)));
    CALL(rlxvk_qconv2d(g, q, q, NONE, OPTIONS(qconv2d_options, {axis, axis, axis, 1})));
    CALL(rlxvk_qmatmul(g, q, q, NONE, OPTIONS(requantize, axis, 0, axis, 1)));
}

static void call_models(const choice *c)
{
    CALL(rlxvk_rope(g, a, b, b, OPTIONS(rope_options, .head_dim = v)));
    CALL(rlxvk_rope(g, a, b, b, OPTIONS(rope_options, .head_dim = 2, .n_rot = v)));
    CALL(rlxvk_rope(g, a, b, b, OPTIONS(rope_options, 4, 2, (rlxvk_rope_style)axis)));
    CALL(rlxvk_rope(g, a, b, b, OPTIONS(rope_options, 4, 2, 0, (rlxvk_rope_table)axis)));
    CALL(rlxvk_attention(g, a, a, a, NONE, OPTIONS(attention_options, .num_heads = v)));
    CALL(rlxvk_attention(g, a, b, b, NONE, OPTIONS(attention_options, 2, v)));
    CALL(rlxvk_attention(g, a, b, b, NONE, OPTIONS(attention_options, 2, 2, v)));
    CALL(rlxvk_attention(g, a, b, b, NONE, OPTIONS(attention_options, v, v, v)));
    CALL(rlxvk_attention(g, a, a, a, NONE,
                         OPTIONS(attention_options, 2, .mask = RLXVK_MASK_SLIDING, .window = v)));
    CALL(rlxvk_attention(g, a, a, a, NONE,
                         OPTIONS(attention_options, 2, .layout = (rlxvk_attention_layout)axis)));
    CALL(rlxvk_attention(g, a, a, a, b,
                         OPTIONS(attention_options, 1, .mask = (rlxvk_attention_mask)axis)));
    for (uint32_t layout = 1; layout < 5; layout++) {
        rlxvk_tensor lse;
        CALL(rlxvk_attention_with_lse(g, a, b, b, NONE,
                                      OPTIONS(attention_options, v, .layout = layout), &lse));
        CALL(rlxvk_attention(g, a, a, a, b,
                             OPTIONS(attention_options, v, 0, v, RLXVK_MASK_CUSTOM,
                                     .layout = layout)));
    }
    CALL(rlxvk_attention_step(g, a, a, a, a, b, one, NONE, NONE,
                              OPTIONS(attention_step_options, v, .head_dim = 2)));
    CALL(rlxvk_attention_step(g, a, a, a, a, b, one, a, a,
                              OPTIONS(attention_step_options, 1, v, v, v)));
    CALL(rlxvk_attention_step(g, a, a, a, a, b, one, a, a,
                              OPTIONS(attention_step_options, 1, 1, 4, 2, axis, v)));
    CALL(rlxvk_axial_rope2d(g, a, OPTIONS(axial_rope2d_options, v, v, 4)));
    CALL(rlxvk_axial_rope2d(g, a, OPTIONS(axial_rope2d_options, 1, 3, v)));
    CALL(rlxvk_axial_rope2d(g, a, OPTIONS(axial_rope2d_options, 1, 3, 4, v)));
    CALL(rlxvk_axial_rope2d(g, a, OPTIONS(axial_rope2d_options, 1, 1, 4, .repeat_factor = v)));
    CALL(rlxvk_group_limited_gate(g, a, a, OPTIONS(gate_options, v, 1, 1)));
    CALL(rlxvk_group_limited_gate(g, a, a, OPTIONS(gate_options, 1, v, 1)));
    CALL(rlxvk_group_limited_gate(g, a, a, OPTIONS(gate_options, 1, 1, v)));
    CALL(rlxvk_group_limited_gate(g, a, a, OPTIONS(gate_options, 1, 1, 1, 1, v)));
    CALL(rlxvk_fused_attention_block(g, OPTIONS(attention_block, a, b, b, b, .num_heads = v,
                                                .head_dim = v)));
    CALL(rlxvk_fused_attention_block(g, OPTIONS(attention_block, a, b, b, b, .num_heads = 1,
                                                .head_dim = v)));
    CALL(rlxvk_fused_transformer_layer(g, OPTIONS(transformer_layer, .hidden = a, .qkv_w = b,
                                                  .out_w = b, .ln1_g = b, .fc1_w = b, .fc2_w = b,
                                                  .ln2_g = b, .mask = b, .num_heads = v,
                                                  .head_dim = v, .intermediate_size = v)));
}

static void call_sequences(const choice *c)
{
    rlxvk_tensor h, cell;
    CALL(rlxvk_lstm(g, a, b, b, b, NONE, NONE, OPTIONS(recurrent_options, v), &h, &cell));
    CALL(rlxvk_lstm(g, a, b, b, b, b, b, OPTIONS(recurrent_options, 1, v, true), &h, &cell));
    CALL(rlxvk_gru(g, a, b, b, b, b, NONE, OPTIONS(recurrent_options, v, v), &h));
    CALL(rlxvk_rnn(g, a, b, b, b, b, OPTIONS(recurrent_options, 2, v), &h));
    CALL(rlxvk_rnn(g, a, b, b, b, NONE, OPTIONS(recurrent_options, v, 1, true), &h));
    CALL(rlxvk_quantize(g, a, OPTIONS(quantize_options, (float[]){1}, &axis, 1, true, axis)));
    CALL(rlxvk_dequantize(g, q, OPTIONS(quantize_options, (float[]){1}, NULL, 1, true, axis)));
    CALL(rlxvk_quantize(g, a, OPTIONS(quantize_options, (float[]){1}, &axis, 1)));
}

static void call_packed(const choice *c)
{
    CALL(rlxvk_dequant_matmul(g, a, bytes, (rlxvk_quant_format)axis));
    CALL(rlxvk_dequant_matmul(g, a, bytes, RLXVK_Q8_0));
    CALL(rlxvk_dequant_gather(g, bytes, a, RLXVK_Q8_0, v));
    CALL(rlxvk_dequant_gather(g, bytes, a, RLXVK_QUANT_F32, v));
    CALL(rlxvk_dequant_gather(g, bytes, a, (rlxvk_quant_format)axis, 32));
    CALL(rlxvk_dequant_grouped_matmul(g, a, bytes, b, RLXVK_QUANT_F16, v));
    CALL(rlxvk_dequant_grouped_matmul(g, a, bytes, b, RLXVK_Q4_K, v));
    CALL(rlxvk_dequant_moe_weights(g, bytes, RLXVK_QUANT_F32, v, 2));
    CALL(rlxvk_dequant_moe_weights(g, bytes, RLXVK_Q4_0, 32, v));
    CALL(rlxvk_dequant_moe_weights(g, bytes, RLXVK_QUANT_F16, v, v));
    for (uint32_t kind = 0; kind < 8; kind++) {
        CALL(rlxvk_dequant_matmul_scaled(g, a, bytes, b, one, OPTIONS(quant_scheme, kind, v, 2)));
        CALL(rlxvk_dequant_matmul_scaled(g, a, bytes, b, one, OPTIONS(quant_scheme, kind, 32, v)));
        CALL(rlxvk_dequant_matmul_scaled(g, a, bytes, bytes, b, OPTIONS(quant_scheme, kind, 0, v)));
        CALL(rlxvk_dequant_matmul_scaled(g, a, bytes, bytes, b, OPTIONS(quant_scheme, kind, v, v)));
    }
}

static void call_spectra(const choice *c)
{
    rlxvk_tensor im;
    CALL(rlxvk_fft_axis(g, z, axis, false, RLXVK_FFT_NONE));
    CALL(rlxvk_fft(g, a, false, (rlxvk_fft_norm)axis));
    CALL(rlxvk_fftn(g, z, (int32_t[]){axis, 0}, 2, false, RLXVK_FFT_NONE));
    CALL(rlxvk_pad_last(g, a, v));
    CALL(rlxvk_pad_last(g, z, v));
    CALL(rlxvk_pad_last(g, q, v));
    CALL(rlxvk_fft_real(g, a, v, RLXVK_FFT_NONE, &im));
    CALL(rlxvk_rfft(g, a, v, RLXVK_FFT_NONE, &im));
    CALL(rlxvk_rfft(g, q, v, RLXVK_FFT_NONE, &im));
    CALL(rlxvk_irfft(g, a, b, v, RLXVK_FFT_NONE));
    CALL(rlxvk_irfft(g, q, q, v, RLXVK_FFT_NONE));
    CALL(rlxvk_rfft_block(g, a, v, RLXVK_FFT_NONE));
    CALL(rlxvk_irfft_block(g, a, v, RLXVK_FFT_NONE));
    CALL(rlxvk_irfft_block(g, bytes, v, RLXVK_FFT_NONE));
    CALL(rlxvk_irfft_block(g, z, v, RLXVK_FFT_NONE));
    CALL(rlxvk_frames(g, a, v, 1));
    CALL(rlxvk_frames(g, a, 1, v));
    CALL(rlxvk_frames(g, a, v, v));
    CALL(rlxvk_stft(g, a, NONE, OPTIONS(stft_options, 2, v)));
    CALL(rlxvk_stft(g, a, b, OPTIONS(stft_options, v, 1)));
    CALL(rlxvk_stft(g, a, NONE, OPTIONS(stft_options, 2, 1, v)));
    CALL(rlxvk_stft(g, a, NONE, OPTIONS(stft_options, 2, 1, v, .two_sided = true)));
    CALL(rlxvk_welch(g, a, NONE, OPTIONS(welch_frame_options, 2, v)));
    CALL(rlxvk_welch(g, a, b, OPTIONS(welch_frame_options, v, 1)));
    CALL(rlxvk_welch(g, a, NONE, OPTIONS(welch_frame_options, 2, 1, v)));
    CALL(rlxvk_welch(g, q, NONE, OPTIONS(welch_frame_options, 2, 1, v)));
    CALL(rlxvk_psd(g, a, b, v));
    if (c->v >= LONG_DIM || c->v <= 256) { /* it makes a constant of that length */
        CALL(rlxvk_signal_fftfreq(g, v));
        CALL(rlxvk_signal_rfftfreq(g, v));
        CALL(rlxvk_signal_hann(g, v, v & 1));
    }
}

/* body(c, x..): -c, with as many inputs as are bound. */
static rlxvk_graph *body_of(const rlxvk_graph *g, rlxvk_tensor carry, size_t inputs)
{
    static const char *const names[] = {"0", "1"};
    rlxvk_graph *body = NULL;
    expect_ok(rlxvk_graph_create(&body));
    for (size_t i = 0; i < inputs; i++)
        rlxvk_input(body, names[i], RLXVK_F32, rlxvk_tensor_shape(g, carry));
    rlxvk_graph_output(body, rlxvk_neg(body, (rlxvk_tensor){1}));
    return body;
}

static rlxvk_tensor scan(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b, size_t count,
                         rlxvk_scan_options o)
{
    rlxvk_graph *body = body_of(g, a, count);
    rlxvk_tensor result = rlxvk_scan(g, body, (rlxvk_tensor[]){a, b}, count, &o);
    rlxvk_graph_destroy(body);
    return result;
}

static rlxvk_tensor loop(rlxvk_graph *g, rlxvk_tensor a, int64_t rounds)
{
    rlxvk_graph *body = body_of(g, a, 1);
    rlxvk_tensor result = RLXVK_NONE;
    rlxvk_while(g, body, body, (uint32_t)rounds, &a, 1, &result);
    rlxvk_graph_destroy(body);
    return result;
}

static void call_control(const choice *c)
{
    CALL(scan(g, a, b, 1, (rlxvk_scan_options){.length = MIN(v, 1000)}));
    CALL(scan(g, a, b, 1, (rlxvk_scan_options){.length = v > 1000 ? v : 0}));
    CALL(scan(g, a, b, 2, (rlxvk_scan_options){.length = 2, .save_trajectory = true}));
    CALL(scan(g, a, b, 2, (rlxvk_scan_options){.length = 1, .broadcast_count = (size_t)v}));
    CALL(scan(g, a, b, 1,
              (rlxvk_scan_options){.length = 3, .save_trajectory = true, .checkpoints = v}));
    CALL(scan(g, a, b, 2,
              (rlxvk_scan_options){
                  .length = v, .broadcast_count = 1, .save_trajectory = true, .checkpoints = v}));
    CALL(loop(g, a, v));
}

/* ---- Calls in which only shapes vary ---- */

static void call_plain(const choice *c)
{
    rlxvk_tensor out;
    CALL(rlxvk_add(g, a, b));
    CALL(rlxvk_mul(g, z, b));
    CALL(rlxvk_eq(g, a, b));
    CALL(rlxvk_fma(g, a, b, one));
    CALL(rlxvk_where(g, b, a, one));
    CALL(rlxvk_gelu(g, a));
    CALL(rlxvk_exp(g, z));
    CALL(rlxvk_cast(g, q, RLXVK_F32));
    CALL(rlxvk_copy(g, bytes));
    CALL(rlxvk_matmul(g, a, b));
    CALL(rlxvk_matmul(g, a, a));
    CALL(rlxvk_matmul_with(g, a, b, OPTIONS(matmul_options, true, false)));
    CALL(rlxvk_matmul_with(g, a, a, OPTIONS(matmul_options, false, true)));
    CALL(rlxvk_fused_matmul_bias_act(g, a, b, one, RLXVK_ACTIVATION_RELU, false));
    CALL(rlxvk_fused_matmul_bias_act(g, a, a, b, RLXVK_ACTIVATION_RELU, true));
    CALL(rlxvk_fused_residual_ln(g, a, a, NONE, b, NONE, 0.1f));
    CALL(rlxvk_fused_swiglu(g, a, true));
    CALL(rlxvk_layer_norm2d(g, a, b, b, 0.1f));
    CALL(rlxvk_batch_norm_training(g, a, NONE, NONE, NONE, NONE, NULL));
    CALL(rlxvk_batch_norm_statistics(g, a, b, one, NULL));
    CALL(rlxvk_batch_norm_backward_parameters(g, a, b, a));
    CALL(rlxvk_fake_quantize(g, a, NONE, NULL));
    CALL(rlxvk_fake_quantize_lsq_backward_scale(g, a, one, a, NULL));
    CALL(rlxvk_resize_nearest2x(g, a));
    CALL(rlxvk_write_rows(g, a, b, one));
    CALL(rlxvk_grouped_matmul(g, a, b, b, false));
    CALL(rlxvk_grouped_matmul(g, a, b, a, true));
    CALL(rlxvk_dense_solve(g, a, b));
    CALL(rlxvk_batched_dense_solve(g, a, b));
    CALL(rlxvk_det(g, a));
    CALL(rlxvk_slogdet(g, a, &out));
    CALL(rlxvk_cofactor(g, a));
    CALL(rlxvk_inverse(g, a));
    CALL(rlxvk_dot_general(g, a, b, NULL));
    CALL(rlxvk_log_softmax(g, a, axis));
    CALL(rlxvk_cumprod(g, a, axis, true));
    CALL(rlxvk_log_sum_exp(g, a, &axis, 1, true));
    CALL(rlxvk_triu(g, a, v));
    CALL(rlxvk_tril(g, a, -(v / 2)));
    CALL(rlxvk_full(g, RLXVK_SHAPE(v, 2), 1));
    CALL(rlxvk_prelu(g, a, b));
    CALL(rlxvk_einsum(g, "...i,...j->...ij", (rlxvk_tensor[]){a, b}, 2));
    CALL(rlxvk_einsum(g, "...ii", &a, 1));
    CALL(rlxvk_lora_matmul(g, a, b, b, b, 2));
    CALL(rlxvk_selective_scan(g, a, a, b, b, b));
    CALL(rlxvk_mamba2(g, a, b, b, a, a, NONE, false, &out));
    CALL(rlxvk_mamba2(g, a, b, b, a, a, a, false, &out));
    CALL(rlxvk_gated_delta_net(g, a, a, a, b, b, NONE, false, &out));
    CALL(rlxvk_gated_delta_net(g, a, a, a, b, b, a, true, &out));
    CALL(rlxvk_linear_attention(g, a, b, a, b, NONE, a, NULL, &out));
    CALL(rlxvk_selective_scan_backward(g, a, a, b, b, b, a, &out, NULL, NULL, NULL));
    CALL(rlxvk_mamba2_backward(g, a, b, b, a, a, a, a, a, &out, NULL, NULL, NULL, NULL));
    CALL(rlxvk_gated_delta_net_backward(g, a, a, a, b, b, a, a, a, &out, NULL, NULL, NULL, NULL));
    CALL(rlxvk_linear_attention_backward(g, a, b, a, b, NONE, a, a, a, NULL, &out, NULL, NULL, NULL,
                                         NULL));
    CALL(rlxvk_fftn(g, z, NULL, 0, true, RLXVK_FFT_ORTHO));
    CALL(rlxvk_fft_split(g, a, &out));
    CALL(rlxvk_fft_split(g, bytes, &out));
    CALL(rlxvk_fft_merge(g, a, b));
    CALL(rlxvk_ifft_real(g, a, b, RLXVK_FFT_NONE));
    CALL(rlxvk_psd_real(g, a, RLXVK_FFT_NONE));
    CALL(rlxvk_fft_conv1d(g, a, b));
    CALL(rlxvk_complex_norm_sq(g, z));
    CALL(rlxvk_conjugate(g, z));
    CALL(rlxvk_complex_norm_sq_backward(g, z, b));
    CALL(rlxvk_rng_uniform_like(g, a, 0, 1, NULL));
}

/* ---- Packing on the host: if one length is 0, there are no bytes, even if the other is huge ----
 */

static void test_packing(void **state)
{
    uint8_t codes[64] = {0}, scales[64] = {0};
    float extra[16] = {0}, w[16] = {0};
    rlxvk_quant_sizes sizes;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(values); i++) {
        uint64_t k = (uint64_t)values[i];
        for (int format = -1; format < 50; format++)
            (void)rlxvk_quant_row_bytes((rlxvk_quant_format)format, k);
        for (uint32_t kind = 0; kind < 10; kind++)
            for (size_t n = 0; n < ARRAY_COUNT(values); n++) {
                rlxvk_quant_scheme scheme = {kind, k % 7 ? (int64_t)k : 32, values[n]};
                (void)!rlxvk_quant_matrix_sizes(&scheme, k, &sizes);
                scheme.n = 0;
                scheme.block = kind == RLXVK_QUANT_INT8 || kind == RLXVK_QUANT_INT4 ? 32 : 0;
                (void)!rlxvk_quant_encode_matrix(&scheme, k, w, codes, scales, extra);
                (void)!rlxvk_quant_decode_matrix(&scheme, k, codes, scales, extra, w);
            }
    }
}

/* ---- Tests ---- */

typedef void (*calls)(const choice *c);

/* Each shape is used with itself and with a few others as the second operand. */
static void with_every_shape(calls call, int64_t v)
{
    static const rlxvk_shape seconds[] = {
        {1, {4}}, {2, {4, 4}}, {4, {1, 4, 3, 3}}, {2, {0, HUGE_DIM}}, {1, {0}}};
    for (size_t i = 0; i < ARRAY_COUNT(shapes); i++) {
        call(&(choice){shapes[i], shapes[i], v});
        for (size_t k = 0; k < ARRAY_COUNT(seconds); k++)
            call(&(choice){shapes[i], seconds[k], v});
    }
}

static void with_every_value(calls call)
{
    for (size_t i = 0; i < ARRAY_COUNT(values); i++)
        with_every_shape(call, values[i]);
}

#define TEST(name)                                                                                 \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        with_every_value(call_##name);                                                             \
    }
TEST(axes)
TEST(arrays)
TEST(windows)
TEST(models)
TEST(sequences)
TEST(packed)
TEST(spectra)
TEST(control)

static void test_shapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(shapes); i++)
        for (size_t k = 0; k < ARRAY_COUNT(shapes); k++)
            call_plain(&(choice){shapes[i], shapes[k], 0});
}

static int begin_limit(void **state)
{
    (void)state;
    time_limit_begin(600); /* if a builder never returns, the test fails */
    return 0;
}

static int end_limit(void **state)
{
    (void)state;
    time_limit_end();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),    cmocka_unit_test(test_axes),
        cmocka_unit_test(test_windows),   cmocka_unit_test(test_models),
        cmocka_unit_test(test_sequences), cmocka_unit_test(test_packed),
        cmocka_unit_test(test_spectra),   cmocka_unit_test(test_control),
        cmocka_unit_test(test_packing),   cmocka_unit_test(test_arrays),
    };
    int failures = cmocka_run_group_tests(tests, begin_limit, end_limit);
    print_message("%zu calls, %zu accepted, %zu lowered\n", call_count, built_count, lowered_count);
    return failures;
}
