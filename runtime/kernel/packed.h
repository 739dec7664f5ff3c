/*
 * How SPIR-V lies in the library, a sixth of its size.
 *
 * The text of a module is its words as numbers of 7 bits a byte, the lowest first, all but the last
 * byte with bit 7 set: the words of the header; of each instruction its opcode, its length, and its
 * operands. Operand 2, mostly a result and one more than the last, is the difference d to operand
 * 2 of the instruction before that had one, as 2 d or, where it is negative, -2 d - 1. The others
 * mostly name what was made just before, or types and constants: one that is n < PACKED_NEAR less
 * than the latest operand 2 is 2 n, any other v is 2 v + 1.
 *
 * What is packed is that text by steps, as bits by packed_model.h: a byte of text, or a run that
 * repeats what stands a number of bytes before. Each bit is coded by the chance that it is 0 given
 * what was coded before in the same place, which it then changes (an adaptive binary range coder,
 * after G. N. N. Martin, "Range encoding", 1979): `code` of 32 bits lies in a range of which the
 * lower chance / 2^15 stand for 0; a range below 2^24 is widened by a byte.
 *
 * tools/build/pack.c packs; nothing here knows more than C.
 */
#ifndef RLXVK_KERNEL_PACKED_H
#define RLXVK_KERNEL_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PACKED_HEADER_WORDS = 5, PACKED_NEAR = 128 };

typedef struct packed_module {
    const uint8_t *bytes;
    uint32_t byte_count, text_bytes, word_count;
} packed_module;

/* Of the room that unpacking takes. */
size_t kernel_unpack_bytes(const packed_module *from);

/* False where it is no packed module of these sizes. */
bool kernel_unpack(const packed_module *from, void *room, uint32_t *words);

#endif
