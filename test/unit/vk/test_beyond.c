/*
 * Beyond the limits of a device and without its features, Vulkan is undefined. So a module, a
 * binding or an allocation that the device does not take is refused before the driver sees it.
 */
#include "kernel/words.h"
#include "program/context.h"
#include "spirv/spirv.h"
#include "support/harness.h"
#include "vk/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

#define OP(code, length) ((length) << 16 | SpvOp##code)

/* Two arrays of 64 floats in shared memory. The function uses the first one twice, or both. */
static uint64_t shared_of(bool second)
{
    /* clang-format off */
    enum { VOID = 1, FUNCTION, FLOAT, UINT, N, ARRAY, POINTER, A, B, ELEMENT, ZERO, MAIN, X, Y };
    enum { BOUND = Y + 1 };
    const uint32_t words[] = {
        SpvMagicNumber, 0x10300, 0, BOUND, 0,
        OP(TypeVoid, 2), VOID,
        OP(TypeFunction, 3), FUNCTION, VOID,
        OP(TypeFloat, 3), FLOAT, 32,
        OP(TypeInt, 4), UINT, 32, 0,
        OP(Constant, 4), UINT, N, 64,
        OP(Constant, 4), UINT, ZERO, 0,
        OP(TypeArray, 4), ARRAY, FLOAT, N,
        OP(TypePointer, 4), POINTER, SpvStorageClassWorkgroup, ARRAY,
        OP(TypePointer, 4), ELEMENT, SpvStorageClassWorkgroup, FLOAT,
        OP(Variable, 4), POINTER, A, SpvStorageClassWorkgroup,
        OP(Variable, 4), POINTER, B, SpvStorageClassWorkgroup,
        OP(Function, 5), VOID, MAIN, 0, FUNCTION,
        OP(AccessChain, 5), ELEMENT, X, A, ZERO,
        OP(AccessChain, 5), ELEMENT, Y, second ? B : A, ZERO,
        OP(FunctionEnd, 1),
    };
    /* clang-format on */
    uint64_t bytes = 0;
    assert_true(spirv_shared_bytes(words, ARRAY_COUNT(words), &bytes));
    return bytes;
}

static void shared_memory_is_counted_if_used(void **state)
{
    uint64_t bytes = 77;
    (void)state;
    assert_int_equal(shared_of(false), 256);
    assert_int_equal(shared_of(true), 512);
    for (uint32_t k = 0; k < KERNEL_COUNT; k++) {
        uint32_t *words = kernel_words(kernel_find(k));
        assert_true(spirv_shared_bytes(words, kernel_find(k)->word_count, &bytes));
        assert_true(bytes <= 1 << 20);
        memory_free(words);
    }
}

/* Custom ops bring modules of their own, so ids and lengths may be wrong. */
static void wrong_modules_are_survived(void **state)
{
    /* clang-format off */
    static const uint32_t words[] = {
        SpvMagicNumber, 0x10300, 0, 4, 0,
        OP(TypeArray, 4), 1, 99, 77,
        OP(TypePointer, 4), 88, SpvStorageClassWorkgroup, 1,
        OP(TypeStruct, 3), 2, UINT32_MAX,
        OP(Variable, 4), 66, 55, SpvStorageClassWorkgroup,
        OP(Function, 1),
        OP(Store, 3), UINT32_MAX, 1,
        OP(AccessChain, 2), 3,
    };
    /* clang-format on */
    uint64_t bytes = 77;
    (void)state;
    assert_true(spirv_shared_bytes(words, ARRAY_COUNT(words), &bytes));
    assert_int_equal(bytes, 0);
}

/* Returns what the device lacks for the kernel, as it is in the table. */
static const char *lack_of(device *d, uint32_t kernel, module_lack *out)
{
    uint32_t *words = kernel_words(kernel_find(kernel));
    VkResult result = module_check(d, words, kernel_find(kernel)->word_count, out);
    memory_free(words);
    return result == VK_SUCCESS ? "" : out->text;
}

static void modules_beyond_the_device_are_refused(void **state)
{
    device *d = memory_zeroed(1, sizeof *d);
    module_lack lack;
    (void)state;
    assert_non_null(d);
    d->snapshot.cooperative_matrix = true;
    d->snapshot.features12.shaderFloat16 = VK_TRUE;
    d->snapshot.features12.vulkanMemoryModel = VK_TRUE;
    d->snapshot.features12.vulkanMemoryModelDeviceScope = VK_TRUE;
    d->snapshot.subgroup.supportedStages = VK_SHADER_STAGE_COMPUTE_BIT;
    d->snapshot.subgroup.supportedOperations = VK_SUBGROUP_FEATURE_BASIC_BIT;
    d->snapshot.properties.limits.maxComputeSharedMemorySize = 16384;
    assert_string_equal(lack_of(d, KERNEL_MATRIX_PROBE_F16, &lack), "");
    d->snapshot.cooperative_matrix = false;
    assert_non_null(strstr(lack_of(d, KERNEL_MATRIX_PROBE_F16, &lack), "cooperative matrices"));
    d->snapshot.features12.shaderFloat16 = VK_FALSE;
    assert_non_null(strstr(lack_of(d, KERNEL_MATRIX_PROBE_F16, &lack), "float16"));
    memory_free(d);
}

/* Choosing goes by the profile. If a variant used more than its table says, the module would be
 * refused, as here, where only the snapshot has less. */
static void specialized_modules_are_measured(void **state)
{
    rlxvk_context *c = open_context(NULL);
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(2, 4096));
    rlxvk_graph_output(g, rlxvk_softmax(g, x, -1));
    c->device->snapshot.properties.limits.maxComputeSharedMemorySize = 64;
    expect_error(rlxvk_compile(c, g, NULL, &e), RLXVK_E_UNSUPPORTED,
                 "of shared memory; this device has 64");
    assert_null(e);
    c->device->snapshot.properties.limits.maxComputeSharedMemorySize =
        c->device->setup.profile.shared_memory_bytes;
    expect_ok(rlxvk_compile(c, g, NULL, &e));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    close_context(c);
}

static void bindings_and_allocations_beyond_the_device_are_refused(void **state)
{
    static const uint32_t sets[KERNEL_MAX_BINDINGS + 1] = {[1] = 2};
    rlxvk_context *c = open_context(NULL);
    device *d = c->device;
    VkPhysicalDeviceLimits *limits = &d->snapshot.properties.limits;
    memory_block block = {0}, other = {0};
    VkDescriptorPool pool = VK_NULL_HANDLE;
    VkDescriptorSet set;
    (void)state;
    uint32_t before = d->allocations;
    expect_ok(memory_block_create(d, MEMORY_ARENA, 4096, &block));
    assert_int_equal(d->allocations, before + 1);
    limits->maxMemoryAllocationCount = d->allocations;
    expect_error(memory_block_create(d, MEMORY_ARENA, 4096, &other), RLXVK_E_OUT_OF_DEVICE_MEMORY,
                 "allocations at a time");
    assert_int_equal(d->allocations, before + 1);
    expect_ok(vk_descriptor_pool_create(d, sets, &pool));
    limits->minStorageBufferOffsetAlignment = 256;
    limits->maxStorageBufferRange = 1024;
    expect_error(vk_descriptor_set_write(d, pool, &(buffer_range){block.buffer, 64, 64}, 1, &set),
                 RLXVK_E_UNSUPPORTED, "multiples of 256");
    expect_error(vk_descriptor_set_write(d, pool, &(buffer_range){block.buffer, 0, 1028}, 1, &set),
                 RLXVK_E_UNSUPPORTED, "1028 bytes");
    expect_ok(vk_descriptor_set_write(d, pool, &(buffer_range){block.buffer, 256, 1024}, 1, &set));
    d->fn.DestroyDescriptorPool(d->handle, pool, NULL);
    memory_block_destroy(d, &block);
    assert_int_equal(d->allocations, before);
    close_context(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shared_memory_is_counted_if_used),
        cmocka_unit_test(wrong_modules_are_survived),
        cmocka_unit_test(modules_beyond_the_device_are_refused),
        cmocka_unit_test(specialized_modules_are_measured),
        cmocka_unit_test(bindings_and_allocations_beyond_the_device_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
