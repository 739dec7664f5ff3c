/*
 * Makes invocations do each other's work: the numbers that they read for themselves and their
 * workgroup go through a permutation. A software driver runs invocations one after the other, so it
 * then runs them in another order. If a barrier is missing, the results may change.
 *
 * With n invocations or workgroups, number i becomes n - 1 - i, or (a i + b) mod n. There a is a
 * prime larger than n, reduced mod n, so a and n have no common divisor. If there are more than
 * 65,535 workgroups in one direction, they are always reversed, because the product must fit a
 * word. The arithmetic is added after every load of a built-in number; nothing else changes.
 *
 * Two kinds of modules are not changed:
 *   - modules that use subgroups, because the device numbers their invocations
 *   - modules with workgroups of several dimensions or of unknown size
 */
#include "kernel/words.h"
#include "spirv/spirv.h"

#include <string.h>

enum { MOST_GROUPS = 65535 };

typedef VECTOR(uint32_t) word_vector;

/* A component of a built-in number: 0, 1, 2, or all of it. */
enum { WHOLE = 3 };

typedef struct id_note {
    uint32_t built_in;  /* of a variable: 1 + its built-in; 0: none */
    uint32_t pointed;   /* of an access chain: the built-in of its variable, in the same way */
    uint32_t component; /* of an access chain: the component */
    uint32_t value;     /* of an integer constant */
    bool known;
} id_note;

typedef struct permuting {
    const uint32_t *words;
    uint32_t count, bound;
    spirv_order order;
    uint32_t seed;
    id_note *ids;
    uint32_t functions_at;
    uint32_t number, vector, truth; /* types: a word, three words, bool; 0: none */
    uint32_t vector_pointer;        /* to three words of input */
    uint32_t size_id;               /* the composite with the workgroup's size; 0: none */
    uint32_t size[3];
    uint32_t counts;     /* the variable for the number of workgroups; 0: none */
    bool needs_counts;   /* the module reads a workgroup's number */
    bool changes, fails; /* fails: cannot be permuted */
    bool out_of_memory;
    word_vector declarations; /* before the first function */
    word_vector out;
} permuting;

/* ---- Reading ---- */

static bool talks_across_subgroup(uint32_t opcode)
{
    enum { FIRST_OLD = 4421, LAST_OLD = 4432, FIRST_MATRIX = 4456, LAST_MATRIX = 4460 };
    return (opcode >= SpvOpGroupAll && opcode <= SpvOpGroupSMax) ||
           (opcode >= SpvOpGroupNonUniformElect && opcode <= SpvOpGroupNonUniformQuadSwap) ||
           (opcode >= FIRST_OLD && opcode <= LAST_OLD) ||
           (opcode >= FIRST_MATRIX && opcode <= LAST_MATRIX);
}

static bool is_permuted(uint32_t built_in)
{
    return built_in == SpvBuiltInLocalInvocationId || built_in == SpvBuiltInLocalInvocationIndex ||
           built_in == SpvBuiltInWorkgroupId || built_in == SpvBuiltInGlobalInvocationId;
}

static bool is_of_subgroups(uint32_t built_in)
{
    return built_in == SpvBuiltInSubgroupSize || built_in == SpvBuiltInNumSubgroups ||
           built_in == SpvBuiltInSubgroupId || built_in == SpvBuiltInSubgroupLocalInvocationId ||
           (built_in >= SpvBuiltInSubgroupEqMask && built_in <= SpvBuiltInSubgroupLtMask);
}

static void read_decoration(permuting *p, const uint32_t *w)
{
    if (w[2] != SpvDecorationBuiltIn)
        return;
    p->ids[w[1]].built_in = 1 + w[3];
    if (w[3] == SpvBuiltInWorkgroupSize)
        p->size_id = w[1];
    if (w[3] == SpvBuiltInNumWorkgroups)
        p->counts = w[1];
}

static void read_head(permuting *p, const uint32_t *w)
{
    switch (opcode_of(w[0])) {
    case SpvOpExecutionMode:
        if (w[2] == SpvExecutionModeLocalSize)
            memcpy(p->size, w + 3, sizeof p->size);
        break;
    case SpvOpDecorate:
        read_decoration(p, w);
        break;
    case SpvOpTypeBool:
        p->truth = w[1];
        break;
    case SpvOpTypeInt:
        if (w[2] == 32 && w[3] == 0)
            p->number = w[1];
        break;
    case SpvOpTypeVector:
        if (p->number && w[2] == p->number && w[3] == 3)
            p->vector = w[1];
        break;
    case SpvOpTypePointer:
        if (w[2] == SpvStorageClassInput && p->vector && w[3] == p->vector)
            p->vector_pointer = w[1];
        break;
    case SpvOpConstant:
        p->ids[w[2]].known = length_of(w[0]) == 4;
        p->ids[w[2]].value = w[3];
        break;
    case SpvOpConstantComposite:
        for (uint32_t k = 0; w[2] == p->size_id && k < 3; k++)
            p->size[k] = p->ids[w[3 + k]].known ? p->ids[w[3 + k]].value : 0;
        break;
    case SpvOpSpecConstantComposite:
        p->fails |= w[2] == p->size_id;
        break;
    default:
        break;
    }
}

/* 1 + the variable's built-in number, if this file handles it; else 0. */
static uint32_t noted(const permuting *p, uint32_t id)
{
    uint32_t built_in = p->ids[id].built_in;
    return built_in && (is_permuted(built_in - 1) || is_of_subgroups(built_in - 1)) ? built_in : 0;
}

static void note_use(permuting *p, uint32_t built_in)
{
    p->fails |= is_of_subgroups(built_in - 1);
    p->changes = true;
    p->needs_counts |=
        built_in - 1 == SpvBuiltInWorkgroupId || built_in - 1 == SpvBuiltInGlobalInvocationId;
}

static void read_access(permuting *p, const uint32_t *w)
{
    bool component = length_of(w[0]) == 5 && p->ids[w[4]].known && p->ids[w[4]].value < 3;
    note_use(p, noted(p, w[3]));
    p->fails |= !component;
    p->ids[w[2]].pointed = noted(p, w[3]);
    p->ids[w[2]].component = component ? p->ids[w[4]].value : 0;
}

/* Pointers are only followed into loads. If one goes elsewhere, permuting fails. */
static void read_body(permuting *p, const uint32_t *w)
{
    uint32_t opcode = opcode_of(w[0]);
    p->fails |= talks_across_subgroup(opcode);
    if ((opcode == SpvOpAccessChain || opcode == SpvOpInBoundsAccessChain) && noted(p, w[3]))
        read_access(p, w);
    else if (opcode == SpvOpLoad && noted(p, w[3]))
        note_use(p, noted(p, w[3]));
    for (uint32_t k = 3;
         k < length_of(w[0]) && (opcode == SpvOpFunctionCall || opcode == SpvOpCopyObject ||
                                 opcode == SpvOpSelect || opcode == SpvOpPhi);
         k++)
        p->fails |= w[k] < p->bound && (noted(p, w[k]) || p->ids[w[k]].pointed);
}

static void read_module(permuting *p)
{
    for (uint32_t i = SPIRV_HEADER_WORDS; i < p->count; i += length_of(p->words[i])) {
        if (opcode_of(p->words[i]) == SpvOpFunction && !p->functions_at)
            p->functions_at = i;
        (p->functions_at ? read_body : read_head)(p, p->words + i);
    }
    p->fails |= !p->functions_at || !p->number || !p->size[0] || p->size[1] != 1 || p->size[2] != 1;
    p->fails |= p->needs_counts && !p->counts && (!p->vector || !p->vector_pointer);
}

/* ---- Building ---- */

/* Writes an instruction from its opcode and operands. */
#define PUT(p, to, ...)                                                                            \
    put(p, to, (uint32_t[]){__VA_ARGS__}, ARRAY_COUNT(((uint32_t[]){__VA_ARGS__})))

static void put_words(permuting *p, word_vector *to, const uint32_t *words, uint32_t count)
{
    if (!VECTOR_RESERVE(to, count)) {
        p->out_of_memory = true;
        return;
    }
    memcpy(to->items + to->count, words, count * sizeof *words);
    to->count += count;
}

static void put(permuting *p, word_vector *to, uint32_t *words, uint32_t count)
{
    words[0] |= count << SpvWordCountShift;
    put_words(p, to, words, count);
}

static uint32_t constant(permuting *p, uint32_t value)
{
    uint32_t id = p->bound++;
    PUT(p, &p->declarations, SpvOpConstant, p->number, id, value);
    return id;
}

/* A new instruction with two operands. */
static uint32_t compute(permuting *p, uint32_t opcode, uint32_t a, uint32_t b)
{
    uint32_t id = p->bound++;
    PUT(p, &p->out, opcode, p->number, id, a, b);
    return id;
}

/* ---- The permutations ---- */

static uint32_t scattered(uint32_t seed)
{
    seed = (seed ^ seed >> 16) * 0x7feb352du;
    return (seed ^ seed >> 15) * 0x846ca68bu >> 1;
}

/* All are larger than the number of invocations or workgroups in one direction. */
static uint32_t prime_of(uint32_t seed)
{
    static const uint32_t primes[] = {2147483647, 982451653, 472882027, 179424673,
                                      86028121,   15485863,  1299709,   104729};
    return primes[scattered(seed) % ARRAY_COUNT(primes)];
}

/* Permutes the number of an invocation within its workgroup. */
static uint32_t permute_local(permuting *p, uint32_t i)
{
    uint32_t n = p->size[0];
    if (p->order == SPIRV_REVERSED)
        return compute(p, SpvOpISub, constant(p, n - 1), i);
    i = compute(p, SpvOpIMul, i, constant(p, prime_of(p->seed) % n));
    i = compute(p, SpvOpIAdd, i, constant(p, n > 1 ? 1 + scattered(p->seed + 1) % (n - 1) : 0));
    return compute(p, SpvOpUMod, i, constant(p, n));
}

static uint32_t count_of_groups(permuting *p, uint32_t component)
{
    uint32_t all = p->bound++, one = p->bound++;
    PUT(p, &p->out, SpvOpLoad, p->vector, all, p->counts);
    PUT(p, &p->out, SpvOpCompositeExtract, p->number, one, all, component);
    return one;
}

/* Permutes the number of a workgroup in one direction. */
static uint32_t permute_group(permuting *p, uint32_t i, uint32_t component)
{
    uint32_t n = count_of_groups(p, component);
    uint32_t last = compute(p, SpvOpISub, n, constant(p, 1));
    uint32_t reversed = compute(p, SpvOpISub, last, i);
    if (p->order == SPIRV_REVERSED)
        return reversed;
    uint32_t seed = p->seed + 2 * component;
    uint32_t a = compute(p, SpvOpUMod, constant(p, prime_of(seed + 2)), n);
    uint32_t b = compute(p, SpvOpUMod, constant(p, scattered(seed + 3)), n);
    uint32_t turned = compute(p, SpvOpIAdd, compute(p, SpvOpIMul, i, a), b);
    turned = compute(p, SpvOpUMod, turned, n);
    uint32_t small = p->bound++, result = p->bound++;
    PUT(p, &p->out, SpvOpULessThanEqual, p->truth, small, n, constant(p, MOST_GROUPS));
    PUT(p, &p->out, SpvOpSelect, p->number, result, small, turned, reversed);
    return result;
}

/* Permutes a component of a built-in number, whose value was `i`. */
static uint32_t permute(permuting *p, uint32_t built_in, uint32_t i, uint32_t component)
{
    if (built_in == SpvBuiltInLocalInvocationId || built_in == SpvBuiltInLocalInvocationIndex)
        return component == 0 ? permute_local(p, i) : i;
    if (built_in == SpvBuiltInWorkgroupId || component != 0)
        return permute_group(p, i, component);
    uint32_t size = constant(p, p->size[0]), group = compute(p, SpvOpUDiv, i, size);
    uint32_t local = permute_local(p, compute(p, SpvOpUMod, i, size));
    group = permute_group(p, group, 0);
    return compute(p, SpvOpIAdd, compute(p, SpvOpIMul, group, size), local);
}

/* ---- Writing ---- */

/* Writes a load of a number. Its id becomes that of the permuted number. */
static void put_load(permuting *p, const uint32_t *w, uint32_t built_in, uint32_t component)
{
    uint32_t loaded = p->bound++, parts[3];
    put_words(p, &p->out, w, length_of(w[0]));
    if (!p->out_of_memory)
        p->out.items[p->out.count - length_of(w[0]) + 2] = loaded;
    if (component != WHOLE) {
        uint32_t id = permute(p, built_in, loaded, component);
        PUT(p, &p->out, SpvOpCopyObject, w[1], w[2], id);
        return;
    }
    for (uint32_t k = 0; k < 3; k++) {
        parts[k] = p->bound++;
        PUT(p, &p->out, SpvOpCompositeExtract, p->number, parts[k], loaded, k);
        parts[k] = permute(p, built_in, parts[k], k);
    }
    PUT(p, &p->out, SpvOpCompositeConstruct, w[1], w[2], parts[0], parts[1], parts[2]);
}

static void put_in_function(permuting *p, const uint32_t *w)
{
    bool load = opcode_of(w[0]) == SpvOpLoad;
    uint32_t whole = load ? noted(p, w[3]) : 0;
    if (whole)
        put_load(p, w, whole - 1, whole - 1 == SpvBuiltInLocalInvocationIndex ? 0 : WHOLE);
    else if (load && p->ids[w[3]].pointed)
        put_load(p, w, p->ids[w[3]].pointed - 1, p->ids[w[3]].component);
    else
        put_words(p, &p->out, w, length_of(w[0]));
}

/* Declares a variable for the number of workgroups, if the module has none. */
static void declare_counts(permuting *p)
{
    p->counts = p->bound++;
    PUT(p, &p->declarations, SpvOpVariable, p->vector_pointer, p->counts, SpvStorageClassInput);
}

static void put_head(permuting *p, bool declares)
{
    bool decorated = !declares;
    for (uint32_t i = SPIRV_HEADER_WORDS; i < p->functions_at; i += length_of(p->words[i])) {
        const uint32_t *w = p->words + i;
        uint32_t at = (uint32_t)p->out.count;
        if (!decorated && opcode_of(w[0]) == SpvOpDecorate) {
            PUT(p, &p->out, SpvOpDecorate, p->counts, SpvDecorationBuiltIn,
                SpvBuiltInNumWorkgroups);
            decorated = true;
            at = (uint32_t)p->out.count;
        }
        put_words(p, &p->out, w, length_of(w[0]));
        if (declares && opcode_of(w[0]) == SpvOpEntryPoint) {
            put_words(p, &p->out, &p->counts, 1);
            if (!p->out_of_memory)
                p->out.items[at] += 1u << SpvWordCountShift;
        }
    }
}

static void write_module(permuting *p)
{
    word_vector head = {0}, functions;
    bool declares = p->needs_counts && !p->counts;
    if (!p->truth) {
        p->truth = p->bound++;
        PUT(p, &p->declarations, SpvOpTypeBool, p->truth);
    }
    if (declares)
        declare_counts(p);
    for (uint32_t i = p->functions_at; i < p->count; i += length_of(p->words[i]))
        put_in_function(p, p->words + i);
    functions = p->out;
    p->out = head;
    put_words(p, &p->out, p->words, SPIRV_HEADER_WORDS);
    put_head(p, declares);
    put_words(p, &p->out, p->declarations.items, (uint32_t)p->declarations.count);
    put_words(p, &p->out, functions.items, (uint32_t)functions.count);
    if (!p->out_of_memory)
        p->out.items[3] = p->bound;
    VECTOR_FREE(&functions);
}

uint32_t *spirv_permute(const uint32_t *words, uint32_t count, spirv_order order, uint32_t seed,
                        bool *out_permuted, uint32_t *out_count)
{
    permuting p = {.words = words, .count = count, .bound = words[3], .order = order, .seed = seed};
    p.ids = memory_zeroed(p.bound, sizeof *p.ids);
    p.out_of_memory = !p.ids;
    if (p.ids) {
        read_module(&p);
        *out_permuted = p.changes && !p.fails;
        if (*out_permuted)
            write_module(&p);
        else
            put_words(&p, &p.out, words, count);
    }
    if (p.out_of_memory)
        VECTOR_FREE(&p.out);
    memory_free(p.ids);
    VECTOR_FREE(&p.declarations);
    *out_count = (uint32_t)p.out.count;
    return p.out.items;
}
