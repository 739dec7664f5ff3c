/*
 * How SPIR-V lies in the library, a third of its size. The text of a module is its words as numbers
 * of 7 bits a byte, the lowest first, all but the last byte with bit 7 set: the words of the
 * header; of each instruction its opcode, its length, and its operands, but of operand 2, mostly a
 * result and one more than the last, the difference to operand 2 of the instruction before that had
 * one, 2 d or, where it is negative, -2 d - 1. What is packed is that text by runs: a byte with a
 * count in each half, a number more where a count is 15; so many bytes of text (upper half); and,
 * unless the text ends there, as many bytes and PACKED_SHORTEST more as stand a number of bytes
 * before.
 *
 * tools/build/pack.c packs; nothing here knows more than C.
 */
#ifndef RLXVK_KERNEL_PACKED_H
#define RLXVK_KERNEL_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PACKED_SHORTEST = 4, PACKED_HEADER_WORDS = 5 };

typedef struct packed_module {
    const uint8_t *bytes;
    uint32_t byte_count, text_bytes, word_count;
} packed_module;

/* False where it is no packed module of these sizes. `text`: room for text_bytes. */
bool kernel_unpack(const packed_module *from, uint8_t *text, uint32_t *words);

#endif
