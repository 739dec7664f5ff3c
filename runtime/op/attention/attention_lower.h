/* An attention about to become dispatches: what attention and attention_step share. */
#ifndef RLXVK_ATTENTION_LOWER_H
#define RLXVK_ATTENTION_LOWER_H

#include "args/attention.h"
#include "op/attention/attention.h"
#include "op/attention/attention_select.h"

typedef struct attention_job {
    attention_geometry a;
    attention_strides q, k, v, y; /* where they lie */
    uint32_t mask, reach, window; /* ATTENTION_BAND .. */
    uint32_t held[2];             /* k, v: ATTENTION_WORDS .. */
    float scale, softcap;
    bool with_lse, exact; /* exact: f32 at every precision */
    operand operands[5];  /* q, k, v, mask or position (or q again), y */
    attention_plan plan;
    struct attention_args arguments; /* by attention_set_arguments */
} attention_job;

void attention_job_plan(lowering *l, attention_job *j);
/* From the geometry, the plan and the operands. */
void attention_set_arguments(attention_job *j);
/* Whether every quad of q, k, v and y starts at a multiple of 4 elements. */
bool attention_has_whole_quads(const struct attention_args *a);
/* On the kernel that is planned, or matrix units. */
rlxvk_status attention_job_emit(lowering *l, uint32_t id, attention_job *j);

/* Of a plan in form ROWS: the constants of attention_decode.glsl. */
void attention_set_rows(const lowering *l, const attention_job *j, dispatch *d);
/* What is bound as partial results, and as the counter of each block of rows, 0 before and after
 * every dispatch; y in place of what is not needed. */
rlxvk_status attention_join_memory(lowering *l, const attention_job *j, operand out[2]);

#endif
