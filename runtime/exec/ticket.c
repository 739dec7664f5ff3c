/*
 * Runs in flight and how they end. A ticket is completed once: we wait for it, deliver its outputs
 * and diagnose it. Its status is kept until its own wait has returned it.
 */
#include "exec/ticket.h"
#include "exec/diagnose.h"
#include "exec/queue.h"
#include "exec/timing.h"
#include "exec/transfer.h"
#include "program/slot.h"

#include <string.h>

bool ticket_in_flight(const rlxvk_executable *e)
{
    for (uint32_t t = 0; t < e->program->options.max_in_flight; t++)
        if (e->tickets[t].id)
            return true;
    return false;
}

static void keep_sentence(ticket_state *t)
{
    text sentence = {t->sentence, sizeof t->sentence, 0};
    if (t->status != RLXVK_OK)
        text_append(&sentence, "%s", rlxvk_last_error());
}

static rlxvk_status ending_of(const ticket_state *t)
{
    return t->status == RLXVK_OK ? RLXVK_OK : status_fail(t->status, "%s", t->sentence);
}

/* ---- Outputs ---- */

static rlxvk_status read_output(rlxvk_executable *e, const rlxvk_run_output *item, uint32_t ticket)
{
    const output_state *out = &e->outputs[item->index];
    const node *n = graph_node(e->program->graph, out->result->node);
    storage held = program_held(e->program, out->result->node);
    slot_type type = slot_type_of_output(item);
    location from = executable_output_location(e, out);
    const memory_block *block = location_block(&from);
    uint64_t count = shape_numel(&n->shape);
    rlxvk_status status;
    if (out->readback.commands) {
        uint64_t at = out->readback.offsets[ticket];
        TRY(memory_block_invalidate(e->device, &e->read_staging, at, from.bytes));
        slot_decode(n, held, type, e->read_staging.mapped + at, count, item->buffer);
        return RLXVK_OK;
    }
    if (block->cached) {
        TRY(memory_block_invalidate(e->device, block, from.offset, from.bytes));
        slot_decode(n, held, type, block->mapped + from.offset, count, item->buffer);
        return RLXVK_OK;
    }
    void *bytes = memory_allocate(MAX(from.bytes, 1));
    if (!bytes)
        return status_fail_memory("output conversion");
    status = transfer_read(e, &from, bytes, from.bytes);
    if (status == RLXVK_OK)
        slot_decode(n, held, type, bytes, count, item->buffer);
    memory_free(bytes);
error:
    return status;
}

static rlxvk_status read_outputs(rlxvk_executable *e, const ticket_state *t)
{
    rlxvk_run_output own;
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < t->outputs.count; i++) {
        const rlxvk_run_output *item = ticket_output(t, i, &own);
        double begin = trace_begin(e->context->trace);
        if (e->context->switches.dispatch_only)
            memset(item->buffer, 0, slot_bytes(slot_type_of_output(item), item->length));
        else if (item->length)
            TRY(read_output(e, item, (uint32_t)(t - e->tickets)));
        trace_end_named(e->context->trace, "readback", begin, NULL, "output", item->index);
    }
error:
    return status;
}

/* ---- Completion ---- */

void ticket_diagnose(rlxvk_executable *e, ticket_state *t)
{
    if (!e->diagnosed || t->diagnosed)
        return;
    t->diagnosed = true;
    t->status = diagnose_run(e);
    keep_sentence(t);
}

rlxvk_status ticket_complete(rlxvk_executable *e, ticket_state *t)
{
    trace *trace = e->context->trace;
    rlxvk_status status;
    if (t->completed)
        return ending_of(t);
    t->completed = true;
    TRACE_TRY(trace, "wait", queue_wait(e, t->value));
    TRY(read_outputs(e, t));
    if (trace && e->queries && !e->judge) /* a judged run writes no timestamps */
        TRY(timing_trace(e, t));
    ticket_diagnose(e, t);
    return ending_of(t);
error:
    t->status = status;
    keep_sentence(t);
    return status;
}

/* Every ticket keeps its own status for its wait. */
rlxvk_status ticket_complete_all(rlxvk_executable *e)
{
    rlxvk_status status;
    for (uint32_t t = 0; t < e->program->options.max_in_flight; t++)
        if (e->tickets[t].id)
            (void)ticket_complete(e, &e->tickets[t]);
    TRY(queue_usable(e));
    TRY(queue_wait_all(e));
error:
    return status;
}

rlxvk_status ticket_flush(rlxvk_executable *e)
{
    rlxvk_status status;
    if (e->row_feeds_pending)
        TRY(queue_submit(e, &e->feeds.rows, 1));
    e->row_feeds_pending = false;
    TRY(ticket_complete_all(e));
error:
    return status;
}

/* ---- Room for another run ---- */

/* The last ticket is only for rlxvk_run, so rlxvk_run never fails with E_BUSY. */
ticket_state *ticket_find_free(rlxvk_executable *e)
{
    for (uint32_t t = 0; t + 1 < e->program->options.max_in_flight; t++)
        if (!e->tickets[t].id)
            return &e->tickets[t];
    return NULL;
}

rlxvk_status ticket_settle(rlxvk_executable *e)
{
    for (uint32_t t = 0; t < e->program->options.max_in_flight; t++)
        if (e->tickets[t].id && e->tickets[t].direct_reads)
            (void)ticket_complete(e, &e->tickets[t]); /* its own wait reports the status */
    return queue_usable(e);
}
