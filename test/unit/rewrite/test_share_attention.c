/* A gradient may need the result of attention. It uses the forward pass's node if that sees the
 * same values. */
#include "op/attention/attention.h"
#include "support/rewritten.h"

#include <rlxvk_train.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* The only difference between the gradient's attention and the forward pass's. */
enum other { NOTHING, MASK, SCALE, KEYS, WRITTEN, LSE, CHECKPOINT };

static rlxvk_graph *build(enum other other)
{
    rlxvk_graph *g = new_graph();
    rlxvk_shape heads = RLXVK_SHAPE(1, 2, 5, 4);
    rlxvk_attention_options options = {.mask = RLXVK_MASK_CAUSAL, .layout = RLXVK_LAYOUT_BHSD};
    rlxvk_tensor q = input(g, "q", heads), k = input(g, "k", heads), v = input(g, "v", heads);
    rlxvk_tensor dy = input(g, "dy", heads), leaf = q, lse, gradient;
    if (other == CHECKPOINT)
        q = rlxvk_neg(g, q);
    rlxvk_tensor y = other == LSE ? rlxvk_attention_with_lse(g, q, k, v, RLXVK_NONE, &options, &lse)
                                  : rlxvk_attention(g, q, k, v, RLXVK_NONE, &options);
    if (other == LSE)
        rlxvk_graph_output(g, lse);
    rlxvk_graph_output(g, rlxvk_neg(g, y));
    if (other == WRITTEN) {
        rlxvk_tensor cache = input(g, "cache", RLXVK_SHAPE(2, 5, 4));
        rlxvk_tensor row = input(g, "row", RLXVK_SHAPE(2, 1, 4)),
                     at = input(g, "at", RLXVK_SHAPE(1));
        rlxvk_graph_output(g, rlxvk_write_rows(g, cache, row, at));
    }
    options.mask = other == MASK ? RLXVK_MASK_NONE : options.mask;
    options.score_scale = other == SCALE ? 0.25f : 0;
    if (other == CHECKPOINT) {
        rlxvk_checkpoint(g, y);
        rlxvk_grad(g, y, dy, &leaf, 1, &gradient);
    } else
        gradient = rlxvk_attention_backward(g, q, other == KEYS ? v : k, v, dy, RLXVK_NONE,
                                            &options, NULL, NULL, NULL);
    rlxvk_graph_output(g, gradient);
    expect_ok(rlxvk_graph_status(g));
    return g;
}

static void the_same_is_shared(void **state)
{
    (void)state;
    expect_count("gradient", count_after(build(NOTHING), OP_attention), 1);
    expect_count("with log-sum-exps", count_after(build(LSE), OP_attention), 1);
}

static void another_is_not(void **state)
{
    (void)state;
    expect_count("another mask", count_after(build(MASK), OP_attention), 2);
    expect_count("another scale", count_after(build(SCALE), OP_attention), 2);
    expect_count("other keys", count_after(build(KEYS), OP_attention), 2);
    expect_count("behind a checkpoint", count_after(build(CHECKPOINT), OP_attention), 2);
}

/* A write between the two nodes may change their operands. */
static void nothing_moves_over_a_write(void **state)
{
    rlxvk_graph *g = build(WRITTEN), *after = rewritten(g, true);
    (void)state;
    expect_count("written", count_op(after, OP_attention), 2);
    rlxvk_graph_destroy(after);
    rlxvk_graph_destroy(g);
}

/* With f16 the forward pass alone would use matrix units, but gradients need f32. */
static void the_shared_one_is_exact(void **state)
{
    rlxvk_graph *g = build(NOTHING);
    uint64_t exact = 0;
    (void)state;
    expect_ok(
        rewrite_graph(g, &(rewrite_options){.fusion = true, .precision = RLXVK_PRECISION_F16}));
    expect_count("f16", count_op(g, OP_attention), 1);
    for (uint32_t id = 0; id < g->nodes.count; id++)
        if (graph_node(g, id)->op == OP_attention)
            exact += ((const attention_attributes *)graph_node(g, id)->attributes)->exact;
    expect_count("exact", exact, 1);
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_is_shared),
        cmocka_unit_test(another_is_not),
        cmocka_unit_test(nothing_moves_over_a_write),
        cmocka_unit_test(the_shared_one_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
