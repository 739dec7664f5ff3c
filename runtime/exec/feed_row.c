/*
 * Row feeds: dispatches that copy a row of an output into an input if rlxvk_feed_rows is called.
 * They are recorded once and read the row numbers from a small buffer.
 */
#include "exec/feed_row.h"
#include "args/movement.h"
#include "exec/output_row.h"
#include "exec/ticket.h"

static rlxvk_status record_row_feed(rlxvk_executable *e, const feed_commands *f,
                                    const input_state *in, uint32_t index)
{
    const output_state *out = &e->outputs[in->row_feed];
    location to = executable_location(e, in->leaf->node), from = executable_output_location(e, out),
             source = from;
    if (!out->copy)
        source = e->locations[e->program->schedule.values.items[out->result->node].root];
    struct feed_row_args args = {.pair = index,
                                 .source_offset = (uint32_t)((from.offset - source.offset) / 4)};
    VkDescriptorSet set;
    rlxvk_status status;
    if (!to.bytes || !from.bytes) /* no row with elements fits */
        return RLXVK_OK;
    buffer_range ranges[] = {{f->row_arguments.buffer, 0, f->row_arguments.size},
                             {location_block(&source)->buffer, source.offset,
                              round_up(MAX(source.bytes, 4), 4)},
                             {location_block(&to)->buffer, to.offset,
                              executable_slot_bytes(e, in->leaf->node)}};
    VkPipelineLayout layout = e->device->pipeline_layouts[3];
    TRY(vk_descriptor_set_write(e->device, f->row_descriptors, ranges, 3, &set));
    const vk_functions *fn = &e->device->fn;
    fn->CmdBindPipeline(f->rows, VK_PIPELINE_BIND_POINT_COMPUTE, e->row_pipeline);
    fn->CmdBindDescriptorSets(f->rows, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0, NULL);
    fn->CmdPushConstants(f->rows, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof args, &args);
    fn->CmdDispatch(f->rows, 16, 1, 1);
error:
    return status;
}

rlxvk_status feed_make_rows(rlxvk_executable *e, feed_commands *f)
{
    pipeline_request request = {KERNEL_FEED_ROW,
                                1,
                                {[LOCAL_SIZE] = e->device->setup.profile.workgroup_size}};
    uint32_t count = 0, index = 0, sets[KERNEL_MAX_BINDINGS + 1] = {0};
    rlxvk_status status;
    for (size_t i = 0; i < e->program->input_count; i++)
        count += e->inputs[i].row_feed >= 0;
    if (count == 0)
        return RLXVK_OK;
    sets[3] = count;
    TRY(memory_block_create(e->device, MEMORY_UPLOAD, round_up(12ull * count, 256),
                            &f->row_arguments));
    TRY(vk_descriptor_pool_create(e->device, sets, &f->row_descriptors));
    if (!e->row_pipeline)
        TRY(pipeline_get_all(e->device, &request, 1, &e->row_pipeline));
    TRY(command_buffers_allocate(e->device, e->pool, 1, &f->rows));
    TRY(command_begin(e->device, f->rows));
    command_barrier(e->device, f->rows, ALL_DEVICE | SCOPE_HOST, ALL_DEVICE);
    for (size_t i = 0; i < e->program->input_count; i++)
        if (e->inputs[i].row_feed >= 0)
            TRY(record_row_feed(e, f, &e->inputs[i], index++));
    command_barrier(e->device, f->rows, SCOPE_COMPUTE, ALL_DEVICE | SCOPE_HOST);
    TRY(command_end(e->device, f->rows));
error:
    return status;
}

/* Whether row feeds read or write the memory of a leaf. */
static bool in_row_feeds(const rlxvk_executable *e, const program_leaf *leaf)
{
    for (size_t i = 0; i < e->program->input_count && leaf->node != NODE_NONE; i++) {
        if (e->inputs[i].row_feed < 0)
            continue;
        location mine = executable_location(e, leaf->node),
                 to = executable_location(e, e->inputs[i].leaf->node);
        location from = executable_output_location(e, &e->outputs[e->inputs[i].row_feed]);
        if (pool_overlap(&mine, &to) || pool_overlap(&mine, &from))
            return true;
    }
    return false;
}

void feed_mark_rows(rlxvk_executable *e)
{
    for (size_t i = 0; i < e->program->input_count; i++)
        e->inputs[i].in_row_feeds = in_row_feeds(e, e->inputs[i].leaf);
}

/* Whether another executable may read memory that row feeds write, or write memory that they
 * read. */
static bool rows_meet_shared(const rlxvk_executable *e)
{
    bool meet = false;
    for (size_t i = 0; i < e->program->input_count; i++)
        meet = meet || (e->inputs[i].content->shared && e->inputs[i].in_row_feeds);
    for (size_t i = 0; i < e->program->param_count; i++)
        meet = meet || (e->params[i].content->shared && in_row_feeds(e, e->params[i].leaf));
    return meet;
}

rlxvk_status rlxvk_feed_rows(rlxvk_executable *executable, size_t source_row, size_t target_row,
                             size_t row_elements)
{
    rlxvk_executable *e = executable;
    uint32_t *rows, index = 0;
    rlxvk_status status;
    TRY(executable_require(e, "feed_rows"));
    if (!e->feeds.rows)
        return status_fail(RLXVK_E_UNBOUND_HANDLE,
                           "feed_rows: no row feed is registered; see rlxvk_register_row_feed");
    for (size_t i = 0; i < e->program->input_count; i++) {
        if (e->inputs[i].row_feed < 0)
            continue;
        TRY(output_row_check(e, "feed_rows", e->outputs[e->inputs[i].row_feed].result->node,
                             source_row, row_elements));
        TRY(output_row_check(e, "feed_rows", e->inputs[i].leaf->node, target_row, row_elements));
    }
    TRY(ticket_flush(e));
    rows = (uint32_t *)e->feeds.row_arguments.mapped;
    for (size_t i = 0; i < e->program->input_count; i++) {
        input_state *in = &e->inputs[i];
        if (in->row_feed < 0)
            continue;
        rows[3 * index] = (uint32_t)(source_row * row_elements);
        rows[3 * index + 1] = (uint32_t)(target_row * row_elements);
        rows[3 * index++ + 2] = (uint32_t)row_elements;
        in->resident = true;
        input_note_write(in);
        in->content->fingerprint_valid = false;
    }
    TRY(memory_block_flush(e->device, &e->feeds.row_arguments, 0, 12 * index));
    e->row_feeds_pending = true;
    if (rows_meet_shared(e)) /* must be done before another executable runs */
        TRY(ticket_flush(e));
error:
    return status;
}
