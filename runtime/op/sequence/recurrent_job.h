/* Shared by all ways to lower a recurrent layer: the layer, and the places of its operands. */
#ifndef RLXVK_RECURRENT_JOB_H
#define RLXVK_RECURRENT_JOB_H

#include "op/sequence/recurrent.h"
#include "op/sequence/recurrent_choice.h"

typedef struct recurrent_job { /* one layer, or the parts that all layers share */
    lowering *l;
    uint32_t id, cell;
    recurrent_geometry r;
    bool carry, in_place;
    uint64_t layer;
    operand p, y; /* of the layer: p = W_ih x + b of all steps; y = its result */
} recurrent_job;

recurrent_job recurrent_job_make(lowering *l, uint32_t id);
/* The layer's part of operand i, if each layer has `count` elements in it. */
operand recurrent_layer_part(const recurrent_job *j, uint32_t i, uint64_t first, uint64_t count);
/* The layer's initial state (0: h, 1: c). If there is none, p stands in for it. */
operand recurrent_initial_state(const recurrent_job *j, uint32_t state);
/* The place of the layer's final state; only with carry. */
operand recurrent_final_state(const recurrent_job *j, uint32_t state);
operand recurrent_hidden_weights(const recurrent_job *j);
/* gru's b_hh. For other cells p stands in for it. */
operand recurrent_hidden_bias(const recurrent_job *j);
/* The layer's c: in its final place, or a temporary. If the cell has no c, y stands in for it. */
rlxvk_status recurrent_cell_state(const recurrent_job *j, operand *out);
/* The first elements of y and p at this step, for each direction d, at unit 0 of batch row 0. */
void recurrent_step_places(const recurrent_job *j, uint64_t step, uint32_t p_first[2],
                           uint32_t y_first[2]);
/* Copies y at the last step of direction d to hn[d]. */
rlxvk_status recurrent_copy_last(const recurrent_job *j);

/* Emits the steps of a layer over tiles of units and batch rows, one dispatch each
 * (recurrent_tile.c). */
rlxvk_status recurrent_lower_tiles(const recurrent_job *j, const recurrent_class *c);

#endif
