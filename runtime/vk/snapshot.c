/*
 * Queries everything about a physical device that profile.c needs. Invariant: structures of Vulkan
 * 1.2 are queried only from devices of 1.2 or newer. For an older device, the snapshot has
 * properties, memory and queues, and zeros elsewhere.
 */
#include "base/system.h"
#include "vk/internal.h"

#include <stdio.h>
#include <string.h>

bool snapshot_has_extension(const VkExtensionProperties *list, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(list[i].extensionName, name))
            return true;
    return false;
}

/* Extensions that are needed only for their properties. */
typedef struct offers {
    bool pci, maintenance4, sm_builtins, core_properties, core_registers, core_builtins;
} offers;

/* Notes which extensions are offered. take_newer_features then checks whether their features are,
 * too. */
static rlxvk_status take_extensions(device *d, VkPhysicalDevice physical, device_snapshot *out,
                                    offers *offered)
{
    rlxvk_status status;
    VkExtensionProperties *list = NULL;
    uint32_t count = 0;
    VK(d, EnumerateDeviceExtensionProperties(physical, NULL, &count, NULL));
    list = memory_zeroed(count, sizeof(*list));
    if (!list) {
        status = status_fail_memory("list of device extensions");
        goto error;
    }
    VK(d, EnumerateDeviceExtensionProperties(physical, NULL, &count, list));
    out->cooperative_matrix =
        snapshot_has_extension(list, count, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
    out->bfloat16_matrix =
        snapshot_has_extension(list, count, VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME);
    out->integer_dot =
        snapshot_has_extension(list, count, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
    out->checkpoints =
        snapshot_has_extension(list, count, VK_NV_DEVICE_DIAGNOSTIC_CHECKPOINTS_EXTENSION_NAME);
    out->buffer_marker = snapshot_has_extension(list, count, VK_AMD_BUFFER_MARKER_EXTENSION_NAME);
    out->fault = snapshot_has_extension(list, count, VK_EXT_DEVICE_FAULT_EXTENSION_NAME);
    out->memory_budget = snapshot_has_extension(list, count, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    out->pipeline_statistics =
        snapshot_has_extension(list, count, VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
    out->portability_subset = snapshot_has_extension(list, count, PORTABILITY_SUBSET_EXTENSION);
    offered->pci = snapshot_has_extension(list, count, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME);
    offered->maintenance4 =
        out->properties.apiVersion >= VK_API_VERSION_1_3 ||
        snapshot_has_extension(list, count, VK_KHR_MAINTENANCE_4_EXTENSION_NAME);
    offered->sm_builtins =
        snapshot_has_extension(list, count, VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME);
    offered->core_properties =
        snapshot_has_extension(list, count, VK_AMD_SHADER_CORE_PROPERTIES_2_EXTENSION_NAME);
    offered->core_registers =
        snapshot_has_extension(list, count, VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME);
    offered->core_builtins =
        snapshot_has_extension(list, count, VK_ARM_SHADER_CORE_BUILTINS_EXTENSION_NAME);
error:
    memory_free(list);
    return status;
}

/* Adds a structure to the front of the query's chain. */
static void ask(VkPhysicalDeviceProperties2 *all, void *structure)
{
    VkBaseOutStructure *s = structure;
    s->pNext = all->pNext;
    all->pNext = s;
}

/* Queries all structures with one call. The chain is built for it and cut afterwards. */
static void take_properties(device *d, VkPhysicalDevice physical, const offers *offered,
                            device_snapshot *out)
{
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    VkPhysicalDevicePCIBusInfoPropertiesEXT pci = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT};
    VkPhysicalDeviceMaintenance4Properties sizes = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES};
    VkPhysicalDeviceShaderSMBuiltinsPropertiesNV multiprocessors = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV};
    VkPhysicalDeviceShaderCoreProperties2AMD units = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_2_AMD};
    VkPhysicalDeviceShaderCorePropertiesAMD registers = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD};
    VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM cores = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_BUILTINS_PROPERTIES_ARM};
    out->driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
    out->id.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
    out->subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
    out->maintenance3.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
    out->float_controls.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES;
    ask(&all, &out->driver);
    ask(&all, &out->id);
    ask(&all, &out->subgroup);
    ask(&all, &out->maintenance3);
    ask(&all, &out->float_controls);
    if (offered->pci)
        ask(&all, &pci);
    if (offered->maintenance4)
        ask(&all, &sizes);
    if (offered->sm_builtins)
        ask(&all, &multiprocessors);
    if (offered->core_properties)
        ask(&all, &units);
    if (offered->core_registers)
        ask(&all, &registers);
    if (offered->core_builtins)
        ask(&all, &cores);
    d->fn.GetPhysicalDeviceProperties2(physical, &all);
    if (offered->pci)
        snprintf(out->pci, sizeof out->pci, "%04x:%02x:%02x.%x", pci.pciDomain, pci.pciBus,
                 pci.pciDevice, pci.pciFunction);
    out->lacks_display = system_lacks_display(out->pci);
    out->max_buffer_size = sizes.maxBufferSize;
    out->compute_units = MAX(multiprocessors.shaderSMCount,
                             MAX(units.activeComputeUnitCount, cores.shaderCoreCount));
    out->unit_registers =
        registers.vgprsPerSimd * registers.simdPerComputeUnit * registers.wavefrontSize;
    out->thread_registers = registers.maxVgprAllocation;
    /* A snapshot is copied, so it must not point into its former place. */
    out->driver.pNext = out->id.pNext = out->subgroup.pNext = NULL;
    out->maintenance3.pNext = out->float_controls.pNext = NULL;
}

static void take_features(device *d, VkPhysicalDevice physical, device_snapshot *out)
{
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
    VkPhysicalDeviceFaultFeaturesEXT fault = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FAULT_FEATURES_EXT,
        .pNext = out->pipeline_statistics ? &executables : NULL};
    out->features11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    out->features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    out->features11.pNext = &out->features12;
    out->features12.pNext = out->fault ? &fault : fault.pNext;
    VkPhysicalDeviceFeatures2 all = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
        .pNext = &out->features11,
    };
    d->fn.GetPhysicalDeviceFeatures2(physical, &all);
    out->features = all.features;
    out->fault = out->fault && fault.deviceFault;
    out->pipeline_statistics = out->pipeline_statistics && executables.pipelineExecutableInfo;
    out->features11.pNext = out->features12.pNext = NULL;
}

/* Features and sizes of the extensions and of Vulkan 1.3. Only offered ones are queried. */
static void take_newer_features(device *d, VkPhysicalDevice physical, device_snapshot *out)
{
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR};
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,
        .pNext = out->bfloat16_matrix ? &bfloat16 : NULL};
    VkPhysicalDeviceSubgroupSizeControlFeatures control = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
        .pNext = out->cooperative_matrix ? &matrix : NULL};
    VkPhysicalDeviceShaderIntegerDotProductFeatures dot = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES,
        .pNext = &control};
    VkPhysicalDeviceShaderIntegerDotProductProperties quick = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES};
    VkPhysicalDeviceSubgroupSizeControlProperties sizes = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES,
        .pNext = out->integer_dot ? &quick : NULL};
    VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                          .pNext =
                                              out->integer_dot ? (void *)&dot : (void *)&control};
    VkPhysicalDeviceProperties2 properties = {.sType =
                                                  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                              .pNext = &sizes};
    d->fn.GetPhysicalDeviceFeatures2(physical, &features);
    d->fn.GetPhysicalDeviceProperties2(physical, &properties);
    out->cooperative_matrix = out->cooperative_matrix && matrix.cooperativeMatrix;
    out->bfloat16_matrix = out->cooperative_matrix && out->bfloat16_matrix &&
                           bfloat16.shaderBFloat16Type && bfloat16.shaderBFloat16CooperativeMatrix;
    out->integer_dot = out->integer_dot && dot.shaderIntegerDotProduct;
    out->integer_dot_accelerated = quick.integerDotProduct4x8BitPackedUnsignedAccelerated &&
                                   quick.integerDotProduct4x8BitPackedSignedAccelerated &&
                                   quick.integerDotProduct4x8BitPackedMixedSignednessAccelerated;
    out->least_subgroup_size = sizes.minSubgroupSize;
    out->most_subgroup_size = sizes.maxSubgroupSize;
    out->most_workgroup_subgroups = sizes.maxComputeWorkgroupSubgroups;
    out->subgroup_size_control = control.subgroupSizeControl &&
                                 sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT;
}

/* Keeps a listed product with this operand type if it is larger than *best. */
static void take_matrix_shape(const VkCooperativeMatrixPropertiesKHR *p, int32_t type,
                              matrix_shape *best)
{
    if (p->AType == type && p->BType == type && p->CType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
        p->ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR && p->scope == VK_SCOPE_SUBGROUP_KHR &&
        p->MSize * p->NSize * p->KSize > best->m * best->n * best->k)
        *best = (matrix_shape){p->MSize, p->NSize, p->KSize};
}

/* If a device offers the extension but lists no usable shape, all shapes stay at m = 0. */
static rlxvk_status take_matrix_shapes(device *d, VkPhysicalDevice physical, device_snapshot *out)
{
    rlxvk_status status = RLXVK_OK;
    VkCooperativeMatrixPropertiesKHR *list = NULL;
    uint32_t count = 0;
    if (!out->cooperative_matrix || !d->fn.GetPhysicalDeviceCooperativeMatrixPropertiesKHR)
        return status;
    VK(d, GetPhysicalDeviceCooperativeMatrixPropertiesKHR(physical, &count, NULL));
    list = memory_zeroed(count, sizeof *list);
    if (!list) {
        status = status_fail_memory("list of matrix shapes");
        goto error;
    }
    for (uint32_t i = 0; i < count; i++)
        list[i].sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
    VK(d, GetPhysicalDeviceCooperativeMatrixPropertiesKHR(physical, &count, list));
    for (uint32_t i = 0; i < count; i++) {
        take_matrix_shape(&list[i], VK_COMPONENT_TYPE_FLOAT16_KHR, &out->matrix_f16);
        take_matrix_shape(&list[i], VK_COMPONENT_TYPE_FLOAT32_KHR, &out->matrix_f32);
        if (out->bfloat16_matrix)
            take_matrix_shape(&list[i], VK_COMPONENT_TYPE_BFLOAT16_KHR, &out->matrix_bf16);
    }
error:
    memory_free(list);
    return status;
}

/* More is queried from devices of Vulkan 1.3, because its core has the control of subgroup sizes
 * that kernels with matrix units and shuffles need. */
static rlxvk_status snapshot_take(device *d, VkPhysicalDevice physical, device_snapshot *out)
{
    rlxvk_status status;
    offers offered = {0};
    memset(out, 0, sizeof(*out));
    d->fn.GetPhysicalDeviceProperties(physical, &out->properties);
    d->fn.GetPhysicalDeviceMemoryProperties(physical, &out->memory);
    /* If there are more families than fit, the call writes the first ones. */
    out->queue_family_count = ARRAY_COUNT(out->queue_families);
    d->fn.GetPhysicalDeviceQueueFamilyProperties(physical, &out->queue_family_count,
                                                 out->queue_families);
    TRY(take_extensions(d, physical, out, &offered));
    if (out->properties.apiVersion >= VK_API_VERSION_1_2) {
        take_properties(d, physical, &offered, out);
        take_features(d, physical, out);
    }
    if (out->properties.apiVersion >= VK_API_VERSION_1_3) {
        take_newer_features(d, physical, out);
        TRY(take_matrix_shapes(d, physical, out));
    } else {
        out->cooperative_matrix = out->bfloat16_matrix = false;
    }
error:
    return status;
}

/* If devices appear between the two calls, the second writes only as many as fit. Some loaders fail
 * if one of several drivers does. */
static rlxvk_status physical_list(device *d, VkPhysicalDevice **out, uint32_t *out_count)
{
    rlxvk_status status;
    uint32_t count = 0;
    VK(d, EnumeratePhysicalDevices(d->instance, &count, NULL));
    *out = memory_zeroed(count, sizeof(**out));
    if (!*out)
        return status_fail_memory("list of devices");
    if (count) {
        VkResult result = VK_RESULT(d, EnumeratePhysicalDevices(d->instance, &count, *out));
        if (result != VK_INCOMPLETE)
            TRY(vk_check(d, result, "EnumeratePhysicalDevices"));
    }
    *out_count = count;
    return RLXVK_OK;
error:
    if (status != RLXVK_E_OUT_OF_HOST_MEMORY)
        return status_fail(status,
                           "%s; a driver fails, which VK_LOADER_DRIVERS_DISABLE or "
                           "VK_DRIVER_FILES can leave out",
                           rlxvk_last_error());
    return status;
}

/* Takes the snapshot of a device. If a driver's call fails, that is noted in the snapshot, because
 * the other devices may be good. */
static rlxvk_status snapshot_try(device *d, VkPhysicalDevice physical, device_snapshot *out)
{
    rlxvk_status status = snapshot_take(d, physical, out);
    if (status == RLXVK_OK || status == RLXVK_E_OUT_OF_HOST_MEMORY)
        return status;
    out->failure = status;
    snprintf(out->failure_text, sizeof out->failure_text, "%s", rlxvk_last_error());
    return RLXVK_OK;
}

/* If there is no instance (no driver), there are no devices; that is not an error here. */
rlxvk_status snapshot_take_all(device *d, VkPhysicalDevice **out_physical,
                               device_snapshot **out_snapshots, uint32_t *out_count)
{
    rlxvk_status status = RLXVK_OK;
    VkPhysicalDevice *physical = NULL;
    device_snapshot *snapshots = NULL;
    uint32_t count = 0;
    if (d->instance)
        TRY(physical_list(d, &physical, &count));
    snapshots = memory_zeroed(count, sizeof(*snapshots));
    if (!snapshots) {
        status = status_fail_memory("device snapshots");
        goto error;
    }
    for (uint32_t i = 0; i < count; i++)
        TRY(snapshot_try(d, physical[i], &snapshots[i]));
    *out_physical = physical;
    *out_snapshots = snapshots;
    *out_count = count;
    return RLXVK_OK;
error:
    memory_free(physical);
    memory_free(snapshots);
    return status;
}
