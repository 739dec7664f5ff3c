/*
 * The format in which SPIR-V is packed in the library. It takes a sixth of the original size.
 *
 * First a module becomes a text of bytes. It is a sequence of numbers with 7 bits a byte, lowest
 * bits first. Bit 7 is set in all bytes of a number but the last. The text has the words of the
 * header, and then for each instruction its opcode, its length and its operands.
 *
 * Operand 2 is mostly a result id, and one more than the one before. So it is stored as its
 * difference d to operand 2 of the last instruction that had one. It is 2 d, or -2 d - 1 if d is
 * negative. Other operands mostly name recent results, types or constants. If an operand is n less
 * than the latest operand 2 and n < PACKED_NEAR, it is 2 n. Any other operand v is 2 v + 1.
 *
 * Then the text is packed in steps. A step is one byte of text, or a run that repeats text from a
 * given distance back. packed_model.h turns steps into bits.
 *
 * Each bit is coded by the chance that it is 0, which adapts to the earlier bits in the same place.
 * This is an adaptive binary range coder, after G. N. N. Martin, "Range encoding", 1979. `code` has
 * 32 bits and lies in a range, of which the lower chance / 2^15 stand for 0. If a range falls below
 * 2^24, it is widened by a byte.
 *
 * tools/build/pack.c packs. The unpacker needs only C.
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

/* The bytes of `room` that kernel_unpack needs. */
size_t kernel_unpack_bytes(const packed_module *from);

/* False if it is not a packed module of these sizes. */
bool kernel_unpack(const packed_module *from, void *room, uint32_t *words);

#endif
