/* Nodes that compute the same are shared: if results are equal to the bit, one node is left. Others
 * stay. */
#include "support/rewritten.h"

#include <rlxvk_ops_domain.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const rlxvk_shape square = {2, {3, 3}};

/* Two such chains are equal, although each has its own constants. */
static rlxvk_tensor chain(rlxvk_graph *g, rlxvk_tensor x, float factor)
{
    rlxvk_tensor c = floats(g, RLXVK_SHAPE(3), (float[]){1, factor, 3});
    return rlxvk_reduce_sum(g, rlxvk_softmax(g, rlxvk_mul(g, x, c), 1), (int32_t[]){0}, 1, false);
}

static void whole_chains_are_shared(void **state)
{
    rlxvk_graph *g = new_graph(), *after;
    (void)state;
    rlxvk_tensor x = input(g, "x", square);
    rlxvk_graph_output(g, rlxvk_sub(g, rlxvk_exp(g, chain(g, x, 2)), chain(g, x, 2)));
    after = checked(g, false);
    expect_count("products", count_op(after, OP_mul), 1);
    expect_count("softmax", count_op(after, OP_softmax), 1);
    expect_count("sums", count_op(after, OP_reduce_sum), 1);
    expect_count("constants", count_op(after, OP_constant), 1);
    rlxvk_graph_destroy(after);
    after = rewritten(g, false);
    expect_count("without fusion", count_op(after, OP_softmax), 2);
    rlxvk_graph_destroy(after);
    rlxvk_graph_destroy(g);
}

enum difference {
    OTHER_CONTENT,
    OTHER_CONTENT_LATE,
    OTHER_DTYPE,
    OTHER_SHAPE,
    OTHER_OPERAND,
    OTHER_ORDER,
    OTHER_ATTRIBUTE,
    OTHER_OP,
    DIFFERENCES
};

static void differences_are_kept(void **state)
{
    (void)state;
    for (int which = 0; which < DIFFERENCES; which++) {
        rlxvk_graph *g = new_graph(), *after;
        const float ones[] = {1, 1, 1, 1}, twos[] = {2, 1, 1, 1}, late[] = {1, 1, 1, 2};
        const int32_t integers[] = {0x3f800000, 0x3f800000, 0x3f800000, 0x3f800000};
        rlxvk_shape two = RLXVK_SHAPE(2, 2), row = RLXVK_SHAPE(1, 2, 2);
        rlxvk_tensor x = input(g, "x", two), y = input(g, "y", two), a, b;
        a = b = floats(g, two, ones);
        if (which == OTHER_CONTENT || which == OTHER_CONTENT_LATE)
            b = floats(g, two, which == OTHER_CONTENT ? twos : late);
        if (which == OTHER_DTYPE)
            b = rlxvk_constant(g, RLXVK_I32, two, integers, sizeof integers);
        if (which == OTHER_SHAPE)
            b = floats(g, row, ones);
        rlxvk_tensor s = rlxvk_softmax(g, rlxvk_sub(g, x, a), 1), t;
        rlxvk_tensor second = which == OTHER_OPERAND ? rlxvk_sub(g, y, b)
                              : which == OTHER_ORDER ? rlxvk_sub(g, b, x)
                              : which == OTHER_OP    ? rlxvk_add(g, x, b)
                                                     : rlxvk_sub(g, x, b);
        t = rlxvk_softmax(g, second, which == OTHER_ATTRIBUTE ? 0 : -1);
        rlxvk_graph_output(g, rlxvk_exp(g, s));
        rlxvk_graph_output(g, rlxvk_exp(g, t));
        after = rewritten(g, true);
        expect_count("softmax", count_op(after, OP_softmax), 2);
        rlxvk_graph_destroy(after);
        rlxvk_graph_destroy(g);
    }
}

/* ---- Writes in place ---- */

static uint32_t negations_around(bool of_the_cache, bool written)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor cache = input(g, "cache", RLXVK_SHAPE(1, 3, 4));
    rlxvk_tensor row = input(g, "row", RLXVK_SHAPE(1, 1, 4)), x = of_the_cache ? cache : row;
    rlxvk_graph_output(g, rlxvk_softmax(g, rlxvk_neg(g, x), 2));
    if (written)
        rlxvk_graph_output(g, rlxvk_write_rows(g, cache, row,
                                               floats(g, RLXVK_SHAPE(1), (float[]){1})));
    rlxvk_graph_output(g, rlxvk_softmax(g, rlxvk_neg(g, x), 1));
    return count_after(g, OP_neg);
}

static void nothing_is_read_before_it_is_written(void **state)
{
    (void)state;
    expect_count("nothing is written", negations_around(true, false), 1);
    expect_count("another tensor is written", negations_around(false, true), 1);
    expect_count("it is written", negations_around(true, true), 2);
}

/* ---- Outputs, leaves, random numbers ---- */

static void outputs_keep_their_names(void **state)
{
    (void)state;
    for (int named = 0; named < 3; named++) {
        rlxvk_graph *g = new_graph(), *after;
        rlxvk_tensor x = input(g, "x", square), a = rlxvk_softmax(g, x, 0);
        rlxvk_tensor b = rlxvk_softmax(g, x, 0);
        if (named)
            rlxvk_graph_set_name(g, a, "a");
        if (named)
            rlxvk_graph_set_name(g, b, named == 1 ? "a" : "b");
        rlxvk_graph_output(g, a);
        rlxvk_graph_output(g, b);
        after = checked(g, false);
        expect_count("softmax", count_op(after, OP_softmax), named == 2 ? 2 : 1);
        assert_int_equal(after->outputs.count, 2);
        rlxvk_graph_destroy(after);
        rlxvk_graph_destroy(g);
    }
}

static void leaves_are_kept(void **state)
{
    rlxvk_graph *g = new_graph(), *after;
    (void)state;
    rlxvk_tensor x = input(g, "x", square), y = input(g, "y", square);
    rlxvk_tensor p = param(g, "p", square), q = param(g, "q", square);
    rlxvk_graph_output(g, rlxvk_matmul(g, rlxvk_matmul(g, x, p), rlxvk_matmul(g, y, q)));
    after = checked(g, false);
    expect_count("products", count_op(after, OP_matmul), 3);
    rlxvk_graph_destroy(after);
    rlxvk_graph_destroy(g);
}

static uint32_t draws(uint64_t first, uint64_t second)
{
    rlxvk_graph *g = new_graph();
    const rlxvk_rng_stream a = {.key = first, .has_key = true};
    const rlxvk_rng_stream b = {.key = second, .has_key = true};
    rlxvk_tensor x = rlxvk_rng_uniform(g, square, 0, 1, &a);
    rlxvk_graph_output(g, rlxvk_matmul(g, x, rlxvk_rng_uniform(g, square, 0, 1, &b)));
    return count_after(g, OP_rng_uniform);
}

static void equal_streams_are_one_draw(void **state)
{
    (void)state;
    expect_count("the same stream", draws(7, 7), 1);
    expect_count("two streams", draws(7, 8), 2);
}

/* Two loops that begin alike stay separate, because each writes its carried values. */
static void loops_carry_apart(void **state)
{
    (void)state;
    rlxvk_graph *body = new_graph(), *g = new_graph(), *after;
    rlxvk_tensor carry = input(body, "carry", square);
    rlxvk_graph_output(body, rlxvk_add(body, carry, input(body, "step", square)));
    rlxvk_graph_set_unroll_limit(g, 1);
    rlxvk_tensor init = input(g, "init", square), sequence = input(g, "xs", RLXVK_SHAPE(9, 3, 3));
    for (int i = 0; i < 2; i++) {
        rlxvk_tensor steps = i ? rlxvk_neg(g, sequence) : sequence;
        const rlxvk_scan_options options = {.length = 9};
        rlxvk_graph_output(g, rlxvk_scan(g, body, (rlxvk_tensor[]){init, steps}, 2, &options));
    }
    assert_int_equal(rlxvk_graph_status(g), RLXVK_OK);
    after = rewritten(g, true);
    expect_count("what loops carry", count_op(after, OP_loop_carry), 2);
    rlxvk_graph_destroy(after);
    rlxvk_graph_destroy(g);
    rlxvk_graph_destroy(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_chains_are_shared),
        cmocka_unit_test(differences_are_kept),
        cmocka_unit_test(nothing_is_read_before_it_is_written),
        cmocka_unit_test(outputs_keep_their_names),
        cmocka_unit_test(leaves_are_kept),
        cmocka_unit_test(equal_streams_are_one_draw),
        cmocka_unit_test(loops_carry_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
