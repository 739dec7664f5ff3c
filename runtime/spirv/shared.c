/*
 * How much shared memory a module uses. A driver need not refuse one that uses too much. An array
 * whose length is still a specialization constant counts by the constant's default.
 */
#include "kernel/words.h"
#include "spirv/spirv.h"

typedef struct sizes {
    uint64_t *bytes;  /* per id: of a type, or of a variable in shared memory */
    uint32_t *values; /* per id: of a constant of 32 bits */
    bool *used;       /* per id: a pointer that some function uses */
    uint32_t bound;
} sizes;

/* Word k of an instruction; 0 if it is shorter, as in a wrong module of a custom op. */
static uint32_t word_at(const uint32_t *w, uint32_t k)
{
    return k < length_of(w[0]) ? w[k] : 0;
}

/* Word k as an id. No id is 0, so it stands for a wrong one. */
static uint32_t id_at(const sizes *s, const uint32_t *w, uint32_t k)
{
    uint32_t id = word_at(w, k);
    return id < s->bound ? id : 0;
}

static uint64_t bytes_at(const sizes *s, const uint32_t *w, uint32_t k)
{
    return s->bytes[id_at(s, w, k)];
}

static uint64_t struct_bytes(const sizes *s, const uint32_t *w)
{
    uint64_t bytes = 0;
    for (uint32_t i = 2; i < length_of(w[0]); i++)
        bytes = saturated_sum(bytes, bytes_at(s, w, i));
    return bytes;
}

/* The size of a type. A pointer has that of what it points to if that is shared, else 0. */
static uint64_t type_bytes(const sizes *s, const uint32_t *w)
{
    switch (opcode_of(w[0])) {
    case SpvOpTypeBool:
        return 4;
    case SpvOpTypeInt:
    case SpvOpTypeFloat:
        return word_at(w, 2) / 8;
    case SpvOpTypeVector:
    case SpvOpTypeMatrix:
        return saturated_product(word_at(w, 3), bytes_at(s, w, 2));
    case SpvOpTypeArray:
        return saturated_product(s->values[id_at(s, w, 3)], bytes_at(s, w, 2));
    case SpvOpTypeStruct:
        return struct_bytes(s, w);
    case SpvOpTypePointer:
        return word_at(w, 2) == SpvStorageClassWorkgroup ? bytes_at(s, w, 3) : 0;
    default:
        return 0;
    }
}

static void declare(sizes *s, const uint32_t *w)
{
    uint32_t opcode = opcode_of(w[0]);
    if (opcode == SpvOpConstant || opcode == SpvOpSpecConstant)
        s->values[id_at(s, w, 2)] = word_at(w, 3);
    else if (opcode == SpvOpVariable)
        s->bytes[id_at(s, w, 2)] = bytes_at(s, w, 1);
    else if (opcode >= SpvOpTypeVoid && opcode <= SpvOpTypePointer)
        s->bytes[id_at(s, w, 1)] = type_bytes(s, w);
    s->bytes[0] = s->values[0] = 0;
}

/* The word of an instruction that is the first pointer that it uses; 0: none. */
static uint32_t first_pointer(uint32_t opcode)
{
    bool reads = opcode == SpvOpLoad || opcode == SpvOpAccessChain ||
                 opcode == SpvOpInBoundsAccessChain || opcode == SPIRV_COOPERATIVE_LOAD ||
                 (opcode >= SpvOpAtomicLoad && opcode <= SpvOpAtomicXor);
    bool writes = opcode == SpvOpStore || opcode == SpvOpCopyMemory || opcode == SpvOpAtomicStore ||
                  opcode == SPIRV_COOPERATIVE_STORE;
    if (opcode == SpvOpFunctionCall)
        return 4;
    return writes ? 1 : reads ? 3 : 0;
}

static void note_use(sizes *s, const uint32_t *w)
{
    uint32_t opcode = opcode_of(w[0]), at = first_pointer(opcode);
    uint32_t end = opcode == SpvOpFunctionCall ? length_of(w[0])
                   : opcode == SpvOpCopyMemory ? 3
                                               : at + 1;
    for (; at && at < MIN(end, length_of(w[0])); at++)
        s->used[id_at(s, w, at)] = true;
}

static uint64_t add_variables(sizes *s, const uint32_t *words, uint32_t count)
{
    uint64_t bytes = 0;
    uint32_t i = SPIRV_HEADER_WORDS, functions;
    for (; i < count && opcode_of(words[i]) != SpvOpFunction; i += length_of(words[i]))
        declare(s, words + i);
    for (functions = i; i < count; i += length_of(words[i]))
        note_use(s, words + i);
    for (i = SPIRV_HEADER_WORDS; i < functions; i += length_of(words[i]))
        if (opcode_of(words[i]) == SpvOpVariable && s->used[id_at(s, words + i, 2)])
            bytes = saturated_sum(bytes, bytes_at(s, words + i, 2));
    return bytes;
}

bool spirv_shared_bytes(const uint32_t *words, uint32_t count, uint64_t *out)
{
    sizes s = {.bound = MAX(words[3], 1)};
    s.bytes = memory_zeroed(s.bound, sizeof *s.bytes);
    s.values = memory_zeroed(s.bound, sizeof *s.values);
    s.used = memory_zeroed(s.bound, sizeof *s.used);
    bool done = s.bytes && s.values && s.used;
    if (done)
        *out = add_variables(&s, words, count);
    memory_free(s.bytes);
    memory_free(s.values);
    memory_free(s.used);
    return done;
}
