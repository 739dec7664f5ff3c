/*
 * Products with few rows and weights that are addressed by element, with teams. Software devices
 * have teams of one, because their barriers are expensive. Here the device is taken for a GPU, so
 * that the cases run with the teams that GPUs have.
 */
#include "conform/conform.h"
#include "program/context.h"
#include "support/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

#define FEWEST 20

static void teams_add_up_their_parts(void **state)
{
    static const char op[] = "dequant_matmul_scaled ";
    device_profile *profile = &shared_context->device->setup.profile;
    const rlxvk_device_kind kind = profile->kind;
    conform_setup setup = {.context = shared_context, .seeds = {1}, .seed_count = 1};
    case_list list;
    size_t number = 0, passed = 0;
    (void)state;
    expect_ok(case_list_generate(&list));
    profile->kind = RLXVK_DEVICE_DISCRETE;
    for (size_t i = 0; i < list.lines.count; i++) {
        conform_case c = {.line = list.lines.items[i]};
        conform_result result = {0};
        if (strncmp(c.line, op, strlen(op)) != 0)
            continue;
        c.number = number++;
        if (c.number % 4 || strstr(c.line, "expect="))
            continue;
        conform_run(&setup, &c, &result);
        if (result.verdict == VERDICT_FAILED)
            fail_msg("%s: %s", c.line, result.message);
        passed += result.verdict == VERDICT_PASSED;
    }
    profile->kind = kind;
    case_list_destroy(&list);
    assert_true(passed >= FEWEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(teams_add_up_their_parts)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
