/*
 * Packs SPIR-V as packed.h describes. To find a run, it tries the last MOST_TRIED places that begin
 * with the same three bytes. The longest run is taken, unless the next place has a longer one. This
 * may be slow, because it happens only once, at build time.
 */
#include "pack.h"

#include "kernel/packed_model.h"

#include <stdlib.h>
#include <string.h>

enum { HASH_BITS = 16, MOST_TRIED = 256, MOST_BYTES = 5 /* of a number */ };

/* ---- Words to text ---- */

static uint8_t *put_number(uint8_t *to, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        *to++ = (uint8_t)(value | 128);
    *to++ = (uint8_t)value;
    return to;
}

static size_t write_text(const uint32_t *words, uint32_t count, uint8_t *text)
{
    uint8_t *to = text;
    uint32_t last = 0, at = 0;
    while (at < count && at < PACKED_HEADER_WORDS)
        to = put_number(to, words[at++]);
    while (at < count) {
        uint32_t length = words[at] >> 16;
        to = put_number(to, words[at] & 0xffff);
        to = put_number(to, length);
        for (uint32_t i = 1; i < length; i++) {
            uint32_t word = words[at + i], back = last - word;
            if (i == 2)
                to = put_number(to, (0 - back) << 1 ^ (0 - ((0 - back) >> 31)));
            else
                to = put_number(to, back < PACKED_NEAR ? 2 * back : 2 * (uint64_t)word + 1);
            last = i == 2 ? word : last;
        }
        at += length;
    }
    return (size_t)(to - text);
}

/* ---- Bits to bytes ---- */

struct coder {
    uint8_t *begin, *to;
    uint32_t range, low;
};

/* An overflow is carried into bytes that are already written. */
static void raise_low(coder *c, uint32_t by)
{
    c->low += by;
    if (c->low < by)
        for (uint8_t *byte = c->to - 1; byte >= c->begin && ++*byte == 0; byte--)
            ;
}

static uint32_t coder_bit(coder *c, uint16_t *chance, uint32_t bit)
{
    uint32_t zero = (c->range >> 15) * *chance;
    if (bit)
        raise_low(c, zero);
    c->range = bit ? c->range - zero : zero;
    packed_learn(chance, bit);
    for (; c->range < 1u << 24; c->range <<= 8, c->low <<= 8)
        *c->to++ = (uint8_t)(c->low >> 24);
    return bit;
}

static void write_rest(coder *c)
{
    for (int i = 0; i < 4; i++, c->low <<= 8)
        *c->to++ = (uint8_t)(c->low >> 24);
}

/* ---- Text to steps ---- */

typedef struct packer {
    const uint8_t *text;
    uint32_t size, noted;
    int64_t *before; /* for each place, the last place before it with the same hash; -1: none */
    int64_t newest[1 << HASH_BITS];
    uint32_t recent[PACKED_RECENT];
    coder coder;
    packed_model model;
} packer;

/* `which` is PACKED_RECENT if the distance is not among the recent ones. */
typedef struct found_run {
    uint32_t length, back, which;
} found_run;

static int64_t *newest_like(packer *p, uint32_t at)
{
    uint32_t first = p->text[at] | (uint32_t)p->text[at + 1] << 8 | (uint32_t)p->text[at + 2] << 16;
    return &p->newest[first * 2654435761u >> (32 - HASH_BITS)];
}

static void note_places(packer *p, uint32_t end)
{
    for (; p->noted < end && p->noted + 3 <= p->size; p->noted++) {
        int64_t *newest = newest_like(p, p->noted);
        p->before[p->noted] = *newest;
        *newest = p->noted;
    }
}

static uint32_t repeated(const packer *p, uint32_t at, uint32_t back)
{
    uint32_t length = 0;
    while (back > 0 && back <= at && at + length < p->size &&
           p->text[at + length - back] == p->text[at + length])
        length++;
    return length;
}

/* If a short run is far back, its distance costs more than its bytes. */
static found_run find_run(packer *p, uint32_t at)
{
    found_run far = {0, 0, PACKED_RECENT}, near = {0, 0, 0};
    uint32_t tried = 0;
    note_places(p, at);
    for (int64_t from = at + 3 <= p->size ? *newest_like(p, at) : -1;
         from >= 0 && tried < MOST_TRIED; from = p->before[from], tried++) {
        uint32_t back = at - (uint32_t)from, length = repeated(p, at, back);
        if (length > far.length && (length > 3 || (length == 3 && back <= 512)))
            far = (found_run){length, back, PACKED_RECENT};
    }
    for (uint32_t i = 0; i < PACKED_RECENT; i++) {
        uint32_t length = repeated(p, at, p->recent[i]);
        if (length >= PACKED_SHORTEST && length > near.length)
            near = (found_run){length, p->recent[i], i};
    }
    return near.length > 0 && near.length + 1 >= far.length ? near : far;
}

static void write_steps(packer *p)
{
    packed_place place = {.header = PACKED_HEADER_WORDS};
    bool run = false;
    for (uint32_t at = 0; at < p->size;) {
        found_run found = find_run(p, at);
        uint32_t kind = packed_kind(&place), step = 1;
        bool later = found.which == PACKED_RECENT && found.length < 64 &&
                     find_run(p, at + 1).length > found.length;
        bool now = found.length > 0 && !later;
        coder_bit(&p->coder, &p->model.run[kind][run], now);
        run = now;
        if (run) {
            packed_run(&p->coder, &p->model, p->recent, found.which, &found.back, &found.length);
            step = found.length;
        } else {
            packed_bits(&p->coder, p->model.bytes[kind], 8, p->text[at]);
        }
        for (; step > 0; step--)
            packed_pass(&place, p->text[at++]);
    }
    write_rest(&p->coder);
}

bool pack_module(const uint32_t *words, uint32_t count, packed_module *out)
{
    size_t most = ((size_t)count + 1) * MOST_BYTES * 2;
    uint8_t *text = malloc(most), *bytes = malloc(2 * most);
    packer *p = calloc(1, sizeof *p);
    int64_t *before = calloc(most, sizeof *before);
    bool room = text && bytes && p && before;
    if (room) {
        p->text = text;
        p->size = (uint32_t)write_text(words, count, text);
        p->before = before;
        p->coder = (coder){.begin = bytes, .to = bytes, .range = UINT32_MAX};
        memset(p->newest, 0xff, sizeof p->newest);
        packed_model_begin(&p->model);
        write_steps(p);
        *out = (packed_module){bytes, (uint32_t)(p->coder.to - bytes), p->size, count};
    } else {
        free(bytes);
    }
    free(text);
    free(before);
    free(p);
    return room;
}
