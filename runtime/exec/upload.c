/*
 * Uploads inputs into their slots. There are four ways:
 *   not at all   the slot holds the same data already
 *   in place     the slot is mapped, and nothing is in flight
 *   staged       by way of the ticket's staging memory
 *   blocking     the input has no staging memory, for example because it is too large
 */
#include "exec/upload.h"
#include "exec/ticket.h"
#include "exec/transfer.h"
#include "program/slot.h"

#include <string.h>

enum { LANES = 8, WORD_BYTES = 8, BLOCK_BYTES = LANES * WORD_BYTES };

/* No change of one word leaves the lane as it was, because each step can be undone. The rotation
 * brings the highest bits, to which products carry nothing further, into the next product. */
static uint64_t mix_word(uint64_t lane, uint64_t word)
{
    uint64_t x = lane ^ word;
    return (x << 29 | x >> 35) * 0x9fb21c651e98df25u;
}

/* Mixes a word of each block into each lane. The lanes do not wait for each other, and they are
 * variables, because an array would stay in memory. So this is about as fast as memory is read. */
static void mix_blocks(const uint8_t *bytes, uint64_t count, uint64_t lanes[LANES])
{
    uint64_t a = lanes[0], b = lanes[1], c = lanes[2], d = lanes[3];
    uint64_t e = lanes[4], f = lanes[5], g = lanes[6], h = lanes[7], words[LANES];
    for (; count > 0; count--, bytes += BLOCK_BYTES) {
        memcpy(words, bytes, BLOCK_BYTES);
        a = mix_word(a, words[0]), b = mix_word(b, words[1]);
        c = mix_word(c, words[2]), d = mix_word(d, words[3]);
        e = mix_word(e, words[4]), f = mix_word(f, words[5]);
        g = mix_word(g, words[6]), h = mix_word(h, words[7]);
    }
    lanes[0] = a, lanes[1] = b, lanes[2] = c, lanes[3] = d;
    lanes[4] = e, lanes[5] = f, lanes[6] = g, lanes[7] = h;
}

/* Each bit of the result depends on each bit of x. It can be undone, too. */
static uint64_t mix_all(uint64_t x)
{
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    x = (x ^ x >> 29) * 0xff51afd7ed558ccdu;
    return x ^ x >> 32;
}

static void fingerprint_of(const void *data, uint64_t size, slot_type type, uint64_t out[2])
{
    uint64_t lanes[LANES] = {1, 2, 3, 4, 5, 6, 7, 8}, whole = size / BLOCK_BYTES;
    uint8_t last[BLOCK_BYTES] = {0};
    mix_blocks(data, whole, lanes);
    if (size % BLOCK_BYTES)
        memcpy(last, (const uint8_t *)data + whole * BLOCK_BYTES, size % BLOCK_BYTES);
    mix_blocks(last, 1, lanes);
    out[0] = mix_all(size);
    out[1] = mix_all((uint64_t)type.f32_words + 1);
    for (int i = 0; i < LANES; i++) {
        out[0] = mix_all(out[0] ^ lanes[i]);
        out[1] = mix_all(out[1] + lanes[i]);
    }
}

/* Whether the slot holds exactly these data already. Remembers their fingerprint, because the slot
 * will hold them. */
static bool same_as_before(rlxvk_executable *e, input_state *in, const rlxvk_run_input *item)
{
    slot_type type = slot_type_of_input(item);
    uint64_t now[2];
    if (in->leaf->in_place || in->feed >= 0 || e->program->options.force_upload) {
        in->content->fingerprint_valid = false;
        return false;
    }
    fingerprint_of(item->data, slot_bytes(type, item->length), type, now);
    bool same =
        in->content->fingerprint_valid && memcmp(now, in->content->fingerprint, sizeof now) == 0;
    memcpy(in->content->fingerprint, now, sizeof now);
    in->content->fingerprint_valid = true;
    return same;
}

static rlxvk_status upload_blocking(rlxvk_executable *e, const node *n, const location *to,
                                    storage held, const rlxvk_run_input *item)
{
    bool verbatim = held == STORAGE_RAW || item->f32_words || n->dtype == RLXVK_F32;
    rlxvk_status status;
    TRY(ticket_complete_all(e));
    if (verbatim)
        return transfer_write(e, to, item->data, to->bytes);
    void *bytes = memory_allocate(to->bytes);
    if (!bytes)
        return status_fail_memory("input conversion");
    slot_encode(n, held, slot_type_of_input(item), item->data, bytes);
    status = transfer_write(e, to, bytes, to->bytes);
    memory_free(bytes);
error:
    return status;
}

rlxvk_status upload_input(rlxvk_executable *e, input_state *in, uint32_t ticket,
                          const rlxvk_run_input *item)
{
    if (in->leaf->node == NODE_NONE || item->length == 0)
        return RLXVK_OK;
    const node *n = graph_node(e->program->graph, in->leaf->node);
    location to = executable_location(e, in->leaf->node);
    storage held = program_held(e->program, in->leaf->node);
    const memory_block *block = location_block(&to);
    if (same_as_before(e, in, item))
        return RLXVK_OK;
    if (block->mapped && !ticket_in_flight(e) && e->batch_count == 0) {
        slot_encode(n, held, slot_type_of_input(item), item->data, block->mapped + to.offset);
        return memory_block_flush(e->device, block, to.offset, to.bytes);
    }
    if (!in->upload.commands)
        return upload_blocking(e, n, &to, held, item);
    uint64_t at = in->upload.offsets[ticket];
    slot_encode(n, held, slot_type_of_input(item), item->data, e->staging.mapped + at);
    e->batch[e->batch_count++] = in->upload.commands[ticket];
    return memory_block_flush(e->device, &e->staging, at, round_up(to.bytes, 4));
}

/* Restores a bound handle that is not given in this run. Its mirror holds slot bytes, so it is
 * uploaded without conversion. */
static rlxvk_status restore_handle(rlxvk_executable *e, input_state *in)
{
    location to = executable_location(e, in->leaf->node);
    rlxvk_status status;
    const memory_block *block = location_block(&to);
    if (!block->mapped || ticket_in_flight(e) || e->batch_count)
        TRY(ticket_complete_all(e));
    TRY(transfer_write(e, &to, in->mirror, to.bytes));
    in->content->fingerprint_valid = false;
error:
    return status;
}

bool upload_is_due(const rlxvk_executable *e, const input_state *in)
{
    return in->leaf->node != NODE_NONE && (e->given[in - e->inputs].name || input_is_restored(in));
}

rlxvk_status upload_all(rlxvk_executable *e, uint32_t ticket)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < e->program->input_count; i++)
        if (!e->given[i].name && upload_is_due(e, &e->inputs[i]))
            TRY(restore_handle(e, &e->inputs[i]));
    for (size_t i = 0; i < e->program->input_count; i++)
        if (e->given[i].name) {
            double begin = trace_begin(e->context->trace);
            TRY(upload_input(e, &e->inputs[i], ticket, &e->given[i]));
            input_note_write(&e->inputs[i]);
            trace_end_named(e->context->trace, "upload", begin, e->inputs[i].leaf->name, "length",
                            e->given[i].length);
        }
error:
    return status;
}
