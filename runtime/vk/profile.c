/*
 * Decides from a snapshot how the library uses a device. It is pure: no Vulkan call and no state,
 * so recorded snapshots of any device can be tested anywhere. If a broken driver reports a limit as
 * 0, the guaranteed minimum is used.
 */
#include "vk/internal.h"

#include <stdio.h>
#include <string.h>

/* Vulkan guarantees blocks of 1 GiB if maintenance3 gives no limit. The NEEDED limits are those
 * that Vulkan guarantees and kernels need. If a driver reports less, the device is refused, and the
 * reason names the limit. Slots are aligned to 256 bytes, the largest
 * minStorageBufferOffsetAlignment that Vulkan allows. */
#define NO_TYPE               UINT32_MAX
#define GUARANTEED_ALLOCATION ((uint64_t)1 << 30)
#define NEEDED_BUFFERS        4
#define NEEDED_INVOCATIONS    128
#define NEEDED_SHARED         16384
#define SLOT_ALIGNMENT        256
#define VECTOR_BYTES          16 /* bindings are rounded up to whole vectors */

/* ---- Memory types ---- */

typedef struct type_score {
    VkMemoryPropertyFlags needed, refused;
    VkMemoryPropertyFlags preferred[3]; /* most important first */
    bool avoid_device_local;            /* less important than preferred[] */
    bool prefer_large_heap;             /* more important than all others */
} type_score;

static VkMemoryPropertyFlags type_flags(const device_snapshot *s, uint32_t type)
{
    return s->memory.memoryTypes[type].propertyFlags;
}

static uint64_t type_heap_size(const device_snapshot *s, uint32_t type)
{
    return s->memory.memoryHeaps[s->memory.memoryTypes[type].heapIndex].size;
}

/* An earlier preference outweighs all later ones together, like digits of a number. */
static unsigned type_weight(const type_score *score, VkMemoryPropertyFlags flags)
{
    unsigned weight = 0;
    for (size_t i = 0; i < ARRAY_COUNT(score->preferred); i++)
        weight = weight * 2 + (score->preferred[i] && flags & score->preferred[i]);
    bool local = flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    return weight * 2 + (score->avoid_device_local && !local);
}

/* The best type. Among equals the first wins, because drivers list faster types first. */
static uint32_t type_find(const device_snapshot *s, const type_score *score)
{
    /* Memory for special purposes: lazily allocated, protected, and uncached types for
     * debuggers. */
    const VkMemoryPropertyFlags special =
        VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT | VK_MEMORY_PROPERTY_PROTECTED_BIT |
        VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD |
        VK_MEMORY_PROPERTY_RDMA_CAPABLE_BIT_NV;
    uint32_t best = NO_TYPE;
    for (uint32_t type = 0; type < s->memory.memoryTypeCount; type++) {
        VkMemoryPropertyFlags flags = type_flags(s, type);
        if ((flags & score->needed) != score->needed || flags & (score->refused | special))
            continue;
        if (best != NO_TYPE) {
            uint64_t size = type_heap_size(s, type), best_size = type_heap_size(s, best);
            if (score->prefer_large_heap && size != best_size) {
                best = size > best_size ? type : best;
                continue;
            }
            if (type_weight(score, flags) <= type_weight(score, type_flags(s, best)))
                continue;
        }
        best = type;
    }
    return best;
}

static uint64_t largest_local_heap(const device_snapshot *s)
{
    uint64_t largest = 0;
    for (uint32_t i = 0; i < s->memory.memoryHeapCount; i++)
        if (s->memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
            largest = MAX(largest, s->memory.memoryHeaps[i].size);
    return largest;
}

static bool shares_host_memory(const device_snapshot *s)
{
    return s->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ||
           s->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

/* The type that is both device-local and mappable, if writing it in place makes sense. Not if it is
 * only the small window of a discrete GPU without resizable BAR, because the first weights would
 * fill it. */
static uint32_t choose_direct_type(const device_snapshot *s)
{
    static const type_score score = {
        .needed = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
        .preferred = {VK_MEMORY_PROPERTY_HOST_CACHED_BIT, VK_MEMORY_PROPERTY_HOST_COHERENT_BIT},
        .prefer_large_heap = true,
    };
    uint32_t type = type_find(s, &score);
    if (type == NO_TYPE)
        return NO_TYPE;
    bool whole = type_heap_size(s, type) >= largest_local_heap(s);
    return whole || shares_host_memory(s) ? type : NO_TYPE;
}

/* Prefers memory that the host cannot see, so that the host-visible window stays free for
 * others. */
static uint32_t choose_local_type(const device_snapshot *s)
{
    static const type_score plain = {
        .needed = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
        .refused = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
        .prefer_large_heap = true,
    };
    static const type_score any = {
        .needed = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
        .prefer_large_heap = true,
    };
    uint32_t type = type_find(s, &plain);
    return type != NO_TYPE ? type : type_find(s, &any);
}

/* Uploads are written once and in order, so uncached memory is good enough. But reading uncached
 * memory is about ten times slower, so readback prefers cached memory. */
static void choose_memory(const device_snapshot *s, bool direct_upload, device_setup *out)
{
    static const type_score upload = {
        .needed = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
        .avoid_device_local = true,
    };
    static const type_score readback = {
        .needed = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
        .preferred = {VK_MEMORY_PROPERTY_HOST_CACHED_BIT, VK_MEMORY_PROPERTY_HOST_COHERENT_BIT},
        .avoid_device_local = true,
    };
    uint32_t direct = direct_upload ? choose_direct_type(s) : NO_TYPE;
    out->arena_mapped = direct != NO_TYPE;
    out->arena_type = out->arena_mapped ? direct : choose_local_type(s);
    out->upload_type = type_find(s, &upload);
    out->readback_type = type_find(s, &readback);
    if (out->upload_type != NO_TYPE)
        out->upload_cached = type_flags(s, out->upload_type) & VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    if (out->arena_type != NO_TYPE) {
        VkMemoryPropertyFlags flags = type_flags(s, out->arena_type);
        out->arena_coherent = flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
        out->arena_cached = out->arena_mapped && flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    }
    if (out->readback_type != NO_TYPE)
        out->readback_coherent =
            type_flags(s, out->readback_type) & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
}

/* ---- Queue ---- */

/* Takes the first family with compute. A family without graphics would gain nothing, because there
 * is only one queue and the library has no other work on the device. */
static bool choose_queue(const device_snapshot *s, device_setup *out)
{
    for (uint32_t i = 0; i < s->queue_family_count; i++) {
        const VkQueueFamilyProperties *family = &s->queue_families[i];
        if (!(family->queueFlags & VK_QUEUE_COMPUTE_BIT) || !family->queueCount)
            continue;
        out->queue_family = i;
        out->timestamps =
            family->timestampValidBits > 0 && s->properties.limits.timestampPeriod > 0;
        return true;
    }
    return false;
}

static bool may_display(const device_snapshot *s)
{
    VkPhysicalDeviceType type = s->properties.deviceType;
    bool gpu = type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ||
               type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    bool graphics = false;
    for (uint32_t i = 0; i < s->queue_family_count; i++)
        graphics |= s->queue_families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT;
    return gpu && graphics && !s->lacks_display;
}

/* ---- Limits ---- */

/* `limit` reduces `value`; 0 is no limit. */
static uint64_t shrink(uint64_t value, uint64_t limit)
{
    return limit ? MIN(value, limit) : value;
}

static uint32_t shrink32(uint32_t value, uint32_t limit)
{
    return limit ? MIN(value, limit) : value;
}

/* The minimum of the limits of an allocation, a buffer and the heap. */
static uint64_t block_limit(const device_snapshot *s, const device_setup *setup)
{
    uint64_t reported = s->maintenance3.maxMemoryAllocationSize;
    uint64_t limit = shrink(reported ? reported : GUARANTEED_ALLOCATION, s->max_buffer_size);
    if (setup->arena_type != NO_TYPE)
        limit = shrink(limit, type_heap_size(s, setup->arena_type));
    return limit;
}

/* Whether Vulkan is a layer over another API, or there is no GPU. Kernels that rely on subgroups,
 * unrolling or much shared memory are slower there. */
static bool is_portable(const device_snapshot *s)
{
    static const VkDriverId translated[] = {
        VK_DRIVER_ID_MOLTENVK,
        VK_DRIVER_ID_GOOGLE_SWIFTSHADER,
        VK_DRIVER_ID_MESA_LLVMPIPE,
        VK_DRIVER_ID_MESA_DOZEN,
    };
    for (size_t i = 0; i < ARRAY_COUNT(translated); i++)
        if (s->driver.driverID == translated[i])
            return true;
    return s->portability_subset || s->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

static uint32_t choose_workgroup_size(const device_profile *p)
{
    uint32_t size = 128;
    if (profile_is_software(p))
        size = 64; /* invocations run one after the other: larger ones gain nothing */
    else if (p->max_workgroup_invocations >= 256)
        size = 256;
    while (size > p->max_workgroup_invocations && size > 1)
        size /= 2;
    return size;
}

static rlxvk_device_kind device_kind(const device_snapshot *s)
{
    static const rlxvk_device_kind kinds[] = {
        [VK_PHYSICAL_DEVICE_TYPE_OTHER] = RLXVK_DEVICE_OTHER,
        [VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU] = RLXVK_DEVICE_INTEGRATED,
        [VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU] = RLXVK_DEVICE_DISCRETE,
        [VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU] = RLXVK_DEVICE_VIRTUAL,
        [VK_PHYSICAL_DEVICE_TYPE_CPU] = RLXVK_DEVICE_CPU,
    };
    unsigned type = s->properties.deviceType;
    return type < ARRAY_COUNT(kinds) ? kinds[type] : RLXVK_DEVICE_OTHER;
}

/* Matrix kernels rely on subgroups of the profile's size. So it must be the only size, or a
 * pipeline must be able to request it. The kernels also need the Vulkan memory model. */
static void choose_matrix_units(const device_snapshot *s, device_profile *p)
{
    bool fixed = s->least_subgroup_size == s->most_subgroup_size || s->subgroup_size_control;
    if (!s->cooperative_matrix || !fixed || !s->features12.vulkanMemoryModel)
        return;
    if (s->features12.shaderFloat16)
        p->matrix_f16 = s->matrix_f16;
    p->matrix_bf16 = s->matrix_bf16;
    p->matrix_f32 = s->matrix_f32;
}

/* Kernels with shuffles or ballots also rely on the profile's subgroup size. */
static bool has_subgroups(const device_snapshot *s, VkSubgroupFeatureFlags operations)
{
    uint32_t size = s->subgroup.subgroupSize;
    bool fixed = s->least_subgroup_size == size && s->most_subgroup_size == size;
    return (fixed || s->subgroup_size_control) && size > 0 && (size & (size - 1)) == 0 &&
           s->subgroup.supportedOperations & operations &&
           s->subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT;
}

/* Registers, where the device tells or the source of a driver's compiler does. Variants were
 * measured with NVIDIA's own driver, so none is refused there. */
static void take_registers(const device_snapshot *s, device_profile *p)
{
    static const struct {
        VkDriverId driver;
        uint32_t unit_registers, thread_registers, register_threads;
        bool loads_early;
    } rows[] = {
        {VK_DRIVER_ID_MESA_TURNIP, 48 * 1024, 192, 256, true}, /* Adreno 7xx: 128 threads */
        {VK_DRIVER_ID_QUALCOMM_PROPRIETARY, 48 * 1024, 192, 256, false},
        {DRIVER_ID_MESA_HONEYKRISP, 52 * 1024, 127, 1, true}, /* two registers of 16 bits */
        {VK_DRIVER_ID_MESA_NVK, 64 * 1024, 255, 1, false},
    };
    VkDriverId driver = s->registers_as ? s->registers_as : s->driver.driverID;
    p->unit_registers = s->unit_registers;
    p->thread_registers = s->thread_registers;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        if (driver == rows[i].driver) {
            p->unit_registers = rows[i].unit_registers;
            p->thread_registers = rows[i].thread_registers;
            p->register_threads = rows[i].register_threads;
            p->loads_early = rows[i].loads_early;
        }
}

/* Of MoltenVK without argument buffers, all 31 buffers of a kernel count as storage buffers. But
 * one of them holds the push constants. */
static uint32_t storage_buffers(const device_snapshot *s)
{
    const VkPhysicalDeviceLimits *limits = &s->properties.limits;
    uint32_t buffers =
        MIN(limits->maxPerStageDescriptorStorageBuffers, limits->maxDescriptorSetStorageBuffers);
    bool takes_one = s->driver.driverID == VK_DRIVER_ID_MOLTENVK && buffers > NEEDED_BUFFERS;
    return buffers - takes_one;
}

/* The number of compute units only decides into how many parts work is split. Core Vulkan does not
 * report it, so `units` has typical numbers for each kind of device. */
static void fill_profile(const device_snapshot *s, const rlxvk_context_options *options,
                         const device_setup *setup, device_profile *p)
{
    static const uint32_t units[] = {
        [RLXVK_DEVICE_OTHER] = 16,    [RLXVK_DEVICE_INTEGRATED] = 16, [RLXVK_DEVICE_DISCRETE] = 128,
        [RLXVK_DEVICE_VIRTUAL] = 128, [RLXVK_DEVICE_CPU] = 4,
    };
    const VkPhysicalDeviceLimits *limits = &s->properties.limits;
    p->kind = device_kind(s);
    p->compute_units = s->compute_units ? s->compute_units : units[p->kind];
    p->portable = is_portable(s);
    take_registers(s, p);
    p->subgroup_size = MAX(s->subgroup.subgroupSize, 1);
    p->max_workgroup_invocations =
        shrink32(MIN(limits->maxComputeWorkGroupInvocations, limits->maxComputeWorkGroupSize[0]),
                 options->limit_workgroup_invocations);
    for (int i = 0; i < 3; i++)
        p->max_group_count[i] =
            shrink32(limits->maxComputeWorkGroupCount[i], options->limit_group_count);
    p->shared_memory_bytes = limits->maxComputeSharedMemorySize;
    p->push_constant_bytes = limits->maxPushConstantsSize;
    p->storage_buffers_per_stage = storage_buffers(s);
    p->max_allocation_bytes = shrink(block_limit(s, setup), options->limit_allocation_bytes);
    p->max_binding_bytes = shrink(MIN(limits->maxStorageBufferRange / VECTOR_BYTES * VECTOR_BYTES,
                                      p->max_allocation_bytes),
                                  options->limit_binding_bytes);
    p->slot_alignment = MAX(SLOT_ALIGNMENT, limits->minStorageBufferOffsetAlignment);
    p->workgroup_size = choose_workgroup_size(p);
    p->subgroup_shuffle = has_subgroups(s, VK_SUBGROUP_FEATURE_SHUFFLE_BIT);
    p->subgroup_ballot = has_subgroups(s, VK_SUBGROUP_FEATURE_BALLOT_BIT);
    p->max_shuffle_invocations =
        (uint32_t)shrink(p->max_workgroup_invocations,
                         (uint64_t)s->most_workgroup_subgroups * p->subgroup_size);
    p->half_subnormals =
        s->float_controls.shaderDenormPreserveFloat16 &&
        s->float_controls.denormBehaviorIndependence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL;
    p->half_rounding =
        p->half_subnormals && s->float_controls.shaderRoundingModeRTEFloat16 &&
        s->float_controls.roundingModeIndependence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL;
    p->byte_products = s->integer_dot;
    p->quick_byte_products = s->integer_dot && s->integer_dot_accelerated;
    choose_matrix_units(s, p);
}

/* ---- Baseline ---- */

static bool refuse(device_setup *out, const char *reason)
{
    snprintf(out->reason, sizeof(out->reason), "%s", reason);
    return false;
}

static bool refuse_limit(device_setup *out, const char *limit, uint32_t value, uint32_t needed)
{
    snprintf(out->reason, sizeof(out->reason), "%s is %u; at least %u are needed", limit, value,
             needed);
    return false;
}

static bool meets_limits(const VkPhysicalDeviceLimits *limits, device_setup *out)
{
    const struct {
        const char *name;
        uint32_t value, needed;
    } rows[] = {
        {"maxPerStageDescriptorStorageBuffers", limits->maxPerStageDescriptorStorageBuffers,
         NEEDED_BUFFERS},
        {"maxComputeWorkGroupInvocations", limits->maxComputeWorkGroupInvocations,
         NEEDED_INVOCATIONS},
        {"maxComputeSharedMemorySize", limits->maxComputeSharedMemorySize, NEEDED_SHARED},
        {"maxPushConstantsSize", limits->maxPushConstantsSize, KERNEL_MAX_ARGUMENT_BYTES},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        if (rows[i].value < rows[i].needed)
            return refuse_limit(out, rows[i].name, rows[i].value, rows[i].needed);
    return true;
}

/* The first failed check is the reason: driver, queue, features, memory, limits. */
static bool meets_baseline(const device_snapshot *s, bool has_queue, device_setup *out)
{
    uint32_t version = s->properties.apiVersion;
    if (version < VK_API_VERSION_1_2) {
        snprintf(out->reason, sizeof(out->reason), "Vulkan %u.%u.%u; 1.2 is needed",
                 VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version),
                 VK_API_VERSION_PATCH(version));
        return false;
    }
    if (!has_queue)
        return refuse(out, "no queue family with compute");
    if (!s->features12.timelineSemaphore)
        return refuse(out, "no timeline semaphores");
    if (out->arena_type == NO_TYPE)
        return refuse(out, "no device-local memory type");
    if (out->upload_type == NO_TYPE || out->readback_type == NO_TYPE)
        return refuse(out, "no host-visible, host-coherent memory type");
    return meets_limits(&s->properties.limits, out);
}

/* Whether the driver itself keeps the order of float operations. Since version 1.4, MoltenVK
 * compiles kernels that preserve signed zeros without fast math. There, each operation that says
 * NoContraction would be a call. */
static bool is_exact(const device_snapshot *s)
{
    enum { MOLTENVK_1_4 = 10400 };
    return s->driver.driverID == VK_DRIVER_ID_MOLTENVK &&
           s->properties.driverVersion >= MOLTENVK_1_4 &&
           s->float_controls.shaderSignedZeroInfNanPreserveFloat32;
}

void profile_choose(const device_snapshot *snapshot, const rlxvk_context_options *options,
                    device_setup *out)
{
    static const rlxvk_context_options defaults;
    if (!options)
        options = &defaults;
    *out = (device_setup){0};
    bool has_queue = choose_queue(snapshot, out);
    out->may_display = may_display(snapshot);
    choose_memory(snapshot, toggle(options->direct_upload, true), out);
    out->unroll_hints = snapshot->driver.driverID != VK_DRIVER_ID_GOOGLE_SWIFTSHADER;
    out->exact_floats = !is_exact(snapshot);
    fill_profile(snapshot, options, out, &out->profile);
    out->failure = snapshot->failure;
    out->usable = snapshot->failure ? refuse(out, snapshot->failure_text)
                                    : meets_baseline(snapshot, has_queue, out);
}

/* ---- Description ---- */

void profile_uuid_text(const uint8_t uuid[VK_UUID_SIZE], char out[2 * VK_UUID_SIZE + 1])
{
    for (size_t i = 0; i < VK_UUID_SIZE; i++)
        snprintf(out + 2 * i, 3, "%02x", uuid[i]);
}

static void describe_limits(const device_profile *p, rlxvk_device_info *out)
{
    out->subgroup_size = p->subgroup_size;
    out->max_workgroup_invocations = p->max_workgroup_invocations;
    memcpy(out->max_group_count, p->max_group_count, sizeof(out->max_group_count));
    out->shared_memory_bytes = p->shared_memory_bytes;
    out->push_constant_bytes = p->push_constant_bytes;
    out->storage_buffers_per_stage = p->storage_buffers_per_stage;
    out->max_allocation_bytes = p->max_allocation_bytes;
    out->max_binding_bytes = p->max_binding_bytes;
    out->slot_alignment = p->slot_alignment;
}

static void describe_features(const device_snapshot *s, rlxvk_device_info *out)
{
    out->storage_16bit = s->features11.storageBuffer16BitAccess;
    out->storage_8bit = s->features12.storageBuffer8BitAccess;
    out->shader_float16 = s->features12.shaderFloat16;
    out->shader_int8 = s->features12.shaderInt8;
    out->subgroup_arithmetic =
        s->subgroup.supportedOperations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT &&
        s->subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT;
}

void profile_describe(const device_snapshot *snapshot, const device_setup *setup,
                      rlxvk_device_info *out)
{
    *out = (rlxvk_device_info){0};
    snprintf(out->name, sizeof(out->name), "%s", snapshot->properties.deviceName);
    text driver = {.buffer = out->driver, .size = sizeof(out->driver)};
    text_append(&driver, "%s", snapshot->driver.driverName);
    if (*snapshot->driver.driverInfo)
        text_append(&driver, " %s", snapshot->driver.driverInfo);
    profile_uuid_text(snapshot->id.deviceUUID, out->uuid);
    out->index = setup->index;
    out->kind = setup->profile.kind;
    out->api_version = snapshot->properties.apiVersion;
    out->usable = setup->usable;
    memcpy(out->reason, setup->reason, sizeof(out->reason));
    describe_limits(&setup->profile, out);
    describe_features(snapshot, out);
    out->cooperative_matrix = setup->profile.matrix_f16.m || setup->profile.matrix_bf16.m;
    if (setup->arena_type != NO_TYPE && setup->arena_type < VK_MAX_MEMORY_TYPES)
        out->device_memory_bytes = type_heap_size(snapshot, setup->arena_type);
    out->direct_upload = setup->arena_mapped;
    out->cached_readback = setup->arena_cached;
    out->timestamps = setup->timestamps;
    out->timestamp_period_ns = snapshot->properties.limits.timestampPeriod;
}
