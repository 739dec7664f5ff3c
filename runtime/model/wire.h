/*
 * Reads the wire format of protocol buffers: messages are sequences of fields, each with a number
 * and a value. Nothing is copied: bytes of a field are a span of the file. No length is believed
 * before it is compared with the bytes that are there.
 */
#ifndef RLXVK_WIRE_H
#define RLXVK_WIRE_H

#include "base/base.h"

typedef struct wire_span {
    const uint8_t *bytes;
    size_t size;
} wire_span;

typedef enum wire_kind {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2, /* strings, messages, packed numbers */
    WIRE_FIXED32 = 5
} wire_kind;

typedef struct wire_field {
    uint32_t number; /* 0: there is no further field */
    wire_kind kind;
    uint64_t value;  /* of the other kinds */
    wire_span bytes; /* of WIRE_BYTES */
} wire_field;

/* Where a message is read. Errors tell the offset from `file`. */
typedef struct wire_cursor {
    const uint8_t *at, *end, *file;
} wire_cursor;

static inline wire_cursor wire_begin(wire_span span, const uint8_t *file)
{
    return (wire_cursor){span.bytes, span.bytes ? span.bytes + span.size : NULL, file};
}

/* Reads the next field. E_FILE: the bytes are no such field; the sentence has the offset. */
RLXVK_MUST_CHECK rlxvk_status wire_next(wire_cursor *c, wire_field *out);

/* A repeated field of numbers is packed (WIRE_BYTES) or has one number. `kind` is that of a
 * number. */
/* How many numbers a field has. E_FILE: its size is not a whole number of them. */
RLXVK_MUST_CHECK rlxvk_status wire_count_numbers(const wire_field *f, wire_kind kind,
                                                 const uint8_t *file, uint64_t *out);
/* Reads them; the count must be that of wire_count_numbers. */
RLXVK_MUST_CHECK rlxvk_status wire_read_numbers(const wire_field *f, wire_kind kind,
                                                const uint8_t *file, uint64_t *out);

static inline float wire_float(uint64_t bits)
{
    union {
        uint32_t bits;
        float value;
    } word = {.bits = (uint32_t)bits};
    return word.value;
}

static inline double wire_double(uint64_t bits)
{
    union {
        uint64_t bits;
        double value;
    } word = {.bits = bits};
    return word.value;
}

#endif
