/*
 * Keeps numbers on byte ranges and finds the highest number on any byte of a range. Numbers for
 * reads and for writes are separate.
 *
 * All ranges must be named first. Their ends cut memory into pieces, and a segment tree is kept
 * over these pieces. So each call takes time logarithmic in the number of ranges.
 */
#ifndef RLXVK_MARKS_H
#define RLXVK_MARKS_H

#include "base/base.h"

/* A range of bytes in one of many spaces (a block or a value). An empty range has no effect. */
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
    uint32_t whole[MARK_KINDS]; /* the highest number on all pieces of this node at once */
    uint32_t some[MARK_KINDS];  /* the highest number on a range whose last piece is in this node */
} mark_node;

typedef struct marks {
    VECTOR(byte_cut) cuts; /* ends of ranges; after marks_seal ascending and without duplicates */
    mark_node *nodes;      /* 1: root; 2 i and 2 i + 1: children of i; last `leaves`: the pieces */
    uint32_t leaves;
    uint64_t visits; /* nodes visited so far */
} marks;

/* Names a range; false if out of memory. Name all ranges, then call marks_seal once, then the
 * functions below. */
bool marks_add(marks *m, byte_range range);
rlxvk_status marks_seal(marks *m);
void marks_destroy(marks *m);

/* Puts `number` on every byte of a named range, except bytes that have a higher one. */
void marks_raise(marks *m, enum mark_kind kind, byte_range range, uint32_t number);
/* The highest number on any byte of a named range; 0 if it has none. */
uint32_t marks_highest(marks *m, enum mark_kind kind, byte_range range);

#endif
