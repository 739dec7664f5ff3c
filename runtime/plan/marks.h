/*
 * Numbers on byte ranges: the highest that was put on any byte of a range, kept apart for reads and
 * for writes. All ranges are named first, so what is kept is a tree over the pieces they cut each
 * other into, and each question takes logarithmic time however many ranges there are.
 */
#ifndef RLXVK_MARKS_H
#define RLXVK_MARKS_H

#include "base/base.h"

/* Bytes of one of many spaces (a block, a value). An empty range touches nothing. */
typedef struct byte_range {
    uint32_t space;
    uint64_t first, size;
} byte_range;

enum mark_kind { MARK_READ, MARK_WRITTEN, MARK_KINDS };

typedef struct byte_cut {
    uint32_t space;
    uint64_t at;
} byte_cut;

typedef struct mark_node {
    uint32_t whole[MARK_KINDS]; /* the highest number put on all of its pieces at once */
    uint32_t some[MARK_KINDS];  /* on a range whose last piece is one of them */
} mark_node;

typedef struct marks {
    VECTOR(byte_cut) cuts; /* ends of ranges; sealed: ascending, each once */
    mark_node *nodes;      /* 1: the root; i: over 2 i and 2 i + 1; the last `leaves`: the pieces */
    uint32_t leaves;
    uint64_t visits; /* nodes looked at so far */
} marks;

/* Names a range; false when out of memory. Then marks_seal, once, and only then the rest. */
bool marks_add(marks *m, byte_range range);
rlxvk_status marks_seal(marks *m);
void marks_destroy(marks *m);

/* Puts `number` on every byte of a named range where none higher is. */
void marks_raise(marks *m, enum mark_kind kind, byte_range range, uint32_t number);
/* The highest number on any byte of a named range; 0 where there is none. */
uint32_t marks_highest(marks *m, enum mark_kind kind, byte_range range);

#endif
