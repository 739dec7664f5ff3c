/*
 * Removes storage buffers that no function uses, which specialization leaves behind. A layout need
 * not have an unused binding. But some drivers, and translators to other languages, count the
 * declared ones.
 */
#include "spirv/spirv.h"

#include <string.h>

#include "kernel/words.h"

typedef struct buffers {
    const uint32_t *words;
    uint32_t count, bound;
    bool *unused; /* by id: a storage buffer that no function names */
    uint32_t *out, out_count;
} buffers;

static bool is_unused(const buffers *b, uint32_t id)
{
    return id < b->bound && b->unused[id];
}

/* If a literal looks like the id of a buffer, the buffer stays. That does no harm. */
static void find_unused(buffers *b)
{
    bool functions = false;
    for (uint32_t i = SPIRV_HEADER_WORDS, length; i < b->count; i += length) {
        const uint32_t *w = b->words + i;
        uint32_t opcode = opcode_of(w[0]);
        length = length_of(w[0]);
        functions |= opcode == SpvOpFunction;
        if (!functions && opcode == SpvOpVariable && w[3] == SpvStorageClassStorageBuffer)
            b->unused[w[2]] = true;
        for (uint32_t k = 1; functions && k < length; k++)
            if (is_unused(b, w[k]))
                b->unused[w[k]] = false;
    }
}

static void put(buffers *b, const uint32_t *w, uint32_t count)
{
    memcpy(b->out + b->out_count, w, count * sizeof *w);
    b->out_count += count;
}

/* The variables are listed after the execution model, the function and the name. */
static void put_entry_point(buffers *b, const uint32_t *w)
{
    uint32_t at = b->out_count, length = length_of(w[0]);
    uint32_t first = 4 + (uint32_t)strlen((const char *)(w + 3)) / 4;
    put(b, w, first);
    for (uint32_t k = first; k < length; k++)
        if (!is_unused(b, w[k]))
            put(b, w + k, 1);
    b->out[at] = (b->out_count - at) << SpvWordCountShift | SpvOpEntryPoint;
}

static void put_instruction(buffers *b, const uint32_t *w)
{
    switch (opcode_of(w[0])) {
    case SpvOpEntryPoint:
        put_entry_point(b, w);
        return;
    case SpvOpName:
    case SpvOpDecorate:
        if (!is_unused(b, w[1]))
            put(b, w, length_of(w[0]));
        return;
    case SpvOpVariable:
        if (!is_unused(b, w[2]))
            put(b, w, length_of(w[0]));
        return;
    default:
        put(b, w, length_of(w[0]));
    }
}

uint32_t *spirv_drop_buffers(const uint32_t *words, uint32_t count, uint32_t *out_count)
{
    buffers b = {.words = words, .count = count, .bound = words[3]};
    b.unused = memory_zeroed(b.bound, sizeof *b.unused);
    b.out = memory_zeroed(count, sizeof *b.out);
    if (b.unused && b.out) {
        find_unused(&b);
        put(&b, words, SPIRV_HEADER_WORDS);
        for (uint32_t i = SPIRV_HEADER_WORDS; i < count; i += length_of(words[i]))
            put_instruction(&b, words + i);
        *out_count = b.out_count;
    } else {
        memory_free(b.out);
        b.out = NULL;
    }
    memory_free(b.unused);
    return b.out;
}
