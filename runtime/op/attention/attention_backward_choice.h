/* Chooses the tiles of attention_backward, and how many workgroups share its loops. It is one table
 * of classes, in order of preference. Pure. */
#ifndef RLXVK_ATTENTION_BACKWARD_CHOICE_H
#define RLXVK_ATTENTION_BACKWARD_CHOICE_H

#include "op/attention/attention_choice.h"

typedef struct attention_backward_class {
    choice_row row;
    uint8_t row_threads[2], row_quads[2]; /* of tiles that own queries; of tiles that own keys */
    uint8_t column_threads;
    uint16_t least_width, most_width;
    uint8_t value_rows, unroll;
    bool turns; /* two slices: one is written while the other is read */
    bool ahead; /* the next slice is loaded into registers while this one is multiplied */
    /* The most parts of the keys if one pass finds all gradients. 0: one pass for dq, one for dk
     * and dv. */
    uint8_t most_parts;
    uint8_t resident; /* workgroups of that pass that a compute unit holds at a time */
    bool apart;       /* one pass for dk and one for dv */
} attention_backward_class;

typedef struct attention_backward_plan {
    const attention_backward_class *class;
    uint32_t threads[2], own[2]; /* threads of a workgroup, rows of its tile: queries, keys */
    uint32_t others;             /* rows of each tile in its loop */
    uint32_t column_quads, value_rows, unroll;
    uint32_t key_parts; /* parts of the keys, each with its own dq; 0: two passes */
} attention_backward_plan;

attention_backward_plan attention_backward_choose(const attention_shape *shape,
                                                  const device_profile *profile, size_t forced);
uint64_t attention_backward_shared_bytes(const attention_backward_plan *p);
/* How many workgroups should share each of `blocks`? A block has at most `steps` steps, and each
 * workgroup of it needs a result of `words` words. */
uint64_t attention_backward_parts(uint64_t blocks, uint64_t steps, uint64_t words,
                                  const device_profile *profile);
#endif
