/*
 * Replay. A run validates everything, uploads what changed, submits recorded command buffers in one
 * submission a segment boundary, and reads what was asked for. Nothing here allocates, records or
 * compiles, except the blocking path for inputs and outputs too large to stage.
 */
#include "exec/executable.h"
#include "op/random/random.h"

#include <string.h>

/* ---- Submission ---- */

rlxvk_status submit_batch(rlxvk_executable *e)
{
    uint32_t count = e->batch_count;
    rlxvk_status status;
    e->batch_count = 0;
    TRY(submit_commands(e, e->batch, count));
    e->row_feeds_pending = false; /* they ride in a run's first batch */
error:
    return status;
}

/* Every command buffer begins with a barrier against all that is before it on the queue, so that
 * submissions need not wait for one another; only queries that are reset again do. */
rlxvk_status submit_commands(rlxvk_executable *e, const VkCommandBuffer *buffers, uint32_t count)
{
    uint64_t after = e->queries ? e->submitted : 0;
    rlxvk_status status;
    if (count == 0)
        return RLXVK_OK;
    TRY(vk_queue_submit(e->device, e->timeline, after, e->submitted + 1, buffers, count));
    e->submitted++;
    e->submissions++;
    return RLXVK_OK;
error:
    e->lost = e->lost || e->device->lost;
    return status;
}

static rlxvk_status wait_value(rlxvk_executable *e, uint64_t reach)
{
    rlxvk_status status = vk_timeline_wait(e->device, e->timeline, reach, e->timeout_ns);
    e->lost = e->lost || status != RLXVK_OK;
    return status;
}

rlxvk_status wait_submitted(rlxvk_executable *e)
{
    return wait_value(e, e->submitted);
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

static bool in_flight(const rlxvk_executable *e)
{
    for (uint32_t t = 0; t < e->max_in_flight; t++)
        if (e->tickets[t].id)
            return true;
    return false;
}

static rlxvk_status usable(const rlxvk_executable *e)
{
    if (e->lost || e->device->lost)
        return status_fail(RLXVK_E_DEVICE_LOST,
                           "the device was lost or a deadline passed; destroy this executable");
    return RLXVK_OK;
}

/* ---- Names and lengths ---- */

#define NAMES_LISTED 8 /* in an error */

static void list_names(const rlxvk_executable *e, op_kind op, text *out)
{
    size_t listed = 0;
    for (uint32_t id = 0; id < e->source->nodes.count && listed <= NAMES_LISTED; id++) {
        const node *n = graph_node(e->source, id);
        if (n->op != op || random_is_state(n))
            continue;
        text_append(out, listed ? ", " : "; there are ");
        text_append(out, listed < NAMES_LISTED ? "'%.60s'" : "more", n->name);
        listed++;
    }
}

rlxvk_status unknown_name(const rlxvk_executable *e, const char *call, op_kind op, const char *name)
{
    char names[NAMES_LISTED * 64 + 32] = "";
    if (!name)
        return status_require(name, call, "name");
    list_names(e, op, &(text){.buffer = names, .size = sizeof names});
    return status_fail(RLXVK_E_UNKNOWN_NAME, "%s: the graph has no %s named '%s'%s", call,
                       op_table[op].name, name, names);
}

input_state *find_input(rlxvk_executable *e, const char *name)
{
    uint32_t id = name ? graph_find(e->source, OP_input, name) : NODE_NONE;
    bool callers = id != NODE_NONE && !random_is_state(graph_node(e->source, id));
    return callers ? &e->inputs[e->leaf_index[id]] : NULL;
}

/* Item `index` of the list; of several with one name the last is taken. */
static rlxvk_status check_input(rlxvk_executable *e, const char *call, const rlxvk_run_input *items,
                                size_t index)
{
    const rlxvk_run_input *item = &items[index];
    const input_state *in = find_input(e, item->name);
    uint64_t length;
    rlxvk_status status;
    if (!in)
        return unknown_name(e, call, OP_input, item->name);
    const node *n = graph_node(e->source, in->source);
    TRY(encoded_length(n, op_node_storage(e->source, in->source), item->encoding, &length));
    if (!buffer_fits(length, item->length, item->data))
        return fail_buffer(length, encoding_unit(item->encoding), item->length,
                           "%s: input '%s' needs", call, in->name);
    e->given[in - e->inputs] = item;
error:
    return status;
}

static rlxvk_status check_output(const rlxvk_executable *e, const char *call,
                                 const rlxvk_run_output *item)
{
    uint64_t length;
    rlxvk_status status;
    if (item->index >= e->output_count)
        return status_fail(RLXVK_E_INDEX, "%s: output %zu of %zu; the first is 0", call,
                           item->index, e->output_count);
    uint32_t id = e->outputs[item->index].node;
    TRY(encoded_length(graph_node(e->graph, id), node_held(e, id), item->encoding, &length));
    if (!buffer_fits(length, item->length, item->buffer))
        return fail_buffer(length, encoding_unit(item->encoding), item->length,
                           "%s: output %zu has", call, item->index);
error:
    return status;
}

/* Every param set and every input given, bound or written before. */
static rlxvk_status check_complete(rlxvk_executable *e, const char *call)
{
    for (size_t i = 0; i < e->param_count; i++)
        if (!e->params[i].set && e->params[i].node != NODE_NONE)
            return status_fail(RLXVK_E_UNSET_PARAM,
                               "%s: param '%s' was never set; set it, or compile with allow_unset",
                               call, e->params[i].name);
    for (size_t i = 0; i < e->input_count; i++)
        if (!e->inputs[i].written && !e->given[i] && e->inputs[i].node != NODE_NONE)
            return status_fail(
                RLXVK_E_MISSING_INPUT,
                "%s: input '%s' was never given; list it, bind it, or compile with allow_unset",
                call, e->inputs[i].name);
    return RLXVK_OK;
}

static rlxvk_status check_run(rlxvk_executable *e, const char *call, const rlxvk_run_input *inputs,
                              size_t n, const rlxvk_run_output *outputs, size_t m)
{
    rlxvk_status status;
    TRY(status_require(e, call, "executable"));
    TRY(status_require_items(inputs, n, call, "inputs"));
    TRY(status_require_items(outputs, m, call, "outputs"));
    TRY(usable(e));
    memset(e->given, 0, e->input_count * sizeof *e->given);
    for (size_t i = 0; i < n; i++)
        TRY(check_input(e, call, inputs, i));
    for (size_t i = 0; i < m; i++)
        TRY(check_output(e, call, &outputs[i]));
    if (!toggle(e->options.allow_unset, false))
        TRY(check_complete(e, call));
error:
    return status;
}

/* ---- Uploads ---- */

/* Two lanes of multiply-fold over 8-byte words, length included: full avalanche by the 128-bit
 * products. */
static void fingerprint_of(const void *data, uint64_t size, uint64_t encoding, uint64_t out[2])
{
    uint64_t a = 0x9e3779b97f4a7c15u ^ size, b = 0xc2b2ae3d27d4eb4fu ^ encoding;
    const uint8_t *bytes = data;
    for (uint64_t at = 0; at < size; at += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + at, MIN(size - at, 8));
        unsigned __int128 p = (unsigned __int128)(a ^ word) * 0xff51afd7ed558ccdu;
        unsigned __int128 q = (unsigned __int128)(b + word) * 0xd6e8feb86659fd93u;
        a = (uint64_t)(p >> 64) ^ (uint64_t)p ^ b;
        b = (uint64_t)(q >> 64) ^ (uint64_t)q ^ (a << 23 | a >> 41);
    }
    out[0] = a;
    out[1] = b;
}

static uint64_t payload_bytes(const rlxvk_run_input *item)
{
    return item->encoding == RLXVK_AS_BYTES ? item->length : item->length * 4;
}

/* Whether the slot already holds exactly this; remembers it as what the slot is about to hold. */
static bool same_as_before(rlxvk_executable *e, input_state *in, const rlxvk_run_input *item)
{
    uint64_t now[2];
    if (in->in_place || in->feed >= 0 || in->shared || e->force_upload) {
        in->fingerprint_valid = false;
        return false;
    }
    fingerprint_of(item->data, payload_bytes(item), item->encoding, now);
    bool same = in->fingerprint_valid && memcmp(now, in->fingerprint, sizeof now) == 0;
    memcpy(in->fingerprint, now, sizeof now);
    in->fingerprint_valid = true;
    return same;
}

static rlxvk_status upload_blocking(rlxvk_executable *e, const node *n, const location *to,
                                    storage held, const rlxvk_run_input *item)
{
    bool verbatim = held == STORAGE_RAW || item->encoding == RLXVK_AS_F32 || n->dtype == RLXVK_F32;
    rlxvk_status status;
    TRY(executable_idle(e));
    if (verbatim)
        return location_write(e, to, item->data, to->bytes);
    void *slot_bytes = memory_allocate(to->bytes);
    if (!slot_bytes)
        return status_fail_memory("input conversion");
    encode_slot(n, held, item->encoding, item->data, slot_bytes);
    status = location_write(e, to, slot_bytes, to->bytes);
    memory_free(slot_bytes);
error:
    return status;
}

rlxvk_status upload_input(rlxvk_executable *e, input_state *in, uint32_t ticket,
                          const rlxvk_run_input *item)
{
    if (in->node == NODE_NONE || item->length == 0)
        return RLXVK_OK;
    const node *n = graph_node(e->graph, in->node);
    location to = node_location(e, in->node);
    storage held = node_held(e, in->node);
    const memory_block *block = location_block(&to);
    if (same_as_before(e, in, item))
        return RLXVK_OK;
    if (block->mapped && !in_flight(e) && e->batch_count == 0) {
        encode_slot(n, held, item->encoding, item->data, block->mapped + to.offset);
        return memory_block_flush(e->device, block, to.offset, to.bytes);
    }
    if (!in->upload.commands)
        return upload_blocking(e, n, &to, held, item);
    uint64_t at = in->upload.offsets[ticket];
    encode_slot(n, held, item->encoding, item->data, e->staging.mapped + at);
    e->batch[e->batch_count++] = in->upload.commands[ticket];
    return memory_block_flush(e->device, &e->staging, at, round_up(to.bytes, 4));
}

/* Bound handles not given in this run are restored from their mirrors. The mirror holds slot bytes,
 * so it is uploaded like raw data. */
static rlxvk_status restore_handle(rlxvk_executable *e, input_state *in)
{
    location to = node_location(e, in->node);
    rlxvk_status status;
    const memory_block *block = location_block(&to);
    if (!block->mapped || in_flight(e) || e->batch_count)
        TRY(executable_idle(e));
    TRY(location_write(e, &to, in->mirror, to.bytes));
    in->fingerprint_valid = false;
error:
    return status;
}

/* Whether the next run writes it: given, or restored from its mirror. */
static bool is_uploaded(const rlxvk_executable *e, const input_state *in)
{
    bool restored = in->bound && !in->resident;
    return in->node != NODE_NONE && (e->given[in - e->inputs] || restored);
}

static rlxvk_status upload_all(rlxvk_executable *e, uint32_t ticket)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < e->input_count; i++)
        if (!e->given[i] && is_uploaded(e, &e->inputs[i]))
            TRY(restore_handle(e, &e->inputs[i]));
    for (size_t i = 0; i < e->input_count; i++)
        if (e->given[i]) {
            TRY(upload_input(e, &e->inputs[i], ticket, e->given[i]));
            e->inputs[i].written = true;
        }
error:
    return status;
}

/* ---- Execution ---- */

static rlxvk_status execute_segments(rlxvk_executable *e)
{
    const host_step *next = e->host_steps;
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = 0; i < e->plan.segments.count; i++) {
        const segment *g = &e->plan.segments.items[i];
        if (!g->host) {
            if (!e->cached) {
                TRY(wait_submitted(e));
                TRY(record_segment(e, i));
            }
            e->batch[e->batch_count++] = e->segments[i];
            continue;
        }
        TRY(submit_batch(e));
        TRY(wait_submitted(e));
        TRY(host_step_run(e, next++));
    }
error:
    return status;
}

static void advance_handles(rlxvk_executable *e)
{
    for (size_t i = 0; i < e->input_count; i++) {
        input_state *in = &e->inputs[i];
        if (in->feed < 0 && !in->in_place)
            continue;
        in->resident = true;
        in->written = true;
        in->fingerprint_valid = false;
    }
}

static void batch_readbacks(rlxvk_executable *e, ticket_state *t, uint32_t index)
{
    t->direct_reads = e->diagnosed || (e->context->trace && e->queries);
    for (size_t i = 0; i < t->output_count; i++) {
        output_state *out = &e->outputs[t->outputs[i].index];
        if (!out->readback.commands)
            t->direct_reads = t->direct_reads || t->outputs[i].length;
        else if (t->outputs[i].length && out->last_read != e->launches)
            e->batch[e->batch_count++] = out->readback.commands[index];
        out->last_read = e->launches;
    }
}

/* ---- Completion ---- */

static rlxvk_status read_output(rlxvk_executable *e, const rlxvk_run_output *item, uint32_t ticket)
{
    const output_state *out = &e->outputs[item->index];
    const node *n = graph_node(e->graph, out->node);
    storage held = node_held(e, out->node);
    location from = output_location(e, out);
    const memory_block *block = location_block(&from);
    rlxvk_status status;
    if (out->readback.commands) {
        uint64_t at = out->readback.offsets[ticket];
        TRY(memory_block_invalidate(e->device, &e->read_staging, at, from.bytes));
        decode_slot(n, held, item->encoding, e->read_staging.mapped + at, item->buffer);
        return RLXVK_OK;
    }
    if (block->mapped && e->device->choice.arena_cached) {
        TRY(memory_block_invalidate(e->device, block, from.offset, from.bytes));
        decode_slot(n, held, item->encoding, block->mapped + from.offset, item->buffer);
        return RLXVK_OK;
    }
    void *slot_bytes = memory_allocate(MAX(from.bytes, 1));
    if (!slot_bytes)
        return status_fail_memory("output conversion");
    status = location_read(e, &from, slot_bytes, from.bytes);
    if (status == RLXVK_OK)
        decode_slot(n, held, item->encoding, slot_bytes, item->buffer);
    memory_free(slot_bytes);
error:
    return status;
}

static rlxvk_status read_outputs(rlxvk_executable *e, const ticket_state *t)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < t->output_count; i++) {
        const rlxvk_run_output *item = &t->outputs[i];
        if (e->context->switches.dispatch_only)
            memset(item->buffer, 0,
                   item->encoding == RLXVK_AS_F32 ? item->length * 4 : item->length);
        else if (item->length)
            TRY(read_output(e, item, (uint32_t)(t - e->tickets)));
    }
error:
    return status;
}

/* Looks for what the run itself reports (singular matrices, bad indices), once. */
static void diagnose(rlxvk_executable *e, ticket_state *t)
{
    if (!e->diagnosed || t->diagnosed)
        return;
    t->diagnosed = true;
    t->status = diagnose_run(e);
    keep_sentence(t);
}

/* Waits for a run and delivers what it owes, once; then says how it ended, as often as asked. */
static rlxvk_status complete(rlxvk_executable *e, ticket_state *t)
{
    trace *trace = e->context->trace;
    double start = trace ? trace_now() : 0;
    rlxvk_status status;
    if (t->completed)
        return ending_of(t);
    t->completed = true;
    TRY(wait_value(e, t->value));
    if (trace)
        trace_span(trace, "wait", TRACE_HOST, start, trace_now() - start, NULL);
    TRY(read_outputs(e, t));
    if (trace && e->queries)
        TRY(trace_steps(e, t->submitted_at));
    diagnose(e, t);
    return ending_of(t);
error:
    t->status = status;
    keep_sentence(t);
    return status;
}

/* Every ticket keeps its own status for its wait. */
rlxvk_status executable_idle(rlxvk_executable *e)
{
    rlxvk_status status;
    for (uint32_t t = 0; t < e->max_in_flight; t++)
        if (e->tickets[t].id)
            (void)complete(e, &e->tickets[t]);
    TRY(usable(e));
    TRY(wait_submitted(e));
error:
    return status;
}

rlxvk_status flush_row_feeds(rlxvk_executable *e)
{
    rlxvk_status status;
    if (e->row_feeds_pending)
        TRY(submit_commands(e, &e->feeds.rows, 1));
    e->row_feeds_pending = false;
    TRY(executable_idle(e));
error:
    return status;
}

/* ---- The public calls ---- */

/* The last ticket is rlxvk_run's own, so that a run never meets E_BUSY. */
static ticket_state *free_ticket(rlxvk_executable *e)
{
    for (uint32_t t = 0; t + 1 < e->max_in_flight; t++)
        if (!e->tickets[t].id)
            return &e->tickets[t];
    return NULL;
}

/* Tickets that look at the arena itself do so before another run overwrites it. */
static rlxvk_status settle_direct_reads(rlxvk_executable *e)
{
    for (uint32_t t = 0; t < e->max_in_flight; t++)
        if (e->tickets[t].id && e->tickets[t].direct_reads)
            (void)complete(e, &e->tickets[t]); /* its own wait reports the status */
    return usable(e);
}

static bool uploads_meet_row_feeds(const rlxvk_executable *e)
{
    for (size_t i = 0; i < e->input_count; i++)
        if (e->inputs[i].in_row_feeds && is_uploaded(e, &e->inputs[i]))
            return true;
    return false;
}

/* Indices may stand in an input that a feed is about to change. */
static rlxvk_status diagnose_before_feeds(rlxvk_executable *e, ticket_state *t)
{
    rlxvk_status status = RLXVK_OK;
    if (!e->check_index || !e->feeds.copies)
        return RLXVK_OK;
    TRY(submit_batch(e));
    TRY(wait_submitted(e));
    diagnose(e, t);
error:
    return status;
}

/* After a failure nobody knows which uploads went out. */
static void forget_fingerprints(rlxvk_executable *e)
{
    for (size_t i = 0; i < e->input_count; i++)
        e->inputs[i].fingerprint_valid = false;
}

static rlxvk_status launch(rlxvk_executable *e, ticket_state *t)
{
    uint32_t index = (uint32_t)(t - e->tickets);
    rlxvk_status status;
    e->batch_count = 0;
    e->launches++;
    TRY(settle_direct_reads(e));
    if (e->row_feeds_pending && uploads_meet_row_feeds(e))
        TRY(flush_row_feeds(e));
    TRY(upload_all(e, index));
    TRY(rng_upload(e, index));
    if (e->row_feeds_pending)
        e->batch[e->batch_count++] = e->feeds.rows;
    TRY(execute_segments(e));
    TRY(diagnose_before_feeds(e, t));
    if (e->feeds.copies)
        e->batch[e->batch_count++] = e->feeds.copies;
    batch_readbacks(e, t, index);
    TRY(submit_batch(e));
    advance_handles(e);
    e->rng.step += e->rng.advance_per_run;
    t->value = e->submitted;
    e->runs++;
    return RLXVK_OK;
error:
    e->batch_count = 0;
    forget_fingerprints(e);
    return status;
}

static rlxvk_status start(rlxvk_executable *e, ticket_state *t, const rlxvk_run_output *outputs,
                          size_t m)
{
    trace *trace = e->context->trace;
    double begin = trace ? trace_now() : 0;
    rlxvk_status status;
    *t = (ticket_state){.outputs = outputs, .output_count = m};
    TRY(launch(e, t));
    t->id = ++e->next_ticket;
    t->submitted_at = begin;
    if (trace)
        trace_span(trace, "submit", TRACE_HOST, begin, trace_now() - begin, NULL);
    return RLXVK_OK;
error:
    t->output_count = 0;
    return status;
}

static rlxvk_status finish(rlxvk_executable *e, ticket_state *t)
{
    rlxvk_status status = complete(e, t);
    t->id = 0;
    return status;
}

rlxvk_status rlxvk_submit(rlxvk_executable *executable, const rlxvk_run_input *inputs,
                          size_t input_count, const rlxvk_run_output *outputs, size_t output_count,
                          rlxvk_ticket *out_ticket)
{
    ticket_state *t;
    rlxvk_status status;
    TRY(status_require(out_ticket, "submit", "out_ticket"));
    TRY(check_run(executable, "submit", inputs, input_count, outputs, output_count));
    if (!(t = free_ticket(executable)))
        TRY(status_fail(RLXVK_E_BUSY, "submit: %u runs are in flight already; wait for one first",
                        executable->max_in_flight - 1));
    TRY(start(executable, t, outputs, output_count));
    *out_ticket = t->id;
error:
    return status;
}

rlxvk_status rlxvk_wait(rlxvk_executable *executable, rlxvk_ticket ticket)
{
    if (!executable)
        return status_require(executable, "wait", "executable");
    for (uint32_t i = 0; i < executable->max_in_flight; i++)
        if (ticket && executable->tickets[i].id == ticket)
            return finish(executable, &executable->tickets[i]);
    return status_fail(RLXVK_E_INDEX, "wait: no run with ticket %llu is in flight",
                       (unsigned long long)ticket);
}

rlxvk_status rlxvk_run(rlxvk_executable *executable, const rlxvk_run_input *inputs,
                       size_t input_count, const rlxvk_run_output *outputs, size_t output_count)
{
    ticket_state *t;
    rlxvk_status status;
    TRY(check_run(executable, "run", inputs, input_count, outputs, output_count));
    t = &executable->tickets[executable->max_in_flight - 1];
    TRY(executable_idle(executable));
    TRY(start(executable, t, outputs, output_count));
    TRY(finish(executable, t));
error:
    return status;
}
