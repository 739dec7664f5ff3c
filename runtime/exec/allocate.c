/*
 * Allocates an executable's memory: one pool of blocks for each class, with its first content, and
 * staging for inputs and outputs. After the executable is made, only feeds and blocking transfers
 * allocate more device memory.
 */
#include "exec/allocate.h"
#include "exec/canary.h"
#include "exec/locate.h"
#include "exec/transfer.h"
#include "program/slot.h"

#define STAGED_LIMIT_BYTES (64u << 20) /* larger ones take the blocking path */

uint32_t exec_scratch_fill = 0;

/* ---- Constants ---- */

static rlxvk_status upload_constant(rlxvk_executable *e, uint32_t id)
{
    const node *n = graph_node(e->program->graph, id);
    location at = executable_location(e, id);
    rlxvk_status status;
    void *slot_bytes = memory_zeroed(1, executable_slot_bytes(e, id));
    if (!slot_bytes)
        return status_fail_memory("constant");
    if (shape_numel(&n->shape))
        slot_encode(n, program_held(e->program, id), (slot_type){(rlxvk_dtype)n->dtype, false},
                    n->data, slot_bytes);
    TRY(transfer_write(e, &at, slot_bytes, executable_slot_bytes(e, id)));
error:
    memory_free(slot_bytes);
    return status;
}

static rlxvk_status upload_constants(rlxvk_executable *e)
{
    rlxvk_status status = RLXVK_OK;
    for (uint32_t id = 0; id < e->program->graph->nodes.count; id++)
        if (node_is_constant(graph_node(e->program->graph, id)))
            TRY(upload_constant(e, id));
    for (size_t i = 0; i < e->program->schedule.temporaries.count; i++) {
        const temporary *t = &e->program->schedule.temporaries.items[i];
        if (t->content)
            TRY(transfer_write(e, &e->locations[e->program->graph->nodes.count + i], t->content,
                               t->bytes));
    }
error:
    return status;
}

/* ---- Staging ---- */

static uint64_t reserve(uint64_t *end, uint64_t bytes)
{
    uint64_t at = *end;
    *end = at + round_up(bytes, 256);
    return at;
}

static bool make_staged(rlxvk_executable *e, staged_copy *s)
{
    s->commands = memory_zeroed(e->program->options.max_in_flight, sizeof *s->commands);
    s->offsets = memory_zeroed(e->program->options.max_in_flight, sizeof *s->offsets);
    return s->commands && s->offsets;
}

static rlxvk_status reserve_staged(rlxvk_executable *e, staged_copy *s, uint32_t id, uint64_t *end)
{
    uint64_t bytes = executable_slot_bytes(e, id);
    uint64_t most = e->device->setup.profile.max_allocation_bytes;
    if (bytes > STAGED_LIMIT_BYTES ||
        *end + e->program->options.max_in_flight * round_up(bytes, 256) > most)
        return RLXVK_OK; /* takes the blocking path */
    if (!make_staged(e, s))
        return status_fail_memory("staging");
    for (uint32_t t = 0; t < e->program->options.max_in_flight; t++)
        s->offsets[t] = reserve(end, bytes);
    return RLXVK_OK;
}

static bool reads_in_place(const rlxvk_executable *e, const output_state *out)
{
    location from = executable_location(e, out->result->node);
    return from.bytes == 0 || location_block(&from)->cached;
}

/* Inputs can always be staged, because a run may be in flight when the next one is given. Outputs
 * are staged only if their memory cannot be read in place. Handles that a kernel changes in place
 * are bound rarely, so they take the blocking path. */
static rlxvk_status allocate_staging(rlxvk_executable *e)
{
    uint64_t up = 0, down = 0;
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < e->program->input_count; i++)
        if (e->inputs[i].leaf->node != NODE_NONE && !e->inputs[i].leaf->in_place)
            TRY(reserve_staged(e, &e->inputs[i].upload, e->inputs[i].leaf->node, &up));
    for (size_t i = 0; i < e->program->result_count; i++)
        if (!reads_in_place(e, &e->outputs[i]))
            TRY(reserve_staged(e, &e->outputs[i].readback, e->outputs[i].result->node, &down));
    if (up)
        TRY(memory_block_create(e->device, MEMORY_UPLOAD, up, &e->staging));
    if (down)
        TRY(memory_block_create(e->device, MEMORY_READBACK, down, &e->read_staging));
error:
    return status;
}

static uint32_t scratch_fill(const rlxvk_executable *e)
{
    return e->program->options.canary ? CANARY_SCRATCH : exec_scratch_fill;
}

/* Copies weights and state from an idle executable of the same program. */
static rlxvk_status copy_memory(rlxvk_executable *e, const rlxvk_executable *from)
{
    rlxvk_status status;
    TRY(transfer_begin(e));
    for (int c = 0; c < CLASS_COUNT; c++)
        if (c == CLASS_SCRATCH)
            transfer_add_fill(e, e->pools[c], scratch_fill(e));
        else
            transfer_add_pool(e, e->pools[c], from->pools[c]);
    for (uint32_t v = 0; v < e->program->plan.value_count; v++)
        if (program_shares(e->program, v))
            transfer_add_copy(e, &e->locations[v], &from->locations[v]);
    TRY(transfer_end(e));
error:
    return status;
}

/* Fills memory with zeros and uploads the constants. */
static rlxvk_status begin_memory(rlxvk_executable *e)
{
    rlxvk_status status;
    TRY(transfer_begin(e));
    for (int c = 0; c < CLASS_COUNT; c++)
        transfer_add_fill(e, e->pools[c], c == CLASS_SCRATCH ? scratch_fill(e) : 0);
    for (size_t i = 0; i < ARRAY_COUNT(e->detached); i++)
        if (e->detached[i])
            transfer_add_fill(e, e->detached[i], 0);
    TRY(transfer_end(e));
    TRY(upload_constants(e));
error:
    return status;
}

static rlxvk_status create_pools(rlxvk_executable *e)
{
    const program *p = e->program;
    rlxvk_status status = RLXVK_OK;
    for (int c = 0; c < CLASS_COUNT; c++)
        TRY(pool_create(e->device, c == CLASS_HOST_WEIGHTS ? MEMORY_HOST : MEMORY_ARENA,
                        p->plan.blocks[c].items, (uint32_t)p->plan.blocks[c].count,
                        p->param_count + p->input_count, &e->pools[c]));
error:
    return status;
}

rlxvk_status allocate_memory(rlxvk_executable *e, const rlxvk_executable *share_with,
                             const rlxvk_executable *copy_of)
{
    rlxvk_status status;
    TRY(create_pools(e));
    TRY(locate_values(e, share_with, copy_of));
    TRY(copy_of ? copy_memory(e, copy_of) : begin_memory(e));
    TRY(canary_prepare(e));
    TRY(allocate_staging(e));
error:
    return status;
}
