/*
 * Marks in command buffers, which tell how far the device came before it was lost. NVIDIA's driver
 * keeps them itself. AMD's writes them to memory that the host reads.
 */
#include "vk/internal.h"

#include <string.h>

enum { MOST_CHECKPOINTS = 32 };

rlxvk_status vk_marks_create(device *d, memory_block *out)
{
    if (d->snapshot.checkpoints || !d->snapshot.buffer_marker)
        return RLXVK_OK;
    rlxvk_status status = memory_block_create(d, MEMORY_READBACK, sizeof(vk_marks), out);
    if (status == RLXVK_OK)
        memset(out->mapped, 0, sizeof(vk_marks));
    return status;
}

void vk_mark(device *d, VkCommandBuffer buffer, const memory_block *block, const void *owner,
             uint32_t number)
{
    if (d->snapshot.checkpoints) {
        d->fn.CmdSetCheckpointNV(buffer, (const char *)owner + number);
    } else if (block->mapped) {
        d->fn.CmdWriteBufferMarkerAMD(buffer, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, block->buffer,
                                      offsetof(vk_marks, begun), number);
        d->fn.CmdWriteBufferMarkerAMD(buffer, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, block->buffer,
                                      offsetof(vk_marks, reached), number);
    }
}

/* A checkpoint may be of another owner. */
static uint32_t number_of(const VkCheckpointDataNV *checkpoint, const void *owner, uint32_t most)
{
    uintptr_t number = (uintptr_t)checkpoint->pCheckpointMarker - (uintptr_t)owner;
    return number <= most ? (uint32_t)number : 0;
}

static vk_marks read_checkpoints(device *d, const void *owner, uint32_t most)
{
    VkCheckpointDataNV list[MOST_CHECKPOINTS] = {0};
    uint32_t count = MOST_CHECKPOINTS;
    vk_marks found = {0};
    for (uint32_t i = 0; i < count; i++)
        list[i].sType = VK_STRUCTURE_TYPE_CHECKPOINT_DATA_NV;
    d->fn.GetQueueCheckpointDataNV(d->queue, &count, list);
    for (uint32_t i = 0; i < count; i++)
        if (list[i].stage == VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT)
            found.begun = number_of(&list[i], owner, most);
        else if (list[i].stage == VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT)
            found.reached = number_of(&list[i], owner, most);
    return found;
}

vk_marks vk_marks_read(device *d, const memory_block *block, const void *owner, uint32_t most)
{
    vk_marks found = {0};
    if (!vk_is_lost(d) || vk_is_foreign(d))
        return found;
    if (d->snapshot.checkpoints)
        return read_checkpoints(d, owner, most);
    if (block->mapped)
        memcpy(&found, block->mapped, sizeof found);
    return found.begun <= most && found.reached <= most ? found : (vk_marks){0};
}
