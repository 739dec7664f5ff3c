/*
 * Fuses convolutions with the nodes after them, without a device. Each pattern must fire only if it
 * may and otherwise give its reason. The fused graph must compute the same. Blocks of residual nets
 * must become only their convolutions, and one step for each norm whose params are not constants.
 */
#include "op/conv/conv.h"
#include "op/view.h"
#include "support/rewritten.h"

#include <rlxvk_ops_domain.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

static const rlxvk_shape image = {4, {2, 4, 5, 6}}, line = {3, {2, 4, 7}};
static const rlxvk_shape room = {5, {1, 4, 3, 4, 5}};

/* A convolution from 4 to 4 channels that keeps the image size. */
static rlxvk_tensor convolve(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor bias, int64_t groups)
{
    uint32_t axes = rlxvk_tensor_shape(g, x).rank - 2;
    rlxvk_conv_options o = {.groups = groups};
    rlxvk_shape w = {axes + 2, {4, 4 / groups}};
    for (uint32_t i = 0; i < axes; i++) {
        o.padding[i] = 1;
        w.dims[2 + i] = 3;
    }
    return rlxvk_conv(g, x, param(g, "w", w), bias, &o);
}

static rlxvk_tensor normalize(rlxvk_graph *g, rlxvk_tensor x, int32_t axis)
{
    rlxvk_shape c = RLXVK_SHAPE(rlxvk_tensor_shape(g, x).dims[axis]);
    rlxvk_tensor variance = rlxvk_exp(g, param(g, "variance", c)); /* positive */
    return rlxvk_batch_norm_inference(g, x, param(g, "gamma", c), param(g, "beta", c),
                                      param(g, "mean", c), variance, 1e-3f, axis);
}

/* ---- Patterns ---- */

enum extra { NONE, CONV_OUTPUT, CONV_TWICE, NORM_OUTPUT, SUM_TWICE, ITSELF, WRITE, HALF_RESIDUAL };

typedef struct conv_case {
    const char *what;
    rlxvk_shape x, bias, residual;          /* rank 0: none */
    bool own_bias, norm, relu, relu_before; /* the residual */
    int64_t groups;
    int32_t norm_axis; /* 0: 1 */
    enum extra extra;
    uint32_t fused, left; /* fused nodes; norms, sums and activations that are left */
    const char *why;
} conv_case;

static rlxvk_tensor add_residual(rlxvk_graph *g, const conv_case *c, rlxvk_tensor y)
{
    rlxvk_tensor r = c->extra == ITSELF ? y
                     : c->extra == HALF_RESIDUAL
                         ? rlxvk_input(g, "residual", RLXVK_F16, c->residual)
                         : input(g, "residual", c->residual);
    if (c->extra == WRITE)
        rlxvk_graph_output(g, rlxvk_write_rows(g, r, input(g, "rows", RLXVK_SHAPE(2, 1, 7)),
                                               input(g, "at", RLXVK_SHAPE(1))));
    return rlxvk_add(g, y, r);
}

static rlxvk_graph *build(const conv_case *c)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor own = c->own_bias ? param(g, "own", RLXVK_SHAPE(4)) : RLXVK_NONE;
    rlxvk_tensor y = convolve(g, input(g, "x", c->x), own, c->groups ? c->groups : 1);
    if (c->extra == CONV_OUTPUT)
        rlxvk_graph_output(g, y);
    if (c->extra == CONV_TWICE)
        rlxvk_graph_output(g, rlxvk_softmax(g, y, 1));
    if (c->bias.rank)
        y = rlxvk_add(g, y, param(g, "bias", c->bias));
    if (c->norm)
        y = normalize(g, y, c->norm_axis ? c->norm_axis : 1);
    if (c->extra == NORM_OUTPUT)
        rlxvk_graph_output(g, y);
    if (c->relu_before)
        y = rlxvk_relu(g, y);
    if (c->residual.rank)
        y = add_residual(g, c, y);
    if (c->extra == SUM_TWICE)
        rlxvk_graph_output(g, rlxvk_softmax(g, y, 1));
    if (c->relu)
        y = rlxvk_relu(g, y);
    rlxvk_graph_set_name(g, y, "y");
    rlxvk_graph_output(g, y);
    return g;
}

static void check(const conv_case *c)
{
    rlxvk_graph *g = build(c), *after = checked(g, false);
    uint32_t left = count_op(after, OP_relu) + count_op(after, OP_batch_norm_inference);
    const node *fused = NULL;
    for (uint32_t id = 0; id < after->nodes.count; id++)
        if (graph_node(after, id)->op == OP_fused_conv)
            fused = graph_node(after, id);
    for (uint32_t id = 0; id < after->nodes.count; id++)
        left += graph_node(after, id)->op == OP_add &&
                shape_equal(&graph_node(after, id)->shape, &c->x);
    expect_count(c->what, count_op(after, OP_fused_conv), c->fused);
    expect_count(c->what, count_op(after, OP_conv), 1 - c->fused);
    expect_count(c->what, left, c->left);
    expect_miss(c->what, after, c->why);
    if (c->fused && !c->left) {
        const conv_attributes *a = fused->attributes;
        assert_int_equal(a->has_residual, c->residual.rank > 0);
        assert_int_equal(a->has_bias, c->own_bias || c->bias.rank || c->norm);
        assert_int_equal(a->activation_first, c->relu_before && c->residual.rank > 0);
        assert_string_equal(fused->name, "y");
    }
    rlxvk_graph_destroy(after);
    rlxvk_graph_destroy(g);
}

static void fuses_what_follows(void **state)
{
    const rlxvk_shape column = RLXVK_SHAPE(4, 1, 1), full = RLXVK_SHAPE(1, 4, 1, 1);
    const conv_case cases[] = {
        {"activation", image, .relu = true, .fused = 1},
        {"own bias", image, .own_bias = true, .relu = true, .fused = 1},
        {"bias", image, column, .fused = 1},
        {"bias behind ones", image, full, .relu = true, .fused = 1},
        {"two biases", image, column, .own_bias = true, .relu = true, .fused = 1},
        {"norm", image, .norm = true, .fused = 1},
        {"norm, activation", image, .norm = true, .relu = true, .fused = 1},
        {"own bias, norm", image, .own_bias = true, .norm = true, .relu = true, .fused = 1},
        {"all biases, norm", image, full, .own_bias = true, .norm = true, .relu = true, .fused = 1},
        {"residual", image, .residual = image, .fused = 1},
        {"residual, activation", image, .residual = image, .relu = true, .fused = 1},
        {"norm, residual, activation", image, .residual = image, .norm = true, .relu = true,
         .fused = 1},
        {"everything", image, column, image, .own_bias = true, .norm = true, .relu = true,
         .fused = 1},
        {"activation, residual", image, .residual = image, .norm = true, .relu_before = true,
         .fused = 1},
        {"groups", image, .residual = image, .norm = true, .relu = true, .groups = 2, .fused = 1},
        {"depthwise", image, .norm = true, .relu = true, .groups = 4, .fused = 1},
        {"one axis", line, RLXVK_SHAPE(4, 1), line, .norm = true, .relu = true, .fused = 1},
        {"three axes", room, RLXVK_SHAPE(4, 1, 1, 1), room, .norm = true, .relu = true, .fused = 1},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        check(&cases[i]);
}

static void leaves_what_it_must(void **state)
{
    const rlxvk_shape wide = RLXVK_SHAPE(3, 2, 4, 5, 6);
    const conv_case cases[] = {
        {"convolution is an output", image, .norm = true, .relu = true, .extra = CONV_OUTPUT,
         .left = 2, .why = "conv %2 is a graph output"},
        {"convolution read twice", image, .norm = true, .relu = true, .extra = CONV_TWICE,
         .left = 2, .why = "conv %2 has 2 readers"},
        {"norm is an output", image, .norm = true, .relu = true, .extra = NORM_OUTPUT, .fused = 1,
         .left = 1, .why = "is a graph output"},
        {"sum read twice", image, .residual = image, .relu = true, .extra = SUM_TWICE, .fused = 1,
         .left = 1, .why = "fused_conv %3 has 2 readers"},
        {"activation on both sides", image, .residual = image, .relu = true, .relu_before = true,
         .fused = 1, .left = 1},
        {"residual of a row", image, .residual = RLXVK_SHAPE(6), .relu = true, .left = 2,
         .why = "neither a bias nor of its shape"},
        {"residual of one channel", image, .residual = RLXVK_SHAPE(2, 1, 5, 6), .left = 1,
         .why = "neither a bias nor of its shape"},
        {"residual of one element", image, .residual = RLXVK_SHAPE(1), .left = 1,
         .why = "neither a bias nor of its shape"},
        {"residual that widens", image, .residual = wide, .why = "what is added widens conv"},
        {"residual of another dtype", image, .residual = image, .extra = HALF_RESIDUAL, .left = 1,
         .why = "neither a bias nor of its shape"},
        {"sum with itself", image, .residual = image, .extra = ITSELF, .left = 1,
         .why = "has 2 readers"},
        {"residual written between", line, .residual = line, .extra = WRITE, .relu = true,
         .left = 2, .why = "is written in place after"},
        {"norm along another axis", image, .norm = true, .norm_axis = 3, .left = 1,
         .why = "another axis than 1"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        check(&cases[i]);
}

static void fuses_every_activation(void **state)
{
    static rlxvk_tensor (*const activations[])(rlxvk_graph *, rlxvk_tensor) = {
#define ACTIVATION(code, NAME, row, ...) rlxvk_##row,
#include "args/activation.def"
    };
    (void)state;
    for (uint32_t i = 0; i < ARRAY_COUNT(activations); i++) {
        rlxvk_graph *g = new_graph(), *after;
        rlxvk_tensor x = input(g, "x", image);
        rlxvk_graph_output(g, activations[i](g, rlxvk_add(g, x, convolve(g, x, RLXVK_NONE, 1))));
        after = checked(g, false);
        const node *n = graph_node(after, (uint32_t)after->nodes.count - 1);
        assert_int_equal(n->op, OP_fused_conv);
        assert_int_equal(((const conv_attributes *)n->attributes)->activation, i + 1);
        rlxvk_graph_destroy(after);
        rlxvk_graph_destroy(g);
    }
}

/* If all values of a norm are constants, the whole norm is folded. */
static void folds_constant_norms(void **state)
{
    const float values[] = {1, 2, 3, 4}, zeros[] = {0, -1, 0, 1};
    (void)state;
    for (int which = 0; which < 4; which++) {
        rlxvk_graph *g = new_graph(), *after;
        rlxvk_tensor c = floats(g, RLXVK_SHAPE(4), values), z = floats(g, RLXVK_SHAPE(4), zeros);
        rlxvk_tensor y = convolve(g, input(g, "x", image), which == 3 ? c : RLXVK_NONE, 1);
        y = rlxvk_batch_norm_inference(g, y, which & 1 ? c : RLXVK_NONE, which & 2 ? z : RLXVK_NONE,
                                       z, c, 0.5f, 1);
        rlxvk_graph_output(g, y);
        after = checked(g, false);
        expect_count("input, weights, two rows, product", (uint32_t)after->nodes.count, 4);
        rlxvk_graph_destroy(after);
        rlxvk_graph_destroy(g);
    }
}

/* If a variance is -eps, the result is beta, whatever the input is. */
static void a_root_of_zero_gives_beta(void **state)
{
    rlxvk_graph *g = new_graph(), *after;
    const float variance[] = {-0.5f, 1, -0.5f, 2}, ones[] = {1, 2, 3, 4};
    (void)state;
    rlxvk_tensor c = floats(g, RLXVK_SHAPE(4), ones);
    rlxvk_tensor y = convolve(g, input(g, "x", image), RLXVK_NONE, 1);
    y = rlxvk_batch_norm_inference(g, y, c, param(g, "beta", RLXVK_SHAPE(4)), c,
                                   floats(g, RLXVK_SHAPE(4), variance), 0.5f, 1);
    rlxvk_graph_output(g, y);
    after = checked(g, false);
    expect_count("fused", count_op(after, OP_fused_conv), 1);
    rlxvk_graph_destroy(after);
    rlxvk_graph_destroy(g);
}

/* ---- Blocks ---- */

static rlxvk_tensor conv_norm(rlxvk_graph *g, rlxvk_tensor x, int64_t outputs, int64_t kernel,
                              bool constants)
{
    static const float ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const char *const names[] = {"gamma", "beta", "mean", "variance"};
    rlxvk_conv_options o = {.padding = {kernel / 2, kernel / 2}};
    rlxvk_shape c = RLXVK_SHAPE(outputs);
    rlxvk_tensor v[4];
    char name[32];
    int number = (int)g->nodes.count;
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%s %d", names[i], number);
        v[i] = constants ? floats(g, c, ones) : param(g, name, c);
    }
    snprintf(name, sizeof name, "w %d", number);
    rlxvk_tensor w =
        param(g, name, RLXVK_SHAPE(outputs, rlxvk_tensor_shape(g, x).dims[1], kernel, kernel));
    return rlxvk_batch_norm_inference(g, rlxvk_conv(g, x, w, RLXVK_NONE, &o), v[0], v[1], v[2],
                                      v[3], 1e-5f, 1);
}

static rlxvk_tensor basic_block(rlxvk_graph *g, rlxvk_tensor x, bool constants)
{
    rlxvk_tensor y = rlxvk_relu(g, conv_norm(g, x, 4, 3, constants));
    return rlxvk_relu(g, rlxvk_add(g, conv_norm(g, y, 4, 3, constants), x));
}

static rlxvk_tensor bottleneck(rlxvk_graph *g, rlxvk_tensor x, bool constants)
{
    rlxvk_tensor y = rlxvk_relu(g, conv_norm(g, x, 2, 1, constants));
    y = rlxvk_relu(g, conv_norm(g, y, 2, 3, constants));
    return rlxvk_relu(g, rlxvk_add(g, x, conv_norm(g, y, 4, 1, constants)));
}

/* Counts the nodes that do work. Views and leaves do none. */
static void expect_block(rlxvk_tensor (*block)(rlxvk_graph *, rlxvk_tensor, bool), bool constants,
                         uint32_t convolutions)
{
    static const device_profile profile = {.storage_buffers_per_stage = 8};
    rlxvk_graph *g = new_graph();
    uint32_t work = 0;
    rlxvk_graph_output(g, block(g, input(g, "x", image), constants));
    expect_ok(rlxvk_graph_status(g));
    expect_ok(
        rewrite_graph(g, &(rewrite_options){.fusion = true, .regions = true, .profile = &profile}));
    for (uint32_t id = 0; id < g->nodes.count; id++)
        work += graph_node(g, id)->input_count && !view_is(g, graph_node(g, id), NULL);
    expect_count("convolutions", count_op(g, OP_fused_conv), convolutions);
    expect_count("work", work, constants ? convolutions : 2 * convolutions);
    expect_count("norms", count_op(g, OP_elementwise_region), constants ? 0 : convolutions);
    rlxvk_graph_destroy(g);
}

static void blocks_are_their_convolutions(void **state)
{
    (void)state;
    for (int constants = 0; constants < 2; constants++) {
        expect_block(basic_block, constants, 2);
        expect_block(bottleneck, constants, 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fuses_what_follows),
        cmocka_unit_test(leaves_what_it_must),
        cmocka_unit_test(fuses_every_activation),
        cmocka_unit_test(folds_constant_norms),
        cmocka_unit_test(a_root_of_zero_gives_beta),
        cmocka_unit_test(blocks_are_their_convolutions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
