/* The words of a SPIR-V module: read by what takes modules apart and by what checks them. */
#ifndef RLXVK_KERNEL_WORDS_H
#define RLXVK_KERNEL_WORDS_H

#include <stdint.h>

#include <spirv/unified1/spirv.h>

enum { SPIRV_HEADER_WORDS = 5 };

/* Of an instruction, by its first word. */
static inline uint32_t opcode_of(uint32_t word)
{
    return word & SpvOpCodeMask;
}

static inline uint32_t length_of(uint32_t word)
{
    return word >> SpvWordCountShift;
}

#endif
