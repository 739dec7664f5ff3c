/*
 * Turns the steps of a packed text (packed.h) into bits. The packer and the unpacker share this
 * file. Each defines coder_bit(), which codes or decodes a bit by its chance, and returns it.
 */
#ifndef RLXVK_KERNEL_PACKED_MODEL_H
#define RLXVK_KERNEL_PACKED_MODEL_H

#include "kernel/packed.h"

enum {
    PACKED_RECENT = 4, /* distances of the latest runs, which are likely to return */
    PACKED_SHORTEST = 2,
    PACKED_OPERANDS = 4, /* operands with chances of their own; later ones share the last */
    PACKED_BYTES = 3,    /* bytes of a number, in the same way */
    PACKED_OPCODES = 128,
    /* The kinds of bytes of text. */
    KIND_HEADER = 0,
    KIND_OPCODE = PACKED_BYTES,                 /* + the opcode before it */
    KIND_LENGTH = KIND_OPCODE + PACKED_OPCODES, /* + the opcode of this instruction */
    KIND_OPERAND = KIND_LENGTH + PACKED_OPCODES,
    KIND_COUNT = KIND_OPERAND + PACKED_OPERANDS * PACKED_BYTES
};

/* The chances for a number of e bits: for e, and for the bits below the highest one. */
typedef struct packed_number {
    uint16_t exponent[32], high[32][8], low[32][8];
} packed_number;

typedef struct packed_model {
    uint16_t run[KIND_COUNT][2]; /* whether a run begins: after a byte, after a run */
    uint16_t bytes[KIND_COUNT][256];
    uint16_t again, recent[PACKED_RECENT];
    packed_number length, distance[3];
} packed_model;

#define PACKED_EVEN (1u << 14)

static inline void packed_model_begin(packed_model *m)
{
    uint16_t *chances = (uint16_t *)m;
    for (size_t i = 0; i < sizeof *m / sizeof *chances; i++)
        chances[i] = PACKED_EVEN;
}

static inline void packed_learn(uint16_t *chance, bool bit)
{
    *chance = (uint16_t)(bit ? *chance - (*chance >> 4) : *chance + (((1 << 15) - *chance) >> 4));
}

/* ---- The kind of the next byte of text ---- */

typedef struct packed_place {
    uint32_t header; /* numbers of the header that are still to come */
    uint32_t field;  /* 0: an opcode, 1: a length, 2..: operands */
    uint32_t byte, number, opcode, length;
} packed_place;

static inline uint32_t packed_least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static inline uint32_t packed_kind(const packed_place *p)
{
    uint32_t byte = packed_least(p->byte, PACKED_BYTES - 1);
    if (p->header)
        return KIND_HEADER + byte;
    if (p->field < 2)
        return (p->field ? KIND_LENGTH : KIND_OPCODE) + p->opcode % PACKED_OPCODES;
    return KIND_OPERAND + packed_least(p->field - 2, PACKED_OPERANDS - 1) * PACKED_BYTES + byte;
}

static inline void packed_pass(packed_place *p, uint8_t byte)
{
    p->number |= p->byte < 5 ? (uint32_t)(byte & 127) << 7 * p->byte : 0;
    p->byte++;
    if (byte & 128)
        return;
    if (p->header) {
        p->header--;
    } else {
        p->opcode = p->field == 0 ? p->number : p->opcode;
        p->length = p->field == 1 ? p->number : p->length;
        p->field = p->field > 0 && p->field >= p->length ? 0 : p->field + 1;
    }
    p->byte = p->number = 0;
}

/* ---- Steps ---- */

typedef struct coder coder;
static uint32_t coder_bit(coder *c, uint16_t *chance, uint32_t bit);

/* Codes the lowest `bits` bits of a value, highest first. There are 2^bits `chances`. */
static inline uint32_t packed_bits(coder *c, uint16_t *chances, uint32_t bits, uint32_t value)
{
    uint32_t at = 1;
    while (bits-- > 0)
        at = at << 1 | coder_bit(c, &chances[at], value >> bits & 1);
    return at;
}

/* Codes a number of at least 1. Of the bits below the highest one, only the first three and the
 * last three have chances that adapt. */
static inline uint32_t packed_count(coder *c, packed_number *n, uint32_t value)
{
    uint32_t exponent = 0;
    while (value >> exponent > 1)
        exponent++;
    exponent = packed_bits(c, n->exponent, 5, exponent) & 31;
    uint32_t high = packed_least(exponent, 3), low = packed_least(exponent - high, 3), rest = 1;
    rest = packed_bits(c, n->high[exponent], high, value >> (exponent - high) & 7);
    for (uint32_t i = exponent - high; i > low; i--) {
        uint16_t even = PACKED_EVEN;
        rest = rest << 1 | coder_bit(c, &even, value >> (i - 1) & 1);
    }
    return rest << low | (packed_bits(c, n->low[exponent], low, value & 7) & ((1u << low) - 1));
}

/* Codes a run of *length bytes, at recent distance number `which`, or at distance *back if `which`
 * is not one of them. The unpacker gets both values from here. */
static inline void packed_run(coder *c, packed_model *m, uint32_t *recent, uint32_t which,
                              uint32_t *back, uint32_t *length)
{
    uint32_t place = 0;
    bool again = coder_bit(c, &m->again, which < PACKED_RECENT);
    while (again && place + 1 < PACKED_RECENT && coder_bit(c, &m->recent[place], place < which))
        place++;
    *length = packed_count(c, &m->length, *length - PACKED_SHORTEST + 1) + PACKED_SHORTEST - 1;
    *back = again
                ? recent[place]
                : packed_count(c, &m->distance[packed_least(*length - PACKED_SHORTEST, 2)], *back);
    for (place = again ? place : PACKED_RECENT - 1; place > 0; place--)
        recent[place] = recent[place - 1];
    recent[0] = *back;
}

#endif
