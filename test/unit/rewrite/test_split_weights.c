/*
 * Weights that are larger than what the device binds. The products read them in parts; the params
 * stay whole for whoever sets and reads them. What cannot be read in parts is still an error that
 * names the tensor.
 */
#include "exec/executable.h"
#include "op/matmul/matmul.h"
#include "support/rewritten.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

enum { BINDING = 1 << 16 };

static rlxvk_context *small;

static int open_small(void **state)
{
    (void)state;
    small = open_context(&(rlxvk_context_options){.limit_binding_bytes = BINDING});
    small->switches.check |= CHECK_PLAN;
    return 0;
}

static int close_small(void **state)
{
    (void)state;
    close_context(small);
    return 0;
}

typedef struct product {
    int64_t rows, columns, x_rows;
    bool fused;
    uint32_t parts;
} product;

static rlxvk_graph *build(const product *c, bool transpose_b)
{
    rlxvk_graph *g = new_graph();
    rlxvk_matmul_options options = {false, transpose_b};
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(c->x_rows, c->columns));
    rlxvk_tensor w =
        param(g, "w",
              transpose_b ? RLXVK_SHAPE(c->rows, c->columns) : RLXVK_SHAPE(c->columns, c->rows));
    rlxvk_tensor y = rlxvk_matmul_with(g, x, w, &options);
    if (c->fused)
        y = rlxvk_relu(g, rlxvk_add(g, y, param(g, "b", RLXVK_SHAPE(c->rows))));
    rlxvk_graph_set_name(g, y, "y");
    rlxvk_graph_output(g, y);
    return g;
}

/* The number of products. No operand is above the limit, and each begins at an aligned address. */
static uint32_t count_parts(const rlxvk_executable *e)
{
    const schedule *s = &e->program->schedule;
    for (size_t i = 0; i < s->dispatches.count; i++)
        for (uint32_t k = 0; k < s->dispatches.items[i].operand_count; k++) {
            const operand *o = &s->dispatches.items[i].operands[k];
            assert_true(o->size <= BINDING);
            assert_int_equal(o->first % small->device->setup.profile.slot_alignment, 0);
        }
    return count_op(e->program->graph, OP_matmul) +
           count_op(e->program->graph, OP_fused_matmul_bias_act);
}

static void expect_parts(const product *c, const rlxvk_compile_options *options)
{
    rlxvk_graph *g = build(c, true);
    rlxvk_executable *e = NULL;
    size_t count = 0, wanted = 0;
    expect_ok(rlxvk_compile(small, g, options, &e));
    assert_int_equal(count_parts(e), c->parts);
    float *got = run_seeded(e, g, 1, true, &count);
    float *reference = evaluate_seeded(g, 1, true, &wanted);
    assert_int_equal(count, wanted);
    assert_memory_equal(got, reference, count * sizeof *got);
    free(got);
    free(reference);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static void products_read_parts(void **state)
{
    static const product cases[] = {
        {256, 64, 3, false, 1},  /* just small enough */
        {257, 64, 3, false, 2},  /* just too large */
        {1024, 64, 1, false, 4}, /* one row */
        {1000, 64, 3, false, 4}, /* the last part is smaller */
        {1000, 48, 3, false, 3}, /* rows that begin at no aligned address */
        {1000, 64, 3, true, 4},  /* with bias and activation */
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        expect_parts(&cases[i], NULL);
        /* Small integers are also exact as halves. */
        expect_parts(&cases[i], &(rlxvk_compile_options){.weight_storage = RLXVK_WEIGHTS_F16});
    }
}

static void others_are_refused(void **state)
{
    static const product wide = {1024, 64, 3, false, 0};
    rlxvk_graph *g = build(&wide, false);
    rlxvk_executable *e = NULL;
    (void)state;
    expect_error(rlxvk_compile(small, g, NULL, &e), RLXVK_E_TOO_LARGE,
                 "param 'w' (node 1) of shape 64x1024 needs 262144 bytes");
    assert_null(e);
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_read_parts),
        cmocka_unit_test(others_are_refused),
    };
    return cmocka_run_group_tests(tests, open_small, close_small);
}
