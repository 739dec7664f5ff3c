/*
 * Makes sums of a product fused multiply-adds, unless the source says `precise`. Drivers may
 * contract them anyway, but not all do, and some optimizers do it before the driver. The product
 * must be in the same block and have no other use.
 */
#include "kernel/words.h"
#include "spirv/spirv.h"

#include <spirv/unified1/GLSL.std.450.h>
#include <string.h>

typedef struct id_state {
    uint32_t at;    /* word index of an OpFMul; 0: none */
    uint32_t block; /* its label */
    uint32_t uses;
    bool contracts; /* of a type: has fused multiply-adds */
    bool decorated; /* for example `precise` */
    bool fused;     /* a product that a sum absorbs */
} id_state;

typedef struct contraction {
    const uint32_t *words;
    uint32_t count, bound, standard; /* standard: id of GLSL.std.450 */
    id_state *ids;
    uint32_t *out, out_count;
} contraction;

/* If an operand is not an id, a product may seem to have more uses than it has. Then it is only not
 * fused. */
static void count_uses(contraction *c, const uint32_t *w)
{
    for (uint32_t k = 1; k < length_of(w[0]); k++)
        if (w[k] < c->bound)
            c->ids[w[k]].uses++;
}

static void read_module(contraction *c)
{
    uint32_t label = 0;
    bool functions = false;
    for (uint32_t i = SPIRV_HEADER_WORDS; i < c->count; i += length_of(c->words[i])) {
        const uint32_t *w = c->words + i;
        uint32_t opcode = opcode_of(w[0]);
        functions |= opcode == SpvOpFunction;
        if (functions)
            count_uses(c, w);
        if (opcode == SpvOpExtInstImport && !strcmp((const char *)(w + 2), "GLSL.std.450"))
            c->standard = w[1];
        else if (opcode == SpvOpDecorate)
            c->ids[w[1]].decorated = true;
        else if (opcode == SpvOpTypeFloat || opcode == SpvOpTypeVector)
            c->ids[w[1]].contracts = true;
        else if (opcode == SpvOpLabel)
            label = w[1];
        else if (opcode == SpvOpFMul && c->ids[w[1]].contracts) {
            c->ids[w[2]].at = i;
            c->ids[w[2]].block = label;
        }
    }
}

/* Whether a sum in this block may absorb the product. */
static bool is_free(const contraction *c, uint32_t id, uint32_t label)
{
    const id_state *product = &c->ids[id];
    /* Two: its result, and the sum. */
    return product->at && !product->decorated && product->uses == 2 && product->block == label;
}

static bool is_sum(const uint32_t *w)
{
    return opcode_of(w[0]) == SpvOpFAdd || opcode_of(w[0]) == SpvOpFSub;
}

/* If both operands are products, the sum absorbs the first. */
static void mark(contraction *c)
{
    uint32_t label = 0;
    for (uint32_t i = SPIRV_HEADER_WORDS; i < c->count; i += length_of(c->words[i])) {
        const uint32_t *w = c->words + i;
        if (opcode_of(w[0]) == SpvOpLabel)
            label = w[1];
        if (!is_sum(w) || c->ids[w[2]].decorated)
            continue;
        if (is_free(c, w[3], label))
            c->ids[w[3]].fused = true;
        else if (is_free(c, w[4], label))
            c->ids[w[4]].fused = true;
    }
}

static void put(contraction *c, const uint32_t *w, uint32_t count)
{
    memcpy(c->out + c->out_count, w, count * sizeof *w);
    c->out_count += count;
}

/* A negated operand reuses the id of the product. */
static void put_fused(contraction *c, const uint32_t *w, uint32_t operand)
{
    uint32_t id = w[operand], factor = c->words[c->ids[id].at + 3];
    uint32_t other = c->words[c->ids[id].at + 4], added = w[7 - operand];
    if (opcode_of(w[0]) == SpvOpFSub) {
        uint32_t *negated = operand == 3 ? &added : &factor;
        put(c, (uint32_t[]){4u << SpvWordCountShift | SpvOpFNegate, w[1], id, *negated}, 4);
        *negated = id;
    }
    put(c,
        (uint32_t[]){8u << SpvWordCountShift | SpvOpExtInst, w[1], w[2], c->standard, GLSLstd450Fma,
                     factor, other, added},
        8);
}

static void write_module(contraction *c)
{
    put(c, c->words, SPIRV_HEADER_WORDS);
    for (uint32_t i = SPIRV_HEADER_WORDS; i < c->count; i += length_of(c->words[i])) {
        const uint32_t *w = c->words + i;
        if (is_sum(w) && (c->ids[w[3]].fused || c->ids[w[4]].fused))
            put_fused(c, w, c->ids[w[3]].fused ? 3 : 4);
        else if (opcode_of(w[0]) != SpvOpFMul || !c->ids[w[2]].fused)
            put(c, w, length_of(w[0]));
    }
}

uint32_t *spirv_contract(const uint32_t *words, uint32_t count, uint32_t *out_count)
{
    contraction c = {.words = words, .count = count, .bound = words[3]};
    c.ids = memory_zeroed(c.bound, sizeof *c.ids);
    /* A product and a difference have ten words and become twelve. */
    c.out = memory_zeroed(count + count / 5 + 1, sizeof *c.out);
    if (c.ids && c.out) {
        read_module(&c);
        for (uint32_t id = 0; !c.standard && id < c.bound; id++)
            c.ids[id].at = 0;
        mark(&c);
        write_module(&c);
        *out_count = c.out_count;
    } else {
        memory_free(c.out);
        c.out = NULL;
    }
    memory_free(c.ids);
    return c.out;
}
