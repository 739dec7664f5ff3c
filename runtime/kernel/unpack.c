/* See packed.h. Every read and write is checked, so bad input fails and does no harm. */
#include "kernel/packed_model.h"

#include <string.h>

typedef struct reader {
    const uint8_t *at, *end;
    bool failed;
} reader;

static uint8_t next_byte(reader *r)
{
    if (r->at == r->end) {
        r->failed = true;
        return 0;
    }
    return *r->at++;
}

/* ---- Steps to text ---- */

struct coder {
    reader from;
    uint32_t range, code;
};

static uint32_t coder_bit(coder *c, uint16_t *chance, uint32_t unknown)
{
    uint32_t zero = (c->range >> 15) * *chance;
    bool bit = c->code >= zero;
    (void)unknown;
    c->code -= bit ? zero : 0;
    c->range = bit ? c->range - zero : zero;
    packed_learn(chance, bit);
    for (; c->range < 1u << 24; c->range <<= 8)
        c->code = c->code << 8 | next_byte(&c->from);
    return bit;
}

static bool unpack_text(const packed_module *from, packed_model *m, uint8_t *text)
{
    coder c = {.from = {from->bytes, from->bytes + from->byte_count, false}, .range = UINT32_MAX};
    packed_place place = {.header = PACKED_HEADER_WORDS};
    uint32_t at = 0, size = from->text_bytes, recent[PACKED_RECENT] = {0}, back, length;
    bool run = false;
    packed_model_begin(m);
    for (int i = 0; i < 4; i++)
        c.code = c.code << 8 | next_byte(&c.from);
    while (at < size && !c.from.failed) {
        uint32_t kind = packed_kind(&place);
        run = coder_bit(&c, &m->run[kind][run], 0);
        if (!run) {
            text[at] = (uint8_t)packed_bits(&c, m->bytes[kind], 8, 0);
            packed_pass(&place, text[at++]);
            continue;
        }
        length = back = 0;
        packed_run(&c, m, recent, 0, &back, &length);
        if (back == 0 || back > at || length > size - at)
            return false;
        for (; length > 0; length--, at++) { /* may overlap the bytes written here */
            text[at] = text[at - back];
            packed_pass(&place, text[at]);
        }
    }
    return !c.from.failed && c.from.at == c.from.end;
}

/* ---- Text to words ---- */

static uint64_t number(reader *r)
{
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 35; shift += 7) {
        uint8_t byte = next_byte(r);
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
    r->failed = true;
    return 0;
}

static bool unpack_words(reader *r, uint32_t *words, size_t count)
{
    uint32_t last = 0;
    size_t at = 0;
    while (at < count && at < PACKED_HEADER_WORDS)
        words[at++] = (uint32_t)number(r);
    while (at < count && !r->failed) {
        uint64_t opcode = number(r), length = number(r);
        if (length == 0 || length > count - at || length > UINT16_MAX || opcode > UINT16_MAX)
            return false;
        words[at] = (uint32_t)(length << 16 | opcode);
        for (uint32_t i = 1; i < length; i++) {
            uint64_t coded = number(r);
            uint32_t half = (uint32_t)(coded >> 1), odd = coded & 1;
            if (i == 2)
                last += half ^ (0 - odd);
            words[at + i] = i == 2 ? last : odd ? half : last - half;
        }
        at += length;
    }
    return !r->failed && r->at == r->end;
}

size_t kernel_unpack_bytes(const packed_module *from)
{
    return sizeof(packed_model) + from->text_bytes;
}

bool kernel_unpack(const packed_module *from, void *room, uint32_t *words)
{
    uint8_t *text = (uint8_t *)room + sizeof(packed_model);
    reader unpacked = {text, text + from->text_bytes, false};
    return unpack_text(from, room, text) && unpack_words(&unpacked, words, from->word_count);
}
