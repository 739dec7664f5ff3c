/* How to sweep back over the steps of a recurrent net. There is one table, in order of preference.
 * Pure. */
#ifndef RLXVK_RECURRENT_BACKWARD_CHOICE_H
#define RLXVK_RECURRENT_BACKWARD_CHOICE_H

#include "op/choice/variant.h"
#include "op/sequence/recurrent_backward.h"

typedef struct recurrent_backward_class {
    choice_row row;
    uint8_t quads, bands; /* of a tile, if a step is a dispatch; 0: one workgroup does all steps */
    uint8_t rows;         /* of a band, or of a workgroup that does all steps: 1 or 4 */
} recurrent_backward_class;

/* There always is one. */
const recurrent_backward_class *
recurrent_backward_choose(const recurrent_sweep *s, const device_profile *profile, size_t forced);
/* For a workgroup that does all steps: how many threads have quads of units side by side, and how
 * many groups of such threads share the rows of W_hh. */
uint32_t recurrent_backward_lanes(const recurrent_sweep *s);
uint32_t recurrent_backward_splits(const recurrent_sweep *s, const device_profile *profile);
/* Invocations of a workgroup, a power of two. */
uint32_t recurrent_backward_threads(const recurrent_backward_class *c, const recurrent_sweep *s,
                                    const device_profile *profile);
/* How many quads of units all tiles together have for a row of W_hh. */
uint64_t recurrent_backward_quads(const recurrent_backward_class *c, const recurrent_sweep *s);

#endif
