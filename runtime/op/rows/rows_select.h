/* How the threads of a row kernel share rows: one table of classes, in order of preference. Pure.
 */
#ifndef RLXVK_ROWS_SELECT_H
#define RLXVK_ROWS_SELECT_H

#include "op/choice/variant.h"

/* What a kernel's rows are or may be. */
enum row_trait {
    ROW_WHOLE = 1,   /* whole quads at multiples of four, in every operand */
    ROW_ALIKE = 2,   /* equally far from multiples of four in every operand */
    ROW_COPIED = 4,  /* through shared memory, by kernels that can */
    ROW_REREAD = 8,  /* longer than what registers hold, by kernels that can */
    ROW_PARTED = 16, /* in quads of neighbouring rows, as row_traits found */
    ROW_FLOWS = 32,  /* read once and not kept, by kernels that can */
    ROW_SUMMED = 64  /* added up by column, the next row coming in meanwhile */
};

typedef struct row_shape {
    uint64_t inner; /* how far apart its elements lie */
    uint64_t length, rows;
    uint32_t traits; /* of enum row_trait */
} row_shape;

/* Quads of rows side by side in a workgroup, how much of each a lane holds at most, and how long
 * they may be. */
#define ROW_COLUMNS     8
#define ROW_COLUMN_HELD 16
#define ROW_MOST_COLUMN (ROW_COLUMN_HELD * 256 / ROW_COLUMNS)

typedef struct row_class {
    choice_row row;
    uint8_t form;     /* ROW_FORM_ */
    uint16_t threads; /* of a workgroup; 0: the profile's */
    uint16_t times;   /* how much of a row a lane takes, against what the family asks for; 0: the
                         lanes follow the profile (row_tile_plain) */
    uint8_t held;     /* quads that a lane has in registers at most */
    uint8_t trait;    /* of rows that it is for: ROW_REREAD, ROW_FLOWS and what follows; 0: any */
} row_class;

/* Lanes are joined by shuffles: the kernels named _subgroup. */
static inline bool row_class_shuffles(const row_class *c)
{
    return c->row.conditions & NEEDS_SHUFFLES;
}

/* The row for any shape and device: lanes follow the profile. */
extern const row_class *const rows_plain;

/* The first class that suits; there always is one. */
const row_class *rows_select(const row_shape *shape, const device_profile *profile, size_t forced);

#endif
