/*
 * Handles: inputs whose value lives on the device across runs.
 *
 * UNBOUND (neither flag), BOUND (`bound`, the mirror is restored by every run), RESIDENT
 * (`resident`, the slot is the authority). A feed, a row feed or a kernel that writes in place
 * makes a handle resident; bind makes it bound again.
 */
#include "exec/executable.h"

#include <string.h>

rlxvk_status live_input(rlxvk_executable *e, const char *call, const char *name, input_state **out)
{
    rlxvk_status status;
    TRY(status_require(e, call, "executable"));
    *out = find_input(e, name);
    if (!*out)
        TRY(unknown_name(e, call, "input", name));
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
    storage held = op_node_storage(e->source, in->source);
    TRY(encoded_length(n, held, encoding, &needed));
    if (!buffer_fits(needed, length, data))
        TRY(fail_buffer(needed, encoding_unit(encoding), length, "bind_handle: input '%s' needs",
                        name));
    uint64_t bytes = dtype_storage_bytes(held, shape_numel(&n->shape));
    if (!(mirror = memory_zeroed(1, bytes)))
        TRY(status_fail_memory("handle mirror"));
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
    if (status_require(executable, "has_handle", "executable") != RLXVK_OK ||
        status_require(name, "has_handle", "name") != RLXVK_OK)
        return false;
    const input_state *in = find_input((rlxvk_executable *)executable, name);
    return in && (in->bound || in->resident);
}

/* Reads f32 words after everything pending has landed. `elements` are counted from `first`. */
static rlxvk_status read_words(rlxvk_executable *e, location from, uint64_t first,
                               uint64_t elements, float *values)
{
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
        return status_fail(RLXVK_E_UNBOUND_HANDLE,
                           "read_handle: '%s' is a plain input; bind it first", name);
    if (in->node == NODE_NONE)
        return status_fail(RLXVK_E_UNKNOWN_NAME,
                           "read_handle: '%s' was dropped as dead; no output depends on it", name);
    TRY(check_words(executable, "read_handle", name, in->node, length, values));
    TRY(read_words(executable, node_location(executable, in->node), 0, length, values));
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
        return status_fail(RLXVK_E_UNBOUND_HANDLE,
                           "read_fed_output: no feed is set for '%s'; see rlxvk_set_handle_feed",
                           name);
    const output_state *out = &executable->outputs[in->feed];
    TRY(check_words(executable, "read_fed_output", name, out->node, length, values));
    TRY(read_words(executable, output_location(executable, out), 0, length, values));
error:
    return status;
}

/* ---- Rows of outputs ---- */

rlxvk_status check_node_row(const rlxvk_executable *e, const char *call, uint32_t id, uint64_t row,
                            uint64_t row_elements)
{
    uint64_t numel = shape_numel(&graph_node(e->graph, id)->shape), end;
    char label[NODE_LABEL];
    bool fits = size_add(row, 1, &end) && size_multiply(end, row_elements, &end) && end <= numel;
    if (fits)
        return RLXVK_OK;
    return status_fail(RLXVK_E_RANGE, "%s: row %llu of %llu elements is outside the %llu of %s",
                       call, (unsigned long long)row, (unsigned long long)row_elements,
                       (unsigned long long)numel, op_node_label(e->graph, id, label));
}

rlxvk_status rlxvk_read_output_row(rlxvk_executable *executable, size_t index, size_t row,
                                   size_t row_elements, float *values)
{
    rlxvk_status status;
    TRY(status_require(executable, "read_output_row", "executable"));
    TRY(status_require_items(values, row_elements, "read_output_row", "values"));
    if (index >= executable->output_count)
        return status_fail(RLXVK_E_INDEX, "read_output_row: output %zu of %zu; the first is 0",
                           index, executable->output_count);
    const output_state *out = &executable->outputs[index];
    if (node_held(executable, out->node) != STORAGE_WORD)
        return status_fail(RLXVK_E_DTYPE,
                           "read_output_row: output %zu is not held as f32 words; read it whole",
                           index);
    TRY(check_node_row(executable, "read_output_row", out->node, row, row_elements));
    TRY(read_words(executable, output_location(executable, out), (uint64_t)row * row_elements,
                   row_elements, values));
error:
    return status;
}
