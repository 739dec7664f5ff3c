/*
 * Copies called functions into the entry point. Drivers inline, too, but some only after they have
 * decided which loops to unroll. NVIDIA's driver makes f32 products a fifth slower if their code is
 * in functions. All modules are inlined before they go to the driver, so that neither driver nor
 * build tool matters.
 *
 * Functions are expanded once each, callees first. A call is replaced by a copy of the callee's
 * body with new ids. The block of the call is split: the code after the call becomes a block to
 * which the callee's returns branch. If a return would leave a selection that way, the callee's
 * blocks become the only case of a switch, because blocks may leave a switch.
 *
 * If a function returns from inside a loop or a switch, it cannot be copied and stays a function.
 * Blocks must be in source order: the blocks of a construct lie between its header and its merge
 * block.
 */
#include "kernel/words.h"
#include "spirv/spirv.h"

#include <string.h>

enum { DEEPEST = 64, MOST_WORDS = 1 << 20 };

typedef VECTOR(uint32_t) word_vector;

typedef struct function {
    uint32_t at;    /* word index of its OpFunction */
    uint32_t entry; /* label of the first block */
    bool started, expanded;
    bool copied;                 /* its calls become copies */
    bool leaves;                 /* it returns from inside a selection */
    bool called;                 /* written code calls it, so it is written, too */
    word_vector variables, body; /* body: the rest of the first block, and all others */
} function;

typedef struct inlining {
    const uint32_t *words;
    uint32_t count, old_bound, bound;
    uint32_t functions_at;
    uint32_t entry, void_type, integer; /* integer: some 32-bit constant for the switch */
    bool *is_type;                      /* by old id */
    uint32_t *last;                     /* by label of a split block: its last part */
    function *functions;
    uint32_t *function_of; /* by id: 1 + index; 0: none */
    word_vector copy_of;   /* by id, for the function being copied: the copy; 0: none */
    word_vector root;      /* by id: the original of the copy, or itself */
    bool failed;           /* out of memory */
} inlining;

/* ---- Instructions ---- */

enum { /* newer than some headers */
       FIRST_DOT = 4450,
       LAST_DOT = 4455,
       COOPERATIVE_TYPE = 4456,
       COOPERATIVE_MULTIPLY_ADD = 4459
};

/* Whether word k (k > 0) of an instruction in a function is an id. */
static bool is_id(const uint32_t *w, uint32_t k)
{
    uint32_t opcode = opcode_of(w[0]);
    if (opcode >= SpvOpGroupNonUniformIAdd && opcode <= SpvOpGroupNonUniformLogicalXor)
        return k != 4;
    if (opcode >= FIRST_DOT && opcode <= LAST_DOT)
        return k < 5;
    switch (opcode) {
    case SpvOpSelectionMerge:
        return k < 2;
    case SpvOpStore:
    case SpvOpCopyMemory:
    case SpvOpLoopMerge:
        return k < 3;
    case SpvOpLoad:
    case SpvOpCompositeExtract:
    case SpvOpArrayLength:
    case SpvOpBranchConditional:
        return k < 4;
    case SpvOpCompositeInsert:
    case SpvOpVectorShuffle:
    case SPIRV_COOPERATIVE_STORE:
        return k < 5;
    case SPIRV_COOPERATIVE_LOAD:
    case COOPERATIVE_MULTIPLY_ADD:
        return k < 6;
    case SpvOpSwitch:
        return k == 1 || k % 2 == 0;
    case SpvOpVariable:
        return k != 3;
    case SpvOpExtInst:
    case SpvOpGroupNonUniformBallotBitCount:
        return k != 4;
    default:
        return true;
    }
}

static bool declares_type(uint32_t opcode)
{
    return (opcode >= SpvOpTypeVoid && opcode <= SpvOpTypeForwardPointer) ||
           opcode == COOPERATIVE_TYPE;
}

/* The word index of an instruction's result; 0: none. If there is a result, a type comes first,
 * except for labels and types. */
static uint32_t result_at(const inlining *s, const uint32_t *w)
{
    if (opcode_of(w[0]) == SpvOpLabel || declares_type(opcode_of(w[0])))
        return 1;
    return length_of(w[0]) > 2 && w[1] < s->old_bound && s->is_type[w[1]] ? 2 : 0;
}

static function *callee(const inlining *s, const uint32_t *call)
{
    return &s->functions[s->function_of[call[3]] - 1];
}

/* ---- Building ---- */

static uint32_t *put(inlining *s, word_vector *to, const uint32_t *words, uint32_t count)
{
    if (!VECTOR_RESERVE(to, count)) {
        s->failed = true;
        return NULL;
    }
    uint32_t *at = to->items + to->count;
    for (uint32_t k = 0; k < count; k++)
        at[k] = words[k];
    to->count += count;
    return at;
}

/* Writes an instruction from its opcode and operands. */
#define PUT_NEW(s, to, ...)                                                                        \
    put_new(s, to, (uint32_t[]){__VA_ARGS__}, ARRAY_COUNT(((uint32_t[]){__VA_ARGS__})))

static void put_new(inlining *s, word_vector *to, const uint32_t *words, uint32_t count)
{
    uint32_t *at = put(s, to, words, count);
    if (at)
        at[0] |= count << SpvWordCountShift;
}

/* A new id, a copy of `of`. */
static uint32_t fresh(inlining *s, uint32_t of)
{
    bool room = VECTOR_PUSH(&s->copy_of, 0) && VECTOR_PUSH(&s->root, s->root.items[of]);
    s->failed |= !room;
    return s->bound++;
}

static uint32_t copied_id(const inlining *s, uint32_t id)
{
    return s->copy_of.items[id] ? s->copy_of.items[id] : id;
}

static void put_copy(inlining *s, word_vector *to, const uint32_t *w)
{
    uint32_t *copy = put(s, to, w, length_of(w[0]));
    for (uint32_t k = 1; copy && k < length_of(w[0]); k++)
        if (is_id(w, k))
            copy[k] = copied_id(s, w[k]);
}

/* ---- A call ---- */

/* Gives the results and labels new ids, or forgets these again. */
static void name_copies(inlining *s, const word_vector *of, bool forget)
{
    for (size_t i = 0; i < of->count && !s->failed; i += length_of(of->items[i])) {
        uint32_t at = result_at(s, of->items + i), id = of->items[i + at];
        if (at)
            s->copy_of.items[id] = forget ? 0 : fresh(s, id);
    }
}

static void name_parameters(inlining *s, const function *g, const uint32_t *call, bool forget)
{
    const uint32_t *w = s->words + g->at;
    for (uint32_t k = 4; opcode_of(w[0]) != SpvOpLabel; w += length_of(w[0]))
        if (opcode_of(w[0]) == SpvOpFunctionParameter)
            s->copy_of.items[w[2]] = forget ? 0 : call[k++];
}

/* Variables move to the caller's first block. If one has an initial value, each call stores it. */
static void copy_variables(inlining *s, function *f, const function *g)
{
    for (size_t i = 0; i < g->variables.count; i += length_of(g->variables.items[i])) {
        const uint32_t *w = g->variables.items + i;
        uint32_t copy = copied_id(s, w[2]);
        PUT_NEW(s, &f->variables, SpvOpVariable, w[1], copy, w[3]);
        if (length_of(w[0]) > 4)
            PUT_NEW(s, &f->body, SpvOpStore, copy, w[4]);
    }
}

/* Copies the blocks of g. Collects pairs of a returned value (or 0) and the block that returns
 * it. */
static void copy_blocks(inlining *s, function *f, const function *g, uint32_t label, uint32_t after,
                        word_vector *returns)
{
    for (size_t i = 0; i < g->body.count; i += length_of(g->body.items[i])) {
        const uint32_t *w = g->body.items + i;
        uint32_t opcode = opcode_of(w[0]);
        if (opcode == SpvOpLabel)
            label = copied_id(s, w[1]);
        if (opcode != SpvOpReturn && opcode != SpvOpReturnValue) {
            put_copy(s, &f->body, w);
            continue;
        }
        uint32_t value = opcode == SpvOpReturnValue ? copied_id(s, w[1]) : 0;
        put(s, returns, (uint32_t[]){value, label}, 2);
        if (after)
            PUT_NEW(s, &f->body, SpvOpBranch, after);
    }
}

static void put_result(inlining *s, function *f, const uint32_t *call, const word_vector *returns)
{
    if (call[1] == s->void_type)
        return;
    if (returns->count == 0) {
        PUT_NEW(s, &f->body, SpvOpUndef, call[1], call[2]);
    } else if (returns->count == 2) {
        PUT_NEW(s, &f->body, SpvOpCopyObject, call[1], call[2], returns->items[0]);
    } else {
        uint32_t length = 3 + (uint32_t)returns->count;
        put(s, &f->body, (uint32_t[]){length << SpvWordCountShift | SpvOpPhi, call[1], call[2]}, 3);
        put(s, &f->body, returns->items, (uint32_t)returns->count);
    }
}

/* Copies a function in place of a call. Returns the label of the block that continues after the
 * call; 0 if it is the same block. */
static uint32_t copy_callee(inlining *s, function *f, const function *g, const uint32_t *call)
{
    bool blocks = false;
    for (size_t i = 0; i < g->body.count; i += length_of(g->body.items[i]))
        blocks |= opcode_of(g->body.items[i]) == SpvOpLabel;
    uint32_t after = blocks ? fresh(s, 0) : 0, entry = blocks ? fresh(s, 0) : 0;
    word_vector returns = {0};
    name_parameters(s, g, call, false);
    name_copies(s, &g->variables, false);
    name_copies(s, &g->body, false);
    if (!s->failed) {
        s->copy_of.items[g->entry] = entry;
        copy_variables(s, f, g);
        if (g->leaves) {
            PUT_NEW(s, &f->body, SpvOpSelectionMerge, after, SpvSelectionControlMaskNone);
            PUT_NEW(s, &f->body, SpvOpSwitch, s->integer, entry);
        } else if (blocks) {
            PUT_NEW(s, &f->body, SpvOpBranch, entry);
        }
        if (blocks)
            PUT_NEW(s, &f->body, SpvOpLabel, entry);
        copy_blocks(s, f, g, entry, after, &returns);
        if (blocks)
            PUT_NEW(s, &f->body, SpvOpLabel, after);
        put_result(s, f, call, &returns);
        s->copy_of.items[g->entry] = 0;
        name_copies(s, &g->body, true);
        name_copies(s, &g->variables, true);
        name_parameters(s, g, call, true);
    }
    VECTOR_FREE(&returns);
    return after;
}

/* ---- A function ---- */

/* Whether the block has a loop's merge instruction. Such a block is the header of its loop, so it
 * cannot be split. */
static bool heads_loop(const uint32_t *w)
{
    while (opcode_of(w[0]) != SpvOpLoopMerge && opcode_of(w[0]) != SpvOpLabel &&
           opcode_of(w[0]) != SpvOpFunctionEnd)
        w += length_of(w[0]);
    return opcode_of(w[0]) == SpvOpLoopMerge;
}

/* A phi names the block from which a value comes. If that block was split, the value now comes from
 * the last part. */
static void mend_phis(const inlining *s, function *f)
{
    for (size_t i = 0; i < f->body.count; i += length_of(f->body.items[i])) {
        uint32_t *w = f->body.items + i;
        for (uint32_t k = 4; opcode_of(w[0]) == SpvOpPhi && k < length_of(w[0]); k += 2)
            if (w[k] < s->old_bound && s->last[w[k]])
                w[k] = s->last[w[k]];
    }
}

/* Decides whether calls of this function may be copied, by the constructs around its returns. */
static void judge(const inlining *s, function *f)
{
    uint32_t merges[DEEPEST], depth = 0; /* outermost first */
    bool jump[DEEPEST];                  /* loops and switches */
    f->copied = f->body.count < MOST_WORDS;
    for (size_t i = 0; i < f->body.count && f->copied; i += length_of(f->body.items[i])) {
        const uint32_t *w = f->body.items + i, *next = w + length_of(w[0]);
        uint32_t opcode = opcode_of(w[0]);
        for (uint32_t d = depth; opcode == SpvOpLabel && d-- > 0;)
            if (merges[d] == w[1])
                depth = d;
        if (opcode == SpvOpLoopMerge || opcode == SpvOpSelectionMerge) {
            f->copied = depth < DEEPEST;
            jump[depth % DEEPEST] = opcode == SpvOpLoopMerge || opcode_of(next[0]) == SpvOpSwitch;
            merges[depth++ % DEEPEST] = w[1];
        } else if (opcode == SpvOpReturn || opcode == SpvOpReturnValue) {
            f->leaves |= depth > 0;
            for (uint32_t d = 0; d < depth; d++)
                f->copied &= !jump[d];
        }
    }
    f->copied &= !f->leaves || s->integer;
}

static void expand(inlining *s, function *f)
{
    const uint32_t *w = s->words + f->at;
    f->started = true;
    while (opcode_of(w[0]) != SpvOpLabel)
        w += length_of(w[0]);
    uint32_t label = f->entry = w[1];
    bool whole = heads_loop(w + length_of(w[0]));
    for (w += length_of(w[0]); opcode_of(w[0]) != SpvOpFunctionEnd && !s->failed;
         w += length_of(w[0])) {
        uint32_t opcode = opcode_of(w[0]);
        function *g = opcode == SpvOpFunctionCall ? callee(s, w) : NULL;
        if (opcode == SpvOpLabel) {
            label = w[1];
            whole = heads_loop(w + length_of(w[0]));
        }
        if (g && !g->started)
            expand(s, g);
        if (opcode == SpvOpVariable)
            put(s, &f->variables, w, length_of(w[0]));
        else if (!g || !g->expanded || !g->copied || whole)
            put(s, &f->body, w, length_of(w[0]));
        else {
            uint32_t after = copy_callee(s, f, g, w);
            s->last[label] = after ? after : s->last[label];
        }
    }
    if (s->failed)
        return; /* the body is not complete */
    mend_phis(s, f);
    judge(s, f);
    f->expanded = true;
}

/* ---- Reading ---- */

static uint32_t count_functions(const inlining *s)
{
    uint32_t found = 0;
    for (uint32_t i = s->functions_at; i < s->count; i += length_of(s->words[i]))
        found += opcode_of(s->words[i]) == SpvOpFunction;
    return found;
}

static void read_head(inlining *s)
{
    uint32_t i = SPIRV_HEADER_WORDS;
    for (; i < s->count && opcode_of(s->words[i]) != SpvOpFunction; i += length_of(s->words[i])) {
        const uint32_t *w = s->words + i;
        uint32_t opcode = opcode_of(w[0]);
        if (opcode == SpvOpEntryPoint)
            s->entry = w[2];
        if (declares_type(opcode))
            s->is_type[w[1]] = true;
        if (opcode == SpvOpTypeVoid)
            s->void_type = w[1];
    }
    s->functions_at = i;
}

static uint32_t find_integer(const inlining *s)
{
    uint32_t type = 0;
    for (uint32_t i = SPIRV_HEADER_WORDS; i < s->functions_at; i += length_of(s->words[i])) {
        const uint32_t *w = s->words + i;
        if (opcode_of(w[0]) == SpvOpTypeInt && w[2] == 32)
            type = w[1];
        if (type && opcode_of(w[0]) == SpvOpConstant && w[1] == type)
            return w[2];
    }
    return 0;
}

static bool prepare(inlining *s)
{
    s->bound = s->old_bound;
    s->is_type = memory_zeroed(s->old_bound, sizeof *s->is_type);
    s->last = memory_zeroed(s->old_bound, sizeof *s->last);
    s->function_of = memory_zeroed(s->old_bound, sizeof *s->function_of);
    if (!s->is_type || !s->last || !s->function_of || !VECTOR_RESERVE(&s->copy_of, s->old_bound) ||
        !VECTOR_RESERVE(&s->root, s->old_bound))
        return false;
    for (uint32_t id = 0; id < s->old_bound; id++) {
        VECTOR_PUSH(&s->copy_of, 0);
        VECTOR_PUSH(&s->root, id);
    }
    read_head(s);
    s->integer = find_integer(s);
    s->functions = memory_zeroed(count_functions(s), sizeof *s->functions);
    if (!s->functions)
        return false;
    for (uint32_t i = s->functions_at, k = 0; i < s->count; i += length_of(s->words[i]))
        if (opcode_of(s->words[i]) == SpvOpFunction) {
            s->functions[k].at = i;
            s->function_of[s->words[i + 2]] = ++k;
        }
    return true;
}

/* ---- Writing ---- */

static void write_function(inlining *s, const function *f, word_vector *to)
{
    const uint32_t *w = s->words + f->at;
    for (; opcode_of(w[0]) != SpvOpLabel; w += length_of(w[0]))
        put(s, to, w, length_of(w[0]));
    PUT_NEW(s, to, SpvOpLabel, f->entry);
    put(s, to, f->variables.items, (uint32_t)f->variables.count);
    put(s, to, f->body.items, (uint32_t)f->body.count);
    PUT_NEW(s, to, SpvOpFunctionEnd);
}

static void write_called(inlining *s, function *f, word_vector *to)
{
    f->called = true;
    write_function(s, f, to);
    for (size_t i = 0; i < f->body.count; i += length_of(f->body.items[i]))
        if (opcode_of(f->body.items[i]) == SpvOpFunctionCall &&
            !callee(s, f->body.items + i)->called)
            write_called(s, callee(s, f->body.items + i), to);
}

/* Links all results in `functions` that are copies of one id: `first` by old id, `next` by id. */
static void chain_copies(const inlining *s, const word_vector *functions, uint32_t *first,
                         uint32_t *next)
{
    for (size_t i = 0; i < functions->count; i += length_of(functions->items[i])) {
        uint32_t at = result_at(s, functions->items + i), id = functions->items[i + at];
        if (!at)
            continue;
        next[id] = first[s->root.items[id]];
        first[s->root.items[id]] = id;
    }
}

/* A decoration of a function's result is written for all its copies, and not for unused ids. */
static void write_head(inlining *s, const uint32_t *first, const uint32_t *next, word_vector *to)
{
    bool *declared = memory_zeroed(s->old_bound, sizeof *declared);
    s->failed |= !declared;
    for (uint32_t i = SPIRV_HEADER_WORDS; i < s->functions_at && declared;
         i += length_of(s->words[i])) {
        uint32_t at = result_at(s, s->words + i);
        if (at)
            declared[s->words[i + at]] = true;
    }
    put(s, to, s->words, SPIRV_HEADER_WORDS);
    for (uint32_t i = SPIRV_HEADER_WORDS; i < s->functions_at && !s->failed;
         i += length_of(s->words[i])) {
        const uint32_t *w = s->words + i;
        uint32_t opcode = opcode_of(w[0]);
        bool decorates =
            opcode == SpvOpDecorate || opcode == SpvOpDecorateId || opcode == SpvOpDecorateString;
        if (opcode == SpvOpName || opcode == SpvOpMemberName)
            continue;
        if (!decorates || declared[w[1]]) {
            put(s, to, w, length_of(w[0]));
            continue;
        }
        for (uint32_t id = first[w[1]]; id && !s->failed; id = next[id]) {
            uint32_t *copy = put(s, to, w, length_of(w[0]));
            if (copy)
                copy[1] = id;
        }
    }
    memory_free(declared);
}

static uint32_t *write_module(inlining *s, uint32_t *out_count)
{
    word_vector functions = {0}, out = {0};
    uint32_t *first = memory_zeroed(s->old_bound, sizeof *first);
    uint32_t *next = memory_zeroed(s->bound, sizeof *next);
    s->failed |= !first || !next;
    if (!s->failed)
        write_called(s, &s->functions[s->function_of[s->entry] - 1], &functions);
    if (!s->failed) {
        chain_copies(s, &functions, first, next);
        write_head(s, first, next, &out);
        put(s, &out, functions.items, (uint32_t)functions.count);
    }
    memory_free(first);
    memory_free(next);
    VECTOR_FREE(&functions);
    if (s->failed)
        VECTOR_FREE(&out);
    else
        out.items[3] = s->bound;
    *out_count = (uint32_t)out.count;
    return out.items;
}

uint32_t *spirv_inline(const uint32_t *words, uint32_t count, uint32_t *out_count)
{
    inlining s = {.words = words, .count = count, .old_bound = words[3]};
    uint32_t *out = NULL;
    if (prepare(&s)) {
        expand(&s, &s.functions[s.function_of[s.entry] - 1]);
        out = write_module(&s, out_count);
        for (uint32_t k = count_functions(&s); k-- > 0;) {
            VECTOR_FREE(&s.functions[k].variables);
            VECTOR_FREE(&s.functions[k].body);
        }
    }
    memory_free(s.functions);
    memory_free(s.is_type);
    memory_free(s.last);
    memory_free(s.function_of);
    VECTOR_FREE(&s.copy_of);
    VECTOR_FREE(&s.root);
    return out;
}
