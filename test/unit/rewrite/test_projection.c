/*
 * Projections, without a device. A product of one row absorbs the norm before it and the nodes
 * after it, if no other node needs their results. If the device has no kernel for it, it is written
 * as simpler ops.
 */
#include "support/profiles.h"
#include "support/rewritten.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

enum { WIDTH = 256, OUTPUTS = 512 };

typedef struct projection_case {
    const char *what;
    int64_t rows;
    bool norm, beta, gate, residual, plain; /* nodes of the case; w is a matrix */
    bool norm_read, product_read, sum_output, norm_output, second_reader;
    uint32_t made, norms, gates, sums; /* nodes after rewriting */
} projection_case;

static rlxvk_tensor product(rlxvk_graph *g, const projection_case *c, rlxvk_tensor x,
                            const char *name)
{
    const rlxvk_matmul_options transposed = {.transpose_b = true};
    if (c->plain)
        return rlxvk_matmul_with(g, x, param(g, name, RLXVK_SHAPE(OUTPUTS, WIDTH)), &transposed);
    return rlxvk_dequant_matmul(g, x, rlxvk_param(g, name, RLXVK_U8, RLXVK_SHAPE(OUTPUTS, 144)),
                                RLXVK_Q4_K);
}

static rlxvk_graph *build(const projection_case *c)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(c->rows, WIDTH)), h = x;
    rlxvk_tensor beta = c->beta ? param(g, "beta", RLXVK_SHAPE(WIDTH)) : RLXVK_NONE;
    if (c->norm)
        h = rlxvk_rms_norm(g, x, param(g, "gamma", RLXVK_SHAPE(WIDTH)), beta, -1, 1e-5f);
    rlxvk_tensor z = product(g, c, h, "w"), y = z;
    if (c->gate)
        y = rlxvk_fused_swiglu(g, z, true);
    if (c->residual)
        y = rlxvk_add(g, input(g, "r", RLXVK_SHAPE(c->rows, c->gate ? OUTPUTS / 2 : OUTPUTS)), y);
    rlxvk_graph_output(g, y);
    if (c->norm_read)
        rlxvk_graph_output(g, rlxvk_neg(g, h));
    if (c->norm_output)
        rlxvk_graph_output(g, h);
    if (c->product_read)
        rlxvk_graph_output(g, rlxvk_neg(g, z));
    if (c->second_reader)
        rlxvk_graph_output(g, product(g, c, h, "v"));
    return g;
}

static rlxvk_graph *rewritten_for(const rlxvk_graph *g, const device_profile *profile, bool fusion)
{
    rewrite_options how = {.fusion = fusion, .profile = profile};
    rlxvk_graph *after = NULL;
    assert_int_equal(graph_clone(g, &after), RLXVK_OK);
    assert_int_equal(rewrite_graph(after, &how), RLXVK_OK);
    return after;
}

static void note_reason(void *user, uint32_t id, const char *pattern, const char *reason)
{
    (void)id;
    if (strcmp(pattern, "projection") == 0)
        text_append(user, "%s; ", reason);
}

/* If a node was left apart because another node reads it, the reason says so. */
static void says_why_not(void **state)
{
    static const projection_case cases[] = {
        {"a norm that is read", 1, .norm = true, .norm_read = true},
        {"a norm that is an output", 1, .norm = true, .norm_output = true},
        {"a product that is read", 1, .gate = true, .residual = true, .product_read = true},
    };
    static const char *const reasons[] = {"reads the norm", "is an output", "has 2 readers"};
    device_profile profile = ORDINARY_GPU;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char buffer[512] = "";
        text reason = {.buffer = buffer, .size = sizeof buffer};
        pair_list none = {0};
        rlxvk_graph *g = build(&cases[i]), *after = rewritten_for(g, &profile, true);
        assert_int_equal(rewrite_find_misses(after, &none, &profile, note_reason, &reason),
                         RLXVK_OK);
        if (!strstr(buffer, reasons[i]))
            fail_msg("%s: '%s', wanted '%s'", cases[i].what, buffer, reasons[i]);
        rlxvk_graph_destroy(after);
        rlxvk_graph_destroy(g);
    }
}

static void fires_where_it_may(void **state)
{
    static const projection_case cases[] = {
        {"a norm", 1, .norm = true, .made = 1},
        {"a norm of a matrix", 1, .norm = true, .plain = true, .made = 1},
        {"a gate and a norm", 1, .norm = true, .gate = true, .made = 1},
        {"a residual", 1, .residual = true, .made = 1},
        {"all of it", 1, .norm = true, .gate = true, .residual = true, .made = 1},
        {"two products of a norm", 1, .norm = true, .second_reader = true, .made = 2},
        {"a product alone", 1, .made = 0},
        {"two rows", 2, .norm = true, .gate = true, .norms = 1, .gates = 1},
        {"a norm with beta", 1, .norm = true, .beta = true, .gate = true, .norms = 1, .made = 1},
        {"a norm that is read", 1, .norm = true, .norm_read = true, .norms = 1},
        {"a norm that is an output", 1, .norm = true, .norm_output = true, .norms = 1},
        {"a product that is read", 1, .gate = true, .residual = true, .product_read = true,
         .gates = 1, .sums = 1},
        {"a product that is read, of a norm", 1, .norm = true, .gate = true, .product_read = true,
         .made = 1, .gates = 1},
    };
    device_profile profile = ORDINARY_GPU;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        rlxvk_graph *g = build(&cases[i]), *after = rewritten_for(g, &profile, true);
        expect_count(cases[i].what, count_op(after, OP_projection), cases[i].made);
        expect_count(cases[i].what, count_op(after, OP_rms_norm), cases[i].norms);
        expect_count(cases[i].what, count_op(after, OP_fused_swiglu), cases[i].gates);
        expect_count(cases[i].what, count_op(after, OP_add), cases[i].sums);
        rlxvk_graph_destroy(after);
        after = rewritten_for(g, &profile, false);
        expect_count(cases[i].what, count_op(after, OP_projection), 0);
        rlxvk_graph_destroy(after);
        rlxvk_graph_destroy(g);
    }
}

/* Reads move to the place of the last member, so a write between must prevent the fusion. */
static void does_not_fire_past_a_write(void **state)
{
    device_profile profile = ORDINARY_GPU;
    (void)state;
    for (int between = 0; between < 2; between++) {
        rlxvk_graph *g = new_graph();
        projection_case c = {.what = "write"};
        rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(1, WIDTH)), written = RLXVK_NONE;
        rlxvk_tensor rows = input(g, "rows", RLXVK_SHAPE(1, 1, OUTPUTS));
        rlxvk_tensor cache = input(g, "cache", RLXVK_SHAPE(1, 1, OUTPUTS));
        rlxvk_tensor position = input(g, "position", RLXVK_SHAPE(1));
        rlxvk_tensor residual = rlxvk_reshape(g, cache, RLXVK_SHAPE(1, OUTPUTS));
        rlxvk_tensor z = product(g, &c, x, "w");
        if (between)
            written = rlxvk_write_rows(g, cache, rows, position);
        rlxvk_graph_output(g, rlxvk_add(g, z, residual));
        if (!between)
            written = rlxvk_write_rows(g, cache, rows, position);
        rlxvk_graph_output(g, written);
        rlxvk_graph *after = rewritten_for(g, &profile, true);
        expect_count("a write", count_op(after, OP_projection), !between);
        rlxvk_graph_destroy(after);
        rlxvk_graph_destroy(g);
    }
}

static void is_split_where_there_is_no_kernel(void **state)
{
    device_profile profile = ORDINARY_GPU;
    (void)state;
    for (int64_t rows = 1; rows <= 2; rows++) {
        rlxvk_graph *g = new_graph();
        rlxvk_projection_options o = {.gamma = param(g, "gamma", RLXVK_SHAPE(WIDTH)),
                                      .epsilon = 1e-5f,
                                      .gate = RLXVK_GATE_SECOND,
                                      .residual = input(g, "r", RLXVK_SHAPE(rows, OUTPUTS / 2))};
        rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(rows, WIDTH));
        rlxvk_graph_output(g,
                           rlxvk_projection(g, x, param(g, "w", RLXVK_SHAPE(OUTPUTS, WIDTH)), &o));
        rlxvk_graph *after = rewritten_for(g, &profile, false);
        expect_count("kept", count_op(after, OP_projection), rows == 1);
        expect_count("split", count_op(after, OP_matmul), rows == 2);
        rlxvk_graph_destroy(after);
        rlxvk_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fires_where_it_may),
        cmocka_unit_test(says_why_not),
        cmocka_unit_test(does_not_fire_past_a_write),
        cmocka_unit_test(is_split_where_there_is_no_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
