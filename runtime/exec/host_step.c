/*
 * Host steps: operands are read from the device, and the host function of the op family computes in
 * double precision. The result is rounded to f32 and written back. All buffers are made with the
 * executable.
 */
#include "exec/host_step.h"
#include "exec/transfer.h"
#include "op/view.h"
#include "program/slot.h"

#include <string.h>

static uint64_t word_count(const node *n)
{
    return shape_numel(&n->shape) * (n->dtype == RLXVK_C64 ? 2 : 1);
}

static rlxvk_status prepare(rlxvk_executable *e, host_step *h, uint32_t step)
{
    const node *n = graph_node(e->program->graph, e->program->schedule.steps.items[step].node);
    h->step = step;
    h->buffer_count = 2 * n->input_count;
    h->inputs = memory_zeroed(n->input_count, sizeof *h->inputs);
    h->buffers = memory_zeroed(h->buffer_count, sizeof *h->buffers);
    h->result = memory_zeroed(op_host_length(e->program->graph, n) + 1, sizeof *h->result);
    h->words = memory_zeroed(op_host_length(e->program->graph, n) + 1, sizeof *h->words);
    if (!h->inputs || !h->buffers || !h->result || !h->words)
        return status_fail_memory("host step");
    for (uint32_t i = 0; i < n->input_count; i++) {
        const node *in = graph_node(e->program->graph, n->inputs[i]);
        storage held = program_held(e->program, n->inputs[i]);
        h->buffers[2 * i] = memory_zeroed(1, dtype_storage_bytes(held, shape_numel(&in->shape)));
        if (held == STORAGE_HALF) /* packed halves are widened into a second buffer */
            h->buffers[2 * i + 1] = memory_zeroed(word_count(in) + 1, 4);
        if (!h->buffers[2 * i] || (held == STORAGE_HALF && !h->buffers[2 * i + 1]))
            return status_fail_memory("host step operand");
        bool raw = held == STORAGE_RAW;
        const void *words = held == STORAGE_HALF ? h->buffers[2 * i + 1] : h->buffers[2 * i];
        h->inputs[i] =
            (host_tensor){in,
                          raw ? STORAGE_RAW
                              : (uint8_t)op_node_storage(e->program->graph, n->inputs[i]),
                          raw ? NULL : words, raw ? h->buffers[2 * i] : NULL};
    }
    return RLXVK_OK;
}

rlxvk_status host_steps_prepare(rlxvk_executable *e)
{
    const schedule *steps = &e->program->schedule;
    host_step *next = memory_zeroed(e->program->host_step_count + 1, sizeof *next);
    rlxvk_status status = RLXVK_OK;
    if (!(e->host_steps = next))
        return status_fail_memory("host steps");
    for (uint32_t i = 0; i < steps->steps.count; i++)
        if (steps->steps.items[i].host)
            TRY(prepare(e, next++, i));
error:
    return status;
}

static rlxvk_status load_operand(rlxvk_executable *e, const host_step *h, uint32_t i, uint32_t id)
{
    location from = executable_location(e, id);
    const node *n = graph_node(e->program->graph, id);
    rlxvk_status status;
    TRY(transfer_read(e, &from, h->buffers[2 * i], from.bytes));
    if (h->buffers[2 * i + 1])
        slot_decode(n, STORAGE_HALF, SLOT_WORDS, h->buffers[2 * i], shape_numel(&n->shape),
                    h->buffers[2 * i + 1]);
error:
    return status;
}

/* Writes a value that the host function computed, from `result` on, into the slot of a node.
 * `halves` is memory to pack it, if it is packed halves. */
static rlxvk_status store(rlxvk_executable *e, const host_step *h, const double *result,
                          uint32_t id, void *halves)
{
    location to = executable_location(e, id);
    uint64_t count = word_count(graph_node(e->program->graph, id));
    uint8_t *bytes = (uint8_t *)h->words;
    storage held = program_held(e->program, id);
    for (uint64_t i = 0; i < count; i++)
        if (held == STORAGE_RAW)
            bytes[i] = (uint8_t)(int)result[i];
        else
            h->words[i] = (float)result[i];
    if (held != STORAGE_HALF)
        return transfer_write(e, &to, h->words, to.bytes);
    slot_encode(graph_node(e->program->graph, id), held, SLOT_WORDS, h->words, halves);
    return transfer_write(e, &to, halves, to.bytes);
}

/* Stores the node's own result, and then the operands that it writes. If the node is a view, its
 * result lies in operand 0, so operand 0 is written already. */
static rlxvk_status store_results(rlxvk_executable *e, const host_step *h, uint32_t id)
{
    const node *n = graph_node(e->program->graph, id);
    const double *at = h->result + word_count(n);
    rlxvk_status status;
    TRY(store(e, h, h->result, id, NULL));
    uint32_t writes = node_writes(n) & ~(uint32_t)view_is(e->program->graph, n, NULL);
    for (uint32_t i = 0; i < n->input_count && writes >> i; i++) {
        if (!(writes >> i & 1))
            continue;
        TRY(store(e, h, at, n->inputs[i], h->buffers[2 * i]));
        at += word_count(graph_node(e->program->graph, n->inputs[i]));
    }
error:
    return status;
}

rlxvk_status host_step_run(rlxvk_executable *e, const host_step *h)
{
    uint32_t id = e->program->schedule.steps.items[h->step].node;
    const node *n = graph_node(e->program->graph, id);
    double begin = trace_begin(e->context->trace);
    host_call call = {.node = n, .inputs = h->inputs, .out = h->result, .is_step = true};
    char label[NODE_LABEL];
    rlxvk_status status;
    for (uint32_t i = 0; i < n->input_count; i++)
        TRY(load_operand(e, h, i, n->inputs[i]));
    memset(h->result, 0, op_host_length(e->program->graph, n) * sizeof *h->result);
    status = node_row(n)->family->execution.host(&call);
    if (status != RLXVK_OK)
        TRY(status_fail_within(status, "%s on the host",
                               op_node_label(e->program->graph, id, label)));
    TRY(store_results(e, h, id));
    trace_end_named(e->context->trace, node_row(n)->name, begin, n->name, "node", id);
error:
    return status;
}
