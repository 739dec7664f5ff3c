/*
 * Command buffers, barriers, descriptors and the timeline. All barriers are global memory barriers.
 * The plan has already found the hazards by byte ranges, and drivers do not handle buffer barriers
 * better.
 */
#include "base/system.h"
#include "vk/internal.h"

/* 100 us. A sleeping thread needs tens of microseconds to wake up. So for longer work, polling
 * gains little and occupies a processor. */
#define LOOKING_NS 100000

/* ---- Command buffers ---- */

rlxvk_status command_pool_create(device *d, VkCommandPool *out)
{
    rlxvk_status status;
    VkCommandPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = d->setup.queue_family,
    };
    VK(d, CreateCommandPool(d->handle, &info, NULL, out));
error:
    return status;
}

rlxvk_status command_buffers_allocate(device *d, VkCommandPool pool, uint32_t count,
                                      VkCommandBuffer *out)
{
    rlxvk_status status = RLXVK_OK;
    VkCommandBufferAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = count,
    };
    if (count)
        VK(d, AllocateCommandBuffers(d->handle, &info, out));
error:
    return status;
}

rlxvk_status command_begin(device *d, VkCommandBuffer buffer)
{
    rlxvk_status status;
    VkCommandBufferBeginInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT,
    };
    VK(d, BeginCommandBuffer(buffer, &info));
error:
    return status;
}

rlxvk_status command_end(device *d, VkCommandBuffer buffer)
{
    rlxvk_status status;
    VK(d, EndCommandBuffer(buffer));
error:
    return status;
}

/* ---- Barriers ---- */

/* As source, a scope stands only for its writes, because reads need not be made available. The
 * stages still keep a write behind earlier reads. */
static const struct {
    unsigned scope;
    VkPipelineStageFlags stage;
    VkAccessFlags written, touched; /* as source; as target */
} scope_rows[] = {
    {SCOPE_COMPUTE, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
     VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT},
    {SCOPE_TRANSFER, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
     VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT},
    {SCOPE_HOST, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_WRITE_BIT, VK_ACCESS_HOST_READ_BIT},
    {SCOPE_INDIRECT, VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT, 0, VK_ACCESS_INDIRECT_COMMAND_READ_BIT},
};

/* If one side is empty, there is nothing to order, and Vulkan allows no empty stage masks.
 *
 * Measured on an H200: a tiny dispatch takes 0.50 us, but 2.33 us if it waits for the one before
 * it. Variants of the barrier:
 *   2.31 us   no access flags
 *   2.34 us   only reads as target
 *   2.32 us   all stages
 *   4.95 us   all access flags
 *   3.4 us    events instead of barriers
 * So the cost is the wait for the last workgroup. */
void command_barrier(device *d, VkCommandBuffer buffer, unsigned from, unsigned to)
{
    VkPipelineStageFlags source = 0, target = 0;
    VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    for (size_t i = 0; i < ARRAY_COUNT(scope_rows); i++) {
        if (from & scope_rows[i].scope) {
            source |= scope_rows[i].stage;
            barrier.srcAccessMask |= scope_rows[i].written;
        }
        if (to & scope_rows[i].scope) {
            target |= scope_rows[i].stage;
            barrier.dstAccessMask |= scope_rows[i].touched;
        }
    }
    if (source && target)
        d->fn.CmdPipelineBarrier(buffer, source, target, 0, 1, &barrier, 0, NULL, 0, NULL);
}

/* ---- Descriptors ---- */

rlxvk_status
vk_descriptor_pool_create(device *d, const uint32_t sets_by_binding_count[KERNEL_MAX_BINDINGS + 1],
                          VkDescriptorPool *out)
{
    rlxvk_status status;
    uint64_t sets = 0, descriptors = 0;
    for (uint32_t count = 0; count <= KERNEL_MAX_BINDINGS; count++) {
        sets += sets_by_binding_count[count];
        descriptors += (uint64_t)sets_by_binding_count[count] * count;
    }
    if (descriptors > UINT32_MAX || sets > UINT32_MAX)
        return status_fail(RLXVK_E_TOO_LARGE,
                           "descriptor pool: %llu sets of %llu descriptors in all",
                           (unsigned long long)sets, (unsigned long long)descriptors);
    /* Vulkan has no empty pools. */
    VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, (uint32_t)MAX(descriptors, 1)};
    VkDescriptorPoolCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .maxSets = (uint32_t)MAX(sets, 1),
        .poolSizeCount = 1,
        .pPoolSizes = &size,
    };
    VK(d, CreateDescriptorPool(d->handle, &info, NULL, out));
error:
    return status;
}

/* Binding numbers are the positions of operands, so one write fills the whole set. */
static void ranges_write(device *d, VkDescriptorSet set, const buffer_range *ranges, uint32_t count)
{
    VkDescriptorBufferInfo buffers[KERNEL_MAX_BINDINGS];
    for (uint32_t i = 0; i < count; i++)
        buffers[i] = (VkDescriptorBufferInfo){ranges[i].buffer, ranges[i].offset, ranges[i].size};
    VkWriteDescriptorSet write = {
        .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
        .dstSet = set,
        .descriptorCount = count, /* continues over the bindings after binding 0 */
        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
        .pBufferInfo = buffers,
    };
    if (count)
        d->fn.UpdateDescriptorSets(d->handle, 1, &write, 0, NULL);
}

/* Beyond the device's limits Vulkan is undefined. */
static rlxvk_status ranges_check(const device *d, const buffer_range *ranges, uint32_t count)
{
    const VkPhysicalDeviceLimits *limits = &d->snapshot.properties.limits;
    uint64_t alignment = MAX(limits->minStorageBufferOffsetAlignment, 1);
    for (uint32_t i = 0; i < count; i++)
        if (ranges[i].size > limits->maxStorageBufferRange || ranges[i].offset % alignment)
            return status_fail(RLXVK_E_UNSUPPORTED,
                               "storage buffer %u: %llu bytes from offset %llu; this device takes "
                               "%u at multiples of %llu",
                               i, (unsigned long long)ranges[i].size,
                               (unsigned long long)ranges[i].offset, limits->maxStorageBufferRange,
                               (unsigned long long)alignment);
    return RLXVK_OK;
}

rlxvk_status vk_descriptor_set_write(device *d, VkDescriptorPool pool, const buffer_range *ranges,
                                     uint32_t count, VkDescriptorSet *out)
{
    rlxvk_status status;
    uint32_t limit = MIN(d->setup.profile.storage_buffers_per_stage, KERNEL_MAX_BINDINGS);
    if (count > limit)
        return status_fail(RLXVK_E_UNSUPPORTED,
                           "descriptor set: %u storage buffers; this device takes %u", count,
                           limit);
    TRY(ranges_check(d, ranges, count));
    VkDescriptorSetAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = pool,
        .descriptorSetCount = 1,
        .pSetLayouts = &d->set_layouts[count],
    };
    VK(d, AllocateDescriptorSets(d->handle, &info, out));
    ranges_write(d, *out, ranges, count);
error:
    return status;
}

/* ---- Timeline ---- */

bool vk_is_foreign(const device *d)
{
    return d->forks != system_forks();
}

/* Once a device is lost, no call is made on it, because drivers may then do anything. */
bool vk_is_lost(const device *d)
{
    return atomic_read_alone(&d->lost) || vk_is_foreign(d);
}

rlxvk_status vk_require_device(const device *d, const char *call)
{
    if (vk_is_foreign(d))
        return status_fail(RLXVK_E_DEVICE_LOST,
                           "%s: the device was opened before this process was forked, and stays "
                           "the parent's; fork first, and create the context in the child",
                           call);
    if (vk_is_lost(d))
        return status_fail(
            RLXVK_E_DEVICE_LOST,
            "%s: the device was lost earlier; destroy everything on it and open it again", call);
    return RLXVK_OK;
}

rlxvk_status vk_timeline_create(device *d, VkSemaphore *out)
{
    rlxvk_status status;
    VkSemaphoreTypeCreateInfo type = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
    };
    VkSemaphoreCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
        .pNext = &type,
    };
    VK(d, CreateSemaphore(d->handle, &info, NULL, out));
error:
    return status;
}

/* A queue needs a lock, because executables on other threads submit to the same one. */
static rlxvk_status submit_locked(device *d, const VkSubmitInfo *info)
{
    rlxvk_status status;
    VK(d, QueueSubmit(d->queue, 1, info, VK_NULL_HANDLE));
error:
    return status;
}

/* Values only grow. So one semaphore serves an executable for its whole life, and once a value is
 * reached, all earlier ones are, too. */
rlxvk_status vk_queue_submit(device *d, VkSemaphore timeline, uint64_t wait, uint64_t signal,
                             const VkCommandBuffer *buffers, uint32_t count)
{
    static const VkPipelineStageFlags all = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    rlxvk_status status = vk_require_device(d, "submit");
    if (status != RLXVK_OK)
        return status;
    uint32_t wait_count = wait ? 1 : 0;
    VkTimelineSemaphoreSubmitInfo values = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = wait_count,
        .pWaitSemaphoreValues = &wait,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &signal,
    };
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &values,
        .waitSemaphoreCount = wait_count,
        .pWaitSemaphores = &timeline,
        .pWaitDstStageMask = &all,
        .commandBufferCount = count,
        .pCommandBuffers = buffers,
        .signalSemaphoreCount = 1,
        .pSignalSemaphores = &timeline,
    };
    system_lock_take(&d->queue_lock);
    status = submit_locked(d, &info);
    system_lock_release(&d->queue_lock);
    return status;
}

/* Polls for a while before sleeping, because waking up takes longer than short work. It does not
 * poll if the device's work runs on the processor. All polls of a wait count as one call, so that
 * the number of calls does not depend on time. */
static rlxvk_status look(device *d, VkSemaphore timeline, uint64_t value, bool *out_reached)
{
    rlxvk_status status;
    uint64_t reached = 0, begin = system_nanoseconds();
    if (profile_is_software(&d->setup.profile))
        return RLXVK_OK;
    VK(d, GetSemaphoreCounterValue(d->handle, timeline, &reached));
    while (reached < value && system_nanoseconds() - begin <= LOOKING_NS)
        TRY(vk_check(d, d->fn.GetSemaphoreCounterValue(d->handle, timeline, &reached),
                     "GetSemaphoreCounterValue"));
    *out_reached = reached >= value;
error:
    return status;
}

rlxvk_status vk_timeline_wait(device *d, VkSemaphore timeline, uint64_t value, uint64_t timeout_ns)
{
    rlxvk_status status;
    bool reached = false;
    TRY(vk_require_device(d, "wait"));
    TRY(look(d, timeline, value, &reached));
    if (reached)
        return RLXVK_OK;
    VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .semaphoreCount = 1,
        .pSemaphores = &timeline,
        .pValues = &value,
    };
    VkResult result = VK_RESULT(d, WaitSemaphores(d->handle, &info, timeout_ns));
    if (result == VK_TIMEOUT)
        return status_fail(
            RLXVK_E_TIMEOUT,
            "wait: submission %llu not done after %.3f s; raise timeout_ns if it may take "
            "longer",
            (unsigned long long)value, (double)timeout_ns * 1e-9);
    TRY(vk_check(d, result, "WaitSemaphores"));
error:
    return status;
}
