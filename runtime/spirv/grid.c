/*
 * Makes a module count with another number of workgroups than are launched. Every load of the
 * built-in number of workgroups, or of a word of it, becomes a constant. A kernel numbers its
 * workgroups row by row of the grid. So if only the first columns are launched, the last workgroups
 * of every row are left out and the others keep their numbers. The same holds if a grid is launched
 * in several ranges (exec/slice.h).
 */
#include "kernel/words.h"
#include "spirv/spirv.h"

#include <string.h>

enum { CONSTANT_WORDS = 4, DIMENSIONS = 3, COMPOSITE_WORDS = 3 + DIMENSIONS };

typedef struct grid_ids {
    uint32_t counts;            /* the variable; 0: the module reads none */
    uint32_t number;            /* the type of a word; 0: none */
    uint32_t vector;            /* the type of three words; 0: none */
    bool whole;                 /* some load takes all three words */
    uint32_t functions_at;      /* word index */
    const uint32_t **constants; /* per id, the words of a constant of type `number` */
    uint32_t first_new;         /* the first of DIMENSIONS ids, and then that of all three */
} grid_ids;

static void read_declaration(grid_ids *g, const uint32_t *w)
{
    uint32_t opcode = opcode_of(w[0]);
    if (opcode == SpvOpDecorate && w[2] == SpvDecorationBuiltIn && w[3] == SpvBuiltInNumWorkgroups)
        g->counts = w[1];
    if (opcode == SpvOpTypeInt && w[2] == 32 && w[3] == 0)
        g->number = w[1];
    if (opcode == SpvOpTypeVector && g->number && w[2] == g->number && w[3] == DIMENSIONS)
        g->vector = w[1];
    if (opcode == SpvOpConstant)
        g->constants[w[2]] = w;
}

static void read_module(grid_ids *g, const uint32_t *words, uint32_t count)
{
    uint32_t i = SPIRV_HEADER_WORDS;
    for (; i < count && opcode_of(words[i]) != SpvOpFunction; i += length_of(words[i]))
        read_declaration(g, words + i);
    g->functions_at = i;
    g->first_new = words[3];
}

/* ---- Writing ---- */

static void declare(const grid_ids *g, const uint32_t grid[DIMENSIONS], uint32_t *out)
{
    for (uint32_t k = 0; k < DIMENSIONS; k++) {
        const uint32_t constant[CONSTANT_WORDS] = {CONSTANT_WORDS << 16 | SpvOpConstant, g->number,
                                                   g->first_new + k, grid[k]};
        memcpy(out + CONSTANT_WORDS * k, constant, sizeof constant);
    }
    if (g->whole) {
        const uint32_t all[COMPOSITE_WORDS] = {COMPOSITE_WORDS << 16 | SpvOpConstantComposite,
                                               g->vector,
                                               g->first_new + DIMENSIONS,
                                               g->first_new,
                                               g->first_new + 1,
                                               g->first_new + 2};
        memcpy(out + CONSTANT_WORDS * DIMENSIONS, all, sizeof all);
    }
}

/* Turns loads into copies of a constant. False if there are none, or if the variable is read in
 * another way. */
static bool replace_loads(grid_ids *g, uint32_t *words, uint32_t count, uint32_t *component)
{
    bool any = false;
    for (uint32_t i = g->functions_at; i < count; i += length_of(words[i])) {
        uint32_t *w = words + i, opcode = opcode_of(w[0]);
        bool chain = opcode == SpvOpAccessChain || opcode == SpvOpInBoundsAccessChain;
        if (chain && w[3] == g->counts) {
            const uint32_t *index = length_of(w[0]) == 5 ? g->constants[w[4]] : NULL;
            if (!index || index[3] >= DIMENSIONS)
                return false;
            component[w[2]] = 1 + index[3];
        } else if (opcode == SpvOpLoad && w[3] == g->counts) {
            if (!g->vector || w[1] != g->vector)
                return false;
            w[0] = 4u << 16 | SpvOpCopyObject;
            w[3] = g->first_new + DIMENSIONS;
            any = g->whole = true;
        } else if (opcode == SpvOpLoad && component[w[3]]) {
            w[0] = 4u << 16 | SpvOpCopyObject;
            w[3] = g->first_new + component[w[3]] - 1;
            any = true;
        }
    }
    return any;
}

/* The constants go before the functions. A load with memory operands would be longer than the copy
 * that replaces it, but no kernel has such a load of a built-in. */
static uint32_t *insert_constants(const grid_ids *g, uint32_t *words, const uint32_t grid[3],
                                  uint32_t *count)
{
    uint32_t more = CONSTANT_WORDS * DIMENSIONS + (g->whole ? COMPOSITE_WORDS : 0);
    memmove(words + g->functions_at + more, words + g->functions_at,
            (*count - g->functions_at) * sizeof *words);
    declare(g, grid, words + g->functions_at);
    words[3] += DIMENSIONS + 1;
    *count += more;
    return words;
}

uint32_t *spirv_fix_grid(const uint32_t *words, uint32_t count, const uint32_t grid[3],
                         uint32_t *out_count)
{
    size_t bound = words[3];
    size_t size = count + (size_t)CONSTANT_WORDS * DIMENSIONS + COMPOSITE_WORDS;
    grid_ids g = {.constants = memory_zeroed(bound, sizeof *g.constants)};
    uint32_t *component = memory_zeroed(bound, sizeof *component);
    uint32_t *copy = memory_allocate(size * sizeof *copy), *out = NULL;
    if (copy && component && g.constants) {
        memcpy(copy, words, count * sizeof *copy);
        read_module(&g, copy, count);
        *out_count = count;
        if (g.counts && g.number && replace_loads(&g, copy, count, component))
            out = insert_constants(&g, copy, grid, out_count);
    }
    if (!out)
        memory_free(copy);
    memory_free(component);
    memory_free(g.constants);
    return out;
}

/* Whether an instruction from `i` on reads through this pointer. */
static bool reads_pointer(const uint32_t *words, uint32_t count, uint32_t i, uint32_t pointer)
{
    bool reads = false;
    for (; i < count && !reads; i += length_of(words[i])) {
        const uint32_t *w = words + i;
        uint32_t opcode = opcode_of(w[0]);
        bool chain = opcode == SpvOpAccessChain || opcode == SpvOpInBoundsAccessChain;
        bool passes = opcode == SpvOpFunctionCall || opcode == SpvOpCopyObject;
        reads = opcode == SpvOpLoad && w[3] == pointer;
        if (chain && w[3] == pointer)
            reads = reads_pointer(words, count, i + length_of(w[0]), w[2]);
        for (uint32_t k = 3; passes && k < length_of(w[0]); k++)
            reads |= w[k] == pointer;
    }
    return reads;
}

static bool reads_built_in(const uint32_t *words, uint32_t count, SpvBuiltIn built_in)
{
    for (uint32_t i = SPIRV_HEADER_WORDS; i < count; i += length_of(words[i])) {
        const uint32_t *w = words + i;
        if (opcode_of(w[0]) == SpvOpDecorate && w[2] == SpvDecorationBuiltIn &&
            w[3] == (uint32_t)built_in)
            return reads_pointer(words, count, i, w[1]);
    }
    return false;
}

bool spirv_reads_grid(const uint32_t *words, uint32_t count)
{
    return reads_built_in(words, count, SpvBuiltInNumWorkgroups);
}

bool spirv_reads_global_id(const uint32_t *words, uint32_t count)
{
    return reads_built_in(words, count, SpvBuiltInGlobalInvocationId);
}
