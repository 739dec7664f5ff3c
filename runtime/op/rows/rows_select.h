/* How the threads of a row kernel share rows: one table of classes, in order of preference. Pure.
 */
#ifndef RLXVK_ROWS_SELECT_H
#define RLXVK_ROWS_SELECT_H

#include "op/choice/variant.h"

typedef struct row_shape {
    uint64_t inner; /* how far apart its elements lie */
    bool whole;     /* rows are whole quads at multiples of four, in every operand */
} row_shape;

typedef struct row_class {
    choice_row row;
    bool subgroups;   /* lanes are joined by shuffles: the kernels named _subgroup */
    bool quads;       /* rows move as vec4 */
    uint16_t threads; /* of a workgroup; 0: the profile's */
    uint16_t times;   /* how much of a row a lane takes, against what the family asks for; 0: the
                         lanes follow the profile (row_tile_plain) */
} row_class;

/* The row for any shape and device: lanes follow the profile. */
extern const row_class *const rows_plain;

/* The first class that suits; there always is one. */
const row_class *rows_select(const row_shape *shape, const device_profile *profile, size_t forced);

#endif
