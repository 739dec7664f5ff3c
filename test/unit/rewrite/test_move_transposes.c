/*
 * Transposes that move, without a device and with one. Nets with channels in the last axis must
 * keep only the transposes at their ends, whatever is between their convolutions. What may not move
 * must stay, and every rewritten graph computes the same.
 */
#include "op/movement/movement.h"
#include "support/rewritten.h"

#include <rlxvk_compile.h>
#include <rlxvk_ops_array.h>
#include <rlxvk_ops_domain.h>
#include <rlxvk_symbols.h>
#include <rlxvk_train.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const int32_t to_planes[] = {0, 3, 1, 2}, to_pixels[] = {0, 2, 3, 1};
static const rlxvk_shape pixels = RLXVK_SHAPE(2, 6, 5, 4); /* N, H, W, C */

static rlxvk_tensor planes_of(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_transpose(g, x, to_planes, 4);
}

static rlxvk_tensor pixels_of(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_transpose(g, x, to_pixels, 4);
}

/* A convolution as exporters write it: to planes, and back. */
static rlxvk_tensor convolve(rlxvk_graph *g, rlxvk_tensor x, const char *name, int64_t channels)
{
    rlxvk_conv_options same = {.padding = {1, 1}};
    int64_t from = rlxvk_tensor_shape(g, x).dims[3];
    rlxvk_tensor w = param(g, name, RLXVK_SHAPE(channels, from, 3, 3));
    return pixels_of(g, rlxvk_conv(g, planes_of(g, x), w, RLXVK_NONE, &same));
}

static rlxvk_tensor pool(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_pool_options o = {.kernel = {2, 2}, .stride = {2, 2}};
    return pixels_of(g, rlxvk_pool_max(g, planes_of(g, x), &o));
}

/* ---- Nets ---- */

typedef rlxvk_tensor (*middle)(rlxvk_graph *g, rlxvk_tensor x);

static rlxvk_tensor bias_relu(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_relu(g, rlxvk_add(g, x, param(g, "bias", RLXVK_SHAPE(4))));
}

static rlxvk_tensor full_bias(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_add(g, param(g, "bias", RLXVK_SHAPE(2, 1, 1, 4)), x);
}

static rlxvk_tensor column_scale(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_mul(g, x, param(g, "scale", RLXVK_SHAPE(6, 1, 1)));
}

/* Of each position and channel; it becomes another layout when it is set. */
static rlxvk_tensor positions(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_relu(g, rlxvk_add(g, x, param(g, "positions", RLXVK_SHAPE(6, 5, 4))));
}

static rlxvk_tensor scalars(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_min(g, rlxvk_mul(g, x, rlxvk_scalar(g, 2)), rlxvk_full(g, RLXVK_SHAPE(1), 6));
}

static rlxvk_tensor residual(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_tensor y = rlxvk_relu(g, x);
    return rlxvk_relu(g, rlxvk_add(g, y, convolve(g, y, "inner", 4)));
}

static rlxvk_tensor joined(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_tensor parts[] = {rlxvk_relu(g, x), convolve(g, x, "side", 3)};
    return rlxvk_concat(g, parts, 2, 3);
}

static rlxvk_tensor split(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_tensor a = rlxvk_narrow(g, x, 3, 0, 2), b = rlxvk_narrow(g, x, 3, 2, 2);
    return rlxvk_mul(g, a, b);
}

static rlxvk_tensor pooled(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_relu(g, pool(g, x));
}

static rlxvk_tensor gated(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_tensor mean = rlxvk_reduce_mean(g, x, (int32_t[]){1, 2}, 2, true);
    return rlxvk_mul(g, x, rlxvk_sigmoid(g, mean));
}

static rlxvk_tensor normalized(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_softmax(g, x, 3);
}

static rlxvk_tensor padded(rlxvk_graph *g, rlxvk_tensor x)
{
    return rlxvk_pad(g, x, (int64_t[]){1, 0, 0}, (int64_t[]){0, 2, 0}, 3, NULL);
}

static rlxvk_tensor chosen(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_tensor positive = rlxvk_gt(g, x, rlxvk_scalar(g, 0));
    return rlxvk_where(g, positive, x, rlxvk_mul(g, x, rlxvk_scalar(g, 0.25f)));
}

static const struct {
    const char *what;
    middle build;
} middles[] = {
    {"bias [C], relu", bias_relu},
    {"bias [N, 1, 1, C]", full_bias},
    {"scale [H, 1, 1]", column_scale},
    {"scalars", scalars},
    {"positions", positions},
    {"residual", residual},
    {"concat", joined},
    {"split", split},
    {"pool", pooled},
    {"mean and gate", gated},
    {"softmax", normalized},
    {"pad", padded},
    {"where", chosen},
};

static rlxvk_graph *build_net(middle build)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = convolve(g, input(g, "x", pixels), "first", 4);
    rlxvk_tensor y = convolve(g, build(g, x), "last", 2);
    rlxvk_graph_set_name(g, y, "y");
    rlxvk_graph_output(g, y);
    return g;
}

/* Those that run with each run: not those of weights. */
static uint32_t count_transposes(rlxvk_graph *g)
{
    rlxvk_graph *after = checked(g, false);
    uint32_t count = 0;
    for (uint32_t id = 0; id < after->nodes.count; id++)
        count += graph_node(after, id)->op == OP_transpose && !graph_node(after, id)->prepare;
    rlxvk_graph_destroy(after);
    rlxvk_graph_destroy(g);
    return count;
}

static void only_the_ends_are_transposed(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(middles); i++) {
        rlxvk_graph *g = build_net(middles[i].build);
        assert_true(count_op(g, OP_transpose) >= 4);
        expect_count(middles[i].what, count_transposes(g), 2);
    }
}

/* The mean over pixels needs no transpose at the end. A dense layer follows. */
static void means_end_the_order(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = rlxvk_relu(g, convolve(g, input(g, "x", pixels), "w", 8));
    (void)state;
    x = rlxvk_reduce_mean(g, x, (int32_t[]){1, 2}, 2, false);
    rlxvk_graph_output(g, rlxvk_matmul(g, x, param(g, "dense", RLXVK_SHAPE(8, 3))));
    expect_count("mean", count_after(g, OP_transpose), 1);
}

/* ---- What stays ---- */

/* An output in the middle keeps its shape and name; the chain beside it goes on. */
static void outputs_stay(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = convolve(g, input(g, "x", pixels), "first", 4), y = bias_relu(g, x);
    (void)state;
    rlxvk_graph_set_name(g, y, "middle");
    rlxvk_graph_output(g, y);
    rlxvk_graph_output(g, convolve(g, y, "last", 2));
    expect_count("output in the middle", count_after(g, OP_transpose), 3);
    /* The second transpose gives back x, but it is an output of its own. */
    g = new_graph();
    y = pixels_of(g, planes_of(g, input(g, "x", pixels)));
    rlxvk_graph_set_name(g, y, "y");
    rlxvk_graph_output(g, y);
    rlxvk_graph *after = checked(g, true);
    assert_string_equal(graph_node(after, after->outputs.items[0])->name, "y");
    assert_true(graph_node(after, after->outputs.items[0])->op != OP_input);
    rlxvk_graph_destroy(after);
    rlxvk_graph_destroy(g);
}

static void what_cannot_follow_stays(void **state)
{
    (void)state;
    /* A reshape that mixes axes. */
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = rlxvk_relu(g, convolve(g, input(g, "x", pixels), "first", 4));
    x = rlxvk_reshape(g, rlxvk_reshape(g, x, RLXVK_SHAPE(2, 30, 4)), RLXVK_SHAPE(2, 5, 6, 4));
    rlxvk_graph_output(g, convolve(g, x, "last", 2));
    expect_count("reshape", count_after(g, OP_transpose), 4);
    /* A tensor that does not broadcast would have to be transposed instead. */
    g = new_graph();
    x = rlxvk_add(g, pixels_of(g, input(g, "x", RLXVK_SHAPE(2, 4, 6, 5))), input(g, "z", pixels));
    rlxvk_graph_output(g, rlxvk_relu(g, x));
    expect_count("sum", count_after(g, OP_transpose), 1);
    /* A cumulative sum has no other order. */
    g = new_graph();
    x = rlxvk_cumsum(g, convolve(g, input(g, "x", pixels), "first", 4), 3, false);
    rlxvk_graph_output(g, convolve(g, x, "last", 2));
    expect_count("cumsum", count_after(g, OP_transpose), 4);
    /* One transpose for many readers stays one. */
    g = new_graph();
    x = pixels_of(g, input(g, "x", RLXVK_SHAPE(2, 4, 6, 5)));
    for (int i = 0; i < 3; i++)
        rlxvk_graph_output(g, rlxvk_mul(g, x, rlxvk_scalar(g, (float)(i + 2))));
    expect_count("many readers", count_after(g, OP_transpose), 1);
}

/* A leaf that is written between: the transposed one has its old content. */
static void written_leaves_stay(void **state)
{
    static const int32_t swapped[] = {1, 0, 2};
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(3, 4, 2)), y = rlxvk_transpose(g, x, swapped, 3);
    rlxvk_tensor rows = input(g, "rows", RLXVK_SHAPE(3, 1, 2)), at = input(g, "at", RLXVK_SHAPE(1));
    (void)state;
    rlxvk_graph_output(g, rlxvk_write_rows(g, x, rows, at));
    rlxvk_graph_output(g, rlxvk_neg(g, rlxvk_transpose(g, rlxvk_relu(g, y), swapped, 3)));
    rlxvk_graph *after = rewritten(g, true);
    expect_count("written", count_op(after, OP_transpose), 2);
    rlxvk_graph_destroy(after);
    rlxvk_graph_destroy(g);
}

/* Two orders that do not cancel become one transpose. */
static void orders_combine(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x =
        rlxvk_transpose(g, input(g, "x", RLXVK_SHAPE(2, 3, 4)), (int32_t[]){1, 2, 0}, 3);
    (void)state;
    x = rlxvk_transpose(g, rlxvk_relu(g, x), (int32_t[]){1, 2, 0}, 3);
    rlxvk_graph_output(g, rlxvk_cumsum(g, x, 2, false));
    expect_count("two orders", count_after(g, OP_transpose), 1);
}

/* Gradients are built before, so their transposes move, too. */
static void gradients_move(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor y = bias_relu(g, convolve(g, input(g, "x", pixels), "first", 4)), d;
    rlxvk_tensor w = rlxvk_graph_tensor_named(g, "first");
    (void)state;
    y = convolve(g, y, "last", 2);
    y = rlxvk_reduce_sum(g, rlxvk_mul(g, y, y), (int32_t[]){0, 1, 2, 3}, 4, false);
    rlxvk_graph_output(g, y);
    rlxvk_grad(g, y, RLXVK_NONE, &w, 1, &d);
    rlxvk_graph_output(g, d);
    uint32_t before = count_op(g, OP_transpose), after = count_after(g, OP_transpose);
    if (before < 6 || after > 1)
        fail_msg("%u transposes, %u are left", before, after);
}

/* ---- On the device ---- */

static rlxvk_executable *compile(const rlxvk_graph *g, bool without)
{
    rlxvk_executable *e = NULL;
    rlxvk_compile_options o = {.fusion = without ? RLXVK_OFF : RLXVK_DEFAULT};
    expect_ok(rlxvk_compile(shared_context, g, &o, &e));
    return e;
}

/* Small integers are exact in every order, so the results must be equal bit by bit. */
static void results_are_the_same(void **state)
{
    float x[240], y[2][480], w[1024];
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(x); i++)
        x[i] = (float)((i * 7) % 5) - 2;
    for (size_t i = 0; i < ARRAY_COUNT(w); i++)
        w[i] = (float)((i * 5) % 3) - 1;
    for (size_t i = 0; i < ARRAY_COUNT(middles); i++) {
        rlxvk_graph *g = build_net(middles[i].build);
        rlxvk_shape s = rlxvk_tensor_shape(g, rlxvk_graph_output_tensor(g, 0));
        size_t length = shape_numel(&s);
        if (middles[i].build == gated || middles[i].build == normalized) {
            rlxvk_graph_destroy(g);
            continue; /* not exact */
        }
        for (int without = 0; without < 2; without++) {
            rlxvk_executable *e = compile(g, without);
            for (uint32_t id = 0; id < g->nodes.count; id++)
                if (node_is_param(graph_node(g, id)))
                    expect_ok(rlxvk_set_param(e, graph_node(g, id)->name, w,
                                              shape_numel(&graph_node(g, id)->shape)));
            rlxvk_run_input in = {.name = "x", .data = x, .length = 240};
            rlxvk_run_output out = {.buffer = y[without], .length = length};
            expect_ok(rlxvk_run(e, &in, 1, &out, 1));
            rlxvk_executable_destroy(e);
        }
        if (memcmp(y[0], y[1], length * sizeof *y[0]) != 0)
            fail_msg("%s differs", middles[i].what);
        rlxvk_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_ends_are_transposed),
        cmocka_unit_test(means_end_the_order),
        cmocka_unit_test(outputs_stay),
        cmocka_unit_test(what_cannot_follow_stays),
        cmocka_unit_test(written_leaves_stay),
        cmocka_unit_test(orders_combine),
        cmocka_unit_test(gradients_move),
        cmocka_unit_test(results_are_the_same),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
