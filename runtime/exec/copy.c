/* Copies the content of one executable to another of the same source graph. */
#include "exec/copy.h"
#include "exec/slot.h"
#include "exec/ticket.h"
#include "exec/transfer.h"

#include <string.h>

/* Copies params and written inputs, node by name, from one executable to another of the same source
 * graph. */
static rlxvk_status copy_leaves(rlxvk_executable *to, rlxvk_executable *from)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < from->param_count; i++) {
        param_state *a = &from->params[i], *b = &to->params[i];
        b->set = a->set || a->node == NODE_NONE;
        if (a->node == NODE_NONE || b->node == NODE_NONE)
            continue;
        const node *n = graph_node(from->source, a->source);
        location source = state_location(from, a->node);
        float *words = memory_zeroed(1, 2 * state_slot_bytes(from, a->node) + 8);
        void *bytes = memory_zeroed(1, 2 * state_slot_bytes(from, a->node) + 8);
        location target = state_location(to, b->node);
        status = words && bytes ? transfer_read(from, &source, bytes, source.bytes)
                                : status_fail_memory("leaf copy");
        if (status == RLXVK_OK && state_held(from, a->node) == STORAGE_HALF &&
            state_held(to, b->node) != STORAGE_HALF) {
            slot_decode(n, STORAGE_HALF, RLXVK_AS_F32, bytes, words);
            status = transfer_write(to, &target, words, target.bytes);
        } else if (status == RLXVK_OK) {
            status = transfer_write(to, &target, bytes, target.bytes);
        }
        memory_free(words);
        memory_free(bytes);
        if (status != RLXVK_OK)
            return status;
    }
    return status;
}

static rlxvk_status copy_handle(rlxvk_executable *to, const rlxvk_executable *from, size_t i)
{
    const input_state *a = &from->inputs[i];
    input_state *b = &to->inputs[i];
    const node *n = graph_node(from->source, a->source);
    uint64_t bytes =
        dtype_storage_bytes(op_node_storage(from->source, a->source), shape_numel(&n->shape));
    b->written = a->written;
    b->bound = a->bound;
    b->resident = a->resident;
    if (!a->mirror)
        return RLXVK_OK;
    if (!(b->mirror = memory_allocate(bytes)))
        return status_fail_memory("handle mirror");
    memcpy(b->mirror, a->mirror, bytes);
    return RLXVK_OK;
}

static rlxvk_status copy_inputs(rlxvk_executable *to, rlxvk_executable *from)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < from->input_count; i++) {
        input_state *a = &from->inputs[i], *b = &to->inputs[i];
        TRY(copy_handle(to, from, i));
        if (a->node == NODE_NONE || b->node == NODE_NONE)
            continue;
        location target = state_location(to, b->node), source = state_location(from, a->node);
        TRY(transfer_copy(to, &target, &source));
    }
error:
    return status;
}

rlxvk_status copy_content(rlxvk_executable *to, rlxvk_executable *from)
{
    rlxvk_status status;
    TRY(ticket_flush(from));
    TRY(copy_leaves(to, from));
    TRY(copy_inputs(to, from));
    to->rng = from->rng;
error:
    return status;
}
