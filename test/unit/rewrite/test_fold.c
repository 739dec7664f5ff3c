/*
 * Constant folding, without a device. A folded node becomes a constant with the same words, in
 * every dtype. A node is not folded if the constant would round, or if an operand is not constant.
 */
#include "support/rewritten.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static rlxvk_tensor integer(rlxvk_graph *g, int32_t value)
{
    return rlxvk_constant(g, RLXVK_I32, RLXVK_SCALAR, &value, 4);
}

static rlxvk_tensor half(rlxvk_graph *g, uint16_t bits)
{
    return rlxvk_constant(g, RLXVK_F16, RLXVK_SHAPE(1), &bits, 2);
}

/* Only one node must be left: a constant with these bytes in place of t. Destroys g. */
static void expect_folded(rlxvk_graph *g, rlxvk_tensor t, const void *bytes, size_t size)
{
    rlxvk_graph_set_name(g, t, "result");
    rlxvk_graph_output(g, t);
    rlxvk_graph *after = checked(g, false);
    const node *n = graph_node(after, 0);
    assert_int_equal(after->nodes.count, 1);
    assert_int_equal(n->op, OP_constant);
    assert_int_equal(n->data_size, size);
    assert_memory_equal(n->data, bytes, size);
    rlxvk_graph_destroy(after);
    rlxvk_graph_destroy(g);
}

#define EXPECT_FLOATS(g, t, ...)                                                                   \
    expect_folded(g, t, (float[]){__VA_ARGS__}, sizeof((float[]){__VA_ARGS__}))

static void expect_kept(rlxvk_graph *g, rlxvk_tensor t)
{
    op_kind op = graph_node(g, t.id - 1)->op;
    rlxvk_graph_output(g, t);
    expect_count(op_table[op].name, count_after(g, op), 1);
}

static void folds_values(void **state)
{
    const float six[] = {1, 2, 3, 4, 5, 6}, row[] = {10, 20, 30}, column[] = {1, -1};
    rlxvk_graph *g;
    (void)state;
#define SIX    floats(g = new_graph(), RLXVK_SHAPE(2, 3), six)
#define ROW    floats(g, RLXVK_SHAPE(3), row)
#define COLUMN floats(g, RLXVK_SHAPE(2, 1), column)
    rlxvk_tensor x = SIX;
    EXPECT_FLOATS(g, rlxvk_add(g, x, ROW), 11, 22, 33, 14, 25, 36);
    x = SIX;
    EXPECT_FLOATS(g, rlxvk_mul(g, COLUMN, x), 1, 2, 3, -4, -5, -6);
    x = SIX;
    EXPECT_FLOATS(g, rlxvk_add(g, ROW, COLUMN), 11, 21, 31, 9, 19, 29);
    x = SIX;
    EXPECT_FLOATS(g, rlxvk_fma(g, x, COLUMN, ROW), 11, 22, 33, 6, 15, 24);
    x = SIX;
    EXPECT_FLOATS(g, rlxvk_neg(g, x), -1, -2, -3, -4, -5, -6);
    x = SIX;
    EXPECT_FLOATS(g, rlxvk_where(g, rlxvk_gt(g, x, COLUMN), ROW, COLUMN), 1, 20, 30, 10, 20, 30);
    x = SIX;
    EXPECT_FLOATS(g, rlxvk_transpose(g, x, (int32_t[]){1, 0}, 2), 1, 4, 2, 5, 3, 6);
    x = SIX;
    EXPECT_FLOATS(g, rlxvk_narrow(g, x, 1, 1, 2), 2, 3, 5, 6);
    x = SIX;
    EXPECT_FLOATS(g, rlxvk_reverse(g, x, (int32_t[]){0}, 1), 4, 5, 6, 1, 2, 3);
    x = SIX;
    EXPECT_FLOATS(g, rlxvk_concat(g, (rlxvk_tensor[]){x, COLUMN}, 2, 1), 1, 2, 3, 1, 4, 5, 6, -1);
    x = SIX;
    EXPECT_FLOATS(g, rlxvk_reduce_sum(g, x, (int32_t[]){1}, 1, false), 6, 15);
    x = SIX;
    EXPECT_FLOATS(g, rlxvk_reduce_max(g, rlxvk_reshape(g, x, RLXVK_SHAPE(3, -1)), NULL, 0, true), 1,
                  2, 3, 4, 5, 6);
    x = SIX;
    EXPECT_FLOATS(g, rlxvk_expand(g, ROW, RLXVK_SHAPE(2, -1)), 10, 20, 30, 10, 20, 30);
    x = SIX;
    EXPECT_FLOATS(g, rlxvk_expand(g, floats(g, RLXVK_SCALAR, row), RLXVK_SHAPE(1, 2)), 10, 10);
    g = new_graph();
    EXPECT_FLOATS(g, rlxvk_round(g, floats(g, RLXVK_SHAPE(2), (float[]){0.5f, -1.5f})), 0, -2);
#undef SIX
#undef ROW
#undef COLUMN
}

static void folds_dtypes(void **state)
{
    const float values[] = {3e9f, -3.7f, NAN, 0.1f}, pair[] = {1, 2, 3, 4};
    const uint8_t bytes[] = {0, 7, 255};
    rlxvk_graph *g = new_graph();
    (void)state;
    expect_folded(g, rlxvk_add(g, integer(g, 40), integer(g, 2)), &(int32_t){42}, 4);
    g = new_graph();
    expect_folded(g, rlxvk_div(g, integer(g, 8), integer(g, 2)), &(int32_t){4}, 4);
    g = new_graph();
    expect_folded(g, rlxvk_add(g, half(g, 0x3e00), half(g, 0x3400)), &(uint16_t){0x3f00}, 2);
    g = new_graph();
    expect_folded(g, rlxvk_lt(g, integer(g, 1), integer(g, 2)), &(uint8_t){1}, 1);
    g = new_graph();
    expect_folded(g, rlxvk_cast(g, floats(g, RLXVK_SHAPE(3), values), RLXVK_I32),
                  (int32_t[]){INT32_MAX, -3, 0}, 12);
    g = new_graph();
    expect_folded(g, rlxvk_cast(g, floats(g, RLXVK_SHAPE(1), values + 3), RLXVK_F16),
                  &(uint16_t){0x2e66}, 2);
    g = new_graph();
    expect_folded(g, rlxvk_cast(g, floats(g, RLXVK_SHAPE(4), values), RLXVK_BOOL),
                  (uint8_t[]){1, 1, 1, 1}, 4);
    g = new_graph();
    EXPECT_FLOATS(g,
                  rlxvk_cast(g, rlxvk_constant(g, RLXVK_U8, RLXVK_SHAPE(3), bytes, 3), RLXVK_F32),
                  0, 7, 255);
    g = new_graph();
    rlxvk_tensor c = rlxvk_constant(g, RLXVK_C64, RLXVK_SHAPE(2), pair, 16);
    expect_folded(g, rlxvk_mul(g, c, c), (float[]){-3, 4, -7, 24}, 16);
    g = new_graph();
    expect_folded(g, rlxvk_neg(g, rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(0, 4), NULL, 0)), "", 0);
}

/* Folding would change the result, because a constant of the node's dtype cannot hold these words.
 */
static void keeps_what_would_round(void **state)
{
    rlxvk_graph *g = new_graph();
    (void)state;
    expect_kept(g, rlxvk_div(g, integer(g, 7), integer(g, 2)));
    g = new_graph();
    expect_kept(g, rlxvk_add(g, half(g, 0x3c00), half(g, 0x1000)));
    g = new_graph();
    expect_kept(g, rlxvk_add(g, integer(g, INT32_MAX), integer(g, INT32_MAX)));
    g = new_graph();
    expect_kept(g, rlxvk_neg(g, integer(g, 0)));
}

static void keeps_what_is_not_constant(void **state)
{
    const float one[] = {1, 2};
    rlxvk_graph *g = new_graph();
    (void)state;
    expect_kept(g, rlxvk_neg(g, param(g, "p", RLXVK_SHAPE(2))));
    g = new_graph();
    expect_kept(g, rlxvk_add(g, floats(g, RLXVK_SHAPE(2), one), param(g, "p", RLXVK_SHAPE(2))));
    g = new_graph();
    expect_kept(g, rlxvk_add(g, floats(g, RLXVK_SHAPE(2), one), input(g, "x", RLXVK_SHAPE(2))));
    g = new_graph();
    expect_kept(g, rlxvk_softmax(g, floats(g, RLXVK_SHAPE(2), one), 0));
    g = new_graph(); /* a computed U8 is held as words, but a U8 constant as bytes */
    rlxvk_tensor u8 = rlxvk_cast(g, floats(g, RLXVK_SHAPE(2), one), RLXVK_U8);
    expect_kept(g, rlxvk_neg(g, u8));
}

static void folds_up_to_a_mebibyte(void **state)
{
    const float one = 1;
    (void)state;
    for (int over = 0; over < 2; over++) {
        rlxvk_graph *g = new_graph();
        rlxvk_tensor c = floats(g, RLXVK_SHAPE(1), &one);
        rlxvk_graph_output(g, rlxvk_expand(g, c, RLXVK_SHAPE(262144 + over)));
        rlxvk_graph *after = rewritten(g, true);
        assert_int_equal(count_op(after, OP_expand), over);
        rlxvk_graph_destroy(after);
        rlxvk_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folds_values),           cmocka_unit_test(folds_dtypes),
        cmocka_unit_test(keeps_what_would_round), cmocka_unit_test(keeps_what_is_not_constant),
        cmocka_unit_test(folds_up_to_a_mebibyte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
