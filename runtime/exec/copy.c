/*
 * Copies state and content between executables of the same source graph. The two may have been
 * compiled with different options.
 */
#include "exec/copy.h"
#include "exec/ticket.h"
#include "exec/transfer.h"
#include "program/slot.h"

#include <string.h>

/* ---- State ---- */

static rlxvk_status copy_handle(rlxvk_executable *to, const rlxvk_executable *from, size_t i)
{
    const input_state *a = &from->inputs[i];
    input_state *b = &to->inputs[i];
    const node *n = graph_node(from->program->source, a->leaf->source);
    uint64_t bytes = dtype_storage_bytes(op_node_storage(from->program->source, a->leaf->source),
                                         shape_numel(&n->shape));
    b->content->written = a->content->written;
    input_take_handle(b, a);
    if (!a->mirror)
        return RLXVK_OK;
    if (!(b->mirror = memory_allocate(bytes)))
        return status_fail_memory("handle mirror");
    memcpy(b->mirror, a->mirror, bytes);
    return RLXVK_OK;
}

rlxvk_status copy_state(rlxvk_executable *to, const rlxvk_executable *from)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < from->program->param_count; i++)
        to->params[i].content->written = from->params[i].content->written;
    for (size_t i = 0; i < from->program->input_count; i++)
        TRY(copy_handle(to, from, i));
    to->rng = from->rng;
error:
    return status;
}

/* ---- Content ---- */

/* Copies a param by way of f32 words, because the two plans hold it differently. */
static rlxvk_status recode_param(rlxvk_executable *to, rlxvk_executable *from, size_t i)
{
    const program_leaf *a = from->params[i].leaf, *b = to->params[i].leaf;
    const node *n = graph_node(from->program->graph, a->node);
    location source = executable_location(from, a->node), target = executable_location(to, b->node);
    void *given = memory_allocate(source.bytes + 1), *taken = memory_allocate(target.bytes + 1);
    float *words = memory_allocate(shape_numel(&n->shape) * sizeof *words + 1);
    rlxvk_status status;
    TRY(given && taken && words ? RLXVK_OK : status_fail_memory("param copy"));
    TRY(transfer_read(from, &source, given, source.bytes));
    slot_decode(n, program_held(from->program, a->node), SLOT_WORDS, given, shape_numel(&n->shape),
                words);
    slot_encode(graph_node(to->program->graph, b->node), program_held(to->program, b->node),
                SLOT_WORDS, words, taken);
    TRY(transfer_write(to, &target, taken, target.bytes));
error:
    memory_free(given);
    memory_free(taken);
    memory_free(words);
    return status;
}

rlxvk_status copy_leaf(rlxvk_executable *to, rlxvk_executable *from, uint32_t a, uint32_t b)
{
    if (a == NODE_NONE || b == NODE_NONE)
        return RLXVK_OK;
    location target = executable_location(to, b), source = executable_location(from, a);
    return transfer_copy(to, &target, &source);
}

rlxvk_status copy_param(rlxvk_executable *to, rlxvk_executable *from, size_t i)
{
    uint32_t a = from->params[i].leaf->node, b = to->params[i].leaf->node;
    bool live = a != NODE_NONE && b != NODE_NONE;
    return live && program_held_dtype(from->program, a) != program_held_dtype(to->program, b)
               ? recode_param(to, from, i)
               : copy_leaf(to, from, a, b);
}

rlxvk_status copy_content(rlxvk_executable *to, rlxvk_executable *from)
{
    rlxvk_status status;
    TRY(ticket_flush(from));
    TRY(copy_state(to, from));
    for (size_t i = 0; i < from->program->param_count; i++)
        TRY(copy_param(to, from, i));
    for (size_t i = 0; i < from->program->input_count; i++)
        TRY(copy_leaf(to, from, from->inputs[i].leaf->node, to->inputs[i].leaf->node));
error:
    return status;
}
