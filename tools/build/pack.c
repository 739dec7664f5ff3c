/*
 * Packs SPIR-V as packed.h says. Runs are looked for among the last places that begin with the same
 * four bytes, MOST_TRIED of them, and the longest is taken: it is done once, at build time.
 */
#include "pack.h"

#include <stdlib.h>
#include <string.h>

enum { HASH_BITS = 14, MOST_TRIED = 128, MOST_BYTES = 5 /* of a number */ };

static uint8_t *put_number(uint8_t *to, uint32_t value)
{
    for (; value >= 128; value >>= 7)
        *to++ = (uint8_t)(value | 128);
    *to++ = (uint8_t)value;
    return to;
}

/* ---- Words to text ---- */

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
            uint32_t difference = words[at + i] - last;
            if (i == 2)
                to = put_number(to, difference << 1 ^ (0 - (difference >> 31)));
            else
                to = put_number(to, words[at + i]);
        }
        last = length > 2 ? words[at + 2] : last;
        at += length;
    }
    return (size_t)(to - text);
}

/* ---- Text to runs ---- */

typedef struct packer {
    const uint8_t *text;
    size_t size;
    int64_t *before; /* of each place, the last one before it with its hash; -1: none */
    int64_t newest[1 << HASH_BITS];
    uint8_t *to;
} packer;

static void note_place(packer *p, size_t at)
{
    uint32_t first;
    if (at + sizeof first > p->size)
        return;
    memcpy(&first, p->text + at, sizeof first);
    int64_t *newest = &p->newest[first * 2654435761u >> (32 - HASH_BITS)];
    p->before[at] = *newest;
    *newest = (int64_t)at;
}

/* The longest run from `at`, a noted place, that also stands before it; 0: none worth it. */
static size_t find_run(const packer *p, size_t at, size_t *out_back)
{
    size_t longest = 0, tried = 0;
    if (at + PACKED_SHORTEST > p->size)
        return 0;
    for (int64_t from = p->before[at]; from >= 0 && tried < MOST_TRIED; tried++) {
        size_t length = 0;
        while (at + length < p->size && p->text[(size_t)from + length] == p->text[at + length])
            length++;
        if (length > longest) {
            longest = length;
            *out_back = at - (size_t)from;
        }
        from = p->before[from];
    }
    return longest < PACKED_SHORTEST || (longest == PACKED_SHORTEST && *out_back >= 1 << 14)
               ? 0
               : longest;
}

static void put_run(packer *p, size_t plain_at, size_t plain, size_t again, size_t back)
{
    size_t more = again ? again - PACKED_SHORTEST : 0;
    *p->to++ = (uint8_t)((plain < 15 ? plain : 15) << 4 | (more < 15 ? more : 15));
    if (plain >= 15)
        p->to = put_number(p->to, (uint32_t)plain - 15);
    memcpy(p->to, p->text + plain_at, plain);
    p->to += plain;
    if (again && more >= 15)
        p->to = put_number(p->to, (uint32_t)more - 15);
    if (again)
        p->to = put_number(p->to, (uint32_t)back);
}

static void write_runs(packer *p)
{
    size_t plain_at = 0, at = 0, back = 0;
    memset(p->newest, 0xff, sizeof p->newest);
    while (at < p->size) {
        note_place(p, at);
        size_t again = find_run(p, at, &back);
        if (again) {
            put_run(p, plain_at, at - plain_at, again, back);
            for (size_t i = 1; i < again; i++)
                note_place(p, at + i);
            plain_at = at + again;
        }
        at += again ? again : 1;
    }
    if (plain_at < p->size)
        put_run(p, plain_at, p->size - plain_at, 0, 0);
}

bool pack_module(const uint32_t *words, uint32_t count, packed_module *out)
{
    size_t most = ((size_t)count + 1) * MOST_BYTES * 2;
    uint8_t *text = malloc(most), *bytes = malloc(2 * most);
    packer *p = malloc(sizeof *p);
    int64_t *before = calloc(most, sizeof *before);
    bool room = text && bytes && p && before;
    if (room) {
        *p = (packer){.text = text,
                      .size = write_text(words, count, text),
                      .before = before,
                      .to = bytes};
        write_runs(p);
        *out = (packed_module){bytes, (uint32_t)(p->to - bytes), (uint32_t)p->size, count};
    } else {
        free(bytes);
    }
    free(text);
    free(before);
    free(p);
    return room;
}
