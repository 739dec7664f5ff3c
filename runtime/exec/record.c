/*
 * Records one reusable command buffer for each segment, and one for each staged input or output and
 * ticket. They are recorded once, with the executable. A run only chooses which of them to submit.
 * Feeds are in feed_copy.c and feed_row.c.
 */
#include "exec/record.h"
#include "program/bound.h"

/* ---- Descriptor sets ---- */

/* The size of an operand's descriptor, rounded up to 16 bytes, because kernels may read whole
 * vectors. Slots have room for that. With canaries, a descriptor reaches as far as the device
 * allows. */
static uint64_t bound_bytes(const rlxvk_executable *e, const operand *o)
{
    const program_options *options = &e->program->options;
    return options->canary ? e->device->setup.profile.max_binding_bytes
                           : round_up(MAX(o->size, 4), 16);
}

static rlxvk_status write_set(rlxvk_executable *e, const dispatch *d, VkDescriptorSet *out)
{
    buffer_range ranges[KERNEL_MAX_BINDINGS];
    for (uint32_t i = 0; i < d->operand_count; i++) {
        const operand *o = &d->operands[i];
        const location *l = &e->locations[o->value];
        uint64_t first = l->offset + o->first, behind = location_block(l)->size - first;
        ranges[i] =
            (buffer_range){location_block(l)->buffer, first, MIN(bound_bytes(e, o), behind)};
    }
    return vk_descriptor_set_write(e->device, e->descriptors, ranges, d->operand_count, out);
}

static rlxvk_status write_sets(rlxvk_executable *e)
{
    const program *p = e->program;
    size_t count = p->schedule.dispatches.count;
    rlxvk_status status = RLXVK_OK;
    if (count == 0)
        return RLXVK_OK;
    e->sets = memory_zeroed(count, sizeof *e->sets);
    if (!e->sets)
        return status_fail_memory("descriptor sets");
    TRY(vk_descriptor_pool_create(e->device, p->sets, &e->descriptors));
    for (size_t i = 0; i < count; i++)
        TRY(write_set(e, &p->schedule.dispatches.items[i], &e->sets[i]));
error:
    return status;
}

/* ---- Segments ---- */

static const dispatch *bind(rlxvk_executable *e, VkCommandBuffer c, VkPipeline pipeline,
                            uint32_t index)
{
    const vk_functions *fn = &e->device->fn;
    const dispatch *d = &e->program->schedule.dispatches.items[index];
    VkPipelineLayout layout = e->device->pipeline_layouts[d->operand_count];
    if (e->program->options.marks)
        vk_mark(e->device, c, &e->marks, e->program->schedule.dispatches.items, index + 1);
    fn->CmdBindPipeline(c, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    fn->CmdBindDescriptorSets(c, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &e->sets[index], 0,
                              NULL);
    if (d->argument_bytes)
        fn->CmdPushConstants(c, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, d->argument_bytes,
                             d->arguments);
    return d;
}

static void record_dispatch(rlxvk_executable *e, VkCommandBuffer c, uint32_t index)
{
    const vk_functions *fn = &e->device->fn;
    const dispatch *d = bind(e, c, e->program->pipelines[index], index);
    if (e->group_counts && extent_scales(&e->program->extent, index))
        fn->CmdDispatchIndirect(c, e->group_counts->blocks[0].buffer, state_group_counts(index));
    else
        fn->CmdDispatch(c, d->groups[0], d->groups[1], d->groups[2]);
}

/* Records the workgroups [first, end) of a dispatch. */
static void record_range(rlxvk_executable *e, VkCommandBuffer c, uint32_t index, uint64_t first,
                         uint64_t end)
{
    const dispatch *d = bind(e, c, e->program->ranges[index], index);
    slice_box box;
    while (first < end) {
        first += slice_box_at(d->groups, first, end, &box);
        e->device->fn.CmdDispatchBase(c, box.base[0], box.base[1], box.base[2], box.count[0],
                                      box.count[1], box.count[2]);
    }
}

/* A segment's timestamps: its begin, and then the end of each step (profiled) or only of the
 * last. */
uint32_t record_first_query(const rlxvk_executable *e, uint32_t segment)
{
    return e->program->options.profiled ? e->program->plan.segments.items[segment].first + segment
                                        : 2 * segment;
}
uint32_t record_last_query(const rlxvk_executable *e, uint32_t segment)
{
    uint32_t steps =
        e->program->options.profiled ? e->program->plan.segments.items[segment].count : 1;
    return record_first_query(e, segment) + steps;
}

static void record_timestamp(rlxvk_executable *e, VkCommandBuffer c, uint32_t query)
{
    if (e->queries)
        e->device->fn.CmdWriteTimestamp(c, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, e->queries, query);
}

/* Records the end of a step, if it is timed. */
static void record_step_end(rlxvk_executable *e, VkCommandBuffer c, uint32_t index, uint32_t step)
{
    const segment *g = &e->program->plan.segments.items[index];
    uint32_t first = record_first_query(e, index);
    if (e->program->options.profiled)
        record_timestamp(e, c, first + 1 + step - g->first);
    else if (step + 1 == g->first + g->count)
        record_timestamp(e, c, first + 1);
}

/* If it is `timed`, the ends of steps get their timestamps. */
static void record_piece(rlxvk_executable *e, VkCommandBuffer c, uint32_t index, const piece *p,
                         bool timed)
{
    for (uint32_t s = p->step; s < p->step + p->steps; s++) {
        uint32_t dispatch = e->program->schedule.steps.items[s].dispatch;
        uint64_t groups = bound_groups(&e->program->schedule.dispatches.items[dispatch]);
        if (p->first == 0 && e->program->plan.barriers[s].kind != HAZARD_NONE)
            command_barrier(e->device, c, SCOPE_COMPUTE, SCOPE_COMPUTE);
        if (p->count)
            record_range(e, c, dispatch, p->first, p->first + p->count);
        else
            record_dispatch(e, c, dispatch);
        if (timed && (!p->count || p->first + p->count == groups))
            record_step_end(e, c, index, s);
    }
}

rlxvk_status record_pieces(rlxvk_executable *e, uint32_t index, VkCommandBuffer c,
                           const piece *pieces, uint32_t count, uint32_t rounds)
{
    uint32_t query = record_first_query(e, index),
             queries = record_last_query(e, index) - query + 1;
    bool begins = pieces->step == e->program->plan.segments.items[index].first && !pieces->first;
    rlxvk_status status;
    TRY(command_begin(e->device, c));
    if (e->queries && begins)
        e->device->fn.CmdResetQueryPool(c, e->queries, query, queries);
    command_barrier(e->device, c, ALL_DEVICE | SCOPE_HOST,
                    ALL_DEVICE | (e->group_counts ? SCOPE_INDIRECT : 0));
    if (begins)
        record_timestamp(e, c, query);
    for (uint32_t i = 0; i < rounds; i++)
        for (uint32_t k = 0; k < count; k++)
            record_piece(e, c, index, &pieces[k], i == 0);
    command_barrier(e->device, c, SCOPE_COMPUTE, ALL_DEVICE | SCOPE_HOST);
    TRY(command_end(e->device, c));
error:
    return status;
}

/* Records `rounds` rounds of a segment. Only the first one is timed. */
static rlxvk_status record_rounds(rlxvk_executable *e, uint32_t index, VkCommandBuffer c,
                                  uint32_t rounds)
{
    const segment *g = &e->program->plan.segments.items[index];
    piece whole = {.step = g->first, .steps = g->count};
    return record_pieces(e, index, c, &whole, 1, rounds);
}

rlxvk_status record_segment(rlxvk_executable *e, uint32_t index)
{
    const plan *p = &e->program->plan;
    rlxvk_status status;
    TRY(record_rounds(e, index, e->segments[index], p->segments.items[index].rounds));
    if (e->rests[index])
        TRY(record_rounds(e, index, e->rests[index], p->segments.items[index].rest));
error:
    return status;
}

rlxvk_status record_step(rlxvk_executable *e, VkCommandBuffer c, uint32_t dispatch)
{
    rlxvk_status status;
    TRY(command_begin(e->device, c));
    command_barrier(e->device, c, ALL_DEVICE | SCOPE_HOST,
                    ALL_DEVICE | (e->group_counts ? SCOPE_INDIRECT : 0));
    record_dispatch(e, c, dispatch);
    command_barrier(e->device, c, SCOPE_COMPUTE, ALL_DEVICE | SCOPE_HOST);
    TRY(command_end(e->device, c));
error:
    return status;
}

static rlxvk_status record_segments(rlxvk_executable *e)
{
    uint32_t count = (uint32_t)e->program->plan.segments.count;
    rlxvk_status status = RLXVK_OK;
    e->segments = memory_zeroed(count + 1, sizeof *e->segments);
    e->rests = memory_zeroed(count + 1, sizeof *e->rests);
    if (!e->segments || !e->rests)
        return status_fail_memory("segments");
    for (uint32_t i = 0; i < count; i++) {
        if (e->program->plan.segments.items[i].host)
            continue;
        TRY(command_buffers_allocate(e->device, e->pool, 1, &e->segments[i]));
        if (e->program->plan.segments.items[i].rest)
            TRY(command_buffers_allocate(e->device, e->pool, 1, &e->rests[i]));
        TRY(record_segment(e, i));
    }
error:
    return status;
}

/* ---- Staged copies ---- */

static rlxvk_status record_copy(rlxvk_executable *e, VkCommandBuffer c, buffer_range from,
                                buffer_range to, unsigned after)
{
    VkBufferCopy region = {from.offset, to.offset, from.size};
    rlxvk_status status;
    TRY(command_begin(e->device, c));
    command_barrier(e->device, c, ALL_DEVICE | SCOPE_HOST, SCOPE_TRANSFER);
    e->device->fn.CmdCopyBuffer(c, from.buffer, to.buffer, 1, &region);
    command_barrier(e->device, c, SCOPE_TRANSFER, after);
    TRY(command_end(e->device, c));
error:
    return status;
}

/* Records copies between the staging block and device memory at `l`. */
static rlxvk_status record_staged(rlxvk_executable *e, staged_copy *s, const location *l,
                                  bool upload)
{
    buffer_range arena = {location_block(l)->buffer, l->offset, round_up(MAX(l->bytes, 4), 4)};
    rlxvk_status status = RLXVK_OK;
    if (!s->commands)
        return RLXVK_OK;
    if (!s->commands[0])
        TRY(command_buffers_allocate(e->device, e->pool, e->program->options.max_in_flight,
                                     s->commands));
    for (uint32_t t = 0; t < e->program->options.max_in_flight; t++) {
        VkBuffer buffer = upload ? e->staging.buffer : e->read_staging.buffer;
        buffer_range stage = {buffer, s->offsets[t], arena.size};
        TRY(record_copy(e, s->commands[t], upload ? stage : arena, upload ? arena : stage,
                        upload ? ALL_DEVICE : ALL_DEVICE | SCOPE_HOST));
    }
error:
    return status;
}

static rlxvk_status record_upload(rlxvk_executable *e, input_state *in)
{
    location to = executable_location(e, in->leaf->node);
    return record_staged(e, &in->upload, &to, true);
}

static rlxvk_status record_readback(rlxvk_executable *e, output_state *out)
{
    location from = executable_output_location(e, out);
    return record_staged(e, &out->readback, &from, false);
}

rlxvk_status record_copy_readback(rlxvk_executable *e, output_state *out)
{
    location from = executable_output_location(e, out);
    staged_copy staged = {.offsets = out->readback.offsets};
    if (!out->readback.commands)
        return RLXVK_OK;
    staged.commands = memory_zeroed(e->program->options.max_in_flight, sizeof *staged.commands);
    if (!(out->copy_readback = staged.commands))
        return status_fail_memory("staging");
    return record_staged(e, &staged, &from, false);
}

/* ---- Loops ---- */

static rlxvk_status record_stop(rlxvk_executable *e, uint32_t index)
{
    location from = executable_location(e, e->program->plan.loops.items[index].stop);
    buffer_range word = {location_block(&from)->buffer, from.offset, 4};
    buffer_range copy = {e->stop_words.buffer, 4 * (uint64_t)index, 4};
    return record_copy(e, e->stops[index], word, copy, ALL_DEVICE | SCOPE_HOST);
}

/* Records the copies of the words that end loops. */
static rlxvk_status record_stops(rlxvk_executable *e)
{
    const plan *p = &e->program->plan;
    uint32_t count = (uint32_t)p->loops.count;
    rlxvk_status status = RLXVK_OK;
    if (!(e->stops = memory_zeroed(count + 1, sizeof *e->stops)))
        return status_fail_memory("loops");
    for (uint32_t i = 0; i < count; i++) {
        if (p->loops.items[i].stop == NODE_NONE)
            continue;
        if (!e->stop_words.size)
            TRY(memory_block_create(e->device, MEMORY_READBACK, 4 * (uint64_t)count,
                                    &e->stop_words));
        TRY(command_buffers_allocate(e->device, e->pool, 1, &e->stops[i]));
        TRY(record_stop(e, i));
    }
error:
    return status;
}

uint32_t record_loop_query(const rlxvk_executable *e, uint32_t loop)
{
    const program *p = e->program;
    return (uint32_t)(p->schedule.steps.count + 2 * p->plan.segments.count) + 2 * loop;
}

/* Records timestamps of the begin and end of each loop. They are needed because the timestamps of a
 * segment tell only its last replay. */
static rlxvk_status record_stamps(rlxvk_executable *e)
{
    uint32_t count = 2 * (uint32_t)e->program->plan.loops.count;
    rlxvk_status status = RLXVK_OK;
    if (!e->queries || count == 0)
        return RLXVK_OK;
    if (!(e->stamps = memory_zeroed(count, sizeof *e->stamps)))
        return status_fail_memory("loops");
    TRY(command_buffers_allocate(e->device, e->pool, count, e->stamps));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t query = record_loop_query(e, 0) + i;
        TRY(command_begin(e->device, e->stamps[i]));
        e->device->fn.CmdResetQueryPool(e->stamps[i], e->queries, query, 1);
        record_timestamp(e, e->stamps[i], query);
        TRY(command_end(e->device, e->stamps[i]));
    }
error:
    return status;
}

static rlxvk_status create_queries(rlxvk_executable *e)
{
    VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                  .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                  .queryCount =
                                      record_loop_query(e, (uint32_t)e->program->plan.loops.count)};
    rlxvk_status status = RLXVK_OK;
    if ((e->program->options.profiled || e->program->options.timed) &&
        e->device->setup.timestamps && info.queryCount)
        VK(e->device, CreateQueryPool(e->device->handle, &info, NULL, &e->queries));
error:
    return status;
}

rlxvk_status record_all(rlxvk_executable *e)
{
    rlxvk_status status;
    TRY(write_sets(e));
    TRY(create_queries(e));
    if (e->program->options.marks)
        TRY(vk_marks_create(e->device, &e->marks));
    TRY(record_segments(e));
    TRY(record_stops(e));
    TRY(record_stamps(e));
    for (size_t i = 0; i < e->program->input_count; i++)
        if (e->inputs[i].leaf->node != NODE_NONE)
            TRY(record_upload(e, &e->inputs[i]));
    for (size_t i = 0; i < e->program->result_count; i++)
        TRY(record_readback(e, &e->outputs[i]));
error:
    return status;
}
