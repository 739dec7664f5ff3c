/*
 * rlxvk conform --shifted and --folded. Operands and results must begin inside their slots, but not
 * if they are written in place. Grids must be folded. A wrong result must still be found.
 */
#include "conform/conform.h"
#include "exec/executable.h"
#include "support/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

static rlxvk_executable *compiled(rlxvk_context *c, const char *line, uint64_t number)
{
    case_spec spec;
    rlxvk_graph *g = NULL;
    rlxvk_tensor leaves[CASE_MAX_INPUTS], result, whole;
    rlxvk_executable *e = NULL;
    expect_ok(case_parse(line, &spec));
    expect_ok(conform_build_shifted(&spec, number, &g, leaves, &result, &whole));
    rlxvk_graph_output(g, whole);
    expect_ok(rlxvk_graph_status(g));
    expect_ok(rlxvk_compile(c, g, NULL, &e));
    rlxvk_graph_destroy(g);
    return e;
}

static const dispatch *dispatch_of(const rlxvk_executable *e, uint32_t kernel)
{
    for (size_t i = 0; i < e->program->schedule.dispatches.count; i++)
        if (e->program->schedule.dispatches.items[i].kernel == kernel)
            return &e->program->schedule.dispatches.items[i];
    fail_msg("no dispatch of %s", kernel_table[kernel].name);
    return NULL;
}

/* Operands begin one to four rows of five inside, depending on the number of the case. */
static void operands_begin_inside(void **state)
{
    rlxvk_context *c = open_context(NULL);
    (void)state;
    for (uint64_t number = 0; number < 5; number++) {
        rlxvk_executable *e = compiled(c, "add in=a:f32:7x5;b:f32:7x5", number);
        const dispatch *d = dispatch_of(e, KERNEL_BINARY);
        assert_int_equal(d->operand_count, 3);
        for (int i = 0; i < 3; i++)
            assert_int_equal(d->operands[i].offset, 5 * (1 + number % 4));
        rlxvk_executable_destroy(e);
    }
    close_context(c);
}

static void run_line(rlxvk_context *c, const char *line, uint64_t number, conform_result *out)
{
    const conform_setup setup = {.context = c, .seeds = {1}, .seed_count = 1, .shifted = true};
    const conform_case given = {.line = line, .number = number};
    conform_run(&setup, &given, out);
}

static void cases_are_compared_from_there(void **state)
{
    static const char *const lines[] = {"add in=a:f32:7x5;b:f32:7x5",
                                        "add in=a:c64:4x9;b:c64:4x9",
                                        "accumulate in=sum:f32:9;t:f32:9;keep:f32:1",
                                        "relu in=x:f32:scalar",
                                        "relu in=x:f16:3x4",
                                        "add expect=E_SHAPE in=a:f32:3;b:f32:4"};
    rlxvk_context *c = open_context(NULL);
    conform_result result;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
        run_line(c, lines[i], i, &result);
        if (result.verdict != VERDICT_PASSED)
            fail_msg("%s: %s", lines[i], result.message);
    }
    /* Element 0 of the result is that of the fourth row of x, and 35 elements are compared. */
    run_line(c, "neg in=x:f32:7x5:iota", 2, &result);
    assert_int_equal(result.verdict, VERDICT_PASSED);
    assert_int_equal(result.elements, 35);
    close_context(c);
}

static void grids_fold(void **state)
{
    rlxvk_context *c = open_context(NULL);
    (void)state;
    conform_fold_grids(c);
    rlxvk_executable *e = compiled(c, "add in=a:f32:7x5000;b:f32:7x5000", 0);
    const dispatch *d = dispatch_of(e, KERNEL_BINARY);
    assert_int_equal(d->groups[0], 3);
    assert_true(d->groups[1] > 3);
    rlxvk_executable_destroy(e);
    close_context(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_begin_inside),
        cmocka_unit_test(cases_are_compared_from_there),
        cmocka_unit_test(grids_fold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
