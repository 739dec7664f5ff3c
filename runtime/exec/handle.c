/*
 * Handles: inputs whose value stays on the device from run to run. A handle has one of three
 * states:
 *   UNBOUND    neither flag is set
 *   BOUND      `bound` is set; every run restores the value from the mirror
 *   RESIDENT   `resident` is set; only the slot has the value, and runs do not restore it
 *
 * A feed, a row feed or a kernel that writes in place makes a handle resident. Binding makes it
 * bound again.
 */
#include "exec/leaf.h"
#include "exec/output_row.h"
#include "exec/ticket.h"
#include "exec/transfer.h"
#include "program/slot.h"

rlxvk_status rlxvk_bind_handle_as(rlxvk_executable *executable, const char *name, const void *data,
                                  size_t length, rlxvk_dtype dtype)
{
    rlxvk_executable *e = executable;
    input_state *in;
    uint64_t needed;
    void *mirror = NULL;
    rlxvk_status status;
    TRY(leaf_live_input(e, "bind_handle", name, &in));
    const node *n = graph_node(e->program->source, in->leaf->source);
    storage held = op_node_storage(e->program->source, in->leaf->source);
    const slot_type type = {dtype, false};
    TRY(slot_length(n, held, type, &needed));
    if (!slot_fits(needed, length, data))
        TRY(slot_refuse(needed, "values", length, "bind_handle: input '%s' needs", name));
    uint64_t bytes = dtype_storage_bytes(held, shape_numel(&n->shape));
    if (!(mirror = memory_zeroed(1, bytes)))
        TRY(status_fail_memory("handle mirror"));
    if (length)
        slot_encode(n, held, type, data, mirror);
    TRY(ticket_flush(e));
    in->content->fingerprint_valid = false;
    if (in->leaf->node != NODE_NONE) {
        location to = executable_location(e, in->leaf->node);
        TRY(transfer_write(e, &to, mirror, to.bytes));
    }
    memory_free(in->mirror);
    in->mirror = mirror;
    in->bound = true;
    in->resident = false;
    input_note_write(in);
    return RLXVK_OK;
error:
    memory_free(mirror);
    return status;
}

rlxvk_status rlxvk_bind_handle(rlxvk_executable *executable, const char *name, const float *values,
                               size_t length)
{
    return rlxvk_bind_handle_as(executable, name, values, length, RLXVK_F32);
}

rlxvk_status rlxvk_unbind_handle(rlxvk_executable *executable, const char *name)
{
    input_state *in;
    rlxvk_status status;
    TRY(leaf_live_input(executable, "unbind_handle", name, &in));
    TRY(ticket_flush(executable));
    memory_free(in->mirror);
    in->mirror = NULL;
    in->bound = in->resident = in->content->fingerprint_valid = false;
error:
    return status;
}

bool rlxvk_has_handle(const rlxvk_executable *executable, const char *name)
{
    if (status_require(executable, "has_handle", "executable") != RLXVK_OK ||
        status_require(name, "has_handle", "name") != RLXVK_OK)
        return false;
    const input_state *in = leaf_find_input((rlxvk_executable *)executable, name);
    return in && (in->bound || in->resident);
}

/* Reads the whole value of node `id`, which lies at `from`, as values of `dtype`. */
static rlxvk_status read_value(rlxvk_executable *e, const char *call, const char *name, uint32_t id,
                               location from, void *data, size_t length, rlxvk_dtype dtype)
{
    const node *n = graph_node(e->program->graph, id);
    const slot_type type = {dtype, false};
    uint64_t needed;
    rlxvk_status status;
    TRY(slot_length(n, program_held(e->program, id), type, &needed));
    if (!slot_fits(needed, length, data))
        return slot_refuse(needed, "values", length, "%s: '%s' has", call, name);
    TRY(output_row_read(e, id, from, 0, length, type, data));
error:
    return status;
}

rlxvk_status rlxvk_read_handle_as(rlxvk_executable *executable, const char *name, void *data,
                                  size_t length, rlxvk_dtype dtype)
{
    input_state *in;
    rlxvk_status status;
    TRY(leaf_live_input(executable, "read_handle", name, &in));
    if (!in->bound && !in->resident)
        return status_fail(RLXVK_E_UNBOUND_HANDLE,
                           "read_handle: '%s' is a plain input; bind it first", name);
    if (in->leaf->node == NODE_NONE)
        return status_fail(RLXVK_E_UNKNOWN_NAME,
                           "read_handle: '%s' was dropped as dead; no output depends on it", name);
    TRY(read_value(executable, "read_handle", name, in->leaf->node,
                   executable_location(executable, in->leaf->node), data, length, dtype));
error:
    return status;
}

rlxvk_status rlxvk_read_handle(rlxvk_executable *executable, const char *name, float *values,
                               size_t length)
{
    return rlxvk_read_handle_as(executable, name, values, length, RLXVK_F32);
}

rlxvk_status rlxvk_read_fed_output_as(rlxvk_executable *executable, const char *name, void *data,
                                      size_t length, rlxvk_dtype dtype)
{
    input_state *in;
    rlxvk_status status;
    TRY(leaf_live_input(executable, "read_fed_output", name, &in));
    if (in->feed < 0)
        return status_fail(RLXVK_E_UNBOUND_HANDLE,
                           "read_fed_output: no feed is set for '%s'; see rlxvk_set_handle_feed",
                           name);
    const output_state *out = &executable->outputs[in->feed];
    TRY(read_value(executable, "read_fed_output", name, out->result->node,
                   executable_output_location(executable, out), data, length, dtype));
error:
    return status;
}

rlxvk_status rlxvk_read_fed_output(rlxvk_executable *executable, const char *name, float *values,
                                   size_t length)
{
    return rlxvk_read_fed_output_as(executable, name, values, length, RLXVK_F32);
}
