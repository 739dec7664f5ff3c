/*
 * Whole feeds: outputs are copied into inputs on the device after every run.
 *
 * Invariants: all sources are read before any target is written, by way of a scratch block. If an
 * output shares memory with the target of a feed, it gets a copy of its own. The same commands fill
 * it before they write the targets. So feeds never change the outputs that a caller reads.
 */
#include "exec/feed_copy.h"
#include "exec/record.h"
#include "exec/transfer.h"

#define FEED_ALIGNMENT 256

static bool is_fed(const input_state *in)
{
    return in->feed >= 0 && in->leaf->node != NODE_NONE;
}

static location feed_source(const rlxvk_executable *e, const input_state *in)
{
    return executable_location(e, e->outputs[in->feed].result->node);
}

/* With an active extent, a prefix feed copies only the active rows. Its output has upper + 1 rows,
 * of which the last one is new. */
static uint64_t feed_bytes(const rlxvk_executable *e, const input_state *in)
{
    uint64_t to = executable_location(e, in->leaf->node).bytes, from = feed_source(e, in).bytes;
    uint64_t active = from;
    if (in->feed_prefix && e->extent_upper)
        active = from / ((uint64_t)e->extent_upper + 1) * (uint64_t)e->extent_actual;
    return MIN(to, active);
}

/* Whether a feed moves anything. It does not if its output and its target are the same memory. */
static bool feed_moves(const rlxvk_executable *e, const input_state *in)
{
    location to = executable_location(e, in->leaf->node), from = feed_source(e, in);
    bool same =
        location_block(&from)->buffer == location_block(&to)->buffer && from.offset == to.offset;
    return feed_bytes(e, in) && !same;
}

/* ---- Copies of outputs that a feed would change ---- */

static bool is_row_source(const rlxvk_executable *e, const output_state *out)
{
    for (size_t i = 0; i < e->program->input_count; i++)
        if (e->inputs[i].row_feed >= 0 && &e->outputs[e->inputs[i].row_feed] == out)
            return true;
    return false;
}

/* A whole feed overwrites an output, and so does a row feed if the output is the source of a row
 * feed. */
static bool overwritten(const rlxvk_executable *e, const output_state *out)
{
    location from = executable_location(e, out->result->node);
    bool row_source = is_row_source(e, out);
    for (size_t i = 0; i < e->program->input_count; i++) {
        const input_state *in = &e->inputs[i];
        bool written = (is_fed(in) && feed_moves(e, in)) || (row_source && in->row_feed >= 0);
        location to = written ? executable_location(e, in->leaf->node) : from;
        if (written && pool_overlap(&from, &to))
            return true;
    }
    return false;
}

/* The copy begins with the present content of the output. It stays even if the feed is cleared.
 * After a deadline the device may still write it, so it is then freed only with the executable. */
rlxvk_status feed_keep_output(rlxvk_executable *e, output_state *out)
{
    location from = executable_location(e, out->result->node), to;
    uint64_t bytes = round_up(from.bytes, FEED_ALIGNMENT);
    rlxvk_status status;
    TRY(pool_create(e->device, MEMORY_ARENA, &bytes, 1, 0, &out->copy));
    to = executable_output_location(e, out);
    TRY(transfer_copy(e, &to, &from));
    TRY(record_copy_readback(e, out));
    return RLXVK_OK;
error:
    if (!e->lost)
        executable_free_copy(e, out);
    return status;
}

static rlxvk_status copy_overwritten(rlxvk_executable *e)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < e->program->result_count; i++)
        if (!e->outputs[i].copy && overwritten(e, &e->outputs[i]))
            TRY(feed_keep_output(e, &e->outputs[i]));
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

/* Copies every fed output to scratch memory (outward), or from there to every input (inward). */
static void copy_feeds(rlxvk_executable *e, const feed_commands *f, bool outward)
{
    uint64_t at = 0;
    for (size_t i = 0; i < e->program->input_count; i++) {
        const input_state *in = &e->inputs[i];
        if (!is_fed(in) || !feed_moves(e, in))
            continue;
        uint64_t bytes = feed_bytes(e, in);
        location l = outward ? feed_source(e, in) : executable_location(e, in->leaf->node);
        if (outward)
            copy_range(e, f->copies, location_block(&l), l.offset, &f->scratch, at, bytes);
        else
            copy_range(e, f->copies, &f->scratch, at, location_block(&l), l.offset, bytes);
        at += round_up(bytes, FEED_ALIGNMENT);
    }
}

static void copy_outputs(rlxvk_executable *e, VkCommandBuffer c)
{
    for (size_t i = 0; i < e->program->result_count; i++) {
        const output_state *out = &e->outputs[i];
        location from = executable_location(e, out->result->node);
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

rlxvk_status feed_make_copies(rlxvk_executable *e, feed_commands *f)
{
    uint64_t bytes = 0;
    bool any = false;
    rlxvk_status status;
    TRY(copy_overwritten(e));
    for (size_t i = 0; i < e->program->result_count; i++)
        any = any || e->outputs[i].copy;
    for (size_t i = 0; i < e->program->input_count; i++)
        if (is_fed(&e->inputs[i]) && feed_moves(e, &e->inputs[i]))
            bytes += round_up(feed_bytes(e, &e->inputs[i]), FEED_ALIGNMENT);
    if (bytes)
        TRY(memory_block_create(e->device, MEMORY_ARENA, bytes, &f->scratch));
    if (bytes || any)
        TRY(record_copies(e, f));
error:
    return status;
}
