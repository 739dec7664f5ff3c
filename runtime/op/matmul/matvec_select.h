/*
 * Which kernel makes a projection by plain weights, y = W x of one row: one table. Pure;
 * unit-tested on made-up profiles.
 */
#ifndef RLXVK_MATVEC_SELECT_H
#define RLXVK_MATVEC_SELECT_H

#include "op/choice/choice.h"
#include "op/matmul/teams.h"

typedef struct matvec_shape {
    uint64_t n, k;
    bool aligned; /* F16 or BF16 weights, and all operands at 16 bytes */
} matvec_shape;

typedef struct matvec_class {
    choice_row row;
    uint16_t threads;  /* of a workgroup, at most */
    uint8_t columns;   /* of a team's round; even */
    uint8_t most_held; /* vectors of eight elements that an invocation holds, or 0: matvec.comp */
    uint8_t per_unit;  /* workgroups for each compute unit */
} matvec_class;

/* The first row that suits; there always is one. */
const matvec_class *matvec_select(const matvec_shape *shape, const device_profile *profile,
                                  size_t forced);
/* Vectors that an invocation holds: as few as fit the workgroup, but not below four. */
uint32_t matvec_held(const matvec_class *c, const matvec_shape *s);
team_division matvec_divide(const matvec_class *c, const matvec_shape *s,
                            const device_profile *profile);

#endif
