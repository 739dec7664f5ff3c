/* Chooses how scatter and scatter_nd apply their updates, from one table of paths in order of
 * preference. It is pure: it reads only the problem and the profile. */
#ifndef RLXVK_SCATTER_CHOICE_H
#define RLXVK_SCATTER_CHOICE_H

#include "op/choice/variant.h"

/* y is [lines, rows, inner], updates are [lines, updates, inner]. */
typedef struct scatter_problem {
    uint64_t lines, rows, updates, inner;
    bool ordered; /* the mode applies the updates of an element in order */
    bool nd;      /* scatter_nd: an index is for a whole row of updates */
} scatter_problem;

enum scatter_kind {
    SCATTER_BY_DIRECT, /* each element reads all updates of its line */
    SCATTER_BY_LINES,  /* winners of a line of the last axis, in shared memory */
    SCATTER_BY_TILES,  /* winners of neighbouring columns, or parts of them, in shared memory */
    SCATTER_BY_MARKS,  /* winners in a buffer */
    SCATTER_BY_OWNERS, /* tiles in order: updates are dealt to subgroups by element */
    SCATTER_BY_SPLIT,  /* a workgroup sorts the updates of a line */
    SCATTER_BY_SORT    /* all updates are sorted */
};

typedef struct scatter_path {
    choice_row row;
    uint8_t kind;    /* enum scatter_kind */
    uint8_t columns; /* most columns of a tile; 1: another axis is made the last one first */
    uint8_t items;   /* updates that a thread deals out at a time */
    uint16_t slots;  /* most elements of a tile */
} scatter_path;

/* How a path with tiles divides lines: `tiles` side by side, each of `ranges` ranges of rows. Each
 * range of a tile has one workgroup. */
typedef struct scatter_division {
    uint32_t threads, columns, slots;
    uint64_t tiles, ranges, groups;
} scatter_division;

/* For paths with tiles. If a path has tiles of one column, lines of other axes are permuted first
 * and count as lines of the last axis. */
scatter_division scatter_divide(const scatter_path *c, const scatter_problem *s,
                                const device_profile *profile);
/* The first path that suits. There always is one. */
const scatter_path *scatter_find_path(const scatter_problem *s, const device_profile *profile,
                                      size_t forced);

#endif
