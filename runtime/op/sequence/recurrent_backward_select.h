/* How a recurrent net is swept back over its steps: one table of ways, in order of preference.
 * Pure. */
#ifndef RLXVK_RECURRENT_BACKWARD_SELECT_H
#define RLXVK_RECURRENT_BACKWARD_SELECT_H

#include "op/choice/variant.h"
#include "op/sequence/recurrent_backward.h"

typedef struct recurrent_backward_class {
    choice_row row;
    uint8_t quads, bands; /* of a tile, a step a dispatch; 0: a workgroup sweeps alone */
    uint8_t rows;         /* of a band, or of a workgroup alone: 1 or 4 */
} recurrent_backward_class;

/* There always is one. */
const recurrent_backward_class *
recurrent_backward_select(const recurrent_sweep *s, const device_profile *profile, size_t forced);
/* Of a workgroup that sweeps alone: threads that have quads of units side by side, and how many
 * groups of them share the rows of W_hh. */
uint32_t recurrent_backward_lanes(const recurrent_sweep *s);
uint32_t recurrent_backward_splits(const recurrent_sweep *s, const device_profile *profile);
/* Invocations of a workgroup, a power of two. */
uint32_t recurrent_backward_threads(const recurrent_backward_class *c, const recurrent_sweep *s,
                                    const device_profile *profile);
/* Quads of units that all tiles have for a row of W_hh. */
uint64_t recurrent_backward_quads(const recurrent_backward_class *c, const recurrent_sweep *s);

#endif
