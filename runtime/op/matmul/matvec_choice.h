/*
 * Which kernel computes y = W x for one row x and weights that are not quantized. There is one
 * table. All of this is pure, so unit tests use made-up profiles.
 */
#ifndef RLXVK_MATVEC_CHOICE_H
#define RLXVK_MATVEC_CHOICE_H

#include "op/choice/choice.h"
#include "op/matmul/teams.h"

typedef struct matvec_shape {
    uint64_t n, k;
    bool aligned; /* weights are F16 or BF16, and all operands lie at 16 bytes */
} matvec_shape;

typedef struct matvec_class {
    choice_row row;
    uint16_t threads;  /* of a workgroup, at most */
    uint8_t columns;   /* of a team in a round; even */
    uint8_t most_held; /* vectors of eight elements that an invocation holds; 0: matvec.comp */
    uint8_t per_unit;  /* workgroups for each compute unit */
} matvec_class;

/* The first row that suits; there always is one. */
const matvec_class *matvec_choose(const matvec_shape *shape, const device_profile *profile,
                                  size_t forced);
/* How many vectors an invocation holds: as few as fit the workgroup, but at least four. */
uint32_t matvec_held(const matvec_class *c, const matvec_shape *s);
team_division matvec_divide(const matvec_class *c, const matvec_shape *s,
                            const device_profile *profile);

#endif
