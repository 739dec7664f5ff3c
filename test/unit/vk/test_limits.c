/*
 * Named limits (RLXVK_LIMITS): each profile lowers what its source says, none raises anything, and
 * nothing looks around them.
 */
#include "program/context.h"
#include "support/harness.h"
#include "vk/internal.h"
#include "vk/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

#define MIB ((uint64_t)1 << 20)

/* ---- Pure: what a profile does to a snapshot ---- */

/* Every limit and every feature that profiles know, as large as can be. */
static device_snapshot largest(void)
{
    device_snapshot s = {.features12.timelineSemaphore = VK_TRUE};
    VkPhysicalDeviceLimits *limits = &s.properties.limits;
    s.properties.apiVersion = VK_MAKE_API_VERSION(0, 1, 4, 0);
    limits->maxComputeWorkGroupInvocations = limits->maxComputeSharedMemorySize = 1u << 30;
    for (int i = 0; i < 3; i++)
        limits->maxComputeWorkGroupSize[i] = limits->maxComputeWorkGroupCount[i] = 1u << 30;
    limits->maxPerStageDescriptorStorageBuffers = limits->maxDescriptorSetStorageBuffers = 1u << 20;
    limits->maxStorageBufferRange = limits->maxMemoryAllocationCount = UINT32_MAX;
    limits->maxPushConstantsSize = 8192;
    limits->minStorageBufferOffsetAlignment = limits->nonCoherentAtomSize = 1;
    s.maintenance3.maxMemoryAllocationSize = UINT64_MAX;
    s.features.shaderInt16 = s.features.shaderInt64 = VK_TRUE;
    s.features11.storageBuffer16BitAccess = s.features12.storageBuffer8BitAccess = VK_TRUE;
    s.features12.shaderFloat16 = s.features12.shaderInt8 = VK_TRUE;
    s.features12.vulkanMemoryModel = VK_TRUE;
    s.float_controls.shaderRoundingModeRTEFloat32 = VK_TRUE;
    s.float_controls.shaderDenormPreserveFloat16 = VK_TRUE;
    s.float_controls.shaderSignedZeroInfNanPreserveFloat32 = VK_TRUE;
    s.cooperative_matrix = s.bfloat16_matrix = s.integer_dot = s.integer_dot_accelerated = true;
    s.matrix_f16 = s.matrix_bf16 = s.matrix_f32 = (matrix_shape){16, 16, 16};
    s.least_subgroup_size = s.most_subgroup_size = s.subgroup.subgroupSize = 32;
    s.subgroup_size_control = true;
    s.subgroup.supportedStages = VK_SHADER_STAGE_COMPUTE_BIT;
    s.subgroup.supportedOperations = 0xff;
    s.queue_family_count = 1;
    s.queue_families[0] = (VkQueueFamilyProperties){VK_QUEUE_COMPUTE_BIT, 1, 64, {1, 1, 1}};
    s.memory.memoryHeapCount = 1;
    s.memory.memoryHeaps[0] = (VkMemoryHeap){UINT64_C(1) << 40, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
    s.memory.memoryTypeCount = 1;
    s.memory.memoryTypes[0].propertyFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT |
                                            VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                            VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    return s;
}

static device_snapshot seen_through(const char *name, device_snapshot s)
{
    const device_limits *limits;
    expect_ok(limits_find(name, "test", &limits));
    assert_non_null(limits);
    limits_apply(limits, &s);
    return s;
}

static device_setup setup_of(device_snapshot s)
{
    device_setup setup;
    profile_choose(&s, NULL, &setup);
    return setup;
}

/* The figures of the sources, once more and on their own. 0: the device's. */
static void profiles_have_the_figures_of_their_sources(void **state)
{
    static const struct {
        const char *name;
        uint32_t invocations, shared, buffers, push, groups;
        uint64_t binding, allocation;
    } rows[] = {
        {"vulkan-1.2", 128, 16384, 4, 128, 65535, 128 * MIB, 1024 * MIB},
        {"roadmap-2022", 256, 16384, 30, 128, 65535, 128 * MIB, 1024 * MIB},
        {"adreno-6xx", 1024, 32768, 24, 128, 65535, 128 * MIB, 0},
        {"mali-valhall", 512, 32768, 0, 128, 65535, 1024 * MIB, 1024 * MIB},
        {"intel-gen9", 1024, 32768, 64, 128, 65535, 1024 * MIB, 0},
        {"apple-moltenvk", 1024, 32768, 30, 4096, 0, 0, 0},
        {"apple-honeykrisp", 1024, 32768, 0, 256, 0, 0, 0},
        {"v3d", 256, 16384, 8, 128, 65535, 1024 * MIB, 1024 * MIB},
        {"all-off", 128, 16384, 4, 128, 65535, 128 * MIB, 1024 * MIB},
    };
    const device_profile own = setup_of(largest()).profile;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        device_setup setup = setup_of(seen_through(rows[i].name, largest()));
        const device_profile *p = &setup.profile;
        assert_string_equal(limits_name(i), rows[i].name);
        assert_true(setup.usable);
        assert_int_equal(p->max_workgroup_invocations, rows[i].invocations);
        assert_int_equal(p->shared_memory_bytes, rows[i].shared);
        assert_int_equal(p->storage_buffers_per_stage,
                         rows[i].buffers ? rows[i].buffers : own.storage_buffers_per_stage);
        assert_int_equal(p->push_constant_bytes, rows[i].push);
        assert_int_equal(p->max_group_count[2],
                         rows[i].groups ? rows[i].groups : own.max_group_count[2]);
        assert_int_equal(p->max_binding_bytes,
                         rows[i].binding ? rows[i].binding : own.max_binding_bytes);
        assert_int_equal(p->max_allocation_bytes,
                         rows[i].allocation ? rows[i].allocation : own.max_allocation_bytes);
        assert_int_equal(p->matrix_f16.m + p->matrix_bf16.m + p->matrix_f32.m, 0);
    }
    assert_null(limits_name(ARRAY_COUNT(rows)));
}

static void features_go(void **state)
{
    device_snapshot s = seen_through("v3d", largest());
    (void)state;
    assert_false(s.features12.shaderFloat16 || s.features12.shaderInt8 || s.features.shaderInt16);
    assert_true(s.features11.storageBuffer16BitAccess && s.integer_dot);
    assert_false(s.integer_dot_accelerated);
    assert_true(s.subgroup.supportedOperations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT);
    assert_false(s.subgroup.supportedOperations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT);
    s = seen_through("vulkan-1.2", largest());
    assert_int_equal(s.properties.apiVersion, VK_API_VERSION_1_2);
    assert_int_equal(s.subgroup.supportedOperations, VK_SUBGROUP_FEATURE_BASIC_BIT);
    assert_true(s.features12.shaderFloat16);
    assert_false(s.subgroup_size_control || s.most_subgroup_size || s.integer_dot);
    s = seen_through("all-off", largest());
    assert_true(s.features12.timelineSemaphore);
    assert_false(s.features11.storageBuffer16BitAccess || s.features12.storageBuffer8BitAccess ||
                 s.features12.shaderFloat16 || s.features12.vulkanMemoryModel ||
                 s.features.shaderInt64);
    assert_false(s.float_controls.shaderRoundingModeRTEFloat32 ||
                 s.float_controls.shaderSignedZeroInfNanPreserveFloat32);
    assert_false(setup_of(s).timestamps);
    s = seen_through("apple-moltenvk", largest());
    assert_true(s.float_controls.shaderSignedZeroInfNanPreserveFloat32);
    assert_false(s.float_controls.shaderDenormPreserveFloat16);
    assert_true(s.integer_dot && !s.integer_dot_accelerated);
}

/* Choices by registers are those of another driver, so that they run on any device. */
static void registers_are_another_drivers(void **state)
{
    device_profile p = setup_of(seen_through("apple-honeykrisp", largest())).profile;
    (void)state;
    assert_int_equal(profile_registers(&p, 128), 127);
    assert_true(p.loads_early);
    p = setup_of(seen_through("adreno-6xx", largest())).profile;
    assert_int_equal(profile_registers(&p, 512), 96);
    assert_false(p.loads_early);
    p = setup_of(seen_through("apple-moltenvk", largest())).profile;
    assert_int_equal(profile_registers(&p, 512), UINT32_MAX);
}

static void not_more(uint64_t lowered, uint64_t own)
{
    assert_true(lowered <= own);
}

static void expect_nothing_raised(const device_snapshot *low, const device_snapshot *own)
{
    const VkPhysicalDeviceLimits *l = &low->properties.limits, *o = &own->properties.limits;
    not_more(low->properties.apiVersion, own->properties.apiVersion);
    not_more(l->maxComputeWorkGroupInvocations, o->maxComputeWorkGroupInvocations);
    for (int i = 0; i < 3; i++) {
        not_more(l->maxComputeWorkGroupSize[i], o->maxComputeWorkGroupSize[i]);
        not_more(l->maxComputeWorkGroupCount[i], o->maxComputeWorkGroupCount[i]);
    }
    not_more(l->maxComputeSharedMemorySize, o->maxComputeSharedMemorySize);
    not_more(l->maxPerStageDescriptorStorageBuffers, o->maxPerStageDescriptorStorageBuffers);
    not_more(l->maxDescriptorSetStorageBuffers, o->maxDescriptorSetStorageBuffers);
    not_more(l->maxStorageBufferRange, o->maxStorageBufferRange);
    not_more(l->maxPushConstantsSize, o->maxPushConstantsSize);
    not_more(l->maxMemoryAllocationCount, o->maxMemoryAllocationCount);
    not_more(o->minStorageBufferOffsetAlignment, l->minStorageBufferOffsetAlignment);
    not_more(o->nonCoherentAtomSize, l->nonCoherentAtomSize);
    not_more(low->subgroup.supportedOperations, own->subgroup.supportedOperations);
    not_more(low->features12.shaderFloat16, own->features12.shaderFloat16);
    not_more(low->features11.storageBuffer16BitAccess, own->features11.storageBuffer16BitAccess);
    not_more(low->cooperative_matrix, own->cooperative_matrix);
    not_more(low->integer_dot, own->integer_dot);
    not_more(low->queue_families[0].timestampValidBits, own->queue_families[0].timestampValidBits);
    not_more(setup_of(*low).profile.max_allocation_bytes,
             setup_of(*own).profile.max_allocation_bytes);
}

/* Nor does a device that has less than every profile, or reports nothing at all. */
static void nothing_is_raised(void **state)
{
    device_snapshot devices[3] = {largest(), largest()};
    VkPhysicalDeviceLimits *limits = &devices[1].properties.limits;
    (void)state;
    limits->maxComputeWorkGroupInvocations = 64;
    limits->maxComputeWorkGroupSize[0] = limits->maxComputeWorkGroupCount[1] = 16;
    limits->maxComputeSharedMemorySize = 1024;
    limits->maxPerStageDescriptorStorageBuffers = limits->maxDescriptorSetStorageBuffers = 2;
    limits->maxStorageBufferRange = limits->maxMemoryAllocationCount = 100;
    limits->maxPushConstantsSize = 64;
    limits->minStorageBufferOffsetAlignment = limits->nonCoherentAtomSize = 4096;
    devices[1].maintenance3.maxMemoryAllocationSize = MIB;
    devices[1].subgroup.supportedOperations = VK_SUBGROUP_FEATURE_BASIC_BIT;
    devices[1].features12.shaderFloat16 = VK_FALSE;
    devices[1].cooperative_matrix = devices[1].integer_dot = false;
    for (size_t i = 0; limits_name(i); i++)
        for (size_t k = 0; k < ARRAY_COUNT(devices); k++) {
            device_snapshot low = seen_through(limits_name(i), devices[k]);
            expect_nothing_raised(&low, &devices[k]);
        }
    device_snapshot same = largest();
    limits_apply(NULL, &same);
    assert_int_equal(same.properties.limits.maxComputeWorkGroupInvocations, 1u << 30);
}

static void unknown_names_are_refused(void **state)
{
    const device_limits *limits = NULL;
    (void)state;
    expect_ok(limits_find("", "test", &limits));
    assert_null(limits);
    expect_ok(limits_find("V3D", "test", &limits));
    assert_non_null(limits);
    for (size_t i = 0; limits_name(i); i++)
        expect_error(limits_find("v3", "test", &limits), RLXVK_E_ATTR, limits_name(i));
    assert_null(limits);
}

/* ---- The switch: every call sees the smaller device ---- */

static void every_call_sees_the_smaller_device(void **state)
{
    rlxvk_device_info infos[8], info;
    rlxvk_context *c = NULL;
    size_t count = 0;
    (void)state;
    setenv("RLXVK_LIMITS", "v3d", 1);
    expect_ok(rlxvk_device_list(infos, ARRAY_COUNT(infos), &count));
    assert_true(count > 0);
    for (size_t i = 0; i < count && i < ARRAY_COUNT(infos); i++)
        assert_true(infos[i].max_workgroup_invocations <= 256 &&
                    infos[i].shared_memory_bytes <= 16384 &&
                    infos[i].storage_buffers_per_stage <= 8 && !infos[i].shader_float16);
    expect_ok(rlxvk_device_find(NULL, &info));
    assert_int_equal(info.storage_buffers_per_stage, 8);
    c = open_context(NULL);
    rlxvk_context_device(c, &info);
    assert_int_equal(info.storage_buffers_per_stage, 8);
    assert_false(c->device->snapshot.features12.shaderFloat16);
    close_context(c);
    setenv("RLXVK_LIMITS", "nonesuch", 1);
    expect_error(rlxvk_device_list(NULL, 0, &count), RLXVK_E_ATTR, "RLXVK_LIMITS");
    expect_error(rlxvk_device_find(NULL, &info), RLXVK_E_ATTR, "vulkan-1.2");
    expect_error(rlxvk_context_create(NULL, &c), RLXVK_E_ATTR, "all-off");
    assert_null(c);
    setenv("RLXVK_LIMITS", "off", 1);
    expect_ok(rlxvk_device_find(NULL, &info));
    assert_true(info.storage_buffers_per_stage > 8);
    unsetenv("RLXVK_LIMITS");
}

/* Vulkan 1.2 guarantees four storage buffers. The kernel of dense_solve has six, so that node runs
 * on the host, and others stay on the device. */
static void too_many_buffers_go_to_the_host(void **state)
{
    static const float a[] = {2, 1, 1, 3}, b[] = {-1, 7};
    float x[2] = {0};
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    rlxvk_plan_report report = {.struct_size = sizeof report};
    const rlxvk_compile_options forbidding = {.forbid_host = RLXVK_ON};
    (void)state;
    setenv("RLXVK_LIMITS", "vulkan-1.2", 1);
    rlxvk_context *c = open_context(NULL);
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor y = rlxvk_dense_solve(g, rlxvk_input(g, "a", RLXVK_F32, RLXVK_SHAPE(2, 2)),
                                       rlxvk_input(g, "b", RLXVK_F32, RLXVK_SHAPE(2, 1)));
    rlxvk_graph_output(g, rlxvk_relu(g, y));
    expect_error(rlxvk_compile(c, g, &forbidding, &e), RLXVK_E_UNSUPPORTED, "storage buffers");
    assert_null(e);
    expect_ok(rlxvk_compile(c, g, NULL, &e));
    rlxvk_executable_plan(e, &report);
    assert_int_equal(report.host_steps, 1);
    assert_true(report.dispatches >= 1);
    rlxvk_run_input in[] = {{"a", a, 4, .f32_words = true}, {"b", b, 2, .f32_words = true}};
    rlxvk_run_output out = {.index = 0, .buffer = x, .length = 2, .f32_words = true};
    expect_ok(rlxvk_run(e, in, 2, &out, 1));
    assert_true(x[0] == 0); /* relu(-2) */
    assert_true(x[1] == 3);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    close_context(c);
    unsetenv("RLXVK_LIMITS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiles_have_the_figures_of_their_sources),
        cmocka_unit_test(features_go),
        cmocka_unit_test(registers_are_another_drivers),
        cmocka_unit_test(nothing_is_raised),
        cmocka_unit_test(unknown_names_are_refused),
        cmocka_unit_test(every_call_sees_the_smaller_device),
        cmocka_unit_test(too_many_buffers_go_to_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
