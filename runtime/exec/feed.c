/*
 * Sets and clears feeds. New commands and memory replace the old ones only when they are complete,
 * so a failure changes nothing.
 */
#include "exec/feed.h"
#include "exec/cached_bindings.h"
#include "exec/feed_copy.h"
#include "exec/feed_row.h"
#include "exec/leaf.h"
#include "exec/ticket.h"

/* Frees the copies of outputs for feeds that could not be set, because no commands would fill
 * them. */
static void drop_copies(rlxvk_executable *e)
{
    for (size_t i = 0; i < e->program->result_count && !e->lost; i++)
        if (e->outputs[i].copy && !e->outputs[i].copy_settled)
            executable_free_copy(e, &e->outputs[i]);
}

static void settle_copies(rlxvk_executable *e)
{
    for (size_t i = 0; i < e->program->result_count; i++)
        e->outputs[i].copy_settled = e->outputs[i].copy != NULL;
}

rlxvk_status feed_record(rlxvk_executable *e)
{
    feed_commands made = {0};
    rlxvk_status status;
    TRY(ticket_flush(e));
    TRY(feed_make_copies(e, &made));
    TRY(feed_make_rows(e, &made));
    executable_free_feeds(e, &e->feeds);
    e->feeds = made;
    settle_copies(e);
    feed_mark_rows(e);
    return RLXVK_OK;
error:
    executable_free_feeds(e, &made);
    drop_copies(e);
    return status;
}

rlxvk_status feed_check_rows(const rlxvk_executable *e, const input_state *in, int64_t upper)
{
    char shape[SHAPE_TEXT];
    if (in->feed < 0 || !in->feed_prefix || upper == 0)
        return RLXVK_OK;
    const rlxvk_shape *from = &e->outputs[in->feed].result->shape;
    if (shape_numel(from) % ((uint64_t)upper + 1) == 0)
        return RLXVK_OK;
    return status_fail(
        RLXVK_E_EXTENT,
        "active extent of %lld rows: output %lld (%s), a prefix of which feeds input "
        "'%s', does not have one row more; clear the feed or the extent",
        (long long)upper, (long long)in->feed, shape_text(from, shape), in->leaf->name);
}

/* ---- The public calls ---- */

static rlxvk_status check_feed(rlxvk_executable *e, const char *call, const char *name,
                               size_t index, input_state **out)
{
    rlxvk_status status;
    TRY(leaf_live_input(e, call, name, out));
    if (index >= e->program->result_count)
        return status_fail(RLXVK_E_INDEX, "%s: output %zu of %zu; the first is 0", call, index,
                           e->program->result_count);
    if ((*out)->leaf->node == NODE_NONE)
        return RLXVK_OK;
    uint32_t to = (*out)->leaf->node, from = e->outputs[index].result->node;
    if (program_held(e->program, to) != program_held(e->program, from))
        return status_fail(
            RLXVK_E_DTYPE,
            "%s: input '%s' (%s) and output %zu (%s) are held differently; cast one of "
            "them in the graph",
            call, name, rlxvk_dtype_name((rlxvk_dtype)graph_node(e->program->graph, to)->dtype),
            index, rlxvk_dtype_name(e->outputs[index].result->dtype));
error:
    return status;
}

/* If the sizes differ, the caller must ask for a prefix. */
static rlxvk_status check_sizes(const rlxvk_executable *e, const input_state *in, size_t index)
{
    const rlxvk_shape *to = &graph_node(e->program->source, in->leaf->source)->shape;
    const rlxvk_shape *from = &e->outputs[index].result->shape;
    char shapes[2][SHAPE_TEXT];
    if (shape_numel(to) == shape_numel(from))
        return RLXVK_OK;
    return status_fail(RLXVK_E_LENGTH,
                       "set_handle_feed: output %zu (%s, %llu elements) does not fill input '%s' "
                       "(%s, %llu elements) exactly; rlxvk_set_handle_feed_prefix copies what both "
                       "have",
                       index, shape_text(from, shapes[0]), (unsigned long long)shape_numel(from),
                       in->leaf->name, shape_text(to, shapes[1]),
                       (unsigned long long)shape_numel(to));
}

/* Sets both feeds of an input. If the commands cannot be made, both stay as they were. */
static rlxvk_status wire(rlxvk_executable *e, input_state *in, int64_t feed, bool prefix,
                         int64_t row_feed)
{
    input_state before = *in;
    in->feed = feed;
    in->feed_prefix = prefix;
    in->row_feed = row_feed;
    rlxvk_status status = feed_check_rows(e, in, e->extent_upper);
    if (status == RLXVK_OK)
        status = feed_record(e);
    if (status != RLXVK_OK) {
        in->feed = before.feed;
        in->feed_prefix = before.feed_prefix;
        in->row_feed = before.row_feed;
    }
    return status;
}

static rlxvk_status set_feed(rlxvk_executable *e, const char *call, const char *name, size_t index,
                             bool prefix)
{
    input_state *in;
    rlxvk_status status;
    TRY(check_feed(e, call, name, index, &in));
    if (!prefix)
        TRY(check_sizes(e, in, index));
    TRY(wire(e, in, (int64_t)index, prefix, in->row_feed));
error:
    return status;
}

static rlxvk_status clear_feeds(rlxvk_executable *e, const char *call, const char *name)
{
    input_state *in;
    rlxvk_status status;
    TRY(leaf_live_input(e, call, name, &in));
    TRY(wire(e, in, -1, false, -1));
error:
    return status;
}

static rlxvk_status set_row_feed(rlxvk_executable *e, const char *call, const char *name,
                                 size_t index)
{
    input_state *in;
    rlxvk_status status;
    TRY(check_feed(e, call, name, index, &in));
    if (in->leaf->node == NODE_NONE || program_held(e->program, in->leaf->node) != STORAGE_WORD)
        return status_fail(RLXVK_E_DTYPE, "%s: '%s' must be a live input of f32 words", call, name);
    TRY(wire(e, in, in->feed, in->feed_prefix, (int64_t)index));
error:
    return status;
}

/* If there are symbols, the current member gets the feed now. Other members get it when they become
 * current. */
static rlxvk_status set(rlxvk_executable *e, const char *call, const char *name,
                        enum cached_feed_kind kind, size_t index)
{
    rlxvk_status status;
    TRY(status_require(e, call, "executable"));
    if (e->program && kind == CACHED_FEED_NONE)
        TRY(clear_feeds(e, call, name));
    else if (e->program && kind == CACHED_FEED_ROWS)
        TRY(set_row_feed(e, call, name, index));
    else if (e->program)
        TRY(set_feed(e, call, name, index, kind == CACHED_FEED_PREFIX));
    if (e->bindings)
        TRY(cached_note_feed(e->bindings, call, name, kind, index));
error:
    return status;
}

rlxvk_status rlxvk_set_handle_feed(rlxvk_executable *executable, const char *name, size_t index)
{
    return set(executable, "set_handle_feed", name, CACHED_FEED_WHOLE, index);
}

rlxvk_status rlxvk_set_handle_feed_prefix(rlxvk_executable *executable, const char *name,
                                          size_t index)
{
    return set(executable, "set_handle_feed_prefix", name, CACHED_FEED_PREFIX, index);
}

rlxvk_status rlxvk_clear_handle_feed(rlxvk_executable *executable, const char *name)
{
    return set(executable, "clear_handle_feed", name, CACHED_FEED_NONE, 0);
}

rlxvk_status rlxvk_register_row_feed(rlxvk_executable *executable, const char *name, size_t index)
{
    return set(executable, "register_row_feed", name, CACHED_FEED_ROWS, index);
}
