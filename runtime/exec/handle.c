/*
 * Handles: inputs whose value lives on the device across runs.
 *
 * UNBOUND (neither flag), BOUND (`bound`, the mirror is restored by every run), RESIDENT
 * (`resident`, the slot is the authority). A feed, a row feed or a kernel that writes in place
 * makes a handle resident; bind makes it bound again.
 */
#include "exec/name.h"
#include "exec/row.h"
#include "exec/slot.h"
#include "exec/ticket.h"
#include "exec/transfer.h"

rlxvk_status rlxvk_bind_handle_as(rlxvk_executable *executable, const char *name, const void *data,
                                  size_t length, rlxvk_encoding encoding)
{
    rlxvk_executable *e = executable;
    input_state *in;
    uint64_t needed;
    void *mirror = NULL;
    rlxvk_status status;
    TRY(name_live_input(e, "bind_handle", name, &in));
    const node *n = graph_node(e->program->source, in->leaf->source);
    storage held = op_node_storage(e->program->source, in->leaf->source);
    TRY(slot_length(n, held, encoding, &needed));
    if (!slot_fits(needed, length, data))
        TRY(slot_refuse(needed, slot_unit(encoding), length, "bind_handle: input '%s' needs",
                        name));
    uint64_t bytes = dtype_storage_bytes(held, shape_numel(&n->shape));
    if (!(mirror = memory_zeroed(1, bytes)))
        TRY(status_fail_memory("handle mirror"));
    if (length)
        slot_encode(n, held, encoding, data, mirror);
    TRY(ticket_flush(e));
    in->content->fingerprint_valid = false;
    if (in->leaf->node != NODE_NONE) {
        location to = state_location(e, in->leaf->node);
        TRY(transfer_write(e, &to, mirror, to.bytes));
    }
    memory_free(in->mirror);
    in->mirror = mirror;
    in->bound = in->content->written = true;
    in->resident = false;
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
    TRY(name_live_input(executable, "unbind_handle", name, &in));
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
    const input_state *in = name_find_input((rlxvk_executable *)executable, name);
    return in && (in->bound || in->resident);
}

static rlxvk_status check_words(const rlxvk_executable *e, const char *call, const char *name,
                                uint32_t id, size_t length, const float *values)
{
    uint64_t needed;
    rlxvk_status status;
    TRY(slot_length(graph_node(e->program->graph, id), program_held(e->program, id), RLXVK_AS_F32,
                    &needed));
    if (!slot_fits(needed, length, values))
        return slot_refuse(needed, "values", length, "%s: '%s' has", call, name);
error:
    return status;
}

rlxvk_status rlxvk_read_handle(rlxvk_executable *executable, const char *name, float *values,
                               size_t length)
{
    input_state *in;
    rlxvk_status status;
    TRY(name_live_input(executable, "read_handle", name, &in));
    if (!in->bound && !in->resident)
        return status_fail(RLXVK_E_UNBOUND_HANDLE,
                           "read_handle: '%s' is a plain input; bind it first", name);
    if (in->leaf->node == NODE_NONE)
        return status_fail(RLXVK_E_UNKNOWN_NAME,
                           "read_handle: '%s' was dropped as dead; no output depends on it", name);
    TRY(check_words(executable, "read_handle", name, in->leaf->node, length, values));
    TRY(row_read(executable, state_location(executable, in->leaf->node), 0, length, values));
error:
    return status;
}

rlxvk_status rlxvk_read_fed_output(rlxvk_executable *executable, const char *name, float *values,
                                   size_t length)
{
    input_state *in;
    rlxvk_status status;
    TRY(name_live_input(executable, "read_fed_output", name, &in));
    if (in->feed < 0)
        return status_fail(RLXVK_E_UNBOUND_HANDLE,
                           "read_fed_output: no feed is set for '%s'; see rlxvk_set_handle_feed",
                           name);
    const output_state *out = &executable->outputs[in->feed];
    TRY(check_words(executable, "read_fed_output", name, out->result->node, length, values));
    TRY(row_read(executable, state_output_location(executable, out), 0, length, values));
error:
    return status;
}
