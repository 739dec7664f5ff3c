/*
 * Decorates each operation on floats and vectors of floats NoContraction, as if all of the source
 * said `precise`. Without the decoration, a driver may reorder sums and products as real numbers
 * allow: x ((x + 3) / 6) becomes x (x / 6 + 1/2), which is wrong near -3. The decorations go in
 * front of the module's first one.
 */
#include "kernel/words.h"
#include "spirv/spirv.h"

#include <string.h>

enum { DECORATION_WORDS = 3 };

static bool is_arithmetic(uint32_t opcode)
{
    static const uint16_t opcodes[] = {
        SpvOpFAdd, SpvOpFSub, SpvOpFMul, SpvOpFDiv, SpvOpFRem, SpvOpFMod, SpvOpVectorTimesScalar,
        SpvOpDot,
    };
    for (size_t i = 0; i < ARRAY_COUNT(opcodes); i++)
        if (opcodes[i] == opcode)
            return true;
    return false;
}

/* What is known of an id. */
enum { EXACT = 1, REAL_TYPE = 2 };

/* Marks the results that the source says `precise`, and types. The word index of the first
 * decoration; `count` if there is none. */
static uint32_t read_module(const uint32_t *words, uint32_t count, uint8_t *ids)
{
    uint32_t first = count;
    for (uint32_t i = SPIRV_HEADER_WORDS; i < count; i += length_of(words[i])) {
        const uint32_t *w = words + i;
        uint32_t opcode = opcode_of(w[0]);
        if (opcode == SpvOpDecorate)
            first = MIN(first, i);
        if (opcode == SpvOpDecorate && w[2] == SpvDecorationNoContraction)
            ids[w[1]] |= EXACT;
        else if (opcode == SpvOpTypeFloat || opcode == SpvOpTypeVector)
            ids[w[1]] |= REAL_TYPE;
    }
    return first;
}

/* Writes the decorations to `out`. Returns how many words they have. */
static uint32_t put_decorations(const uint32_t *words, uint32_t count, const uint8_t *ids,
                                uint32_t *out)
{
    uint32_t written = 0;
    for (uint32_t i = SPIRV_HEADER_WORDS; i < count; i += length_of(words[i])) {
        const uint32_t *w = words + i;
        if (!is_arithmetic(opcode_of(w[0])) || !(ids[w[1]] & REAL_TYPE) || ids[w[2]] & EXACT)
            continue;
        out[written++] = (uint32_t)DECORATION_WORDS << SpvWordCountShift | SpvOpDecorate;
        out[written++] = w[2];
        out[written++] = SpvDecorationNoContraction;
    }
    return written;
}

uint32_t *spirv_make_exact(const uint32_t *words, uint32_t count, uint32_t *out_count)
{
    uint8_t *ids = memory_zeroed(words[3], sizeof *ids);
    /* An operation has at least five words. */
    uint32_t *out = memory_zeroed(count + (size_t)count / 5 * DECORATION_WORDS, sizeof *out);
    if (ids && out) {
        uint32_t at = read_module(words, count, ids);
        memcpy(out, words, at * sizeof *words);
        uint32_t added = put_decorations(words, count, ids, out + at);
        memcpy(out + at + added, words + at, (count - at) * sizeof *words);
        *out_count = count + added;
    } else {
        memory_free(out);
        out = NULL;
    }
    memory_free(ids);
    return out;
}
