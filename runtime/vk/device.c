/*
 * Opens and closes a device. Invariant: a device begins as zeros, and every step sets only its own
 * members. So device_close undoes any prefix of device_open, also on a lost device.
 */
#include "base/system.h"
#include "vk/internal.h"
#include "vk/limits.h"

#include <stdio.h>
#include <string.h>

/* All physical devices, with their setups under these options. */
typedef struct survey {
    VkPhysicalDevice *physical;
    device_snapshot *snapshots;
    device_setup *setups;
    uint32_t count;
} survey;

static void survey_destroy(survey *s)
{
    memory_free(s->physical);
    memory_free(s->snapshots);
    memory_free(s->setups);
}

/* Snapshots are lowered here, before anything else sees them. */
static rlxvk_status survey_take(device *d, const rlxvk_context_options *options,
                                const switches *environment, survey *out)
{
    rlxvk_status status;
    const device_limits *limits;
    TRY(limits_find(environment->limits, "RLXVK_LIMITS", &limits));
    TRY(snapshot_take_all(d, &out->physical, &out->snapshots, &out->count));
    if (!(out->setups = memory_zeroed(out->count, sizeof *out->setups)))
        TRY(status_fail_memory("device setups"));
    for (uint32_t i = 0; i < out->count; i++) {
        limits_apply(limits, &out->snapshots[i]);
        profile_choose(&out->snapshots[i], options, &out->setups[i]);
        out->setups[i].index = i;
    }
error:
    return status;
}

/* Structures to which the create info points. They must live as long as it. */
typedef struct device_parts {
    const char *extensions[12];
    VkPhysicalDeviceFaultFeaturesEXT fault;
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables;
    VkPhysicalDeviceShaderIntegerDotProductFeatures integer_dot;
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16;
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix;
    VkPhysicalDeviceSubgroupSizeControlFeatures control;
    VkPhysicalDeviceVulkan12Features features12;
    VkPhysicalDeviceVulkan11Features features11;
    VkPhysicalDeviceFeatures2 features;
    VkDeviceCreateInfo info;
} device_parts;

/* Adds a feature structure to the front of the chain, and its extension (NULL: core). */
static void add_features(device_parts *p, void *features, VkStructureType type,
                         const char *extension)
{
    VkBaseOutStructure *base = features;
    base->sType = type;
    base->pNext = (VkBaseOutStructure *)p->info.pNext;
    p->info.pNext = features;
    if (extension)
        p->extensions[p->info.enabledExtensionCount++] = extension;
}

/* Optional features are enabled if offered, because kernels that need one are chosen by the same
 * snapshot. Robust buffer access stays off, because the plan proves all ranges and it costs
 * time. */
static void add_core_features(const device_snapshot *s, device_parts *p)
{
    const VkPhysicalDeviceVulkan12Features *offered = &s->features12;
    p->features12 = (VkPhysicalDeviceVulkan12Features){
        .timelineSemaphore = VK_TRUE,
        .storageBuffer8BitAccess = offered->storageBuffer8BitAccess,
        .shaderFloat16 = offered->shaderFloat16,
        .shaderInt8 = offered->shaderInt8,
        .vulkanMemoryModel = offered->vulkanMemoryModel,
        .vulkanMemoryModelDeviceScope = offered->vulkanMemoryModelDeviceScope,
    };
    p->features11 = (VkPhysicalDeviceVulkan11Features){.storageBuffer16BitAccess =
                                                           s->features11.storageBuffer16BitAccess};
    p->features = (VkPhysicalDeviceFeatures2){.features = {.shaderInt16 = s->features.shaderInt16}};
    add_features(p, &p->features12, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, NULL);
    add_features(p, &p->features11, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, NULL);
    add_features(p, &p->features, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, NULL);
}

/* A structure may be chained only if its extension is enabled, or if the requested version has it
 * in its core. */
static void add_newer_features(const device_snapshot *s, device_parts *p)
{
    p->fault.deviceFault = VK_TRUE;
    p->control.subgroupSizeControl = VK_TRUE;
    p->matrix.cooperativeMatrix = VK_TRUE;
    p->integer_dot.shaderIntegerDotProduct = VK_TRUE;
    p->bfloat16.shaderBFloat16Type = p->bfloat16.shaderBFloat16CooperativeMatrix = VK_TRUE;
    if (s->fault)
        add_features(p, &p->fault, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FAULT_FEATURES_EXT,
                     VK_EXT_DEVICE_FAULT_EXTENSION_NAME);
    if (s->subgroup_size_control)
        add_features(p, &p->control,
                     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES, NULL);
    if (s->integer_dot)
        add_features(p, &p->integer_dot,
                     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES,
                     VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
    if (s->cooperative_matrix)
        add_features(p, &p->matrix,
                     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,
                     VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
    if (s->bfloat16_matrix)
        add_features(p, &p->bfloat16,
                     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR,
                     VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME);
}

static void add_statistics(device_parts *p)
{
    p->executables.pipelineExecutableInfo = VK_TRUE;
    add_features(p, &p->executables,
                 VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR,
                 VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
}

/* Uses one queue, because dispatches of a run mostly wait for each other. Executables take turns on
 * it under queue_lock. If the portability subset is offered, Vulkan requires it to be enabled. */
static rlxvk_status handle_create(device *d)
{
    rlxvk_status status;
    static const float priority = 1.0f;
    VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueFamilyIndex = d->setup.queue_family,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    device_parts p = {.info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .queueCreateInfoCount = 1,
                               .pQueueCreateInfos = &queue,
                               .ppEnabledExtensionNames = p.extensions}};
    if (d->snapshot.checkpoints)
        p.extensions[p.info.enabledExtensionCount++] =
            VK_NV_DEVICE_DIAGNOSTIC_CHECKPOINTS_EXTENSION_NAME;
    if (d->snapshot.buffer_marker)
        p.extensions[p.info.enabledExtensionCount++] = VK_AMD_BUFFER_MARKER_EXTENSION_NAME;
    if (d->snapshot.memory_budget)
        p.extensions[p.info.enabledExtensionCount++] = VK_EXT_MEMORY_BUDGET_EXTENSION_NAME;
    if (d->snapshot.portability_subset)
        p.extensions[p.info.enabledExtensionCount++] = PORTABILITY_SUBSET_EXTENSION;
    add_core_features(&d->snapshot, &p);
    add_newer_features(&d->snapshot, &p);
    if (d->statistics)
        add_statistics(&p);
    VK(d, CreateDevice(d->physical, &p.info, NULL, &d->handle));
    return RLXVK_OK;
error:
    d->handle = VK_NULL_HANDLE; /* whatever the driver has written */
    return status;
}

/* The device in the context's options wins over `otherwise`, the name in the environment. */
static rlxvk_status device_pick(device *d, const rlxvk_context_options *options,
                                const char *otherwise, const survey *s)
{
    rlxvk_status status;
    uint32_t index = 0;
    if (options->device)
        TRY(vk_match_device(s->snapshots, s->setups, s->count, options->device, &index));
    else
        TRY(vk_find_device(s->snapshots, s->setups, s->count, otherwise, &index));
    d->physical = s->physical[index];
    d->snapshot = s->snapshots[index];
    d->setup = s->setups[index];
error:
    return status;
}

/* If a device without the extension is asked for statistics, it is not opened. */
static rlxvk_status require_statistics(const device *d)
{
    if (!d->statistics || d->snapshot.pipeline_statistics)
        return RLXVK_OK;
    return status_fail(RLXVK_E_UNSUPPORTED,
                       "the driver tells no statistics of pipelines: it lacks %s",
                       VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
}

/* What explains a lost device is switched on, because drivers may keep more state for it. */
static void device_mind_loss(device *d, const switches *environment)
{
    bool wanted = environment->check & CHECK_LOSS;
    d->snapshot.fault = d->snapshot.fault && wanted;
    d->snapshot.checkpoints = d->snapshot.checkpoints && wanted;
    d->snapshot.buffer_marker = d->snapshot.buffer_marker && wanted;
}

/* Takes a device that cannot be created out of the choice. */
static void device_refuse(device *d, survey *s, rlxvk_status failure)
{
    device_setup *setup = &s->setups[d->setup.index];
    setup->usable = false;
    setup->failure = failure;
    snprintf(setup->reason, sizeof setup->reason, "%s", rlxvk_last_error());
    log_line(&d->log, RLXVK_LOG_WARNING, "rlxvk: device %u '%s' is left out: %s", setup->index,
             d->snapshot.properties.deviceName, setup->reason);
}

/* If no device is named and the best one's driver cannot create it, the next one is tried. But a
 * device without memory is no broken one, and another would surprise. */
static rlxvk_status device_create(device *d, const rlxvk_context_options *options,
                                  const switches *environment)
{
    survey s = {0};
    bool named = options->device || *environment->device, chosen = false;
    rlxvk_status status;
    TRY(survey_take(d, options, environment, &s));
    while (!chosen) {
        TRY(device_pick(d, options, environment->device, &s));
        TRY(require_statistics(d));
        device_mind_loss(d, environment);
        status = handle_create(d);
        chosen = status == RLXVK_OK || status == RLXVK_E_OUT_OF_HOST_MEMORY ||
                 status == RLXVK_E_OUT_OF_DEVICE_MEMORY || named;
        if (!chosen) {
            device_refuse(d, &s, status);
            d->physical = VK_NULL_HANDLE;
        }
    }
error:
    survey_destroy(&s);
    return status;
}

/* Makes one layout for each number of storage buffers that a stage may have. All kernels with that
 * number share it, so sets and push constants need no layout per pipeline. */
static rlxvk_status layouts_create(device *d)
{
    rlxvk_status status = RLXVK_OK;
    uint32_t most = MIN(d->setup.profile.storage_buffers_per_stage, KERNEL_MAX_BINDINGS);
    VkDescriptorSetLayoutBinding bindings[KERNEL_MAX_BINDINGS];
    for (uint32_t i = 0; i < most; i++)
        bindings[i] = (VkDescriptorSetLayoutBinding){
            .binding = i,
            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .descriptorCount = 1,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        };
    VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, KERNEL_MAX_ARGUMENT_BYTES};
    for (uint32_t count = 0; count <= most; count++) {
        VkDescriptorSetLayoutCreateInfo set = {
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
            .bindingCount = count,
            .pBindings = bindings,
        };
        VkPipelineLayoutCreateInfo layout = {
            .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
            .setLayoutCount = 1,
            .pSetLayouts = &d->set_layouts[count],
            .pushConstantRangeCount = 1,
            .pPushConstantRanges = &push,
        };
        VK(d, CreateDescriptorSetLayout(d->handle, &set, NULL, &d->set_layouts[count]));
        VK(d, CreatePipelineLayout(d->handle, &layout, NULL, &d->pipeline_layouts[count]));
    }
error:
    return status;
}

static rlxvk_status device_fill(device *d, const rlxvk_context_options *options,
                                const switches *environment)
{
    rlxvk_status status;
    if (!system_lock_create(&d->queue_lock))
        return status_fail_memory("queue lock");
    d->queue_lock_made = true;
    TRY(loader_instance_open(d, toggle(options->validation, environment->validation)));
    TRY(device_create(d, options, environment));
    TRY(loader_device_functions(d));
    d->fn.GetDeviceQueue(d->handle, d->setup.queue_family, 0, &d->queue);
    TRY(layouts_create(d));
    TRY(pipeline_store_create(d, options->cache_directory));
error:
    if (status != RLXVK_OK && d->physical)
        return status_fail_within(status, "device '%s'", d->snapshot.properties.deviceName);
    return status;
}

rlxvk_status device_open(const rlxvk_context_options *options, const switches *environment,
                         device **out)
{
    static const rlxvk_context_options defaults;
    if (!options)
        options = &defaults;
    device *d = memory_zeroed(1, sizeof(*d));
    if (!d)
        return status_fail_memory("device");
    d->log = (log_sink){options->log, options->log_user};
    d->forks = system_forks();
    d->no_specialization = environment->no_specialization;
    d->statistics = environment->statistics;
    d->invocations = environment->invocations;
    rlxvk_status status = RLXVK_OK;
    if (d->no_specialization && d->invocations.order != INVOCATIONS_IN_ORDER)
        status = status_fail(RLXVK_E_ATTR, "RLXVK_INVOCATIONS: the order of invocations changes in "
                                           "specialized kernels; unset RLXVK_NO_SPECIALIZATION");
    if (status == RLXVK_OK)
        status = device_fill(d, options, environment);
    if (status != RLXVK_OK) {
        device_close(d);
        return status;
    }
    *out = d;
    return RLXVK_OK;
}

static void layouts_destroy(device *d)
{
    for (size_t i = 0; i < ARRAY_COUNT(d->set_layouts); i++) {
        d->fn.DestroyPipelineLayout(d->handle, d->pipeline_layouts[i], NULL);
        d->fn.DestroyDescriptorSetLayout(d->handle, d->set_layouts[i], NULL);
    }
}

static void handle_close(device *d)
{
    if (!d->handle)
        return;
    /* If the last function is loaded, all are. Otherwise nothing was made on the device. */
    if (d->fn.WaitSemaphores) {
        d->fn.DeviceWaitIdle(d->handle);
        pipeline_store_destroy(d);
        layouts_destroy(d);
    }
    if (d->fn.DestroyDevice)
        d->fn.DestroyDevice(d->handle, NULL);
}

void device_close(device *d)
{
    if (!d)
        return;
    handle_close(d);
    loader_instance_close(d);
    if (d->queue_lock_made)
        system_lock_destroy(&d->queue_lock);
    memory_free(d);
}

/* Opens an instance only to look at the devices. */
static rlxvk_status survey_open(device **d, const switches *environment, survey *out)
{
    rlxvk_status status;
    if (!(*d = memory_zeroed(1, sizeof **d)))
        TRY(status_fail_memory("device"));
    (*d)->forks = system_forks();
    TRY(loader_instance_open(*d, false));
    TRY(survey_take(*d, NULL, environment, out));
error:
    return status;
}

rlxvk_status device_list(const switches *environment, const sized_array *infos, size_t *out_count)
{
    rlxvk_status status;
    device *d = NULL;
    survey s = {0};
    rlxvk_device_info info;
    TRY(survey_open(&d, environment, &s));
    for (uint32_t i = 0; i < MIN(s.count, infos->count); i++) {
        profile_describe(&s.snapshots[i], &s.setups[i], &info);
        sized_put(SIZED(rlxvk_device_info), infos, i, &info);
    }
    *out_count = s.count;
error:
    survey_destroy(&s);
    device_close(d);
    return status;
}

rlxvk_status device_find(const switches *environment, const char *wanted, rlxvk_device_info *out)
{
    rlxvk_status status;
    device *d = NULL;
    survey s = {0};
    uint32_t index;
    TRY(survey_open(&d, environment, &s));
    TRY(vk_find_device(s.snapshots, s.setups, s.count, wanted, &index));
    profile_describe(&s.snapshots[index], &s.setups[index], out);
error:
    survey_destroy(&s);
    device_close(d);
    return status;
}
