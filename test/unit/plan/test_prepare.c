/*
 * Preparation within a number of bytes. The schedule is made by hand: a chain of layouts, each
 * computed from the one before, and a step that reads the last one.
 */
#include "plan/schedule.h"

#include <rlxvk_ops.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { LAYOUTS = 2, STEPS = LAYOUTS + 1, NODES = 2, W = 0, Y = 1 };

static uint32_t prepared_within(const uint64_t bytes[LAYOUTS], uint64_t most)
{
    rlxvk_graph *g = NULL;
    assert_int_equal(rlxvk_graph_create(&g), RLXVK_OK);
    rlxvk_neg(g, rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(1)));
    assert_int_equal(g->nodes.count, NODES);
    value values[NODES] = {{0}};
    temporary layouts[LAYOUTS] = {{.bytes = bytes[0]}, {.bytes = bytes[1]}};
    dispatch dispatches[STEPS] = {{0}};
    operand operands[STEPS][2];
    step steps[STEPS] = {{0}};
    for (uint32_t i = 0; i < STEPS; i++) {
        dispatch *d = &dispatches[i];
        d->operand_count = 2;
        operands[i][0] = (operand){.value = i ? NODES + i - 1 : W, .access = ACCESS_READ};
        operands[i][1] = (operand){.value = i < LAYOUTS ? NODES + i : Y, .access = ACCESS_WRITE};
        d->operands = operands[i];
        d->prepares = i < LAYOUTS;
        steps[i] = (step){.node = Y, .dispatch = i};
    }
    schedule s = {.graph = g, .values = {.items = values}};
    s.dispatches.items = dispatches;
    s.dispatches.count = s.steps.count = STEPS;
    s.steps.items = steps;
    s.temporaries.items = layouts;
    s.temporaries.count = LAYOUTS;
    assert_int_equal(prepare_schedule(&s, most), RLXVK_OK);
    for (uint32_t i = 0; i < STEPS; i++)
        assert_int_equal(steps[i].dispatch, i);
    rlxvk_graph_destroy(g);
    return s.prepared;
}

/* If a layout is not kept, no layout that reads it is kept either, however small. */
static void test_chain(void **state)
{
    const uint64_t large_first[] = {100, 10}, small_first[] = {10, 100};
    (void)state;
    assert_int_equal(prepared_within(large_first, 110), 2);
    assert_int_equal(prepared_within(large_first, 109), 1);
    assert_int_equal(prepared_within(large_first, 99), 0);
    assert_int_equal(prepared_within(small_first, 99), 1);
    assert_int_equal(prepared_within(small_first, 9), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
