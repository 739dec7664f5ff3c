/*
 * The table of named profiles, and how one lowers a snapshot. A row has only figures that its
 * source states; all others stay the device's own. Subgroup sizes stay, too, because a kernel runs
 * in the device's subgroups.
 */
#include "vk/limits.h"

#include <string.h>

#define KIB 1024u
#define MIB (1024u * KIB)
#define GIB ((uint64_t)1024 * MIB)

/* What a profile takes away. */
enum lack {
    LACKS_STORAGE_16 = 1 << 0,
    LACKS_STORAGE_8 = 1 << 1,
    LACKS_FLOAT16 = 1 << 2,
    LACKS_INT8 = 1 << 3,
    LACKS_INT16 = 1 << 4,
    LACKS_INT64 = 1 << 5,
    LACKS_MEMORY_MODEL = 1 << 6,
    LACKS_MATRICES = 1 << 7,
    LACKS_BFLOAT16 = 1 << 8,
    LACKS_BYTE_PRODUCTS = 1 << 9,
    LACKS_QUICK_BYTE_PRODUCTS = 1 << 10,
    LACKS_SUBGROUP_SIZES = 1 << 11, /* control of the size, and knowledge of the possible ones */
    LACKS_SPECIAL_FLOATS = 1 << 12, /* signed zeros, infinities and NaN by request */
    LACKS_FLOAT_MODES = 1 << 13,    /* rounding and denormals by request */
    LACKS_TIMESTAMPS = 1 << 14,
    LACKS_OPTIONAL_FEATURES = 1 << 15 /* all features that Vulkan 1.2 does not require */
};

#define LACKS_MATRIX_UNITS (LACKS_MATRICES | LACKS_BFLOAT16)
#define LACKS_ALL          0xffffu
/* What came with Vulkan 1.3 or later. */
#define LACKS_NEWER                                                                                \
    (LACKS_MATRIX_UNITS | LACKS_BYTE_PRODUCTS | LACKS_QUICK_BYTE_PRODUCTS | LACKS_SUBGROUP_SIZES)

/* 0: as the device has it. */
struct device_limits {
    const char *name;
    uint32_t version; /* of Vulkan */
    uint32_t invocations, size[3], groups[3], shared_bytes;
    uint32_t stage_buffers, set_buffers, binding_bytes, push_bytes;
    uint32_t offset_alignment, atom_bytes, allocations;
    uint64_t allocation_bytes, buffer_bytes;
    unsigned lacks;
    VkSubgroupFeatureFlags subgroup_operations; /* those that stay */
    VkDriverId registers_as;                    /* the driver whose registers count (profile.c) */
};

/* Vulkan 1.2 specification, chapter "Limits", table "Required Limits". */
#define VULKAN_1_2_LIMITS                                                                          \
    .version = VK_API_VERSION_1_2, .invocations = 128, .size = {128, 128, 64},                     \
    .groups = {65535, 65535, 65535}, .shared_bytes = 16 * KIB, .stage_buffers = 4,                 \
    .set_buffers = 24, .binding_bytes = 128 * MIB, .push_bytes = 128, .offset_alignment = 256,     \
    .atom_bytes = 256, .allocations = 4096, .allocation_bytes = GIB,                               \
    .subgroup_operations = VK_SUBGROUP_FEATURE_BASIC_BIT

static const device_limits rows[] = {
    /* The least that a device of Vulkan 1.2 has. Its optional features stay, except those of
     * subgroups. */
    {.name = "vulkan-1.2", VULKAN_1_2_LIMITS, .lacks = LACKS_NEWER},
    /* Khronos profile VP_KHR_roadmap_2022 (Vulkan-Profiles, profiles/VP_KHR_roadmap.json). Where it
     * says nothing: Vulkan 1.3, whose required limits for compute are those of 1.2. */
    {.name = "roadmap-2022",
     .version = VK_API_VERSION_1_3,
     .invocations = 256,
     .size = {256, 256, 64},
     .groups = {65535, 65535, 65535},
     .shared_bytes = 16 * KIB,
     .stage_buffers = 30,
     .set_buffers = 96,
     .binding_bytes = 128 * MIB,
     .push_bytes = 128,
     .offset_alignment = 256,
     .atom_bytes = 256,
     .allocations = 4096,
     .allocation_bytes = GIB,
     .buffer_bytes = GIB,
     .lacks = LACKS_STORAGE_16 | LACKS_STORAGE_8 | LACKS_FLOAT16 | LACKS_INT8 | LACKS_INT16 |
              LACKS_INT64 | LACKS_MATRIX_UNITS | LACKS_QUICK_BYTE_PRODUCTS | LACKS_FLOAT_MODES |
              LACKS_TIMESTAMPS,
     .subgroup_operations = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_VOTE_BIT |
                            VK_SUBGROUP_FEATURE_ARITHMETIC_BIT | VK_SUBGROUP_FEATURE_BALLOT_BIT |
                            VK_SUBGROUP_FEATURE_SHUFFLE_BIT |
                            VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT |
                            VK_SUBGROUP_FEATURE_QUAD_BIT},
    /* What Qualcomm's driver for Android reports of Adreno 640 and 650 (vulkan.gpuinfo.org). */
    {.name = "adreno-6xx",
     .invocations = 1024,
     .size = {1024, 1024, 64},
     .groups = {65535, 65535, 65535},
     .shared_bytes = 32 * KIB,
     .stage_buffers = 24,
     .binding_bytes = 128 * MIB,
     .push_bytes = 128,
     .offset_alignment = 64,
     .lacks = LACKS_MATRIX_UNITS,
     .registers_as = VK_DRIVER_ID_QUALCOMM_PROPRIETARY},
    /* Mesa's PanVK (panvk_vX_physical_device.c) and its kernel driver: G77 and G78 have 512 threads
     * in a workgroup. Valhall's modes for denormals are not independent of each other. Arm's driver
     * has 128 bytes of push constants. */
    {.name = "mali-valhall",
     .invocations = 512,
     .size = {512, 512, 512},
     .groups = {65535, 65535, 65535},
     .shared_bytes = 32 * KIB,
     .push_bytes = 128,
     .offset_alignment = 64,
     .buffer_bytes = GIB,
     .lacks = LACKS_MATRIX_UNITS | LACKS_FLOAT_MODES},
    /* Mesa's ANV for Gen9 (range, descriptors) and Intel's driver for Windows (shared memory). */
    {.name = "intel-gen9",
     .invocations = 1024,
     .size = {1024, 1024, 1024},
     .groups = {65535, 65535, 65535},
     .shared_bytes = 32 * KIB,
     .stage_buffers = 64,
     .binding_bytes = 1024 * MIB,
     .push_bytes = 128,
     .offset_alignment = 16,
     .lacks = LACKS_MATRIX_UNITS | LACKS_QUICK_BYTE_PRODUCTS},
    /* MoltenVK's MVKDevice.mm without argument buffers, for GPUs of Apple's own: 31 buffers a
     * stage, of which one holds the push constants. Metal has no modes for rounding and denormals.
     * Products of packed bytes are not accelerated (MoltenVK's issue 2591). */
    {.name = "apple-moltenvk",
     .invocations = 1024,
     .size = {1024, 1024, 1024},
     .shared_bytes = 32 * KIB,
     .stage_buffers = 30,
     .push_bytes = 4096,
     .offset_alignment = 16,
     .lacks = LACKS_MATRIX_UNITS | LACKS_FLOAT_MODES | LACKS_QUICK_BYTE_PRODUCTS},
    /* What Mesa's Honeykrisp reports of Apple's M1. Its registers decide choices. */
    {.name = "apple-honeykrisp",
     .invocations = 1024,
     .size = {1024, 1024, 1024},
     .shared_bytes = 32 * KIB,
     .push_bytes = 256,
     .lacks = LACKS_MATRIX_UNITS,
     .registers_as = DRIVER_ID_MESA_HONEYKRISP},
    /* V3D 7.1, the GPU of the Raspberry Pi 5: Mesa's V3DV (v3dv_device.c, v3d_limits.h,
     * v3dv_limits.h). */
    {.name = "v3d",
     .invocations = 256,
     .size = {256, 256, 256},
     .groups = {65535, 65535, 65535},
     .shared_bytes = 16 * KIB,
     .stage_buffers = 8,
     .binding_bytes = 1024 * MIB,
     .push_bytes = 128,
     .offset_alignment = 32,
     .atom_bytes = 256,
     .allocation_bytes = GIB,
     .buffer_bytes = GIB,
     .lacks = LACKS_FLOAT16 | LACKS_INT8 | LACKS_INT16 | LACKS_INT64 | LACKS_MATRIX_UNITS |
              LACKS_QUICK_BYTE_PRODUCTS,
     .subgroup_operations = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_VOTE_BIT |
                            VK_SUBGROUP_FEATURE_BALLOT_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT |
                            VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT |
                            VK_SUBGROUP_FEATURE_QUAD_BIT},
    /* vulkan-1.2 without optional features. */
    {.name = "all-off", VULKAN_1_2_LIMITS, .lacks = LACKS_ALL},
};

const char *limits_name(size_t index)
{
    return index < ARRAY_COUNT(rows) ? rows[index].name : NULL;
}

rlxvk_status limits_find(const char *name, const char *what, const device_limits **out)
{
    char names[256] = "";
    text t = {.buffer = names, .size = sizeof names};
    *out = NULL;
    if (!*name)
        return RLXVK_OK;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (text_ascii_equal(name, rows[i].name, SIZE_MAX)) {
            *out = &rows[i];
            return RLXVK_OK;
        }
        text_append(&t, "%s%s", i ? ", " : "", rows[i].name);
    }
    return status_fail(RLXVK_E_ATTR, "%s: no limits have the name '%.100s'; it takes %s", what,
                       name, names);
}

/* ---- Lowering a snapshot ---- */

static void lower(uint32_t *value, uint32_t limit)
{
    if (limit)
        *value = MIN(*value, limit);
}

/* Of the device, 0 means that it reports no limit. */
static void lower_bytes(uint64_t *value, uint64_t limit)
{
    if (limit && (!*value || *value > limit))
        *value = limit;
}

static void lower_limits(const device_limits *l, device_snapshot *s)
{
    VkPhysicalDeviceLimits *limits = &s->properties.limits;
    lower(&s->properties.apiVersion, l->version);
    lower(&limits->maxComputeWorkGroupInvocations, l->invocations);
    for (int i = 0; i < 3; i++) {
        lower(&limits->maxComputeWorkGroupSize[i], l->size[i]);
        lower(&limits->maxComputeWorkGroupCount[i], l->groups[i]);
    }
    lower(&limits->maxComputeSharedMemorySize, l->shared_bytes);
    lower(&limits->maxPerStageDescriptorStorageBuffers, l->stage_buffers);
    lower(&limits->maxDescriptorSetStorageBuffers, l->set_buffers);
    lower(&limits->maxStorageBufferRange, l->binding_bytes);
    lower(&limits->maxPushConstantsSize, l->push_bytes);
    lower(&limits->maxMemoryAllocationCount, l->allocations);
    limits->minStorageBufferOffsetAlignment =
        MAX(limits->minStorageBufferOffsetAlignment, l->offset_alignment);
    limits->nonCoherentAtomSize = MAX(limits->nonCoherentAtomSize, l->atom_bytes);
    lower_bytes(&s->maintenance3.maxMemoryAllocationSize, l->allocation_bytes);
    lower_bytes(&s->max_buffer_size, l->buffer_bytes);
}

static void take(unsigned lacks, unsigned lack, VkBool32 *feature)
{
    if (lacks & lack)
        *feature = VK_FALSE;
}

static void take_features(unsigned lacks, device_snapshot *s)
{
    VkPhysicalDeviceFloatControlsProperties *floats = &s->float_controls;
    if (lacks & LACKS_OPTIONAL_FEATURES) {
        s->features = (VkPhysicalDeviceFeatures){0};
        s->features11 = (VkPhysicalDeviceVulkan11Features){.sType = s->features11.sType};
        s->features12 = (VkPhysicalDeviceVulkan12Features){.sType = s->features12.sType,
                                                           .timelineSemaphore =
                                                               s->features12.timelineSemaphore};
    }
    take(lacks, LACKS_STORAGE_16, &s->features11.storageBuffer16BitAccess);
    take(lacks, LACKS_STORAGE_8, &s->features12.storageBuffer8BitAccess);
    take(lacks, LACKS_FLOAT16, &s->features12.shaderFloat16);
    take(lacks, LACKS_INT8, &s->features12.shaderInt8);
    take(lacks, LACKS_INT16, &s->features.shaderInt16);
    take(lacks, LACKS_INT64, &s->features.shaderInt64);
    take(lacks, LACKS_MEMORY_MODEL, &s->features12.vulkanMemoryModel);
    take(lacks, LACKS_MEMORY_MODEL, &s->features12.vulkanMemoryModelDeviceScope);
    take(lacks, LACKS_SPECIAL_FLOATS, &floats->shaderSignedZeroInfNanPreserveFloat16);
    take(lacks, LACKS_SPECIAL_FLOATS, &floats->shaderSignedZeroInfNanPreserveFloat32);
    take(lacks, LACKS_FLOAT_MODES, &floats->shaderDenormPreserveFloat16);
    take(lacks, LACKS_FLOAT_MODES, &floats->shaderDenormPreserveFloat32);
    take(lacks, LACKS_FLOAT_MODES, &floats->shaderRoundingModeRTEFloat16);
    take(lacks, LACKS_FLOAT_MODES, &floats->shaderRoundingModeRTEFloat32);
}

static void take_extensions(unsigned lacks, device_snapshot *s)
{
    if (lacks & LACKS_MATRICES) {
        s->cooperative_matrix = false;
        s->matrix_f16 = s->matrix_f32 = (matrix_shape){0};
    }
    if (lacks & LACKS_BFLOAT16) {
        s->bfloat16_matrix = false;
        s->matrix_bf16 = (matrix_shape){0};
    }
    if (lacks & LACKS_BYTE_PRODUCTS)
        s->integer_dot = false;
    if (lacks & (LACKS_BYTE_PRODUCTS | LACKS_QUICK_BYTE_PRODUCTS))
        s->integer_dot_accelerated = false;
    if (lacks & LACKS_SUBGROUP_SIZES) {
        s->subgroup_size_control = false;
        s->least_subgroup_size = s->most_subgroup_size = s->most_workgroup_subgroups = 0;
    }
    if (lacks & LACKS_TIMESTAMPS)
        for (uint32_t i = 0; i < ARRAY_COUNT(s->queue_families); i++)
            s->queue_families[i].timestampValidBits = 0;
}

void limits_apply(const device_limits *limits, device_snapshot *snapshot)
{
    if (!limits)
        return;
    lower_limits(limits, snapshot);
    take_features(limits->lacks, snapshot);
    take_extensions(limits->lacks, snapshot);
    if (limits->subgroup_operations)
        snapshot->subgroup.supportedOperations &= limits->subgroup_operations;
    if (limits->registers_as)
        snapshot->registers_as = limits->registers_as;
}
