/* lower_emit fails if the specialization constants of a dispatch do not match its kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "op/activation.h"
#include "constants/elementwise.h"
#include "op/activation.h"
#include "op/op.h"

#include <string.h>

static const device_profile profile = {.max_group_count = {65535, 65535, 65535}};

static void test_constants(void **state)
{
    static const struct {
        constant_value set[4];
        size_t count;
        const char *said; /* NULL: no error */
    } cases[] = {
        {{{LOCAL_SIZE, 64}, {UNARY_CODE, UNARY_GELU}, {UNARY_VECTORS, 1}}, 3, NULL},
        {{{LOCAL_SIZE, 64}, {UNARY_VECTORS, 1}},
         2,
         "kernel unary: its constant CODE (1) is not set"},
        {{{UNARY_CODE, UNARY_TANH}, {UNARY_VECTORS, 1}},
         2,
         "kernel unary: its constant LOCAL_SIZE (0) is not set"},
        {{{LOCAL_SIZE, 64}, {UNARY_CODE, UNARY_TANH}, {UNARY_VECTORS, 1}, {ELEMENTWISE_PAIRS, 5}},
         4,
         "kernel unary has no constant 3; it is set to 5"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        lowering l = {.profile = &profile};
        dispatch d = {.kernel = KERNEL_UNARY, .groups = {1, 1, 1}};
        struct unary_args args = {1, 0, 0};
        operand operands[2] = {{0}};
        lower_set_constants(&d, cases[i].set, cases[i].count);
        rlxvk_status status = lower_emit(&l, &d, &args, sizeof args, operands, 2);
        assert_int_equal(status, cases[i].said ? RLXVK_E_ARITY : RLXVK_OK);
        assert_int_equal(l.dispatches.count, cases[i].said ? 0 : 1);
        if (cases[i].said)
            assert_non_null(strstr(rlxvk_last_error(), cases[i].said));
        VECTOR_FREE(&l.dispatches);
        arena_destroy(&l.operands);
    }
}

static void test_operands(void **state)
{
    lowering l = {.profile = &profile};
    dispatch d = {.kernel = KERNEL_UNARY, .groups = {1, 1, 1}};
    struct unary_args args = {1, 0, 0};
    operand operands[3] = {{0}};
    (void)state;
    assert_int_equal(lower_emit(&l, &d, &args, sizeof args, operands, 3), RLXVK_E_ARITY);
    assert_non_null(strstr(rlxvk_last_error(), "12 argument bytes and 2 operands; lowering gave"));
    assert_int_equal(lower_emit(&l, &d, &args, 8, operands, 2), RLXVK_E_ARITY);
    assert_int_equal(l.dispatches.count, 0);
}

/* In each kernel, LOCAL_SIZE is the first constant, the last constant has a name, and no two names
 * are equal. */
static void test_names(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < KERNEL_COUNT; k++) {
        const kernel_info *kernel = &kernel_table[k];
        assert_string_equal(kernel->constants[LOCAL_SIZE], "LOCAL_SIZE");
        assert_non_null(kernel->constants[kernel->constant_count - 1]);
        for (uint32_t i = 0; i < kernel->constant_count; i++)
            for (uint32_t j = 0; j < i && kernel->constants[i]; j++)
                if (kernel->constants[j])
                    assert_string_not_equal(kernel->constants[i], kernel->constants[j]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_constants),
                                       cmocka_unit_test(test_operands),
                                       cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
