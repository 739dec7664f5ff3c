/* How the threads of a row kernel divide rows: one table of classes, in order of preference.
 * Pure. */
#ifndef RLXVK_ROWS_CHOICE_H
#define RLXVK_ROWS_CHOICE_H

#include "op/choice/variant.h"

/* Properties of a kernel's rows, and abilities of the kernel. */
enum row_trait {
    ROW_WHOLE = 1,   /* rows are whole quads at multiples of four, in every operand */
    ROW_ALIKE = 2,   /* rows are equally far from multiples of four in every operand */
    ROW_COPIED = 4,  /* the kernel can copy rows through shared memory */
    ROW_REREAD = 8,  /* the kernel can take rows longer than registers hold */
    ROW_PARTED = 16, /* rows can be read in quads of neighbours (row_traits) */
    ROW_FLOWS = 32,  /* the kernel can read rows once without keeping them */
    ROW_SUMMED = 64  /* rows are summed by column while the next one is loaded */
};

typedef struct row_shape {
    uint64_t inner; /* stride of its elements */
    uint64_t length, rows;
    uint32_t traits; /* of enum row_trait */
} row_shape;

/* ROW_FORM_COLUMNS: quads of neighbouring rows in a workgroup, the most elements of a row that a
 * lane holds, and the longest rows. */
#define ROW_COLUMNS     8
#define ROW_COLUMN_HELD 16
#define ROW_MOST_COLUMN (ROW_COLUMN_HELD * 256 / ROW_COLUMNS)

typedef struct row_class {
    choice_row row;
    uint8_t form;     /* ROW_FORM_... */
    uint16_t threads; /* of a workgroup; 0: the profile's */
    uint16_t times;   /* how much of a row a lane takes, as a multiple of the kind's wish; 0: the
                         lanes follow the profile (row_tile_plain) */
    uint8_t held;     /* the most quads that a lane has in registers */
    uint8_t trait;    /* ROW_REREAD, ROW_FLOWS or ROW_SUMMED: only for such rows; 0: any */
} row_class;

/* Are lanes joined by shuffles? Such kernels are named _subgroup. */
static inline bool row_class_shuffles(const row_class *c)
{
    return c->row.conditions & NEEDS_SHUFFLES;
}

/* The row for any shape and device. Its lanes follow the profile. */
extern const row_class *const rows_plain;

/* The first class that suits. There always is one. */
const row_class *rows_choose(const row_shape *shape, const device_profile *profile, size_t forced);

#endif
