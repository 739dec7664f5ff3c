/* Shared by the files of specialization: a module and the known facts about its ids. */
#ifndef RLXVK_SPECIALIZE_H
#define RLXVK_SPECIALIZE_H

#include "kernel/words.h"
#include "spirv/spirv.h"

typedef struct id_state {
    uint32_t at;             /* word index of its instruction; 0: none */
    uint32_t value;          /* if known; a boolean is 0 or 1 */
    uint32_t constant;       /* 1 + its SpecId; 0: none */
    uint32_t merge, end;     /* of a label: its merge instruction (0: none) and its terminator */
    bool is_type, is_scalar; /* scalar: a type of 32 bits or a boolean */
    bool known, live, gone;
    bool declared;          /* of a label: merge block of a live block */
    bool conditional_entry; /* of a label: entered by a branch with another live target */
} id_state;

typedef struct specialization {
    const uint32_t *words, *constants;
    uint32_t count, constant_count, bound;
    id_state *ids;
    uint32_t *pending; /* labels to visit */
    uint32_t pending_count;
    uint32_t functions_at; /* word index of the first OpFunction */
    uint32_t entry;        /* id of the entry point's function */
    uint32_t standard;     /* id of GLSL.std.450 */
    uint32_t integer;      /* id of some constant of a 32-bit integer type */
    bool changed;          /* the last round of folding found new facts */
    bool whole;            /* keep all blocks */
    bool unroll_hints;     /* keep the hints to unroll loops */
    uint32_t *out, out_count;
} specialization;

/* If an instruction has a result, its first operand is a type. Instructions that declare types have
 * none. */
static inline bool has_result(const specialization *s, const uint32_t *w)
{
    return length_of(w[0]) > 2 && w[1] < s->bound && s->ids[w[1]].is_type && w[2] < s->bound;
}

static inline bool spirv_is_terminator(uint32_t opcode)
{
    return (opcode >= SpvOpBranch && opcode <= SpvOpUnreachable) ||
           opcode == SpvOpTerminateInvocation;
}

/* specialize_branch.c: target k of a terminator; 0 behind the last one. Selectors have 32 bits. */
uint32_t spirv_target(const uint32_t *w, uint32_t k);
/* The only target that a branch can still have by the known facts; 0 if there are several. If a
 * target lies before the branch, as at the end of a loop, the branch stays. */
uint32_t spirv_only_target(const specialization *s, const uint32_t *w);
/* Whether block `from` is live and may branch to block `to`. */
bool spirv_leads(const specialization *s, uint32_t from, uint32_t to);

/* specialize_fold.c: folds the module once. s->changed tells whether it found new facts. */
void spirv_fold(specialization *s);

#endif
