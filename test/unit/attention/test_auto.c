/*
 * What AUTO means is decided once, when the node is built: no size of a symbol changes it, and
 * where sizes would decide it is an error.
 */
#include "support/harness.h"

#include <rlxvk_ops.h>
#include <rlxvk_symbols.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { HEADS = 4, WIDTH = 8, LONGEST = 12, ROWS = 8, PAIR = 4 };

static rlxvk_graph *new_graph(void)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    return g;
}

static rlxvk_executable *compiled(rlxvk_graph *g, rlxvk_tensor y)
{
    rlxvk_executable *e = NULL;
    rlxvk_graph_output(g, y);
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    rlxvk_graph_destroy(g);
    return e;
}

static rlxvk_tensor attention_of(rlxvk_graph *g, rlxvk_shape s, rlxvk_attention_layout layout)
{
    rlxvk_tensor q = rlxvk_input(g, "q", RLXVK_F32, s), k = rlxvk_input(g, "k", RLXVK_F32, s);
    return rlxvk_attention(g, q, k, rlxvk_input(g, "v", RLXVK_F32, s), RLXVK_NONE,
                           &(rlxvk_attention_options){.num_heads = HEADS,
                                                      .mask = RLXVK_MASK_CAUSAL,
                                                      .layout = layout});
}

/* Of all lengths, as the layout that AUTO stands for. */
static void check_layout(rlxvk_shape shape, rlxvk_attention_layout layout)
{
    static float data[3][LONGEST * HEADS * WIDTH], y[2][LONGEST * HEADS * WIDTH];
    rlxvk_executable *e[2];
    for (int i = 0; i < 2; i++) {
        rlxvk_graph *g = new_graph();
        e[i] = compiled(g, attention_of(g, shape, i ? layout : RLXVK_LAYOUT_AUTO));
    }
    for (size_t i = 0; i < LONGEST * HEADS * WIDTH; i++)
        for (int k = 0; k < 3; k++)
            data[k][i] = sinf((float)i * ((float)k + 1.7f));
    for (size_t length = 1; length <= LONGEST; length++) {
        size_t count = length * HEADS * WIDTH;
        const rlxvk_run_input in[] = {{.name = "q", .data = data[0], .length = count},
                                      {.name = "k", .data = data[1], .length = count},
                                      {.name = "v", .data = data[2], .length = count}};
        for (int i = 0; i < 2; i++)
            expect_ok(
                rlxvk_run(e[i], in, 3, &(rlxvk_run_output){.buffer = y[i], .length = count}, 1));
        assert_memory_equal(y[0], y[1], count * sizeof(float));
    }
    for (int i = 0; i < 2; i++)
        rlxvk_executable_destroy(e[i]);
}

static void layouts_do_not_change_with_the_length(void **state)
{
    const int64_t s = rlxvk_symbol(RLXVK_SEQ);
    (void)state;
    check_layout(RLXVK_SHAPE(1, s, HEADS, WIDTH), RLXVK_LAYOUT_BSHD);
    check_layout(RLXVK_SHAPE(1, HEADS, s, WIDTH), RLXVK_LAYOUT_BHSD);
    check_layout(RLXVK_SHAPE(1, s, HEADS * WIDTH), RLXVK_LAYOUT_PACKED);
    check_layout(RLXVK_SHAPE(s, HEADS * WIDTH), RLXVK_LAYOUT_PACKED);
    check_layout(RLXVK_SHAPE(HEADS, s, WIDTH), RLXVK_LAYOUT_PACKED);
}

static void layouts_that_sizes_decide_are_errors(void **state)
{
    const int64_t s = rlxvk_symbol(RLXVK_SEQ);
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_set_symbol_example(g, RLXVK_SEQ, HEADS); /* fits [B, H, S, D] at this size alone */
    (void)attention_of(g, RLXVK_SHAPE(1, s, HEADS, WIDTH), RLXVK_LAYOUT_AUTO);
    expect_error(rlxvk_graph_status(g), RLXVK_E_ATTR, "layout AUTO is bhsd at some sizes");
    rlxvk_graph_destroy(g);
}

/* ---- rope ---- */

static rlxvk_tensor rope_of(rlxvk_graph *g, rlxvk_shape shape, rlxvk_tensor cosines,
                            rlxvk_tensor sines, rlxvk_rope_table table)
{
    return rlxvk_rope(g, rlxvk_input(g, "x", RLXVK_F32, shape), cosines, sines,
                      &(rlxvk_rope_options){.head_dim = PAIR, .n_rot = PAIR, .table = table});
}

/* A model's whole table, of as many rows as some batches have tokens: always by position. */
static void whole_tables_stay_by_position(void **state)
{
    float c[ROWS * PAIR / 2], s[ROWS * PAIR / 2], x[64 * PAIR], y[2][64 * PAIR];
    rlxvk_executable *e[2];
    (void)state;
    for (int i = 0; i < ROWS * PAIR / 2; i++) {
        c[i] = cosf((float)i);
        s[i] = sinf((float)i);
    }
    for (int i = 0; i < 64 * PAIR; i++)
        x[i] = (float)(i % 7) - 3;
    for (int i = 0; i < 2; i++) {
        rlxvk_graph *g = new_graph();
        rlxvk_shape table = RLXVK_SHAPE(ROWS, PAIR / 2);
        rlxvk_shape shape = RLXVK_SHAPE(rlxvk_symbol(RLXVK_BATCH), rlxvk_symbol(RLXVK_SEQ), PAIR);
        e[i] = compiled(g, rope_of(g, shape, rlxvk_constant(g, RLXVK_F32, table, c, sizeof c),
                                   rlxvk_constant(g, RLXVK_F32, table, s, sizeof s),
                                   i ? RLXVK_ROPE_TABLE_PER_POSITION : RLXVK_ROPE_TABLE_AUTO));
    }
    for (int64_t batch = 1; batch <= 8; batch++)
        for (int64_t length = 1; length <= ROWS; length++) {
            const rlxvk_binding sizes[] = {{RLXVK_BATCH, batch}, {RLXVK_SEQ, length}};
            size_t count = (size_t)(batch * length) * PAIR;
            for (int i = 0; i < 2; i++) {
                expect_ok(rlxvk_bind_symbols(e[i], sizes, 2));
                expect_ok(rlxvk_run(e[i], &(rlxvk_run_input){"x", x, count, RLXVK_F32, false}, 1,
                                    &(rlxvk_run_output){.buffer = y[i], .length = count}, 1));
            }
            assert_memory_equal(y[0], y[1], count * sizeof(float));
        }
    for (int i = 0; i < 2; i++)
        rlxvk_executable_destroy(e[i]);
}

static void tables_that_sizes_decide_are_errors(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_shape table = RLXVK_SHAPE(ROWS, PAIR / 2);
    (void)state;
    rlxvk_set_symbol_example(g, RLXVK_BATCH, 2);
    rlxvk_set_symbol_example(g, RLXVK_SEQ, ROWS / 2);
    (void)rope_of(g, RLXVK_SHAPE(rlxvk_symbol(RLXVK_BATCH), rlxvk_symbol(RLXVK_SEQ), PAIR),
                  rlxvk_input(g, "cos", RLXVK_F32, table), rlxvk_input(g, "sin", RLXVK_F32, table),
                  RLXVK_ROPE_TABLE_AUTO);
    expect_error(rlxvk_graph_status(g), RLXVK_E_ATTR, "give the table");
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_do_not_change_with_the_length),
        cmocka_unit_test(layouts_that_sizes_decide_are_errors),
        cmocka_unit_test(whole_tables_stay_by_position),
        cmocka_unit_test(tables_that_sizes_decide_are_errors),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
