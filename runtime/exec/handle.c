/*
 * Handles: inputs whose value lives on the device across runs.
 *
 * UNBOUND (neither flag), BOUND (`bound`, the mirror is restored by every run), RESIDENT
 * (`resident`, the slot is the authority). A feed, a row feed or a kernel that writes in place
 * makes a handle resident; bind makes it bound again.
 */
#include "exec/executable.h"

#include <string.h>

static rlxvk_status live_input(rlxvk_executable *e, const char *call, const char *name,
                               input_state **out)
{
    rlxvk_status status;
    TRY(require(e, call, "executable"));
    *out = find_input(e, name);
    if (!*out)
        TRY(unknown_name(call, "input", name));
error:
    return status;
}

rlxvk_status rlxvk_bind_handle_as(rlxvk_executable *executable, const char *name, const void *data,
                                  size_t length, rlxvk_encoding encoding)
{
    rlxvk_executable *e = executable;
    input_state *in;
    uint64_t needed;
    void *mirror = NULL;
    rlxvk_status status;
    TRY(live_input(e, "bind_handle", name, &in));
    const node *n = graph_node(e->source, in->source);
    storage held = node_storage(e->source, in->source);
    TRY(encoded_length(n, held, encoding, &needed));
    if (!buffer_fits(needed, length, data))
        TRY(fail_buffer(needed, encoding_unit(encoding), length, "bind_handle: input '%s' needs",
                        name));
    uint64_t bytes = storage_bytes(held, shape_numel(&n->shape));
    if (!(mirror = memory_zeroed(1, bytes)))
        TRY(fail_memory("handle mirror"));
    if (length)
        encode_slot(n, held, encoding, data, mirror);
    TRY(flush_row_feeds(e));
    if (in->node != NODE_NONE) {
        location to = node_location(e, in->node);
        TRY(location_write(e, &to, mirror, to.bytes));
    }
    memory_free(in->mirror);
    in->mirror = mirror;
    in->bound = in->written = true;
    in->resident = in->fingerprint_valid = false;
    return RLXVK_OK;
error:
    memory_free(mirror);
    return status;
}

rlxvk_status rlxvk_bind_handle(rlxvk_executable *executable, const char *name, const float *values,
                               size_t length)
{
    return rlxvk_bind_handle_as(executable, name, values, length, RLXVK_AS_F32);
}

rlxvk_status rlxvk_unbind_handle(rlxvk_executable *executable, const char *name)
{
    input_state *in;
    rlxvk_status status;
    TRY(live_input(executable, "unbind_handle", name, &in));
    TRY(flush_row_feeds(executable));
    memory_free(in->mirror);
    in->mirror = NULL;
    in->bound = in->resident = in->fingerprint_valid = false;
error:
    return status;
}

bool rlxvk_has_handle(const rlxvk_executable *executable, const char *name)
{
    if (require(executable, "has_handle", "executable") != RLXVK_OK ||
        require(name, "has_handle", "name") != RLXVK_OK)
        return false;
    const input_state *in = find_input((rlxvk_executable *)executable, name);
    return in && (in->bound || in->resident);
}

/* Reads a node as f32 after everything pending has landed. `elements` are counted from `first`. */
static rlxvk_status read_words(rlxvk_executable *e, uint32_t id, uint64_t first, uint64_t elements,
                               float *values)
{
    location from = node_location(e, id);
    rlxvk_status status;
    TRY(flush_row_feeds(e));
    from.offset += first * 4;
    TRY(location_read(e, &from, values, elements * 4));
error:
    return status;
}

static rlxvk_status check_words(const rlxvk_executable *e, const char *call, const char *name,
                                uint32_t id, size_t length, const float *values)
{
    uint64_t needed;
    rlxvk_status status;
    TRY(encoded_length(graph_node(e->graph, id), node_held(e, id), RLXVK_AS_F32, &needed));
    if (!buffer_fits(needed, length, values))
        return fail_buffer(needed, "values", length, "%s: '%s' has", call, name);
error:
    return status;
}

rlxvk_status rlxvk_read_handle(rlxvk_executable *executable, const char *name, float *values,
                               size_t length)
{
    input_state *in;
    rlxvk_status status;
    TRY(live_input(executable, "read_handle", name, &in));
    if (!in->bound && !in->resident)
        return fail(RLXVK_E_UNBOUND_HANDLE, "read_handle: '%s' is a plain input; bind it first",
                    name);
    if (in->node == NODE_NONE)
        return fail(RLXVK_E_UNKNOWN_NAME, "read_handle: '%s' was dropped as dead", name);
    TRY(check_words(executable, "read_handle", name, in->node, length, values));
    TRY(read_words(executable, in->node, 0, length, values));
error:
    return status;
}

rlxvk_status rlxvk_read_fed_output(rlxvk_executable *executable, const char *name, float *values,
                                   size_t length)
{
    input_state *in;
    rlxvk_status status;
    TRY(live_input(executable, "read_fed_output", name, &in));
    if (in->feed < 0)
        return fail(RLXVK_E_UNBOUND_HANDLE, "read_fed_output: no feed is set for '%s'", name);
    uint32_t id = executable->outputs[in->feed].node;
    TRY(check_words(executable, "read_fed_output", name, id, length, values));
    TRY(read_words(executable, id, 0, length, values));
error:
    return status;
}

/* ---- Feeds ---- */

static rlxvk_status check_feed(rlxvk_executable *e, const char *call, const char *name,
                               size_t index, input_state **out)
{
    rlxvk_status status;
    TRY(live_input(e, call, name, out));
    if (index >= e->output_count)
        return fail(RLXVK_E_INDEX, "%s: output %zu of %zu", call, index, e->output_count);
    if ((*out)->node == NODE_NONE)
        return RLXVK_OK;
    storage to = node_held(e, (*out)->node), from = node_held(e, e->outputs[index].node);
    if ((to == STORAGE_RAW) != (from == STORAGE_RAW))
        return fail(RLXVK_E_DTYPE, "%s: input '%s' and output %zu: one of them is raw bytes", call,
                    name, index);
error:
    return status;
}

rlxvk_status rlxvk_set_handle_feed(rlxvk_executable *executable, const char *name, size_t index)
{
    input_state *in;
    rlxvk_status status;
    TRY(check_feed(executable, "set_handle_feed", name, index, &in));
    TRY(flush_row_feeds(executable));
    int64_t before = in->feed;
    in->feed = (int64_t)index;
    status = record_feeds(executable);
    if (status != RLXVK_OK)
        in->feed = before;
error:
    return status;
}

rlxvk_status rlxvk_clear_handle_feed(rlxvk_executable *executable, const char *name)
{
    input_state *in;
    rlxvk_status status;
    TRY(live_input(executable, "clear_handle_feed", name, &in));
    TRY(flush_row_feeds(executable));
    in->feed = in->row_feed = -1;
    TRY(record_feeds(executable));
    TRY(record_row_feeds(executable));
error:
    return status;
}

rlxvk_status rlxvk_register_row_feed(rlxvk_executable *executable, const char *name, size_t index)
{
    input_state *in;
    rlxvk_status status;
    TRY(check_feed(executable, "register_row_feed", name, index, &in));
    if (in->node == NODE_NONE || node_held(executable, in->node) != STORAGE_WORD)
        return fail(RLXVK_E_DTYPE, "register_row_feed: '%s' must be a live input of f32 words",
                    name);
    TRY(flush_row_feeds(executable));
    int64_t before = in->row_feed;
    in->row_feed = (int64_t)index;
    status = record_row_feeds(executable);
    if (status != RLXVK_OK)
        in->row_feed = before;
error:
    return status;
}

static rlxvk_status check_row(const rlxvk_executable *e, const char *call, uint32_t id,
                              uint64_t row, uint64_t row_elements)
{
    uint64_t numel = shape_numel(&graph_node(e->graph, id)->shape), end;
    bool fits = size_add(row, 1, &end) && size_multiply(end, row_elements, &end) && end <= numel;
    if (fits)
        return RLXVK_OK;
    return fail(RLXVK_E_RANGE, "%s: row %llu of %llu elements is outside the %llu of node %u", call,
                (unsigned long long)row, (unsigned long long)row_elements,
                (unsigned long long)numel, id);
}

rlxvk_status rlxvk_feed_rows(rlxvk_executable *executable, size_t source_row, size_t target_row,
                             size_t row_elements)
{
    rlxvk_executable *e = executable;
    uint32_t *rows, index = 0;
    rlxvk_status status = RLXVK_OK;
    TRY(require(e, "feed_rows", "executable"));
    if (!e->has_row_feeds)
        return fail(RLXVK_E_UNBOUND_HANDLE, "feed_rows: no row feed is registered");
    for (size_t i = 0; i < e->input_count; i++) {
        if (e->inputs[i].row_feed < 0)
            continue;
        TRY(check_row(e, "feed_rows", e->outputs[e->inputs[i].row_feed].node, source_row,
                      row_elements));
        TRY(check_row(e, "feed_rows", e->inputs[i].node, target_row, row_elements));
    }
    TRY(flush_row_feeds(e));
    rows = (uint32_t *)e->row_arguments.mapped;
    for (size_t i = 0; i < e->input_count; i++) {
        input_state *in = &e->inputs[i];
        if (in->row_feed < 0)
            continue;
        rows[3 * index] = (uint32_t)(source_row * row_elements);
        rows[3 * index + 1] = (uint32_t)(target_row * row_elements);
        rows[3 * index++ + 2] = (uint32_t)row_elements;
        in->resident = in->written = true;
        in->fingerprint_valid = false;
    }
    TRY(memory_block_flush(e->device, &e->row_arguments, 0, 12 * index));
    e->row_feeds_pending = true;
error:
    return status;
}

rlxvk_status rlxvk_read_output_row(rlxvk_executable *executable, size_t index, size_t row,
                                   size_t row_elements, float *values)
{
    rlxvk_status status;
    TRY(require(executable, "read_output_row", "executable"));
    TRY(require_items(values, row_elements, "read_output_row", "values"));
    if (index >= executable->output_count)
        return fail(RLXVK_E_INDEX, "read_output_row: output %zu of %zu", index,
                    executable->output_count);
    uint32_t id = executable->outputs[index].node;
    if (node_held(executable, id) != STORAGE_WORD)
        return fail(RLXVK_E_DTYPE, "read_output_row: output %zu is not held as f32 words", index);
    TRY(check_row(executable, "read_output_row", id, row, row_elements));
    TRY(read_words(executable, id, (uint64_t)row * row_elements, row_elements, values));
error:
    return status;
}
