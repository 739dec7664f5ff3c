/*
 * Makes sums of a product fused multiply-adds, unless the source says `precise`. Drivers may
 * contract them anyway, but not all do, and some optimizers do it before the driver. The product
 * must be in the same block, and only sums may use it. If it is of a vector and a scalar, a vector
 * that holds the scalar in each component takes its place.
 */
#include "kernel/words.h"
#include "spirv/spirv.h"

#include <spirv/unified1/GLSL.std.450.h>
#include <string.h>

typedef struct id_state {
    uint32_t at;         /* word index of a product; 0: none */
    uint32_t block;      /* its label */
    uint32_t uses;       /* its result, too */
    uint32_t absorbed;   /* those by sums that can absorb it */
    uint32_t components; /* of a type that has fused multiply-adds; otherwise 0 */
    bool decorated;      /* for example `precise` */
} id_state;

typedef struct contraction {
    const uint32_t *words;
    uint32_t count, bound, standard; /* standard: id of GLSL.std.450 */
    id_state *ids;
    uint32_t *out, out_count, out_bound;
} contraction;

static bool is_product(uint32_t opcode)
{
    return opcode == SpvOpFMul || opcode == SpvOpVectorTimesScalar;
}

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
            c->ids[w[1]].components = opcode == SpvOpTypeVector ? w[3] : 1;
        else if (opcode == SpvOpLabel)
            label = w[1];
        else if (is_product(opcode) && c->ids[w[1]].components) {
            c->ids[w[2]].at = i;
            c->ids[w[2]].block = label;
        }
    }
}

static bool is_sum(const uint32_t *w)
{
    return opcode_of(w[0]) == SpvOpFAdd || opcode_of(w[0]) == SpvOpFSub;
}

/* Whether a sum in this block may absorb the product. */
static bool may_absorb(const contraction *c, uint32_t id, uint32_t label)
{
    const id_state *product = &c->ids[id];
    return product->at && !product->decorated && product->block == label;
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
        if (may_absorb(c, w[3], label))
            c->ids[w[3]].absorbed++;
        else if (may_absorb(c, w[4], label))
            c->ids[w[4]].absorbed++;
    }
}

/* Whether sums absorb all uses of the product. */
static bool is_fused(const contraction *c, uint32_t id)
{
    return c->ids[id].absorbed && c->ids[id].absorbed + 1 == c->ids[id].uses;
}

static void put(contraction *c, const uint32_t *w, uint32_t count)
{
    memcpy(c->out + c->out_count, w, count * sizeof *w);
    c->out_count += count;
}

static uint32_t put_negated(contraction *c, uint32_t type, uint32_t id)
{
    uint32_t negated = c->out_bound++;
    put(c, (uint32_t[]){4u << SpvWordCountShift | SpvOpFNegate, type, negated, id}, 4);
    return negated;
}

static void put_fused(contraction *c, const uint32_t *w, uint32_t operand)
{
    const uint32_t *product = c->words + c->ids[w[operand]].at;
    uint32_t factor = product[3], other = product[4], added = w[7 - operand];
    if (opcode_of(product[0]) == SpvOpVectorTimesScalar)
        other = product[2];
    if (opcode_of(w[0]) == SpvOpFSub && operand == 3)
        added = put_negated(c, w[1], added);
    else if (opcode_of(w[0]) == SpvOpFSub)
        factor = put_negated(c, w[1], factor);
    put(c,
        (uint32_t[]){8u << SpvWordCountShift | SpvOpExtInst, w[1], w[2], c->standard, GLSLstd450Fma,
                     factor, other, added},
        8);
}

/* In place of a product that sums absorb. */
static void put_scalar(contraction *c, const uint32_t *w)
{
    uint32_t components = c->ids[w[1]].components;
    if (opcode_of(w[0]) != SpvOpVectorTimesScalar)
        return;
    put(c,
        (uint32_t[]){(3 + components) << SpvWordCountShift | SpvOpCompositeConstruct, w[1], w[2]},
        3);
    for (uint32_t k = 0; k < components; k++)
        put(c, w + 4, 1);
}

static void write_module(contraction *c)
{
    put(c, c->words, SPIRV_HEADER_WORDS);
    for (uint32_t i = SPIRV_HEADER_WORDS; i < c->count; i += length_of(c->words[i])) {
        const uint32_t *w = c->words + i;
        if (is_sum(w) && !c->ids[w[2]].decorated && (is_fused(c, w[3]) || is_fused(c, w[4])))
            put_fused(c, w, is_fused(c, w[3]) ? 3 : 4);
        else if (is_product(opcode_of(w[0])) && is_fused(c, w[2]))
            put_scalar(c, w);
        else
            put(c, w, length_of(w[0]));
    }
    c->out[3] = c->out_bound;
}

uint32_t *spirv_contract(const uint32_t *words, uint32_t count, uint32_t *out_count)
{
    contraction c = {.words = words, .count = count, .bound = words[3], .out_bound = words[3]};
    c.ids = memory_zeroed(c.bound, sizeof *c.ids);
    /* A sum has five words. With a negated operand it has twelve. */
    c.out = memory_zeroed(count + (size_t)count / 5 * 7, sizeof *c.out);
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
