/* What the files of specialization share: a module and what is known of its ids. */
#ifndef RLXVK_SPECIALIZE_H
#define RLXVK_SPECIALIZE_H

#include "kernel/words.h"
#include "spirv/spirv.h"

typedef struct id_state {
    uint32_t at;             /* its instruction, by word; 0: none */
    uint32_t value;          /* when known; of a boolean 0 or 1 */
    uint32_t constant;       /* 1 + its SpecId; 0: none */
    uint32_t merge, end;     /* of a label: its merge instruction (0: none) and terminator */
    bool is_type, is_scalar; /* scalar: a type of 32 bits or a boolean */
    bool known, live, gone;
    bool declared;          /* of a label: as merge block by a live block */
    bool conditional_entry; /* of a label: by a branch with another live target */
} id_state;

typedef struct specialization {
    const uint32_t *words, *constants;
    uint32_t count, constant_count, bound;
    id_state *ids;
    uint32_t *pending; /* labels to visit */
    uint32_t pending_count;
    uint32_t functions_at; /* the first OpFunction, by word */
    uint32_t entry;        /* function */
    uint32_t standard;     /* id of GLSL.std.450 */
    uint32_t integer;      /* some constant of a 32-bit integer type */
    bool changed;          /* by the last round of folding */
    bool whole;            /* all blocks stay */
    bool unroll_hints;     /* they stay */
    uint32_t *out, out_count;
} specialization;

/* An instruction with a result has a type as first operand; types themselves have none. */
static inline bool has_result(const specialization *s, const uint32_t *w)
{
    return length_of(w[0]) > 2 && w[1] < s->bound && s->ids[w[1]].is_type && w[2] < s->bound;
}

static inline bool spirv_is_terminator(uint32_t opcode)
{
    return (opcode >= SpvOpBranch && opcode <= SpvOpUnreachable) ||
           opcode == SpvOpTerminateInvocation;
}

/* specialize_branch.c: target k of a terminator; 0 behind the last. Selectors are of 32 bits. */
uint32_t spirv_target(const uint32_t *w, uint32_t k);
/* The one target that the facts leave to a branch of several; 0: they leave more. The end of a loop
 * stays as it is. */
uint32_t spirv_only_target(const specialization *s, const uint32_t *w);
/* Whether block `from` is live and may go on to block `to`. */
bool spirv_leads(const specialization *s, uint32_t from, uint32_t to);

/* specialize_fold.c: one round over the module; s->changed says whether it found new facts. */
void spirv_fold(specialization *s);

#endif
