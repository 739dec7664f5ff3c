/*
 * Blocking transfers between host and device memory, outside the replay path. If device memory is
 * mapped, the host accesses it in place. So nothing in flight may use it.
 */
#include "exec/transfer.h"
#include "exec/queue.h"

#include <string.h>

#define CHUNK_BYTES (4u << 20)

rlxvk_status transfer_begin(rlxvk_executable *e)
{
    rlxvk_status status;
    TRY(command_begin(e->device, e->transfer));
    command_barrier(e->device, e->transfer, SCOPE_COMPUTE | SCOPE_TRANSFER,
                    SCOPE_COMPUTE | SCOPE_TRANSFER);
error:
    return status;
}

rlxvk_status transfer_end(rlxvk_executable *e)
{
    rlxvk_status status;
    command_barrier(e->device, e->transfer, SCOPE_TRANSFER,
                    SCOPE_COMPUTE | SCOPE_TRANSFER | SCOPE_HOST);
    TRY(command_end(e->device, e->transfer));
    TRY(queue_submit(e, &e->transfer, 1));
    TRY(queue_wait_all(e));
error:
    return status;
}

static rlxvk_status copy_buffers(rlxvk_executable *e, VkBuffer from, uint64_t from_offset,
                                 VkBuffer to, uint64_t to_offset, uint64_t size)
{
    VkBufferCopy region = {from_offset, to_offset, size};
    rlxvk_status status;
    TRY(transfer_begin(e));
    e->device->fn.CmdCopyBuffer(e->transfer, from, to, 1, &region);
    TRY(transfer_end(e));
error:
    return status;
}

/* Makes the chunk on first use; its size is the unit of blocking transfers. */
static rlxvk_status chunk_ready(rlxvk_executable *e, memory_use use, memory_block *chunk)
{
    uint64_t bytes = MIN(CHUNK_BYTES, e->device->setup.profile.max_allocation_bytes);
    return chunk->buffer ? RLXVK_OK : memory_block_create(e->device, use, bytes, chunk);
}

rlxvk_status transfer_write(rlxvk_executable *e, const location *to, const void *bytes,
                            uint64_t size)
{
    const memory_block *block = location_block(to);
    rlxvk_status status;
    if (size == 0)
        return RLXVK_OK;
    if (block->mapped) {
        spread_copy(block->mapped + to->offset, bytes, size);
        return memory_block_flush(e->device, block, to->offset, size);
    }
    TRY(chunk_ready(e, MEMORY_UPLOAD, &e->chunk_up));
    for (uint64_t at = 0; at < size; at += e->chunk_up.size) {
        uint64_t part = MIN(size - at, e->chunk_up.size);
        memcpy(e->chunk_up.mapped, (const uint8_t *)bytes + at, part);
        TRY(memory_block_flush(e->device, &e->chunk_up, 0, part));
        TRY(copy_buffers(e, e->chunk_up.buffer, 0, block->buffer, to->offset + at, part));
    }
error:
    return status;
}

rlxvk_status transfer_read(rlxvk_executable *e, const location *from, void *bytes, uint64_t size)
{
    const memory_block *block = location_block(from);
    rlxvk_status status;
    if (size == 0)
        return RLXVK_OK;
    if (block->cached) {
        TRY(memory_block_invalidate(e->device, block, from->offset, size));
        memcpy(bytes, block->mapped + from->offset, size);
        return RLXVK_OK;
    }
    TRY(chunk_ready(e, MEMORY_READBACK, &e->chunk_down));
    for (uint64_t at = 0; at < size; at += e->chunk_down.size) {
        uint64_t part = MIN(size - at, e->chunk_down.size);
        TRY(copy_buffers(e, block->buffer, from->offset + at, e->chunk_down.buffer, 0, part));
        TRY(memory_block_invalidate(e->device, &e->chunk_down, 0, part));
        memcpy((uint8_t *)bytes + at, e->chunk_down.mapped, part);
    }
error:
    return status;
}

/* `size` must be a multiple of 4. */
rlxvk_status transfer_clear(rlxvk_executable *e, const location *to, uint64_t size)
{
    rlxvk_status status;
    TRY(transfer_begin(e));
    e->device->fn.CmdFillBuffer(e->transfer, location_block(to)->buffer, to->offset, size, 0);
    TRY(transfer_end(e));
error:
    return status;
}

/* ---- Many at once ---- */

void transfer_add_copy(rlxvk_executable *e, const location *to, const location *from)
{
    VkBufferCopy region = {from->offset, to->offset, from->bytes};
    if (from->bytes)
        e->device->fn.CmdCopyBuffer(e->transfer, location_block(from)->buffer,
                                    location_block(to)->buffer, 1, &region);
}

void transfer_add_pool(rlxvk_executable *e, const memory_pool *to, const memory_pool *from)
{
    for (uint32_t i = 0; i < from->count; i++) {
        VkBufferCopy region = {0, 0, from->blocks[i].size};
        e->device->fn.CmdCopyBuffer(e->transfer, from->blocks[i].buffer, to->blocks[i].buffer, 1,
                                    &region);
    }
}

void transfer_add_fill(rlxvk_executable *e, const memory_pool *pool, uint32_t word)
{
    for (uint32_t i = 0; i < pool->count; i++)
        e->device->fn.CmdFillBuffer(e->transfer, pool->blocks[i].buffer, 0, VK_WHOLE_SIZE, word);
}

rlxvk_status transfer_copy(rlxvk_executable *e, const location *to, const location *from)
{
    rlxvk_status status;
    if (from->bytes == 0)
        return RLXVK_OK;
    TRY(transfer_begin(e));
    transfer_add_copy(e, to, from);
    TRY(transfer_end(e));
error:
    return status;
}
