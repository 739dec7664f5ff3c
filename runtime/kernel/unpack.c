/* See packed.h. Every read and write is checked: what is wrong is refused, not followed. */
#include "kernel/packed.h"

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

static uint32_t number(reader *r)
{
    uint32_t value = 0;
    for (uint32_t shift = 0; shift < 35; shift += 7) {
        uint8_t byte = next_byte(r);
        value |= (uint32_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
    r->failed = true;
    return 0;
}

static size_t count_of(reader *r, uint32_t half)
{
    return half < 15 ? half : (size_t)15 + number(r);
}

static bool unpack_text(reader *r, uint8_t *text, size_t size)
{
    size_t at = 0;
    while (at < size && !r->failed) {
        uint8_t halves = next_byte(r);
        size_t plain = count_of(r, halves >> 4);
        if (plain > size - at || plain > (size_t)(r->end - r->at))
            return false;
        memcpy(text + at, r->at, plain);
        r->at += plain;
        at += plain;
        if (at == size)
            break;
        size_t again = count_of(r, halves & 15) + PACKED_SHORTEST, back = number(r);
        if (back == 0 || back > at || again > size - at)
            return false;
        for (; again > 0; again--, at++) /* which may be what is written here */
            text[at] = text[at - back];
    }
    return !r->failed && r->at == r->end;
}

static bool unpack_words(reader *r, uint32_t *words, size_t count)
{
    uint32_t last = 0;
    size_t at = 0;
    while (at < count && at < PACKED_HEADER_WORDS)
        words[at++] = number(r);
    while (at < count && !r->failed) {
        uint32_t opcode = number(r), length = number(r);
        if (length == 0 || length > count - at || length > UINT16_MAX || opcode > UINT16_MAX)
            return false;
        words[at] = length << 16 | opcode;
        for (uint32_t i = 1; i < length; i++)
            words[at + i] = number(r);
        if (length > 2) {
            uint32_t twice = words[at + 2];
            last += twice >> 1 ^ (0 - (twice & 1));
            words[at + 2] = last;
        }
        at += length;
    }
    return !r->failed && r->at == r->end;
}

bool kernel_unpack(const packed_module *from, uint8_t *text, uint32_t *words)
{
    reader packed = {from->bytes, from->bytes + from->byte_count, false};
    reader unpacked = {text, text + from->text_bytes, false};
    return unpack_text(&packed, text, from->text_bytes) &&
           unpack_words(&unpacked, words, from->word_count);
}
