/* How scatter and scatter_nd apply their updates: one table of paths, in order of preference. Pure.
 */
#ifndef RLXVK_SCATTER_SELECT_H
#define RLXVK_SCATTER_SELECT_H

#include "op/choice/variant.h"

/* y [lines, rows, inner], updates [lines, updates, inner]. */
typedef struct scatter_problem {
    uint64_t lines, rows, updates, inner;
    bool ordered; /* those of an element are applied in their order */
    bool nd;      /* an index for a whole row of updates */
} scatter_problem;

enum scatter_kind {
    SCATTER_BY_DIRECT, /* an element looks through the updates of its line */
    SCATTER_BY_LINES,  /* winners of a line of the last axis, in shared memory */
    SCATTER_BY_TILES,  /* winners of neighbouring columns, or part of them, in shared memory */
    SCATTER_BY_MARKS,  /* winners in a buffer */
    SCATTER_BY_OWNERS, /* tiles again, in order: updates are dealt to subgroups by element */
    SCATTER_BY_SPLIT,  /* a line's updates sorted in a workgroup */
    SCATTER_BY_SORT    /* all of them sorted */
};

typedef struct scatter_path {
    choice_row row;
    uint8_t kind;    /* enum scatter_kind */
    uint8_t columns; /* the most of a tile; 1: another axis is made the last before */
    uint8_t items;   /* updates that a thread deals out at a time */
    uint16_t slots;  /* the most elements of a tile */
} scatter_path;

/* Tiles beside each other, ranges of rows below, a workgroup each. */
typedef struct scatter_division {
    uint32_t threads, columns, slots;
    uint64_t tiles, ranges, groups;
} scatter_division;

/* Of a path with tiles; lines of another axis than the last count as such where it has one column.
 */
scatter_division scatter_divide(const scatter_path *c, const scatter_problem *s,
                                const device_profile *profile);
/* There always is one. */
const scatter_path *scatter_find_path(const scatter_problem *s, const device_profile *profile,
                                      size_t forced);

#endif
