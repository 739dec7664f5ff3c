/* What the ways of lowering a recurrent layer share: the layer, and where its operands lie. */
#ifndef RLXVK_RECURRENT_JOB_H
#define RLXVK_RECURRENT_JOB_H

#include "op/sequence/recurrent.h"
#include "op/sequence/recurrent_select.h"

typedef struct recurrent_job { /* one layer, or what all layers share */
    lowering *l;
    uint32_t id, cell;
    recurrent_geometry r;
    bool carry, in_place;
    uint64_t layer;
    operand p, y; /* of the layer: W_ih x + b of all steps, and the result */
} recurrent_job;

recurrent_job recurrent_job_make(lowering *l, uint32_t id);
/* The layer's part of operand i, of which each layer has `count` elements. */
operand recurrent_layer_part(const recurrent_job *j, uint32_t i, uint64_t first, uint64_t count);
/* The layer's initial state (0: h, 1: c); p in its place where there is none. */
operand recurrent_initial_state(const recurrent_job *j, uint32_t state);
/* Where the layer's final state goes; only with carry. */
operand recurrent_final_state(const recurrent_job *j, uint32_t state);
operand recurrent_hidden_weights(const recurrent_job *j);
/* gru's b_hh; p in its place for the others. */
operand recurrent_hidden_bias(const recurrent_job *j);
/* c of the layer: in its final place, or a temporary; y in its place where the cell has none. */
rlxvk_status recurrent_cell_state(const recurrent_job *j, operand *out);
/* The first of y and of p at this step, by direction: first[d] counts from unit 0 of batch row 0.
 */
void recurrent_step_places(const recurrent_job *j, uint64_t step, uint32_t p_first[2],
                           uint32_t y_first[2]);
/* hn[d] = y at the last step of direction d */
rlxvk_status recurrent_copy_last(const recurrent_job *j);

/* The steps of a layer, a dispatch each, over tiles of units and batch rows (recurrent_tile.c). */
rlxvk_status recurrent_lower_tiles(const recurrent_job *j, const recurrent_class *c);

#endif
