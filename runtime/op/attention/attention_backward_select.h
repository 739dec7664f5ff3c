/* Which tiles attention_backward runs with, and how far its walks are shared out: one table of
 * classes, in order of preference. Pure. */
#ifndef RLXVK_ATTENTION_BACKWARD_SELECT_H
#define RLXVK_ATTENTION_BACKWARD_SELECT_H

#include "op/attention/attention_select.h"

typedef struct attention_backward_class {
    choice_row row;
    uint8_t row_threads[2], row_quads[2]; /* of those that own queries; of those that own keys */
    uint8_t column_threads;
    uint16_t least_width, most_width;
    uint8_t value_rows, unroll;
    bool turns; /* of two slices, one is written while the other is read */
    /* Of the keys, where one pass finds all; 0: a pass for dq, one for dk and dv. */
    uint8_t most_parts;
    uint8_t resident; /* workgroups of that pass on a compute unit at a time */
} attention_backward_class;

typedef struct attention_backward_plan {
    const attention_backward_class *class;
    uint32_t threads[2], own[2]; /* of a workgroup, and rows of its tile: queries, keys */
    uint32_t others;             /* rows of a tile it walks over */
    uint32_t column_quads, value_rows, unroll;
    uint32_t key_parts; /* with a workgroup and a dq of its own each; 0: two passes */
} attention_backward_plan;

attention_backward_plan attention_backward_select(const attention_shape *shape,
                                                  const device_profile *profile, size_t forced);
uint64_t attention_backward_shared_bytes(const attention_backward_plan *p);
/* How many workgroups share the at most `steps` steps of each of `blocks`, where each then has a
 * result of `words` for itself. */
uint64_t attention_backward_parts(uint64_t blocks, uint64_t steps, uint64_t words,
                                  const device_profile *profile);
#endif
