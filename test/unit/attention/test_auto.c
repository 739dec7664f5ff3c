/*
 * AUTO options are decided once, when the node is built, so a symbol's size never changes them. If
 * the sizes would decide, it is an error.
 */
#include "support/harness.h"

#include <rlxvk_ops.h>
#include <rlxvk_symbols.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
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

/* At all lengths, AUTO must give the same bits as the layout that it stands for. */
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
    rlxvk_set_symbol_example(g, RLXVK_SEQ, HEADS); /* only at this size is it [B, H, S, D] */
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

/* A model's whole table. It has as many rows as some batches have tokens, but AUTO must always take
 * it by position. */
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

/* ---- Masks of rank 2 ---- */

static rlxvk_status mask_status(rlxvk_shape q, rlxvk_shape mask, rlxvk_attention_mask kind,
                                bool lse)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = rlxvk_input(g, "q", RLXVK_F32, q), m = rlxvk_input(g, "m", RLXVK_F32, mask);
    rlxvk_attention_options o = {.num_heads = 2, .mask = kind, .layout = RLXVK_LAYOUT_PACKED};
    rlxvk_tensor rows;
    if (lse)
        rlxvk_attention_with_lse(g, x, x, x, m, &o, &rows);
    else
        rlxvk_attention(g, x, x, x, m, &o);
    rlxvk_status status = rlxvk_graph_status(g);
    rlxvk_graph_destroy(g);
    return status;
}

/* A mask of rank 2 is [B, Sk], never [Sq, Sk]. If it could be either, the graph reports that,
 * whatever the sizes are. */
static void masks_of_rank_two_have_one_meaning(void **state)
{
    const int64_t b = rlxvk_symbol(RLXVK_BATCH), s = rlxvk_symbol(RLXVK_SEQ);
    const struct {
        rlxvk_shape q, mask;
        bool fits;
    } rows[] = {
        {RLXVK_SHAPE(1, 3, 8), RLXVK_SHAPE(3, 3), false},
        {RLXVK_SHAPE(2, 3, 8), RLXVK_SHAPE(3, 3), false},
        {RLXVK_SHAPE(3, 3, 8), RLXVK_SHAPE(3, 3), false},
        {RLXVK_SHAPE(2, 3, 8), RLXVK_SHAPE(2, 3), true},
        {RLXVK_SHAPE(4, 3, 8), RLXVK_SHAPE(4, 3), true},
        {RLXVK_SHAPE(3, 3, 8), RLXVK_SHAPE(1, 3), true},
        {RLXVK_SHAPE(1, 1, 8), RLXVK_SHAPE(1, 1), true},
        {RLXVK_SHAPE(3, 3, 8), RLXVK_SHAPE(3, 1, 1, 3), true},
        {RLXVK_SHAPE(3, 3, 8), RLXVK_SHAPE(1, 1, 3, 3), true},
        {RLXVK_SHAPE(3, 3, 8), RLXVK_SHAPE(1, 3, 3), true},
        {RLXVK_SHAPE(b, s, 8), RLXVK_SHAPE(b, s), true},
        {RLXVK_SHAPE(b, s, 8), RLXVK_SHAPE(s, s), false},
        {RLXVK_SHAPE(b, b, 8), RLXVK_SHAPE(b, b), false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int form = 0; form < 4; form++) {
            rlxvk_attention_mask kind = form & 1 ? RLXVK_MASK_BIAS : RLXVK_MASK_CUSTOM;
            rlxvk_status status = mask_status(rows[i].q, rows[i].mask, kind, form & 2);
            if ((status == RLXVK_OK) != rows[i].fits)
                fail_msg("mask %zu, form %d: %s", i, form, rlxvk_last_error());
            assert_true(status == RLXVK_OK || strstr(rlxvk_last_error(), "Sq"));
        }
}

/* B and Sq are declared as different symbols. The meaning of the mask stays even if they are equal
 * in a run. */
static void masks_of_symbols_keep_it(void **state)
{
    enum { MOST = 4, ROW = 8 };
    static float q[MOST * MOST * ROW], m[MOST * MOST], y[2][MOST * MOST * ROW];
    rlxvk_executable *e[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        rlxvk_graph *g = new_graph();
        int64_t b = rlxvk_symbol(RLXVK_BATCH), s = rlxvk_symbol(RLXVK_SEQ);
        rlxvk_tensor x = rlxvk_input(g, "q", RLXVK_F32, RLXVK_SHAPE(b, s, ROW));
        rlxvk_tensor mask = rlxvk_input(g, "m", RLXVK_F32, RLXVK_SHAPE(b, s));
        if (i)
            mask = rlxvk_reshape(g, mask, RLXVK_SHAPE(b, 1, 1, s));
        e[i] =
            compiled(g, rlxvk_attention(g, x, x, x, mask,
                                        &(rlxvk_attention_options){.num_heads = 2,
                                                                   .mask = RLXVK_MASK_CUSTOM,
                                                                   .layout = RLXVK_LAYOUT_PACKED}));
    }
    for (size_t i = 0; i < MOST * MOST * ROW; i++)
        q[i] = sinf((float)i * 1.3f);
    for (size_t b = 1; b <= MOST; b++)
        for (size_t s = 1; s <= MOST; s++) {
            for (size_t i = 0; i < b * s; i++)
                m[i] = i % s <= i / s;
            const rlxvk_run_input in[] = {{.name = "q", .data = q, .length = b * s * ROW},
                                          {.name = "m", .data = m, .length = b * s}};
            const rlxvk_binding sizes[] = {{RLXVK_BATCH, (int64_t)b}, {RLXVK_SEQ, (int64_t)s}};
            for (int i = 0; i < 2; i++) {
                expect_ok(rlxvk_bind_symbols(e[i], sizes, 2));
                expect_ok(rlxvk_run(
                    e[i], in, 2,
                    &(rlxvk_run_output){.index = 0, .buffer = y[i], .length = b * s * ROW}, 1));
            }
            assert_memory_equal(y[0], y[1], b * s * ROW * sizeof(float));
        }
    rlxvk_executable_destroy(e[0]);
    rlxvk_executable_destroy(e[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_do_not_change_with_the_length),
        cmocka_unit_test(layouts_that_sizes_decide_are_errors),
        cmocka_unit_test(whole_tables_stay_by_position),
        cmocka_unit_test(tables_that_sizes_decide_are_errors),
        cmocka_unit_test(masks_of_rank_two_have_one_meaning),
        cmocka_unit_test(masks_of_symbols_keep_it),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
