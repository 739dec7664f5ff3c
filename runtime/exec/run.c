/*
 * Runs. A run checks its arguments, uploads what changed, submits recorded command buffers, and
 * reads the outputs. There is one submission before each host step and one at the end; loops and
 * a bound of time make more. Nothing here allocates, records or compiles. The exceptions are the
 * blocking path, for inputs and outputs that are too large to stage, and the first run of work that
 * must be measured (exec/bounded.h).
 */
#include "exec/active_extent.h"
#include "exec/check.h"
#include "exec/execute.h"
#include "exec/judge.h"
#include "exec/member.h"
#include "exec/prepared.h"
#include "exec/queue.h"
#include "exec/rng.h"
#include "exec/ticket.h"
#include "exec/upload.h"

#include <stddef.h>
#include <string.h>

/* ---- Execution ---- */

static void advance_handles(rlxvk_executable *e)
{
    for (size_t i = 0; i < e->program->input_count; i++) {
        input_state *in = &e->inputs[i];
        if (in->feed < 0 && !in->leaf->in_place)
            continue;
        in->resident = true;
        input_note_write(in);
        in->content->fingerprint_valid = false;
    }
}

static void batch_readbacks(rlxvk_executable *e, ticket_state *t, uint32_t index)
{
    rlxvk_run_output own;
    t->direct_reads = e->diagnosed || (e->context->trace && e->queries);
    if (e->context->switches.dispatch_only)
        return;
    for (size_t i = 0; i < t->outputs.count; i++) {
        const rlxvk_run_output *item = ticket_output(t, i, &own);
        output_state *out = &e->outputs[item->index];
        const VkCommandBuffer *commands = executable_output_readback(out);
        if (!commands)
            t->direct_reads = t->direct_reads || item->length;
        else if (item->length && out->last_read != e->launches)
            e->batch[e->batch_count++] = commands[index];
        out->last_read = e->launches;
    }
}

static bool uploads_meet_row_feeds(const rlxvk_executable *e)
{
    for (size_t i = 0; i < e->program->input_count; i++)
        if (e->inputs[i].in_row_feeds && upload_is_due(e, &e->inputs[i]))
            return true;
    return false;
}

/* Checks indices before feeds run, because a feed may change the input that holds them. */
static rlxvk_status diagnose_before_feeds(rlxvk_executable *e, ticket_state *t)
{
    rlxvk_status status = RLXVK_OK;
    if (!e->program->options.check_index || !e->feeds.copies)
        return RLXVK_OK;
    TRY(queue_submit_batch(e));
    TRY(queue_wait_all(e));
    ticket_diagnose(e, t);
error:
    return status;
}

/* After a failure it is unknown which uploads were done. */
static void forget_fingerprints(rlxvk_executable *e)
{
    for (size_t i = 0; i < e->program->input_count; i++)
        e->inputs[i].content->fingerprint_valid = false;
}

/* Judges the run and logs what it found (RLXVK_CHECK=results). */
static rlxvk_status judge_and_log(rlxvk_executable *e, bool prepares)
{
    judge *j = NULL;
    rlxvk_status status;
    TRY(judge_create(e, &j));
    TRY(judge_run(j, prepares));
    judge_log(j, &e->context->log);
error:
    judge_destroy(j);
    return status;
}

static rlxvk_status execute(rlxvk_executable *e, bool prepares)
{
    if (e->judge)
        return judge_run(e->judge, prepares);
    return e->program->options.check_results ? judge_and_log(e, prepares)
                                             : execute_all(e, prepares);
}

static rlxvk_status launch(rlxvk_executable *e, ticket_state *t)
{
    uint32_t index = (uint32_t)(t - e->tickets);
    uint64_t submissions = e->submissions;
    rlxvk_status status;
    t->prepares = prepared_due(e);
    e->batch_count = 0;
    e->batch_ns = 0;
    e->launches++;
    TRY(ticket_settle(e));
    if (e->row_feeds_pending && uploads_meet_row_feeds(e))
        TRY(ticket_flush(e));
    TRY(upload_all(e, index));
    TRY(rng_upload(e, index));
    TRY(active_upload(e, index));
    if (e->row_feeds_pending)
        e->batch[e->batch_count++] = e->feeds.rows;
    TRY(execute(e, t->prepares));
    TRY(diagnose_before_feeds(e, t));
    if (e->feeds.copies)
        e->batch[e->batch_count++] = e->feeds.copies;
    batch_readbacks(e, t, index);
    TRY(queue_submit_batch(e));
    advance_handles(e);
    prepared_note(e, t->prepares);
    e->rng.step += e->rng.advance_per_run;
    t->value = e->submitted;
    e->run_submissions = e->submissions - submissions;
    e->runs++;
    return RLXVK_OK;
error:
    e->batch_count = 0;
    forget_fingerprints(e);
    return status;
}

static rlxvk_status start(rlxvk_executable *e, ticket_state *t, const sized_array *outputs)
{
    trace *trace = e->context->trace;
    double begin = trace_begin(trace);
    rlxvk_status status;
    memset(t, 0, offsetof(ticket_state, sentence)); /* the sentence is long and rarely used */
    t->outputs = *outputs;
    TRY(launch(e, t));
    t->id = ++e->next_ticket;
    t->submitted_at = begin;
    trace_end(trace, "submit", begin, NULL);
    return RLXVK_OK;
error:
    t->outputs.count = 0;
    return status;
}

static rlxvk_status finish(rlxvk_executable *e, ticket_state *t)
{
    rlxvk_status status = ticket_complete(e, t);
    t->id = 0;
    return status;
}

/* ---- The public calls ---- */

rlxvk_status rlxvk_submit(rlxvk_executable *executable, const rlxvk_run_input *inputs,
                          size_t input_count, const rlxvk_run_output *outputs, size_t output_count,
                          rlxvk_ticket *out_ticket)
{
    sized_array in, out;
    ticket_state *t;
    rlxvk_status status;
    TRY(status_require(out_ticket, "submit", "out_ticket"));
    TRY(sized_array_of(SIZED(rlxvk_run_input), inputs, input_count, &in));
    TRY(sized_array_of(SIZED(rlxvk_run_output), outputs, output_count, &out));
    TRY(member_bind_run(executable, "submit", &in));
    TRY(check_run(executable, "submit", &in, &out));
    if (!(t = ticket_find_free(executable)))
        TRY(status_fail(RLXVK_E_BUSY, "submit: %u runs are in flight already; wait for one first",
                        executable->program->options.max_in_flight - 1));
    TRY(start(executable, t, &out));
    *out_ticket = t->id;
error:
    return status;
}

rlxvk_status rlxvk_wait(rlxvk_executable *executable, rlxvk_ticket ticket)
{
    if (!executable)
        return status_require(executable, "wait", "executable");
    for (uint32_t i = 0; executable->program && i < executable->program->options.max_in_flight; i++)
        if (ticket && executable->tickets[i].id == ticket)
            return finish(executable, &executable->tickets[i]);
    return status_fail(RLXVK_E_INDEX, "wait: no run with ticket %llu is in flight",
                       (unsigned long long)ticket);
}

rlxvk_status rlxvk_run(rlxvk_executable *executable, const rlxvk_run_input *inputs,
                       size_t input_count, const rlxvk_run_output *outputs, size_t output_count)
{
    sized_array in, out;
    ticket_state *t;
    rlxvk_status status;
    TRY(sized_array_of(SIZED(rlxvk_run_input), inputs, input_count, &in));
    TRY(sized_array_of(SIZED(rlxvk_run_output), outputs, output_count, &out));
    TRY(member_bind_run(executable, "run", &in));
    TRY(check_run(executable, "run", &in, &out));
    t = &executable->tickets[executable->program->options.max_in_flight - 1];
    TRY(ticket_complete_all(executable));
    TRY(start(executable, t, &out));
    TRY(finish(executable, t));
error:
    return status;
}
