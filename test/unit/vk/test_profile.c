/*
 * How a device's profile is chosen, tested with snapshots of real devices, and with one that has
 * only the minimum of Vulkan 1.2. No device is needed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "vk/internal.h"

#include <stdio.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

#define LOCAL    VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
#define VISIBLE  VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT
#define COHERENT VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
#define CACHED   VK_MEMORY_PROPERTY_HOST_CACHED_BIT

/* ---- Snapshots ---- */

static void add_heap(device_snapshot *s, uint64_t size, bool local)
{
    s->memory.memoryHeaps[s->memory.memoryHeapCount++] =
        (VkMemoryHeap){size, local ? VK_MEMORY_HEAP_DEVICE_LOCAL_BIT : 0};
}

static void add_type(device_snapshot *s, VkMemoryPropertyFlags flags, uint32_t heap)
{
    s->memory.memoryTypes[s->memory.memoryTypeCount++] = (VkMemoryType){flags, heap};
}

static void add_family(device_snapshot *s, VkQueueFlags flags, uint32_t timestamp_bits)
{
    s->queue_families[s->queue_family_count++] =
        (VkQueueFamilyProperties){.queueFlags = flags,
                                  .queueCount = 1,
                                  .timestampValidBits = timestamp_bits};
}

/* The limits that every Vulkan 1.2 implementation must have, and nothing more. */
static device_snapshot guaranteed_minimum(void)
{
    device_snapshot s = {0};
    VkPhysicalDeviceLimits *limits = &s.properties.limits;
    strcpy(s.properties.deviceName, "Minimal");
    s.properties.apiVersion = VK_API_VERSION_1_2;
    s.properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_OTHER;
    limits->maxStorageBufferRange = 1u << 27;
    limits->maxPushConstantsSize = 128;
    limits->maxPerStageDescriptorStorageBuffers = 4;
    limits->maxDescriptorSetStorageBuffers = 24;
    limits->maxComputeSharedMemorySize = 16384;
    limits->maxComputeWorkGroupInvocations = 128;
    for (int i = 0; i < 3; i++)
        limits->maxComputeWorkGroupCount[i] = 65535;
    limits->maxComputeWorkGroupSize[0] = limits->maxComputeWorkGroupSize[1] = 128;
    limits->maxComputeWorkGroupSize[2] = 64;
    limits->minStorageBufferOffsetAlignment = 256;
    limits->nonCoherentAtomSize = 256;
    s.maintenance3.maxMemoryAllocationSize = GIB;
    s.subgroup.subgroupSize = 1;
    s.features12.timelineSemaphore = VK_TRUE;
    add_heap(&s, 2 * GIB, true);
    add_type(&s, LOCAL, 0);
    add_type(&s, VISIBLE | COHERENT, 0);
    add_family(&s, VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT, 0);
    return s;
}

static device_snapshot discrete_base(void)
{
    device_snapshot s = guaranteed_minimum();
    VkPhysicalDeviceLimits *limits = &s.properties.limits;
    s.memory = (VkPhysicalDeviceMemoryProperties){0};
    s.queue_family_count = 0;
    s.properties.apiVersion = VK_MAKE_API_VERSION(0, 1, 4, 312);
    s.properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    s.driver.driverID = VK_DRIVER_ID_NVIDIA_PROPRIETARY;
    strcpy(s.driver.driverName, "NVIDIA");
    strcpy(s.driver.driverInfo, "580.159");
    limits->maxStorageBufferRange = UINT32_MAX;
    limits->maxPushConstantsSize = 256;
    limits->maxPerStageDescriptorStorageBuffers = 1048576;
    limits->maxDescriptorSetStorageBuffers = 1048576;
    limits->maxComputeSharedMemorySize = 49152;
    limits->maxComputeWorkGroupInvocations = 1024;
    limits->maxComputeWorkGroupSize[0] = 1024;
    limits->maxComputeWorkGroupCount[0] = 0x7fffffff;
    limits->minStorageBufferOffsetAlignment = 16;
    limits->timestampPeriod = 1.0f;
    s.maintenance3.maxMemoryAllocationSize = 4292870144;
    s.max_buffer_size = 1ull << 40;
    s.subgroup.subgroupSize = 32;
    s.subgroup.supportedOperations = VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
    s.subgroup.supportedStages = VK_SHADER_STAGE_COMPUTE_BIT;
    s.features11.storageBuffer16BitAccess = VK_TRUE;
    s.features12.shaderFloat16 = VK_TRUE;
    s.features12.vulkanMemoryModel = VK_TRUE;
    s.cooperative_matrix = s.bfloat16_matrix = true;
    s.matrix_f16 = s.matrix_bf16 = s.matrix_f32 = (matrix_shape){16, 16, 16};
    s.least_subgroup_size = s.most_subgroup_size = 32;
    add_family(&s, VK_QUEUE_TRANSFER_BIT, 64);
    add_family(&s, VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT, 64);
    add_family(&s, VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT, 64);
    return s;
}

/* NVIDIA H200: all of its memory can be mapped. */
static device_snapshot discrete_with_bar(void)
{
    device_snapshot s = discrete_base();
    strcpy(s.properties.deviceName, "NVIDIA H200");
    s.id.deviceUUID[0] = 0xab;
    s.id.deviceUUID[15] = 0x01;
    add_heap(&s, 140 * GIB, true);
    add_heap(&s, 128 * GIB, false);
    add_type(&s, 0, 1);
    add_type(&s, LOCAL, 0);
    add_type(&s, VISIBLE | COHERENT, 1);
    add_type(&s, VISIBLE | COHERENT | CACHED, 1);
    add_type(&s, LOCAL | VISIBLE | COHERENT, 0);
    return s;
}

/* Only 256 MiB can be mapped. AMD also lists memory types for debuggers, which must not be used. */
static device_snapshot discrete_without_bar(void)
{
    device_snapshot s = discrete_base();
    strcpy(s.properties.deviceName, "AMD Radeon RX 580 Series");
    s.driver.driverID = VK_DRIVER_ID_MESA_RADV;
    add_heap(&s, 8 * GIB, true);
    add_heap(&s, 16 * GIB, false);
    add_heap(&s, 256 * MIB, true);
    add_type(&s, LOCAL, 0);
    add_type(&s, VISIBLE | COHERENT, 1);
    add_type(&s, LOCAL | VISIBLE | COHERENT, 2);
    add_type(&s, VISIBLE | COHERENT | CACHED, 1);
    add_type(&s, LOCAL | VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD, 0);
    add_type(&s, VISIBLE | COHERENT | CACHED | VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD, 1);
    return s;
}

static device_snapshot integrated_intel(void)
{
    device_snapshot s = discrete_base();
    strcpy(s.properties.deviceName, "Intel(R) UHD Graphics 620");
    s.properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    s.driver.driverID = VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA;
    add_heap(&s, 12 * GIB, true);
    add_type(&s, LOCAL, 0);
    add_type(&s, LOCAL | VISIBLE | COHERENT, 0);
    add_type(&s, LOCAL | VISIBLE | COHERENT | CACHED, 0);
    return s;
}

/* Cached memory exists but is not coherent, so it must be flushed. */
static device_snapshot integrated_mali(void)
{
    device_snapshot s = integrated_intel();
    strcpy(s.properties.deviceName, "Mali-G610");
    s.driver.driverID = VK_DRIVER_ID_ARM_PROPRIETARY;
    s.memory = (VkPhysicalDeviceMemoryProperties){0};
    s.properties.limits.maxComputeWorkGroupInvocations = 512;
    add_heap(&s, 8 * GIB, true);
    add_type(&s, LOCAL | VISIBLE | COHERENT, 0);
    add_type(&s, LOCAL | VISIBLE | CACHED, 0);
    add_type(&s, LOCAL | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT, 0);
    add_type(&s, VK_MEMORY_PROPERTY_PROTECTED_BIT | LOCAL, 0);
    return s;
}

static device_snapshot software(void)
{
    device_snapshot s = discrete_base();
    strcpy(s.properties.deviceName, "llvmpipe (LLVM 15.0.6, 256 bits)");
    s.properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_CPU;
    s.driver.driverID = VK_DRIVER_ID_MESA_LLVMPIPE;
    s.subgroup.subgroupSize = 8;
    s.properties.limits.maxStorageBufferRange = 128 * MIB;
    s.maintenance3.maxMemoryAllocationSize = 2 * GIB;
    s.max_buffer_size = 0;
    add_heap(&s, 2 * GIB, true);
    add_type(&s, LOCAL | VISIBLE | COHERENT | CACHED, 0);
    return s;
}

static device_setup choose(device_snapshot s, const rlxvk_context_options *options)
{
    device_setup choice;
    profile_choose(&s, options, &choice);
    return choice;
}

/* ---- Policy ---- */

static void resizable_bar_is_written_in_place(void **state)
{
    (void)state;
    device_setup c = choose(discrete_with_bar(), NULL);
    assert_true(c.usable);
    assert_string_equal(c.reason, "");
    assert_int_equal(c.queue_family, 1);
    assert_int_equal(c.arena_type, 4);
    assert_true(c.arena_mapped && c.arena_coherent && !c.arena_cached);
    assert_int_equal(c.upload_type, 2);
    assert_int_equal(c.readback_type, 3);
    assert_true(c.readback_coherent && c.timestamps);
    assert_int_equal(c.profile.kind, RLXVK_DEVICE_DISCRETE);
    assert_int_equal(c.profile.workgroup_size, 256);
    assert_int_equal(c.profile.slot_alignment, 256);
    assert_int_equal(c.profile.max_allocation_bytes, 4292870144);
    assert_int_equal(c.profile.max_binding_bytes, 4292870144);
    assert_false(c.profile.portable);
}

static void small_window_is_left_alone(void **state)
{
    (void)state;
    device_setup c = choose(discrete_without_bar(), NULL);
    assert_true(c.usable);
    assert_int_equal(c.arena_type, 0);
    assert_false(c.arena_mapped || c.arena_cached);
    assert_int_equal(c.upload_type, 1);
    assert_int_equal(c.readback_type, 3);
}

static void integrated_reads_and_writes_in_place(void **state)
{
    (void)state;
    device_setup c = choose(integrated_intel(), NULL);
    assert_true(c.usable);
    assert_int_equal(c.arena_type, 2);
    assert_true(c.arena_mapped && c.arena_cached && c.arena_coherent);
    assert_int_equal(c.profile.kind, RLXVK_DEVICE_INTEGRATED);
    assert_true(c.profile.compute_units < choose(discrete_with_bar(), NULL).profile.compute_units);
    device_snapshot told = integrated_intel();
    told.compute_units = 10;
    assert_int_equal(choose(told, NULL).profile.compute_units, 10);
    c = choose(integrated_mali(), NULL);
    assert_int_equal(c.arena_type, 1);
    assert_true(c.arena_mapped && c.arena_cached && !c.arena_coherent);
    assert_int_equal(c.upload_type, 0);
    assert_int_equal(c.readback_type, 1);
    assert_false(c.readback_coherent);
}

static uint32_t registers_at(device_snapshot s, uint32_t threads)
{
    device_setup c = choose(s, NULL);
    return profile_registers(&c.profile, threads);
}

/* As the device tells, else as the compiler's source does. NVIDIA's own driver is not bounded. */
static void registers(void **state)
{
    (void)state;
    device_snapshot s = discrete_with_bar();
    s.driver.driverID = VK_DRIVER_ID_NVIDIA_PROPRIETARY;
    assert_int_equal(registers_at(s, 1024), UINT32_MAX);
    s.driver.driverID = VK_DRIVER_ID_MESA_NVK;
    assert_int_equal(registers_at(s, 1024), 64);
    assert_int_equal(registers_at(s, 64), 255);
    s.driver.driverID = VK_DRIVER_ID_MESA_RADV;
    s.unit_registers = 98304;
    s.thread_registers = 256;
    assert_int_equal(registers_at(s, 1024), 96);
    assert_false(choose(s, NULL).profile.loads_early);
    s.driver.driverID = VK_DRIVER_ID_MESA_TURNIP;
    assert_int_equal(registers_at(s, 512), 96);
    assert_true(choose(s, NULL).profile.loads_early);
}

static void software_is_portable(void **state)
{
    (void)state;
    device_setup c = choose(software(), NULL);
    assert_true(c.usable && c.profile.portable && c.arena_mapped && c.arena_cached);
    assert_int_equal(c.profile.kind, RLXVK_DEVICE_CPU);
    assert_int_equal(c.profile.workgroup_size, 64);
    assert_int_equal(c.profile.max_binding_bytes, 128 * MIB);
    assert_int_equal(c.profile.max_allocation_bytes, 2 * GIB);
    device_snapshot translated = integrated_intel();
    translated.portability_subset = true;
    assert_true(choose(translated, NULL).profile.portable);
}

/* MoltenVK has fast math for all kernels up to version 1.3. Since 1.4 it is off where signed zeros
 * are preserved. */
static void float_operations_keep_their_order(void **state)
{
    (void)state;
    device_snapshot s = integrated_intel();
    s.float_controls.shaderSignedZeroInfNanPreserveFloat32 = VK_TRUE;
    s.properties.driverVersion = 10400;
    assert_true(choose(s, NULL).exact_floats);
    s.driver.driverID = VK_DRIVER_ID_MOLTENVK;
    assert_false(choose(s, NULL).exact_floats);
    s.properties.driverVersion = 10303;
    assert_true(choose(s, NULL).exact_floats);
    s.properties.driverVersion = 10400;
    s.float_controls.shaderSignedZeroInfNanPreserveFloat32 = VK_FALSE;
    assert_true(choose(s, NULL).exact_floats);
}

/* A driver with fewer buffers than kernels need is refused; this must not make one of them. */
static void push_constants_take_a_buffer_of_metal(void **state)
{
    (void)state;
    device_snapshot metal = integrated_intel();
    metal.properties.limits.maxPerStageDescriptorStorageBuffers = 31;
    assert_int_equal(choose(metal, NULL).profile.storage_buffers_per_stage, 31);
    metal.driver.driverID = VK_DRIVER_ID_MOLTENVK;
    assert_int_equal(choose(metal, NULL).profile.storage_buffers_per_stage, 30);
    metal.properties.limits.maxPerStageDescriptorStorageBuffers = 4;
    assert_int_equal(choose(metal, NULL).profile.storage_buffers_per_stage, 4);
}

static void minimum_is_usable(void **state)
{
    (void)state;
    device_setup c = choose(guaranteed_minimum(), NULL);
    assert_true(c.usable);
    assert_false(c.arena_mapped || c.timestamps);
    assert_int_equal(c.profile.workgroup_size, 128);
    assert_int_equal(c.profile.max_workgroup_invocations, 128);
    assert_int_equal(c.profile.storage_buffers_per_stage, 4);
    assert_int_equal(c.profile.push_constant_bytes, 128);
    assert_int_equal(c.profile.max_allocation_bytes, GIB);
    assert_int_equal(c.profile.max_binding_bytes, 128 * MIB);
    assert_int_equal(c.profile.subgroup_size, 1);
}

/* Device types of future versions of Vulkan count as "other". */
static void unknown_types_are_others(void **state)
{
    (void)state;
    for (unsigned type = VK_PHYSICAL_DEVICE_TYPE_CPU + 1; type < 12; type++) {
        device_snapshot s = guaranteed_minimum();
        s.properties.deviceType = (VkPhysicalDeviceType)type;
        assert_int_equal(choose(s, NULL).profile.kind, RLXVK_DEVICE_OTHER);
    }
}

static void missing_values_are_survived(void **state)
{
    (void)state;
    device_snapshot s = guaranteed_minimum();
    s.maintenance3.maxMemoryAllocationSize = 0;
    s.subgroup.subgroupSize = 0;
    s.properties.limits.minStorageBufferOffsetAlignment = 0;
    device_setup c = choose(s, NULL);
    assert_int_equal(c.profile.max_allocation_bytes, GIB);
    assert_int_equal(c.profile.subgroup_size, 1);
    assert_int_equal(c.profile.slot_alignment, 256);
    s.maintenance3.maxMemoryAllocationSize = UINT64_MAX; /* never above the heap */
    assert_int_equal(choose(s, NULL).profile.max_allocation_bytes, 2 * GIB);
    s.max_buffer_size = 512 * MIB;
    assert_int_equal(choose(s, NULL).profile.max_allocation_bytes, 512 * MIB);
}

static void unusable(device_snapshot s, const char *reason)
{
    device_setup c = choose(s, NULL);
    rlxvk_device_info info;
    assert_false(c.usable);
    if (!strstr(c.reason, reason))
        print_error("reason '%s' lacks '%s'\n", c.reason, reason);
    assert_non_null(strstr(c.reason, reason));
    profile_describe(&s, &c, &info);
    assert_false(info.usable);
    assert_string_equal(info.reason, c.reason);
}

static void below_the_baseline(void **state)
{
    (void)state;
    device_snapshot s = {0};
    strcpy(s.properties.deviceName, "Old");
    s.properties.apiVersion = VK_MAKE_API_VERSION(0, 1, 1, 120);
    unusable(s, "Vulkan 1.1.120");
    s = guaranteed_minimum();
    s.features12.timelineSemaphore = VK_FALSE;
    unusable(s, "timeline");
    s = guaranteed_minimum();
    s.queue_families[0].queueFlags = VK_QUEUE_TRANSFER_BIT;
    unusable(s, "queue");
    s = guaranteed_minimum();
    s.properties.limits.maxPerStageDescriptorStorageBuffers = 3;
    unusable(s, "maxPerStageDescriptorStorageBuffers is 3");
    s = guaranteed_minimum();
    s.memory.memoryTypes[0].propertyFlags = 0;
    unusable(s, "device-local");
    s = guaranteed_minimum();
    s.memory.memoryTypes[1].propertyFlags = 0;
    unusable(s, "host-visible");
}

static void options_shrink_limits(void **state)
{
    (void)state;
    rlxvk_context_options o = {
        .limit_allocation_bytes = 64 * MIB,
        .limit_binding_bytes = 16 * MIB,
        .limit_workgroup_invocations = 100,
        .limit_group_count = 1000,
        .direct_upload = RLXVK_OFF,
    };
    device_setup c = choose(discrete_with_bar(), &o);
    assert_true(c.usable);
    assert_int_equal(c.profile.max_allocation_bytes, 64 * MIB);
    assert_int_equal(c.profile.max_binding_bytes, 16 * MIB);
    assert_int_equal(c.profile.max_workgroup_invocations, 100);
    assert_int_equal(c.profile.workgroup_size, 64);
    for (int i = 0; i < 3; i++)
        assert_int_equal(c.profile.max_group_count[i], 1000);
    assert_int_equal(c.arena_type, 1);
    assert_false(c.arena_mapped);
    o.limit_binding_bytes = UINT64_MAX; /* no option raises a limit */
    assert_int_equal(choose(discrete_with_bar(), &o).profile.max_binding_bytes, 64 * MIB);
    c = choose(software(), &o);
    assert_int_equal(c.arena_type, 0);
    assert_false(c.arena_mapped || c.arena_cached);
}

/* The float controls must be known for f16 independently of f32. Only then is it known how
 * unpackHalf2x16 treats denormals, and how f32 values are rounded to f16. */
static void subnormal_halves(void **state)
{
    (void)state;
    device_snapshot s = discrete_base();
    s.float_controls.denormBehaviorIndependence = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL;
    s.float_controls.shaderDenormPreserveFloat16 = VK_FALSE;
    assert_false(choose(s, NULL).profile.half_subnormals);
    s.float_controls.shaderDenormPreserveFloat16 = VK_TRUE;
    assert_true(choose(s, NULL).profile.half_subnormals);
    s.float_controls.roundingModeIndependence = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL;
    s.float_controls.shaderRoundingModeRTEFloat16 = VK_FALSE;
    assert_false(choose(s, NULL).profile.half_rounding);
    s.float_controls.shaderRoundingModeRTEFloat16 = VK_TRUE;
    assert_true(choose(s, NULL).profile.half_rounding);
    s.float_controls.roundingModeIndependence = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_32_BIT_ONLY;
    assert_false(choose(s, NULL).profile.half_rounding);
    s.float_controls.denormBehaviorIndependence = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_32_BIT_ONLY;
    assert_false(choose(s, NULL).profile.half_subnormals);
}

/* Kernels with shuffles need a known subgroup size: either there is only one size, or a kernel can
 * ask for one. */
static void shuffles(void **state)
{
    (void)state;
    device_snapshot s = discrete_base();
    assert_false(choose(s, NULL).profile.subgroup_shuffle);
    s.subgroup.supportedOperations |= VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
    s.least_subgroup_size = s.most_subgroup_size = 0;
    assert_false(choose(s, NULL).profile.subgroup_shuffle);
    s.least_subgroup_size = 16, s.most_subgroup_size = 32;
    assert_false(choose(s, NULL).profile.subgroup_shuffle);
    s.subgroup_size_control = true;
    assert_true(choose(s, NULL).profile.subgroup_shuffle);
    assert_int_equal(choose(s, NULL).profile.max_shuffle_invocations,
                     choose(s, NULL).profile.max_workgroup_invocations);
    s.most_workgroup_subgroups = 2;
    assert_int_equal(choose(s, NULL).profile.max_shuffle_invocations, 2 * s.subgroup.subgroupSize);
    s.subgroup_size_control = false, s.least_subgroup_size = 32;
    assert_true(choose(s, NULL).profile.subgroup_shuffle);
    assert_false(choose(s, NULL).profile.subgroup_ballot);
    s.subgroup.supportedOperations |= VK_SUBGROUP_FEATURE_BALLOT_BIT;
    assert_true(choose(s, NULL).profile.subgroup_ballot);
    s.subgroup.supportedStages = VK_SHADER_STAGE_FRAGMENT_BIT;
    assert_false(choose(s, NULL).profile.subgroup_shuffle);
    assert_false(choose(s, NULL).profile.subgroup_ballot);
}

/* Products of packed bytes count as fast only if they are accelerated for every pair of signs. */
static void byte_products(void **state)
{
    (void)state;
    device_snapshot s = discrete_base();
    assert_false(choose(s, NULL).profile.byte_products);
    s.integer_dot_accelerated = true;
    assert_false(choose(s, NULL).profile.quick_byte_products);
    s.integer_dot = true;
    assert_true(choose(s, NULL).profile.byte_products);
    assert_true(choose(s, NULL).profile.quick_byte_products);
    s.integer_dot_accelerated = false;
    assert_true(choose(s, NULL).profile.byte_products);
    assert_false(choose(s, NULL).profile.quick_byte_products);
}

static void description(void **state)
{
    (void)state;
    device_snapshot s = discrete_with_bar();
    device_setup c = choose(s, NULL);
    rlxvk_device_info info;
    profile_describe(&s, &c, &info);
    assert_string_equal(info.name, "NVIDIA H200");
    assert_string_equal(info.driver, "NVIDIA 580.159");
    assert_string_equal(info.uuid, "ab000000000000000000000000000001");
    assert_true(info.usable && info.direct_upload && info.storage_16bit && info.shader_float16);
    assert_true(info.subgroup_arithmetic && info.cooperative_matrix && info.timestamps);
    assert_false(info.storage_8bit || info.cached_readback);
    assert_int_equal(info.device_memory_bytes, 140 * GIB);
    assert_int_equal(info.max_group_count[0], 0x7fffffff);
}

/* Matrix units need the Vulkan memory model and a known subgroup size. For f16 they also need
 * shaderFloat16. */
static void matrix_units(void **state)
{
    (void)state;
    device_snapshot s = discrete_with_bar();
    assert_int_equal(choose(s, NULL).profile.matrix_f16.k, 16);
    assert_int_equal(choose(s, NULL).profile.matrix_bf16.m, 16);
    assert_int_equal(choose(s, NULL).profile.matrix_f32.n, 16);
    s.least_subgroup_size = 16;
    assert_int_equal(choose(s, NULL).profile.matrix_f16.m, 0);
    s.subgroup_size_control = true;
    assert_int_equal(choose(s, NULL).profile.matrix_f16.m, 16);
    s.features12.shaderFloat16 = VK_FALSE;
    assert_int_equal(choose(s, NULL).profile.matrix_f16.m, 0);
    assert_int_equal(choose(s, NULL).profile.matrix_bf16.m, 16);
    assert_int_equal(choose(s, NULL).profile.matrix_f32.m, 16);
    s.features12.vulkanMemoryModel = VK_FALSE;
    assert_int_equal(choose(s, NULL).profile.matrix_f32.m, 0);
    assert_int_equal(choose(s, NULL).profile.matrix_bf16.m, 0);
}

/* ---- Selection ---- */

enum { SOFTWARE, OLD, INTEGRATED, WITHOUT_BAR, WITH_BAR, DEVICE_COUNT };

static rlxvk_status select_device(const char *wanted, uint32_t *out)
{
    device_snapshot s[DEVICE_COUNT] = {
        [SOFTWARE] = software(),           [OLD] = discrete_base(),
        [INTEGRATED] = integrated_intel(), [WITHOUT_BAR] = discrete_without_bar(),
        [WITH_BAR] = discrete_with_bar(),
    };
    device_setup c[DEVICE_COUNT];
    strcpy(s[OLD].properties.deviceName, "Old Discrete");
    s[OLD].properties.apiVersion = VK_API_VERSION_1_1;
    for (int i = 0; i < DEVICE_COUNT; i++)
        c[i] = choose(s[i], NULL);
    return vk_find_device(s, c, DEVICE_COUNT, wanted, out);
}

static void selected(const char *wanted, uint32_t expected)
{
    uint32_t index = 99;
    assert_int_equal(select_device(wanted, &index), RLXVK_OK);
    assert_int_equal(index, expected);
}

static void not_selected(const char *wanted)
{
    uint32_t index;
    assert_int_equal(select_device(wanted, &index), RLXVK_E_NO_DEVICE);
    assert_non_null(strstr(rlxvk_last_error(), wanted));
    assert_non_null(strstr(rlxvk_last_error(), "4 'NVIDIA H200'"));
    assert_non_null(strstr(rlxvk_last_error(), "Vulkan 1.1"));
}

static void selection(void **state)
{
    (void)state;
    selected(NULL, WITHOUT_BAR);
    selected("", WITHOUT_BAR);
    selected("0", SOFTWARE);
    selected("LLVMpipe", SOFTWARE);
    selected("620", INTEGRATED);
    selected("h200", WITH_BAR);
    selected("ab000000-0000-0000-0000-000000000001", WITH_BAR);
    selected("AB000000000000000000000000000001", WITH_BAR);
    not_selected("1");
    not_selected("old");
    not_selected("7");
    not_selected("nonesuch");
    not_selected("ab000000000000000000000000000001ff");
}

/* Two devices have one name, a third begins with it, and the driver of a fourth fails. */
static rlxvk_status select_twin(const char *wanted, uint32_t *out)
{
    enum { FIRST, SECOND, LONGER, BROKEN, TWINS };
    static const char *const addresses[] = {"0000:65:00.0", "0000:b3:00.0", "", "0001:65:00.1"};
    device_snapshot s[TWINS];
    device_setup c[TWINS];
    for (int i = 0; i < TWINS; i++) {
        s[i] = discrete_with_bar();
        s[i].id.deviceUUID[0] = (uint8_t)(0xa0 + i);
        strcpy(s[i].pci, addresses[i]);
    }
    strcat(s[LONGER].properties.deviceName, " NVL");
    s[BROKEN].failure = RLXVK_E_VULKAN;
    strcpy(s[BROKEN].failure_text, "vkSomeCall: VK_ERROR_UNKNOWN");
    for (int i = 0; i < TWINS; i++)
        c[i] = choose(s[i], NULL);
    assert_false(c[BROKEN].usable);
    return vk_find_device(s, c, TWINS, wanted, out);
}

static void devices_of_one_name(void **state)
{
    static const struct {
        const char *wanted;
        uint32_t index;
    } rows[] = {{"0", 0},
                {"1", 1},
                {"", 0},
                {"a1000000-0000-0000-0000-000000000001", 1},
                {"0000:B3:00.0", 1},
                {"65:00.0", 0},
                {"nvidia h200 nvl", 2},
                {"nvl", 2}};
    uint32_t index;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        assert_int_equal(select_twin(rows[i].wanted, &index), RLXVK_OK);
        assert_int_equal(index, rows[i].index);
    }
    assert_int_equal(select_twin("Nvidia H200", &index), RLXVK_E_NO_DEVICE);
    assert_string_equal(rlxvk_last_error(),
                        "'Nvidia H200' names 2 devices: "
                        "0 'NVIDIA H200' (UUID a0000000000000000000000000000001, PCI "
                        "0000:65:00.0), 1 'NVIDIA H200' (UUID a1000000000000000000000000000001, "
                        "PCI 0000:b3:00.0); give an index, a UUID or a PCI address of one");
    assert_int_equal(select_twin("h200", &index), RLXVK_E_NO_DEVICE);
    assert_non_null(strstr(rlxvk_last_error(), "'h200' names 3 devices: "));
    assert_non_null(strstr(rlxvk_last_error(), "2 'NVIDIA H200 NVL' (UUID a20"));
    static const char *const refused[] = {"3", "0001:65:00.1", "65:00.1", "65:00", "0:65:00.0"};
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++) {
        assert_int_equal(select_twin(refused[i], &index), RLXVK_E_NO_DEVICE);
        assert_non_null(strstr(rlxvk_last_error(),
                               "3 'NVIDIA H200' (not usable: vkSomeCall: VK_ERROR_UNKNOWN)"));
    }
}

/* If the only driver fails, its status is not hidden. */
static void selection_of_a_broken_device(void **state)
{
    uint32_t index;
    device_snapshot s = discrete_with_bar();
    (void)state;
    s.failure = RLXVK_E_VULKAN;
    strcpy(s.failure_text, "vkSomeCall: VK_ERROR_UNKNOWN");
    device_setup c = choose(s, NULL);
    assert_int_equal(vk_find_device(&s, &c, 1, NULL, &index), RLXVK_E_VULKAN);
    assert_non_null(strstr(rlxvk_last_error(), "not usable: vkSomeCall: VK_ERROR_UNKNOWN"));
}

static void selection_of_none(void **state)
{
    (void)state;
    uint32_t index;
    assert_int_equal(vk_find_device(NULL, NULL, 0, NULL, &index), RLXVK_E_NO_DEVICE);
    assert_non_null(strstr(rlxvk_last_error(), "driver"));
}

/* Submissions are bounded by default on GPUs that may drive a display. */
static void displays(void **state)
{
    device_snapshot s = discrete_with_bar();
    (void)state;
    assert_true(choose(s, NULL).may_display);
    assert_true(choose(integrated_mali(), NULL).may_display);
    assert_false(choose(software(), NULL).may_display);
    assert_false(choose(guaranteed_minimum(), NULL).may_display);
    s.lacks_display = true;
    assert_false(choose(s, NULL).may_display);
    s.lacks_display = false;
    for (uint32_t i = 0; i < s.queue_family_count; i++)
        s.queue_families[i].queueFlags &= ~(VkQueueFlags)VK_QUEUE_GRAPHICS_BIT;
    assert_false(choose(s, NULL).may_display);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resizable_bar_is_written_in_place),
        cmocka_unit_test(small_window_is_left_alone),
        cmocka_unit_test(integrated_reads_and_writes_in_place),
        cmocka_unit_test(registers),
        cmocka_unit_test(software_is_portable),
        cmocka_unit_test(float_operations_keep_their_order),
        cmocka_unit_test(push_constants_take_a_buffer_of_metal),
        cmocka_unit_test(minimum_is_usable),
        cmocka_unit_test(unknown_types_are_others),
        cmocka_unit_test(missing_values_are_survived),
        cmocka_unit_test(below_the_baseline),
        cmocka_unit_test(options_shrink_limits),
        cmocka_unit_test(subnormal_halves),
        cmocka_unit_test(shuffles),
        cmocka_unit_test(byte_products),
        cmocka_unit_test(description),
        cmocka_unit_test(matrix_units),
        cmocka_unit_test(selection),
        cmocka_unit_test(devices_of_one_name),
        cmocka_unit_test(selection_of_a_broken_device),
        cmocka_unit_test(selection_of_none),
        cmocka_unit_test(displays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
