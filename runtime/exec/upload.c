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

enum { LANES = 4, LANE_BYTES = 16, BLOCK_BYTES = LANES * LANE_BYTES };

/* Mixes all bits of a word into both halves (full avalanche) by 128-bit products. */
static void mix(uint64_t word, uint64_t *a, uint64_t *b)
{
    unsigned __int128 p = (unsigned __int128)(*a ^ word) * 0xff51afd7ed558ccdu;
    unsigned __int128 q = (unsigned __int128)(*b + word) * 0xd6e8feb86659fd93u;
    *a = (uint64_t)(p >> 64) ^ (uint64_t)p ^ *b;
    *b = (uint64_t)(q >> 64) ^ (uint64_t)q ^ (*a << 23 | *a >> 41);
}

/* Mixes 16 bytes into each of four lanes by one product. A lane depends only on itself, so this is
 * as fast as memory is read. */
static void mix_block(const uint8_t *bytes, uint64_t a[LANES], uint64_t b[LANES])
{
    static const uint64_t keys[LANES] = {0xa0761d6478bd642fu, 0xe7037ed1a0b428dbu,
                                         0x8ebc6af09c88c6e3u, 0x589965cc75374cc3u};
    uint64_t words[2 * LANES];
    memcpy(words, bytes, BLOCK_BYTES);
    for (int i = 0; i < LANES; i++) {
        unsigned __int128 p =
            (unsigned __int128)(a[i] ^ words[2 * i]) * (keys[i] ^ words[2 * i + 1]);
        a[i] = (uint64_t)(p >> 64) ^ (uint64_t)p ^ words[2 * i];
        b[i] = (b[i] << 29 | b[i] >> 35) + (uint64_t)p + words[2 * i + 1];
    }
}

static void fingerprint_of(const void *data, uint64_t size, slot_type type, uint64_t out[2])
{
    uint64_t a[LANES] = {1, 2, 3, 4}, b[LANES] = {5, 6, 7, 8}, at = 0;
    uint8_t last[BLOCK_BYTES] = {0};
    for (; size - at >= BLOCK_BYTES; at += BLOCK_BYTES)
        mix_block((const uint8_t *)data + at, a, b);
    if (size > at)
        memcpy(last, (const uint8_t *)data + at, size - at);
    mix_block(last, a, b);
    out[0] = 0x9e3779b97f4a7c15u ^ size;
    out[1] = 0xc2b2ae3d27d4eb4fu ^ (uint64_t)type.f32_words;
    for (int i = 0; i < LANES; i++) {
        mix(a[i], &out[0], &out[1]);
        mix(b[i], &out[0], &out[1]);
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
