/* Finds out how the device spreads a matrix over the lanes of a subgroup. Vulkan does not tell, so
 * a kernel tests it once, when the first executable needs to know. */
#include "args/matmul.h"
#include "constants/matmul.h"
#include "vk/internal.h"
#include "vk/vk.h"

/* UNKNOWN must be 0, because a new device is zeroed. */
enum layout { LAYOUT_UNKNOWN, LAYOUT_OTHER, LAYOUT_LANES };

#define TIMEOUT_NS 60000000000ull

typedef struct probe {
    memory_block block;
    VkCommandPool pool;
    VkDescriptorPool descriptors;
    VkSemaphore timeline;
} probe;

static void probe_destroy(device *d, probe *p)
{
    if (p->timeline)
        d->fn.DestroySemaphore(d->handle, p->timeline, NULL);
    if (p->descriptors)
        d->fn.DestroyDescriptorPool(d->handle, p->descriptors, NULL);
    if (p->pool)
        d->fn.DestroyCommandPool(d->handle, p->pool, NULL);
    memory_block_destroy(d, &p->block);
}

/* One workgroup with one subgroup writes 1 if every lane finds the elements it expects, else 0. */
static rlxvk_status probe_record(device *d, probe *p, VkPipeline pipeline, VkCommandBuffer *out)
{
    static const uint32_t sets[KERNEL_MAX_BINDINGS + 1] = {[1] = 1};
    buffer_range range = {.size = sizeof(uint32_t)};
    VkDescriptorSet set;
    rlxvk_status status;
    TRY(memory_block_create(d, MEMORY_READBACK, range.size, &p->block));
    range.buffer = p->block.buffer;
    TRY(vk_descriptor_pool_create(d, sets, &p->descriptors));
    TRY(vk_descriptor_set_write(d, p->descriptors, &range, 1, &set));
    TRY(vk_timeline_create(d, &p->timeline));
    TRY(command_pool_create(d, &p->pool));
    TRY(command_buffers_allocate(d, p->pool, 1, out));
    TRY(command_begin(d, *out));
    d->fn.CmdBindPipeline(*out, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    d->fn.CmdBindDescriptorSets(*out, VK_PIPELINE_BIND_POINT_COMPUTE, d->pipeline_layouts[1], 0, 1,
                                &set, 0, NULL);
    d->fn.CmdDispatch(*out, 1, 1, 1);
    command_barrier(d, *out, SCOPE_COMPUTE, SCOPE_HOST);
    TRY(command_end(d, *out));
error:
    return status;
}

static rlxvk_status look(device *d, bool bf16, matrix_shape unit, int *out)
{
    const device_profile *profile = &d->setup.profile;
    pipeline_request request = {bf16 ? KERNEL_MATRIX_PROBE_BF16 : KERNEL_MATRIX_PROBE_F16,
                                4,
                                {[LOCAL_SIZE] = profile->subgroup_size,
                                 [MATRIX_PROBE_UNIT_M] = unit.m,
                                 [MATRIX_PROBE_UNIT_N] = unit.n,
                                 [MATRIX_PROBE_ROWS] =
                                     MATRIX_LANES * unit.m / profile->subgroup_size}};
    probe p = {.pool = VK_NULL_HANDLE};
    VkPipeline pipeline;
    VkCommandBuffer commands;
    rlxvk_status status;
    TRY(pipeline_get_all(d, &request, 1, &pipeline));
    TRY(probe_record(d, &p, pipeline, &commands));
    TRY(vk_queue_submit(d, p.timeline, 0, 1, &commands, 1));
    TRY(vk_timeline_wait(d, p.timeline, 1, TIMEOUT_NS));
    TRY(memory_block_invalidate(d, &p.block, 0, p.block.size));
    *out = *(const uint32_t *)p.block.mapped == 1 ? LAYOUT_LANES : LAYOUT_OTHER;
error:
    probe_destroy(d, &p);
    return status;
}

/* Shapes that do not divide evenly into the kernel's lanes are not tested. Two threads may test at
 * once, because they find the same. */
rlxvk_status vk_matrix_layout(device *d, bool bf16, bool *out_in_lanes)
{
    const device_profile *profile = &d->setup.profile;
    const matrix_shape *unit = bf16 ? &profile->matrix_bf16 : &profile->matrix_f16;
    rlxvk_status status = RLXVK_OK;
    int layout = atomic_read_alone(&d->matrix_layouts[bf16]);
    if (unit->m == 0 || unit->m != unit->n || unit->n != unit->k || unit->n % (2 * MATRIX_LANES) ||
        MATRIX_LANES * unit->m % profile->subgroup_size)
        layout = LAYOUT_OTHER;
    if (layout == LAYOUT_UNKNOWN)
        TRY(look(d, bf16, *unit, &layout));
    atomic_write_alone(&d->matrix_layouts[bf16], layout);
    *out_in_lanes = layout == LAYOUT_LANES;
error:
    return status;
}
