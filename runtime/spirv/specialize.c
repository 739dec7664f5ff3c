/*
 * Specializes a module for one set of specialization constants. It inserts the constants, computes
 * everything that depends only on them, and removes branches, blocks and functions that cannot run.
 * Drivers do the same, but many only after inlining and translating everything. For example, a
 * region that uses one of thirty operations would cost the compile time of all.
 *
 * Facts are the known values of ids: 32-bit scalars and booleans. Two steps alternate until there
 * is nothing new. Folding computes an instruction whose operands are facts; reaching finds the live
 * blocks by these facts. If an instruction in a function is folded, it becomes an OpConstant with
 * the same id. Nothing is renumbered, and the result is never longer than the module.
 */
#include "spirv/specialize.h"

#include <string.h>

/* ---- Reading ---- */

static bool is_scalar_type(const uint32_t *w)
{
    uint32_t opcode = opcode_of(w[0]);
    return opcode == SpvOpTypeBool ||
           ((opcode == SpvOpTypeInt || opcode == SpvOpTypeFloat) && w[2] == 32);
}

static void read_declaration(specialization *s, uint32_t i)
{
    const uint32_t *w = s->words + i;
    if (has_result(s, w)) {
        s->ids[w[2]].at = i;
    } else if (opcode_of(w[0]) != SpvOpLine && opcode_of(w[0]) != SpvOpNoLine) {
        s->ids[w[1]].at = i;
        s->ids[w[1]].is_type = true;
        s->ids[w[1]].is_scalar = is_scalar_type(w);
    }
}

/* Reads an instruction before the types. False if the module uses something that is not handled
 * here. */
static bool read_head(specialization *s, const uint32_t *w)
{
    switch (opcode_of(w[0])) {
    case SpvOpExtInstImport:
        if (!strcmp((const char *)(w + 2), "GLSL.std.450"))
            s->standard = w[1];
        return true;
    case SpvOpEntryPoint:
        s->entry = w[2];
        return true;
    case SpvOpDecorate:
        if (w[2] == SpvDecorationSpecId)
            s->ids[w[1]].constant = 1 + w[3];
        return true;
    case SpvOpDecorationGroup:
        return false;
    default:
        return true;
    }
}

static void read_body(specialization *s, uint32_t i, uint32_t *label)
{
    const uint32_t *w = s->words + i;
    uint32_t opcode = opcode_of(w[0]);
    if (has_result(s, w))
        s->ids[w[2]].at = i;
    if (opcode == SpvOpLabel) {
        *label = w[1];
        s->ids[*label].at = i;
    } else if (opcode == SpvOpSelectionMerge || opcode == SpvOpLoopMerge) {
        s->ids[*label].merge = i;
    } else if (spirv_is_terminator(opcode)) {
        s->ids[*label].end = i;
    }
}

static bool read_module(specialization *s)
{
    uint32_t label = 0;
    bool declarations = false;
    for (uint32_t i = SPIRV_HEADER_WORDS, length; i < s->count; i += length) {
        uint32_t opcode = opcode_of(s->words[i]);
        length = length_of(s->words[i]);
        if (!length || length > s->count - i)
            return false;
        declarations |= opcode >= SpvOpTypeVoid && opcode <= SpvOpTypeForwardPointer;
        if (opcode == SpvOpFunction && !s->functions_at)
            s->functions_at = i;
        if (s->functions_at)
            read_body(s, i, &label);
        else if (declarations)
            read_declaration(s, i);
        else if (!read_head(s, s->words + i))
            return false;
    }
    return s->functions_at && s->entry;
}

/* ---- Blocks ---- */

static void visit(specialization *s, uint32_t label)
{
    if (s->ids[label].live)
        return;
    s->ids[label].live = true;
    s->pending[s->pending_count++] = label;
}

/* The first label of a function; w is its OpFunction. */
static uint32_t entry_label(const uint32_t *w)
{
    while (opcode_of(w[0]) != SpvOpLabel)
        w += length_of(w[0]);
    return w[1];
}

static void visit_function(specialization *s, uint32_t function)
{
    visit(s, entry_label(s->words + s->ids[function].at));
}

static void visit_successors(specialization *s, uint32_t label)
{
    const uint32_t *w = s->words + s->ids[label].at, *end = s->words + s->ids[label].end;
    for (; w < end; w += length_of(w[0]))
        if (opcode_of(w[0]) == SpvOpFunctionCall)
            visit_function(s, w[3]);
    uint32_t only = spirv_only_target(s, end);
    if (only)
        visit(s, only);
    for (uint32_t k = 0; !only && spirv_target(end, k); k++)
        visit(s, spirv_target(end, k));
}

/* Whether every loop that is entered can still repeat and be left, as far as the live blocks show.
 * If so, it stays a loop with the same blocks. */
static bool loops_stay(const specialization *s)
{
    for (uint32_t id = 1; id < s->bound; id++) {
        const uint32_t *w = s->words + s->ids[id].merge;
        if (s->ids[id].live && s->ids[id].merge && opcode_of(w[0]) == SpvOpLoopMerge &&
            (!s->ids[w[1]].live || !s->ids[w[2]].live))
            return false;
    }
    return true;
}

static void reach(specialization *s)
{
    for (uint32_t id = 0; id < s->bound; id++)
        s->ids[id].live = false;
    visit_function(s, s->entry);
    while (s->pending_count)
        visit_successors(s, s->pending[--s->pending_count]);
}

/* ---- Writing ---- */

static void put(specialization *s, const uint32_t *words, uint32_t count)
{
    memcpy(s->out + s->out_count, words, count * sizeof *words);
    s->out_count += count;
}

static void put_instruction(specialization *s, const uint32_t *w)
{
    put(s, w, length_of(w[0]));
}

/* Writes a new instruction from its opcode and operands. */
#define PUT_NEW(s, ...)                                                                            \
    put_new(s, (uint32_t[]){__VA_ARGS__}, ARRAY_COUNT(((uint32_t[]){__VA_ARGS__})))

static void put_new(specialization *s, const uint32_t *words, uint32_t count)
{
    uint32_t at = s->out_count;
    put(s, words, count);
    s->out[at] |= count << SpvWordCountShift;
}

static void put_constant(specialization *s, const uint32_t *w)
{
    uint32_t value = s->ids[w[2]].value;
    if (opcode_of(s->words[s->ids[w[1]].at]) != SpvOpTypeBool)
        PUT_NEW(s, SpvOpConstant, w[1], w[2], value);
    else
        PUT_NEW(s, value ? SpvOpConstantTrue : SpvOpConstantFalse, w[1], w[2]);
}

static void put_phi(specialization *s, uint32_t label, const uint32_t *w)
{
    uint32_t at = s->out_count;
    put(s, w, 3);
    for (uint32_t i = 3; i + 1 < length_of(w[0]); i += 2)
        if (spirv_leads(s, w[i + 1], label))
            put(s, w + i, 2);
    s->out[at] = (s->out_count - at) << SpvWordCountShift | SpvOpPhi;
}

static void put_merge(specialization *s, const uint32_t *w)
{
    uint32_t at = s->out_count;
    put_instruction(s, w);
    if (opcode_of(w[0]) == SpvOpLoopMerge && !s->unroll_hints)
        s->out[at + 3] &= ~(uint32_t)SpvLoopControlUnrollMask;
}

/*
 * Writes the end of a block; w is its terminator. If a selection is decided, it becomes a plain
 * branch, with two exceptions. A switch stays a switch, with a single target. And if other blocks
 * branch to its merge block conditionally, it becomes such a switch, because only blocks inside a
 * switch may do so.
 */
static void put_end(specialization *s, uint32_t label, const uint32_t *w)
{
    const id_state *block = &s->ids[label];
    const uint32_t *merge = block->merge ? s->words + block->merge : NULL;
    uint32_t only = spirv_only_target(s, w), opcode = opcode_of(w[0]);
    bool selection = merge && opcode_of(merge[0]) == SpvOpSelectionMerge;
    bool stays = !only || !selection || opcode == SpvOpSwitch || s->ids[merge[1]].conditional_entry;
    if (merge && stays)
        put_merge(s, merge);
    if (!only)
        put_instruction(s, w);
    else if (selection && stays)
        PUT_NEW(s, SpvOpSwitch, opcode == SpvOpSwitch ? w[1] : s->integer, only);
    else
        PUT_NEW(s, SpvOpBranch, only);
}

static void put_in_block(specialization *s, uint32_t label, const uint32_t *w)
{
    uint32_t opcode = opcode_of(w[0]);
    if (has_result(s, w) && s->ids[w[2]].known)
        return;
    if (spirv_is_terminator(opcode))
        put_end(s, label, w);
    else if (opcode == SpvOpPhi)
        put_phi(s, label, w);
    else if (opcode == SpvOpSelect && s->ids[w[3]].known)
        PUT_NEW(s, SpvOpCopyObject, w[1], w[2], w[s->ids[w[3]].value ? 4 : 5]);
    else if (opcode != SpvOpSelectionMerge && opcode != SpvOpLoopMerge)
        put_instruction(s, w);
}

/* A merge block that nothing reaches, but whose header is live. */
static void put_unreachable(specialization *s, uint32_t label)
{
    PUT_NEW(s, SpvOpLabel, label);
    PUT_NEW(s, SpvOpUnreachable);
}

/* The position of a walk through the functions. */
typedef struct place {
    uint32_t label; /* 0: between blocks */
    bool function_live;
} place;

/* Moves to the next instruction; returns whether it stays. */
static bool advance(const specialization *s, place *p, const uint32_t *w)
{
    uint32_t opcode = opcode_of(w[0]);
    if (opcode == SpvOpLabel)
        p->label = w[1];
    if (opcode == SpvOpFunction || opcode == SpvOpFunctionEnd)
        p->label = 0;
    if (opcode == SpvOpFunction)
        p->function_live = s->ids[entry_label(w)].live;
    return p->label ? s->ids[p->label].live : p->function_live;
}

static void mark_end(specialization *s, uint32_t label, const uint32_t *w)
{
    bool decided = spirv_only_target(s, w);
    if (s->ids[label].merge && !(decided && opcode_of(w[0]) == SpvOpBranchConditional))
        s->ids[s->words[s->ids[label].merge + 1]].declared = true;
    for (uint32_t k = 0; !decided && spirv_target(w, 1) && spirv_target(w, k); k++)
        s->ids[spirv_target(w, k)].conditional_entry = true;
}

/* Dead results, and those that become constants, lose their decorations. */
static void mark(specialization *s)
{
    place p = {0};
    for (uint32_t i = s->functions_at; i < s->count; i += length_of(s->words[i])) {
        const uint32_t *w = s->words + i;
        bool live = advance(s, &p, w);
        if (has_result(s, w))
            s->ids[w[2]].gone = !live || s->ids[w[2]].known;
        else if (opcode_of(w[0]) == SpvOpLabel)
            s->ids[w[1]].gone = !live;
        if (live && spirv_is_terminator(opcode_of(w[0])))
            mark_end(s, p.label, w);
    }
}

static void put_declaration(specialization *s, const uint32_t *w)
{
    uint32_t opcode = opcode_of(w[0]), at = s->out_count;
    bool constant = opcode >= SpvOpConstantTrue && opcode <= SpvOpSpecConstantOp;
    if (constant && s->ids[w[2]].known) {
        put_constant(s, w);
        return;
    }
    put_instruction(s, w);
    bool all_known = opcode == SpvOpSpecConstantComposite;
    for (uint32_t k = 3; all_known && k < length_of(w[0]); k++)
        all_known = s->ids[w[k]].known;
    if (all_known)
        s->out[at] = length_of(w[0]) << SpvWordCountShift | SpvOpConstantComposite;
}

static void put_head(specialization *s)
{
    put(s, s->words, SPIRV_HEADER_WORDS);
    for (uint32_t i = SPIRV_HEADER_WORDS; i < s->functions_at; i += length_of(s->words[i])) {
        const uint32_t *w = s->words + i;
        uint32_t opcode = opcode_of(w[0]);
        bool names = opcode == SpvOpName || opcode == SpvOpMemberName;
        bool decorates =
            opcode == SpvOpDecorate || opcode == SpvOpDecorateId || opcode == SpvOpDecorateString;
        if (!names && !(decorates && (s->ids[w[1]].gone || w[2] == SpvDecorationSpecId)))
            put_declaration(s, w);
    }
}

static void put_functions(specialization *s)
{
    place p = {0};
    for (uint32_t i = s->functions_at; i < s->count; i += length_of(s->words[i])) {
        const uint32_t *w = s->words + i;
        if (advance(s, &p, w) && has_result(s, w) && s->ids[w[2]].known)
            put_constant(s, w);
    }
    p = (place){0};
    for (uint32_t i = s->functions_at; i < s->count; i += length_of(s->words[i])) {
        const uint32_t *w = s->words + i;
        if (advance(s, &p, w))
            put_in_block(s, p.label, w);
        else if (opcode_of(w[0]) == SpvOpLabel && s->ids[w[1]].declared)
            put_unreachable(s, w[1]);
    }
}

/* ---- The whole module ---- */

static void find_integer(specialization *s)
{
    for (uint32_t id = 1; id < s->bound; id++) {
        const uint32_t *w = s->words + s->ids[id].at;
        if (s->ids[id].known && s->ids[id].at < s->functions_at &&
            opcode_of(s->words[s->ids[w[1]].at]) == SpvOpTypeInt)
            s->integer = id;
    }
}

static void settle(specialization *s)
{
    for (uint32_t id = 0; id < s->bound; id++)
        s->ids[id].live = true;
    do {
        spirv_fold(s);
        reach(s);
    } while (s->changed);
    find_integer(s);
    s->whole = !loops_stay(s) || !s->integer;
    for (uint32_t id = 0; s->whole && id < s->bound; id++)
        s->ids[id].live = true;
}

uint32_t *spirv_specialize(const uint32_t *words, uint32_t count, const uint32_t *constants,
                           uint32_t constant_count, bool unroll_hints, uint32_t *out_count)
{
    specialization s = {.words = words,
                        .constants = constants,
                        .count = count,
                        .constant_count = constant_count,
                        .unroll_hints = unroll_hints,
                        .bound = words[3]};
    s.ids = memory_zeroed(s.bound, sizeof *s.ids);
    s.pending = memory_zeroed(s.bound, sizeof *s.pending);
    s.out = memory_zeroed(count, sizeof *s.out);
    if (s.ids && s.pending && s.out) {
        if (read_module(&s)) {
            settle(&s);
            mark(&s);
            put_head(&s);
            put_functions(&s);
        } else {
            put(&s, words, count);
        }
        *out_count = s.out_count;
    } else {
        memory_free(s.out);
        s.out = NULL;
    }
    memory_free(s.ids);
    memory_free(s.pending);
    return s.out;
}
