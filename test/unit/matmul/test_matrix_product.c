/* Which steps a product on matrix units takes: halves that lie as it wants them are not packed. */
#include "plan/schedule.h"
#include "support/harness.h"
#include "support/profiles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* How many times 512 rows times w^T, n rows of k, packs an operand on a GPU. */
static int packs(rlxvk_precision precision, rlxvk_dtype dtype, int64_t n, int64_t k)
{
    static const rlxvk_matmul_options transposed = {.transpose_b = true};
    device_profile gpu = ORDINARY_GPU;
    schedule_options options = {.profile = &gpu, .precision = precision};
    rlxvk_graph *g = NULL;
    schedule s;
    int count = 0;
    gpu.matrix_f16 = gpu.matrix_bf16 = (matrix_shape){16, 16, 16};
    gpu.shared_memory_bytes = 49152;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(512, k));
    rlxvk_tensor w = rlxvk_param(g, "w", dtype, RLXVK_SHAPE(n, k));
    rlxvk_graph_output(g, rlxvk_matmul_with(g, x, w, &transposed));
    expect_ok(schedule_create(g, &options, &s));
    for (size_t i = 0; i < s.dispatches.count; i++)
        count += s.dispatches.items[i].kernel == KERNEL_MATRIX_PACK;
    schedule_destroy(&s);
    rlxvk_graph_destroy(g);
    return count;
}

static void halves_in_whole_steps_are_taken_as_they_are(void **state)
{
    (void)state;
    assert_int_equal(packs(RLXVK_PRECISION_F16, RLXVK_F16, 4096, 4096), 1);
    assert_int_equal(packs(RLXVK_PRECISION_F16, RLXVK_F16, 4097, 4096), 1);
    assert_int_equal(packs(RLXVK_PRECISION_BF16, RLXVK_BF16, 4096, 4096), 1);
    assert_int_equal(packs(RLXVK_PRECISION_F16, RLXVK_F16, 4096, 4098), 2);
    assert_int_equal(packs(RLXVK_PRECISION_F16, RLXVK_BF16, 4096, 4096), 2);
    assert_int_equal(packs(RLXVK_PRECISION_F16, RLXVK_F32, 4096, 4096), 2);
    assert_int_equal(packs(RLXVK_PRECISION_SPLIT, RLXVK_F16, 4096, 4096), 2);
}

/* Units for f32 take words, so what is decoded to halves is nothing for them. */
static void f32_units_take_decoded_weights_as_words(void **state)
{
    device_profile gpu = ORDINARY_GPU;
    schedule_options options = {.profile = &gpu, .precision = RLXVK_PRECISION_F32};
    rlxvk_graph *g = NULL;
    schedule s;
    int packed = 0, multiplied = 0;
    (void)state;
    gpu.matrix_f32 = (matrix_shape){8, 8, 8};
    gpu.shared_memory_bytes = 49152;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(512, 4096));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_U8, RLXVK_SHAPE(4096, 2304));
    rlxvk_graph_output(g, rlxvk_dequant_matmul(g, x, w, RLXVK_Q4_K));
    expect_ok(schedule_create(g, &options, &s));
    for (size_t i = 0; i < s.dispatches.count; i++) {
        packed += s.dispatches.items[i].kernel == KERNEL_MATRIX_PACK;
        multiplied += s.dispatches.items[i].kernel == KERNEL_MATRIX_PRODUCT_F32;
    }
    assert_int_equal(packed, 2);
    assert_int_equal(multiplied, 1);
    schedule_destroy(&s);
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_in_whole_steps_are_taken_as_they_are),
        cmocka_unit_test(f32_units_take_decoded_weights_as_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
