/*
 * Every op of the table must have a decision about its gradient. Either it has one, or gradient.def
 * says that nothing flows through it, or the list here says why rlxvk_grad refuses it. Also tests
 * that gradients can be built for the cases of the ops.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "conform/conform.h"
#include "op/gradient.h"
#include "support/harness.h"

#include <rlxvk_train.h>

#include <string.h>

typedef enum why {
    A_LEAF,          /* gradients end here */
    WRITES_IN_PLACE, /* the old value is gone; a training step ends with it */
    PART_OF_A_LOOP,  /* its results expand to its steps */
    OF_THE_USER,     /* given when the op is registered */
    NOT_YET          /* E_UNSUPPORTED, by name */
} why;

static const struct {
    const char *row;
    why why;
} without[] = {
    {"input", A_LEAF},
    {"param", A_LEAF},
    {"constant", A_LEAF},
    {"write_rows", WRITES_IN_PLACE},
    {"attention_step", WRITES_IN_PLACE},
    {"adamw", WRITES_IN_PLACE},
    {"sgd", WRITES_IN_PLACE},
    {"lion", WRITES_IN_PLACE},
    {"loop_carry", PART_OF_A_LOOP},
    {"loop_begin", PART_OF_A_LOOP},
    {"loop_slice", PART_OF_A_LOOP},
    {"loop_update", PART_OF_A_LOOP},
    {"loop_end", PART_OF_A_LOOP},
    {"custom", OF_THE_USER},
    {"log_mel_slopes", NOT_YET},
    {"gated_delta_net_backward", NOT_YET},
    {"linear_attention_backward", NOT_YET},
    {"grid_sample_backward_grid", NOT_YET},
    {"deform_im2col_backward_offset", NOT_YET},
    {"cofactor", NOT_YET},               /* the gradient of det */
    {"gaussian_splat_prepare", NOT_YET}, /* its words are bits; render has one */
    {"gaussian_splat_rasterize", NOT_YET},
    {"gaussian_splat_render_backward", NOT_YET},
    {"mamba2_backward", NOT_YET},
    {"selective_scan_backward", NOT_YET},
};

/* The op's row in that table. NULL means that the op has a gradient. */
static const why *reason(const char *row)
{
    for (size_t i = 0; i < COUNT(without); i++)
        if (strcmp(without[i].row, row) == 0)
            return &without[i].why;
    return NULL;
}

static bool hands_on(const op_family *family)
{
    return family->derivative.expand || family->derivative.vjp;
}

static void every_op_was_thought_of(void **state)
{
    (void)state;
    for (size_t i = 0; i < OP_COUNT; i++) {
        const char *row = op_table[i].name;
        const why *w = reason(row);
        bool hands = hands_on(op_table[i].family), ends = gradient_ends((op_kind)i);
        if (!hands && !ends && !w)
            fail_msg(
                "%s has no gradient: give its family a vjp or an expand, or say in gradient.def "
                "that nothing flows through it, or in this file why it is refused",
                row);
        if (ends && w)
            fail_msg("%s is in gradient.def; take it out of the list of those refused", row);
        if (hands && w && *w != OF_THE_USER)
            fail_msg("%s has a gradient; take it out of the list of those without", row);
    }
    for (size_t i = 0; i < COUNT(without); i++)
        if (op_find(without[i].row) == OP_COUNT)
            fail_msg("%s is no op", without[i].row);
}

/* ---- Building ---- */

typedef struct tally {
    size_t built, refused;
    bool tried[OP_COUNT], done[OP_COUNT]; /* ops whose gradients were tried, and built */
} tally;

static size_t take_leaves(const case_spec *s, const rlxvk_tensor *leaves, rlxvk_tensor *out)
{
    size_t count = 0;
    for (size_t i = 0; i < s->input_count; i++)
        if (s->inputs[i].dtype == RLXVK_F32 || s->inputs[i].dtype == RLXVK_C64)
            out[count++] = leaves[i];
    return count;
}

/* Builds the case's graph with gradients for all its leaves. An op may refuse forms that have no
 * gradient, for example a state in place or a long loop, but not all of its cases. */
static void build_case(const case_spec *s, const char *line, tally *t)
{
    rlxvk_graph *g = NULL;
    rlxvk_tensor leaves[CASE_MAX_INPUTS], wrt[CASE_MAX_INPUTS], d[CASE_MAX_INPUTS], y;
    op_kind op = op_find(s->row);
    expect_ok(conform_build(s, &g, leaves, &y));
    size_t count = rlxvk_graph_status(g) == RLXVK_OK ? take_leaves(s, leaves, wrt) : 0;
    rlxvk_dtype dtype = count ? rlxvk_tensor_dtype(g, y) : RLXVK_I32;
    if (dtype == RLXVK_F32 || dtype == RLXVK_C64) {
        rlxvk_tensor seed = rlxvk_input(g, "every_op.seed", dtype, rlxvk_tensor_shape(g, y));
        rlxvk_grad(g, y, seed, wrt, count, d);
        bool built = rlxvk_graph_status(g) == RLXVK_OK;
        if (!built && rlxvk_graph_status(g) != RLXVK_E_UNSUPPORTED)
            fail_msg("%s: %s", line, rlxvk_graph_error(g));
        t->built += built;
        t->refused += !built;
        if (op != OP_COUNT) {
            t->tried[op] = true;
            t->done[op] |= built;
        }
    }
    rlxvk_graph_destroy(g);
}

/* Leaves out cases that expect an error, and ops without a gradient. */
static bool is_ours(const case_spec *s)
{
    const why *w = reason(s->row);
    return !case_word(s, "expect", NULL) && !(w && *w == NOT_YET) && !(w && *w == WRITES_IN_PLACE);
}

static void gradients_of_cases_can_be_built(void **state)
{
    (void)state;
    struct case_list list = {0};
    tally all = {0};
    expect_ok(case_list_generate(&list));
    for (size_t i = 0; i < list.lines.count; i++) {
        case_spec s;
        const char *line = list.lines.items[i];
        expect_ok(case_parse(line, &s));
        if (is_ours(&s))
            build_case(&s, line, &all);
    }
    case_list_destroy(&list);
    print_message("%zu cases, %zu refused\n", all.built, all.refused);
    for (size_t i = 0; i < OP_COUNT; i++)
        if (all.tried[i] && !all.done[i])
            fail_msg("%s: gradients of none of its cases can be built", op_table[i].name);
    assert_true(all.built > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op_was_thought_of),
        cmocka_unit_test(gradients_of_cases_can_be_built),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
