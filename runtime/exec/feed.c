/*
 * Feeds: outputs copied into inputs on the device, whole after every run or by rows when asked.
 *
 * Invariants: all sources are read before any target is written, through a scratch block; an output
 * that shares memory with the target of a feed is read from a copy of its own, made by the same
 * commands before the targets are written, so that a run's outputs are what they were before its
 * feeds. What the commands need is made aside and exchanged for the old when complete: a failure
 * changes nothing.
 */
#include "args/movement.h"
#include "exec/executable.h"

#include <string.h>

#define FEED_ALIGNMENT 256

/* ---- Where things are ---- */

location output_location(const rlxvk_executable *e, const output_state *out)
{
    location l = node_location(e, out->node);
    if (out->copy)
        l = (location){out->copy, 0, 0, l.bytes};
    return l;
}

static bool is_fed(const input_state *in)
{
    return in->feed >= 0 && in->node != NODE_NONE;
}

static location feed_source(const rlxvk_executable *e, const input_state *in)
{
    return node_location(e, e->outputs[in->feed].node);
}

static uint64_t feed_bytes(const rlxvk_executable *e, const input_state *in)
{
    return MIN(node_location(e, in->node).bytes, feed_source(e, in).bytes);
}

/* Whether a feed moves anything: an output that is its target's own memory stays where it is. */
static bool feed_moves(const rlxvk_executable *e, const input_state *in)
{
    location to = node_location(e, in->node), from = feed_source(e, in);
    bool same =
        location_block(&from)->buffer == location_block(&to)->buffer && from.offset == to.offset;
    return feed_bytes(e, in) && !same;
}

/* ---- Copies of outputs that a feed would change ---- */

static bool is_row_source(const rlxvk_executable *e, const output_state *out)
{
    for (size_t i = 0; i < e->input_count; i++)
        if (e->inputs[i].row_feed >= 0 && &e->outputs[e->inputs[i].row_feed] == out)
            return true;
    return false;
}

/* By a whole feed, or by a row feed while it is another's source. */
static bool overwritten(const rlxvk_executable *e, const output_state *out)
{
    location from = node_location(e, out->node);
    bool row_source = is_row_source(e, out);
    for (size_t i = 0; i < e->input_count; i++) {
        const input_state *in = &e->inputs[i];
        bool written = (is_fed(in) && feed_moves(e, in)) || (row_source && in->row_feed >= 0);
        location to = written ? node_location(e, in->node) : from;
        if (written && locations_overlap(&from, &to))
            return true;
    }
    return false;
}

/* The copy begins with what the output is now, and stays even when the feed goes. */
rlxvk_status keep_output(rlxvk_executable *e, output_state *out)
{
    location from = node_location(e, out->node), to = {.bytes = from.bytes};
    uint64_t bytes = round_up(from.bytes, FEED_ALIGNMENT);
    rlxvk_status status;
    TRY(pool_create(e, &bytes, 1, &to.pool));
    TRY(location_copy(e, &to, &from));
    out->copy = to.pool;
    status = record_readback(e, out);
    if (status == RLXVK_OK)
        return RLXVK_OK;
    out->copy = NULL;
error:
    pool_release(e->context, to.pool);
    return status;
}

static rlxvk_status copy_overwritten(rlxvk_executable *e)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < e->output_count; i++)
        if (!e->outputs[i].copy && overwritten(e, &e->outputs[i]))
            TRY(keep_output(e, &e->outputs[i]));
error:
    return status;
}

/* ---- Whole feeds ---- */

static void copy_range(rlxvk_executable *e, VkCommandBuffer c, const memory_block *from,
                       uint64_t from_offset, const memory_block *to, uint64_t to_offset,
                       uint64_t bytes)
{
    VkBufferCopy region = {from_offset, to_offset, bytes};
    e->device->fn.CmdCopyBuffer(c, from->buffer, to->buffer, 1, &region);
}

/* Copies every fed output to the scratch (outward) or the scratch to every input (inward). */
static void copy_feeds(rlxvk_executable *e, const feed_commands *f, bool outward)
{
    uint64_t at = 0;
    for (size_t i = 0; i < e->input_count; i++) {
        const input_state *in = &e->inputs[i];
        if (!is_fed(in) || !feed_moves(e, in))
            continue;
        uint64_t bytes = feed_bytes(e, in);
        location l = outward ? feed_source(e, in) : node_location(e, in->node);
        if (outward)
            copy_range(e, f->copies, location_block(&l), l.offset, &f->scratch, at, bytes);
        else
            copy_range(e, f->copies, &f->scratch, at, location_block(&l), l.offset, bytes);
        at += round_up(bytes, FEED_ALIGNMENT);
    }
}

static void copy_outputs(rlxvk_executable *e, VkCommandBuffer c)
{
    for (size_t i = 0; i < e->output_count; i++) {
        const output_state *out = &e->outputs[i];
        location from = node_location(e, out->node);
        if (out->copy)
            copy_range(e, c, location_block(&from), from.offset, &out->copy->blocks[0], 0,
                       from.bytes);
    }
}

static rlxvk_status record_copies(rlxvk_executable *e, feed_commands *f)
{
    rlxvk_status status;
    TRY(command_buffers_allocate(e->device, e->pool, 1, &f->copies));
    TRY(command_begin(e->device, f->copies));
    command_barrier(e->device, f->copies, ALL_DEVICE, SCOPE_TRANSFER);
    copy_feeds(e, f, true);
    copy_outputs(e, f->copies);
    command_barrier(e->device, f->copies, SCOPE_TRANSFER, SCOPE_TRANSFER);
    copy_feeds(e, f, false);
    command_barrier(e->device, f->copies, SCOPE_TRANSFER, ALL_DEVICE | SCOPE_HOST);
    TRY(command_end(e->device, f->copies));
error:
    return status;
}

static rlxvk_status make_copies(rlxvk_executable *e, feed_commands *f)
{
    uint64_t bytes = 0;
    bool any = false;
    rlxvk_status status;
    TRY(copy_overwritten(e));
    for (size_t i = 0; i < e->output_count; i++)
        any = any || e->outputs[i].copy;
    for (size_t i = 0; i < e->input_count; i++)
        if (is_fed(&e->inputs[i]) && feed_moves(e, &e->inputs[i]))
            bytes += round_up(feed_bytes(e, &e->inputs[i]), FEED_ALIGNMENT);
    if (bytes)
        TRY(memory_block_create(e->device, MEMORY_ARENA, bytes, &f->scratch));
    if (bytes || any)
        TRY(record_copies(e, f));
error:
    return status;
}

/* ---- Row feeds: dispatches that read the row numbers from a small buffer ---- */

static rlxvk_status record_row_feed(rlxvk_executable *e, const feed_commands *f,
                                    const input_state *in, uint32_t index, VkPipeline pipeline)
{
    const output_state *out = &e->outputs[in->row_feed];
    location to = node_location(e, in->node), from = output_location(e, out), source = from;
    if (!out->copy)
        source = e->locations[e->schedule.values.items[out->node].root];
    struct feed_row_args args = {.pair = index,
                                 .source_offset = (uint32_t)((from.offset - source.offset) / 4)};
    VkDescriptorSet set;
    rlxvk_status status;
    if (!to.bytes || !from.bytes) /* no row of any elements fits */
        return RLXVK_OK;
    buffer_range ranges[] = {{f->row_arguments.buffer, 0, f->row_arguments.size},
                             {location_block(&source)->buffer, source.offset,
                              round_up(MAX(source.bytes, 4), 4)},
                             {location_block(&to)->buffer, to.offset,
                              node_slot_bytes(e, in->node)}};
    VkPipelineLayout layout = e->device->pipeline_layouts[3];
    TRY(vk_descriptor_set_write(e->device, f->row_descriptors, ranges, 3, &set));
    const vk_functions *fn = &e->device->fn;
    fn->CmdBindPipeline(f->rows, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    fn->CmdBindDescriptorSets(f->rows, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0, NULL);
    fn->CmdPushConstants(f->rows, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof args, &args);
    fn->CmdDispatch(f->rows, 16, 1, 1);
error:
    return status;
}

static rlxvk_status make_rows(rlxvk_executable *e, feed_commands *f)
{
    pipeline_request request = {KERNEL_FEED_ROW,
                                1,
                                {[LOCAL_SIZE] = e->device->choice.profile.workgroup_size}};
    uint32_t count = 0, index = 0, sets[KERNEL_MAX_BINDINGS + 1] = {0};
    VkPipeline pipeline;
    rlxvk_status status;
    for (size_t i = 0; i < e->input_count; i++)
        count += e->inputs[i].row_feed >= 0;
    if (count == 0)
        return RLXVK_OK;
    sets[3] = count;
    TRY(memory_block_create(e->device, MEMORY_UPLOAD, round_up(12ull * count, 256),
                            &f->row_arguments));
    TRY(vk_descriptor_pool_create(e->device, sets, &f->row_descriptors));
    TRY(pipeline_get_all(e->device, &request, 1, &pipeline));
    TRY(command_buffers_allocate(e->device, e->pool, 1, &f->rows));
    TRY(command_begin(e->device, f->rows));
    command_barrier(e->device, f->rows, ALL_DEVICE | SCOPE_HOST, ALL_DEVICE);
    for (size_t i = 0; i < e->input_count; i++)
        if (e->inputs[i].row_feed >= 0)
            TRY(record_row_feed(e, f, &e->inputs[i], index++, pipeline));
    command_barrier(e->device, f->rows, SCOPE_COMPUTE, ALL_DEVICE | SCOPE_HOST);
    TRY(command_end(e->device, f->rows));
error:
    return status;
}

/* Marks the inputs whose memory row feeds read or write. */
static void mark_row_memory(rlxvk_executable *e)
{
    for (size_t k = 0; k < e->input_count; k++) {
        input_state *in = &e->inputs[k];
        in->in_row_feeds = false;
        for (size_t i = 0; i < e->input_count && in->node != NODE_NONE; i++) {
            if (e->inputs[i].row_feed < 0)
                continue;
            location mine = node_location(e, in->node), to = node_location(e, e->inputs[i].node);
            location from = output_location(e, &e->outputs[e->inputs[i].row_feed]);
            in->in_row_feeds = in->in_row_feeds || locations_overlap(&mine, &to) ||
                               locations_overlap(&mine, &from);
        }
    }
}

/* ---- Both, exchanged as one ---- */

void feed_commands_destroy(rlxvk_executable *e, feed_commands *f)
{
    const vk_functions *fn = &e->device->fn;
    VkCommandBuffer buffers[] = {f->copies, f->rows};
    for (size_t i = 0; i < ARRAY_COUNT(buffers); i++)
        if (buffers[i])
            fn->FreeCommandBuffers(e->device->handle, e->pool, 1, &buffers[i]);
    if (f->row_descriptors)
        fn->DestroyDescriptorPool(e->device->handle, f->row_descriptors, NULL);
    memory_block_destroy(e->device, &f->scratch);
    memory_block_destroy(e->device, &f->row_arguments);
    *f = (feed_commands){0};
}

rlxvk_status record_feeds(rlxvk_executable *e)
{
    feed_commands made = {0};
    rlxvk_status status;
    TRY(flush_row_feeds(e));
    TRY(make_copies(e, &made));
    TRY(make_rows(e, &made));
    feed_commands_destroy(e, &e->feeds);
    e->feeds = made;
    mark_row_memory(e);
    return RLXVK_OK;
error:
    feed_commands_destroy(e, &made);
    return status;
}

/* ---- The public calls ---- */

static rlxvk_status check_feed(rlxvk_executable *e, const char *call, const char *name,
                               size_t index, input_state **out)
{
    rlxvk_status status;
    TRY(live_input(e, call, name, out));
    if (index >= e->output_count)
        return status_fail(RLXVK_E_INDEX, "%s: output %zu of %zu; the first is 0", call, index,
                           e->output_count);
    if ((*out)->node == NODE_NONE)
        return RLXVK_OK;
    uint32_t to = (*out)->node, from = e->outputs[index].node;
    if (node_held(e, to) != node_held(e, from))
        return status_fail(
            RLXVK_E_DTYPE,
            "%s: input '%s' (%s) and output %zu (%s) are held differently; cast one of "
            "them in the graph",
            call, name, rlxvk_dtype_name((rlxvk_dtype)graph_node(e->graph, to)->dtype), index,
            rlxvk_dtype_name(e->outputs[index].dtype));
error:
    return status;
}

/* Sets both feeds of an input; neither when the commands cannot be made. */
static rlxvk_status wire(rlxvk_executable *e, input_state *in, int64_t feed, int64_t row_feed)
{
    int64_t feed_before = in->feed, row_feed_before = in->row_feed;
    in->feed = feed;
    in->row_feed = row_feed;
    rlxvk_status status = record_feeds(e);
    if (status != RLXVK_OK) {
        in->feed = feed_before;
        in->row_feed = row_feed_before;
    }
    return status;
}

rlxvk_status rlxvk_set_handle_feed(rlxvk_executable *executable, const char *name, size_t index)
{
    input_state *in;
    rlxvk_status status;
    TRY(check_feed(executable, "set_handle_feed", name, index, &in));
    TRY(wire(executable, in, (int64_t)index, in->row_feed));
error:
    return status;
}

rlxvk_status rlxvk_clear_handle_feed(rlxvk_executable *executable, const char *name)
{
    input_state *in;
    rlxvk_status status;
    TRY(live_input(executable, "clear_handle_feed", name, &in));
    TRY(wire(executable, in, -1, -1));
error:
    return status;
}

rlxvk_status rlxvk_register_row_feed(rlxvk_executable *executable, const char *name, size_t index)
{
    input_state *in;
    rlxvk_status status;
    TRY(check_feed(executable, "register_row_feed", name, index, &in));
    if (in->node == NODE_NONE || node_held(executable, in->node) != STORAGE_WORD)
        return status_fail(RLXVK_E_DTYPE,
                           "register_row_feed: '%s' must be a live input of f32 words", name);
    TRY(wire(executable, in, in->feed, (int64_t)index));
error:
    return status;
}

rlxvk_status rlxvk_feed_rows(rlxvk_executable *executable, size_t source_row, size_t target_row,
                             size_t row_elements)
{
    rlxvk_executable *e = executable;
    uint32_t *rows, index = 0;
    bool shared = false;
    rlxvk_status status;
    TRY(status_require(e, "feed_rows", "executable"));
    if (!e->feeds.rows)
        return status_fail(RLXVK_E_UNBOUND_HANDLE,
                           "feed_rows: no row feed is registered; see rlxvk_register_row_feed");
    for (size_t i = 0; i < e->input_count; i++) {
        if (e->inputs[i].row_feed < 0)
            continue;
        TRY(check_node_row(e, "feed_rows", e->outputs[e->inputs[i].row_feed].node, source_row,
                           row_elements));
        TRY(check_node_row(e, "feed_rows", e->inputs[i].node, target_row, row_elements));
    }
    TRY(flush_row_feeds(e));
    rows = (uint32_t *)e->feeds.row_arguments.mapped;
    for (size_t i = 0; i < e->input_count; i++) {
        input_state *in = &e->inputs[i];
        if (in->row_feed < 0)
            continue;
        rows[3 * index] = (uint32_t)(source_row * row_elements);
        rows[3 * index + 1] = (uint32_t)(target_row * row_elements);
        rows[3 * index++ + 2] = (uint32_t)row_elements;
        in->resident = in->written = true;
        in->fingerprint_valid = false;
        shared = shared || in->shared;
    }
    TRY(memory_block_flush(e->device, &e->feeds.row_arguments, 0, 12 * index));
    e->row_feeds_pending = true;
    if (shared) /* another executable's next run must see it */
        TRY(flush_row_feeds(e));
error:
    return status;
}
