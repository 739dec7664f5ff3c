/* Whether a module keeps to the device. Beyond its limits and without its features Vulkan is
 * undefined, so such a module must not reach the driver. */
#include "kernel/words.h"
#include "spirv/spirv.h"
#include "vk/internal.h"

#include <stdio.h>

/* Newer than some headers. */
enum {
    BFLOAT16_TYPE = 5116,
    BFLOAT16_MATRIX = 5118,
    PACKED_BYTE_PRODUCT_INPUT = 6018,
    BYTE_PRODUCT = 6019
};

static bool has_operations(const device_snapshot *s, VkSubgroupFeatureFlags operations)
{
    return s->subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT &&
           s->subgroup.supportedOperations & operations;
}

/* The name of an optional capability that the module declares and the device lacks, or NULL. */
static const char *missing_capability(const device_snapshot *s, const uint32_t *words,
                                      uint32_t count)
{
    const VkPhysicalDeviceFloatControlsProperties *floats = &s->float_controls;
    const struct {
        uint32_t capability;
        const char *name;
        bool offered;
    } rows[] = {
        {SpvCapabilityStorageBuffer16BitAccess, "16-bit storage",
         s->features11.storageBuffer16BitAccess},
        {SpvCapabilityStorageBuffer8BitAccess, "8-bit storage",
         s->features12.storageBuffer8BitAccess},
        {SpvCapabilityFloat16, "float16", s->features12.shaderFloat16},
        {SpvCapabilityInt8, "int8", s->features12.shaderInt8},
        {SpvCapabilityInt16, "int16", s->features.shaderInt16},
        {SpvCapabilityInt64, "int64", s->features.shaderInt64},
        {SpvCapabilityFloat64, "float64", s->features.shaderFloat64},
        {SpvCapabilityVulkanMemoryModel, "the Vulkan memory model",
         s->features12.vulkanMemoryModel},
        {SpvCapabilityVulkanMemoryModelDeviceScope, "the Vulkan memory model of device scope",
         s->features12.vulkanMemoryModelDeviceScope},
        {SpvCapabilityGroupNonUniform, "subgroup operations",
         has_operations(s, VK_SUBGROUP_FEATURE_BASIC_BIT)},
        {SpvCapabilityGroupNonUniformVote, "subgroup votes",
         has_operations(s, VK_SUBGROUP_FEATURE_VOTE_BIT)},
        {SpvCapabilityGroupNonUniformArithmetic, "subgroup arithmetic",
         has_operations(s, VK_SUBGROUP_FEATURE_ARITHMETIC_BIT)},
        {SpvCapabilityGroupNonUniformBallot, "subgroup ballots",
         has_operations(s, VK_SUBGROUP_FEATURE_BALLOT_BIT)},
        {SpvCapabilityGroupNonUniformShuffle, "subgroup shuffles",
         has_operations(s, VK_SUBGROUP_FEATURE_SHUFFLE_BIT)},
        {SpvCapabilityGroupNonUniformShuffleRelative, "relative subgroup shuffles",
         has_operations(s, VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT)},
        {SpvCapabilitySignedZeroInfNanPreserve, "control of special floats",
         floats->shaderSignedZeroInfNanPreserveFloat32 ||
             floats->shaderSignedZeroInfNanPreserveFloat16},
        {SpvCapabilityRoundingModeRTE, "control of rounding",
         floats->shaderRoundingModeRTEFloat32 || floats->shaderRoundingModeRTEFloat16},
        {SpvCapabilityDenormPreserve, "control of denormals",
         floats->shaderDenormPreserveFloat32 || floats->shaderDenormPreserveFloat16},
        {BFLOAT16_TYPE, "bfloat16", s->bfloat16_matrix},
        {BFLOAT16_MATRIX, "bfloat16 matrices", s->bfloat16_matrix},
        {PACKED_BYTE_PRODUCT_INPUT, "products of packed bytes", s->integer_dot},
        {BYTE_PRODUCT, "products of packed bytes", s->integer_dot},
        {SPIRV_COOPERATIVE_MATRIX, "cooperative matrices", s->cooperative_matrix},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        if (!rows[i].offered && spirv_declares(words, count, rows[i].capability))
            return rows[i].name;
    return NULL;
}

VkResult module_check(const device *d, const uint32_t *words, uint32_t count, module_lack *out)
{
    uint32_t limit = d->snapshot.properties.limits.maxComputeSharedMemorySize;
    uint64_t shared = 0;
    const char *missing = missing_capability(&d->snapshot, words, count);
    if (!spirv_shared_bytes(words, count, &shared))
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    if (missing)
        snprintf(out->text, sizeof out->text, "it needs %s, which this device lacks", missing);
    else if (shared > limit)
        snprintf(out->text, sizeof out->text, "%llu bytes of shared memory; this device has %u",
                 (unsigned long long)shared, limit);
    else
        return VK_SUCCESS;
    return VK_ERROR_FEATURE_NOT_PRESENT;
}
