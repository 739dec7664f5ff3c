/* Helpers to read the words of a SPIR-V module, for transformations and for checks. */
#ifndef RLXVK_KERNEL_WORDS_H
#define RLXVK_KERNEL_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include <spirv/unified1/spirv.h>

enum { SPIRV_HEADER_WORDS = 5 };

/* Of SPV_KHR_cooperative_matrix, which is newer than some headers: its capability and opcodes. */
enum {
    SPIRV_COOPERATIVE_MATRIX = 6022,
    SPIRV_COOPERATIVE_LOAD = 4457,
    SPIRV_COOPERATIVE_STORE = 4458
};

/* Opcode and length of an instruction, from its first word. */
static inline uint32_t opcode_of(uint32_t word)
{
    return word & SpvOpCodeMask;
}

static inline uint32_t length_of(uint32_t word)
{
    return word >> SpvWordCountShift;
}

/* Whether a valid module declares the capability. */
static inline bool spirv_declares(const uint32_t *words, uint32_t count, uint32_t capability)
{
    for (uint32_t i = SPIRV_HEADER_WORDS; i < count && opcode_of(words[i]) == SpvOpCapability;
         i += length_of(words[i]))
        if (words[i + 1] == capability)
            return true;
    return false;
}

#endif
