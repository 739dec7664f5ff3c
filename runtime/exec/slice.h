/*
 * Cuts the work of a segment into submissions. This is pure: it knows counts and times, but no
 * device.
 */
#ifndef RLXVK_EXEC_SLICE_H
#define RLXVK_EXEC_SLICE_H

#include "base/base.h"

/* Whole steps, or a range of the workgroups of one step. Workgroups count row by row of the grid.
 */
typedef struct piece {
    uint32_t step, steps;
    uint64_t first, count; /* workgroups; count 0: whole steps */
    uint64_t ns;           /* how long it took */
} piece;
typedef VECTOR(piece) piece_list;

/* Pieces that are submitted together. */
typedef struct slice_part {
    uint32_t first, count; /* of a list of pieces */
    uint64_t ns;
} slice_part;
typedef VECTOR(slice_part) slice_part_list;

/* A box of workgroups, as CmdDispatchBase launches it. */
typedef struct slice_box {
    uint32_t base[3], count[3];
} slice_box;

/* The largest box that begins with workgroup `first` and lies before `end`, so that its workgroups
 * follow one another. Returns how many they are. */
uint64_t slice_box_at(const uint32_t grid[3], uint64_t first, uint64_t end, slice_box *out);

/* How many workgroups to launch next, if `count` of them took `ns`: as many as take `aim`, but at
 * most 4 times as many as before, and at least one. */
uint64_t slice_next(uint64_t count, uint64_t ns, uint64_t aim);

/* Joins and cuts measured pieces, so that each part takes at most `aim`. A part may take longer if
 * it is a single workgroup or steps that were measured together. If `aim` is 0, every piece is a
 * part. */
rlxvk_status slice_pack(const piece_list *measured, uint64_t aim, piece_list *pieces,
                        slice_part_list *parts);

#endif
