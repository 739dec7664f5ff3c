/* An attention that is being lowered: the parts that attention and attention_step share. */
#ifndef RLXVK_ATTENTION_LOWER_H
#define RLXVK_ATTENTION_LOWER_H

#include "args/attention.h"
#include "op/attention/attention.h"
#include "op/attention/attention_choice.h"

typedef struct attention_job {
    attention_geometry a;
    attention_strides q, k, v, y; /* strides of the tensors */
    uint32_t mask, reach, window; /* mask: ATTENTION_BAND, ... */
    uint32_t held[2];             /* of k, v: ATTENTION_WORDS, ... */
    float scale, softcap;
    bool with_lse, exact; /* see attention_attributes */
    operand operands[5];  /* q, k, v, mask or position (or q again), y */
    attention_plan plan;
    struct attention_args arguments; /* set by attention_set_arguments */
} attention_job;

void attention_job_plan(lowering *l, attention_job *j);
/* Fills `arguments` from the geometry, the plan and the operands. */
void attention_set_arguments(attention_job *j);
/* Does every quad of q, k, v and y start at a multiple of 4 elements? */
bool attention_has_whole_quads(const struct attention_args *a);
/* Emits the planned kernel, or the one for matrix units. */
rlxvk_status attention_job_emit(lowering *l, uint32_t id, attention_job *j);

/* Sets the constants of attention_decode.glsl, for a plan with form ROWS. */
void attention_set_rows(const lowering *l, const attention_job *j, dispatch *d);
/* The operands for partial results and for the counters. Each block of rows has a counter, which is
 * 0 before and after every dispatch. If one is not needed, y is bound instead. */
rlxvk_status attention_join_memory(lowering *l, const attention_job *j, operand out[2]);

#endif
