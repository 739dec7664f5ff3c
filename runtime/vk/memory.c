/*
 * One buffer over one allocation. It is mapped for its whole life if the host may access it. A
 * block is at most max_allocation_bytes of the profile. Flushed and invalidated ranges are widened
 * to the device's atom size. That may touch bytes of neighbours, but never leaves the block.
 */
#include "vk/internal.h"

static const char *const use_names[] = {
    [MEMORY_ARENA] = "device",
    [MEMORY_HOST] = "host",
    [MEMORY_UPLOAD] = "upload",
    [MEMORY_READBACK] = "readback",
};

static uint32_t type_for(const device_setup *setup, memory_use use)
{
    const uint32_t types[] = {
        [MEMORY_ARENA] = setup->arena_type,
        [MEMORY_HOST] = setup->upload_type,
        [MEMORY_UPLOAD] = setup->upload_type,
        [MEMORY_READBACK] = setup->readback_type,
    };
    return types[use];
}

static uint32_t heap_of(const device *d, uint32_t type)
{
    return d->snapshot.memory.memoryTypes[type].heapIndex;
}

/* ---- Room ---- */

/* Some drivers tell a budget of 0 for heaps that they do not count. */
memory_room memory_room_of(const device *d, memory_use use)
{
    uint32_t heap = heap_of(d, type_for(&d->setup, use));
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 all = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &budget};
    memory_room room = {.heap = d->snapshot.memory.memoryHeaps[heap].size,
                        .used = atomic_read_alone(&d->heap_bytes[heap])};
    room.budget = room.heap;
    if (d->snapshot.memory_budget)
        d->fn.GetPhysicalDeviceMemoryProperties2(d->physical, &all);
    if (budget.heapBudget[heap]) {
        room.budget = MIN(room.heap, budget.heapBudget[heap]);
        room.used = budget.heapUsage[heap];
        room.told = true;
    }
    return room;
}

void memory_room_append(const memory_room *r, text *out)
{
    text_append(out, "%llu bytes are free of %llu%s", (unsigned long long)memory_room_free(r),
                (unsigned long long)r->heap,
                r->told ? ", as the driver says" : ", less what other programs use");
}

/* ---- Blocks ---- */

/* Every block can be bound, and copied from and to. The use only decides its memory type. */
static rlxvk_status buffer_create(device *d, memory_block *block)
{
    rlxvk_status status;
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = block->size,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };
    VK(d, CreateBuffer(d->handle, &info, NULL, &block->buffer));
error:
    return status;
}

/* The chosen type, or another with the same properties if buffers cannot use it. */
static rlxvk_status type_allowed(const device *d, uint32_t bits, uint32_t *type)
{
    const VkPhysicalDeviceMemoryProperties *memory = &d->snapshot.memory;
    VkMemoryPropertyFlags wanted = memory->memoryTypes[*type].propertyFlags;
    if (bits >> *type & 1)
        return RLXVK_OK;
    for (uint32_t i = 0; i < memory->memoryTypeCount; i++)
        if (bits >> i & 1 && (memory->memoryTypes[i].propertyFlags & wanted) == wanted) {
            *type = i;
            return RLXVK_OK;
        }
    return status_fail(
        RLXVK_E_UNSUPPORTED,
        "memory type %u does not take storage buffers (types 0x%x do); report this device", *type,
        bits);
}

/* Counts one more allocation, if the device has room for it. Limits of 0 are unknown. */
static rlxvk_status allocation_count(device *d)
{
    uint32_t limit = d->snapshot.properties.limits.maxMemoryAllocationCount;
    uint32_t before = atomic_add_alone(&d->allocations, 1);
    if (!limit || before < limit)
        return RLXVK_OK;
    atomic_subtract_alone(&d->allocations, 1);
    return status_fail(RLXVK_E_OUT_OF_DEVICE_MEMORY,
                       "the device takes %u allocations at a time; destroy executables or use "
                       "fewer",
                       limit);
}

static rlxvk_status memory_bind(device *d, memory_use use, memory_block *block)
{
    rlxvk_status status;
    uint32_t type = type_for(&d->setup, use);
    VkMemoryRequirements needs;
    d->fn.GetBufferMemoryRequirements(d->handle, block->buffer, &needs);
    TRY(type_allowed(d, needs.memoryTypeBits, &type));
    VkMemoryAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .allocationSize = needs.size,
        .memoryTypeIndex = type,
    };
    TRY(allocation_count(d));
    status = vk_check(d, VK_RESULT(d, AllocateMemory(d->handle, &info, NULL, &block->memory)),
                      "AllocateMemory");
    if (status != RLXVK_OK) {
        atomic_subtract_alone(&d->allocations, 1);
        return status;
    }
    block->heap = (uint8_t)heap_of(d, type);
    block->allocated = needs.size;
    atomic_add_alone(&d->heap_bytes[block->heap], needs.size);
    VK(d, BindBufferMemory(d->handle, block->buffer, block->memory, 0));
error:
    return status;
}

/* Mapped once, because mapping costs a system call, and Vulkan allows mapped memory while the
 * device works. Upload memory is coherent, because its type was chosen so. */
static rlxvk_status block_map(device *d, memory_use use, memory_block *block)
{
    rlxvk_status status;
    const device_setup *setup = &d->setup;
    void *mapped = NULL;
    block->coherent = use == MEMORY_ARENA      ? setup->arena_coherent
                      : use == MEMORY_READBACK ? setup->readback_coherent
                                               : true;
    if (use == MEMORY_ARENA && !setup->arena_mapped)
        return RLXVK_OK;
    VK(d, MapMemory(d->handle, block->memory, 0, VK_WHOLE_SIZE, 0, &mapped));
    block->mapped = mapped;
    block->cached = use == MEMORY_ARENA      ? setup->arena_cached
                    : use == MEMORY_READBACK ? true
                                             : setup->upload_cached;
error:
    return status;
}

static rlxvk_status fail_room(const device *d, memory_use use, uint64_t size, rlxvk_status status)
{
    char free_text[128] = "";
    memory_room room = memory_room_of(d, use);
    memory_room_append(&room, &(text){free_text, sizeof free_text, 0});
    return status_fail_within(status, "%s memory: a block needs %llu bytes; %s", use_names[use],
                              (unsigned long long)size, free_text);
}

rlxvk_status memory_block_create(device *d, memory_use use, uint64_t size, memory_block *out)
{
    rlxvk_status status;
    memory_block block = {.size = MAX(size, 4)};
    uint64_t limit = d->setup.profile.max_allocation_bytes;
    if (size > limit)
        return status_fail(RLXVK_E_OUT_OF_DEVICE_MEMORY,
                           "%s memory: a block of %llu bytes is above the device's limit of %llu",
                           use_names[use], (unsigned long long)size, (unsigned long long)limit);
    TRY(buffer_create(d, &block));
    TRY(memory_bind(d, use, &block));
    TRY(block_map(d, use, &block));
    *out = block;
    return RLXVK_OK;
error:
    memory_block_destroy(d, &block);
    return status == RLXVK_E_OUT_OF_DEVICE_MEMORY
               ? fail_room(d, use, size, status)
               : status_fail_within(status, "%s memory: block of %llu bytes", use_names[use],
                                    (unsigned long long)size);
}

void memory_block_destroy(device *d, memory_block *block)
{
    if (!block)
        return;
    /* Freeing also unmaps. Vulkan takes null handles. */
    if (block->buffer)
        d->fn.DestroyBuffer(d->handle, block->buffer, NULL);
    if (block->memory) {
        d->fn.FreeMemory(d->handle, block->memory, NULL);
        atomic_subtract_alone(&d->allocations, 1);
        atomic_subtract_alone(&d->heap_bytes[block->heap], block->allocated);
    }
    *block = (memory_block){0};
}

/* Whether host and device may see different contents until a flush or an invalidation. Stores the
 * range, widened to whole atoms. If it reaches the end of the block, its size is VK_WHOLE_SIZE,
 * because the allocation may end inside an atom. */
static bool is_incoherent(const device *d, const memory_block *block, uint64_t offset,
                          uint64_t size, VkMappedMemoryRange *out)
{
    if (block->coherent || !block->mapped || !size)
        return false;
    uint64_t atom = MAX(d->snapshot.properties.limits.nonCoherentAtomSize, 1);
    uint64_t first = offset / atom * atom;
    uint64_t end = round_up(offset + size, atom);
    *out = (VkMappedMemoryRange){
        .sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
        .memory = block->memory,
        .offset = first,
        .size = end >= block->size ? VK_WHOLE_SIZE : end - first,
    };
    return true;
}

rlxvk_status memory_block_flush(device *d, const memory_block *block, uint64_t offset,
                                uint64_t size)
{
    VkMappedMemoryRange range;
    rlxvk_status status = RLXVK_OK;
    if (is_incoherent(d, block, offset, size, &range))
        VK(d, FlushMappedMemoryRanges(d->handle, 1, &range));
error:
    return status;
}

rlxvk_status memory_block_invalidate(device *d, const memory_block *block, uint64_t offset,
                                     uint64_t size)
{
    VkMappedMemoryRange range;
    rlxvk_status status = RLXVK_OK;
    if (is_incoherent(d, block, offset, size, &range))
        VK(d, InvalidateMappedMemoryRanges(d->handle, 1, &range));
error:
    return status;
}
