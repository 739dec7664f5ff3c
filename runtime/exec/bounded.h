/*
 * Submissions bounded by time (max_submission_ms). The first run measures: it submits the work of a
 * segment piece by piece and waits for each piece. A dispatch that may be long runs in ranges of
 * its workgroups, a few at first. Each range is sized by the time of the one before. After that the
 * segment is recorded anew in parts, each of which takes less than the bound by the measured times.
 * A run submits each part on its own. If the whole segment is within the bound, its commands stay
 * as they are.
 *
 * An executable measures nothing if its work is surely short (program/bound.h).
 */
#ifndef RLXVK_EXEC_BOUNDED_H
#define RLXVK_EXEC_BOUNDED_H

#include "exec/executable.h"
#include "exec/slice.h"

typedef struct bounded_segment {
    bool measured;
    bool apart;            /* measure every step on its own, because steps together were too long */
    piece_list pieces;     /* of one round, as measured */
    uint64_t ns;           /* all of them */
    double share;          /* the active part of the rows at that time */
    piece_list packed;     /* the same work, by parts */
    slice_part_list parts; /* one round. None: the commands of e->segments are within the bound */
    VECTOR(VkCommandBuffer) commands; /* of the parts */
    uint32_t rounds;       /* of a loop that is recorded in groups: the rounds of a group */
    VkCommandBuffer group; /* their commands; NULL: those of e->segments, or of the parts */
} bounded_segment;

/* Frees the lists. The command buffers end with their pool. */
static inline void bounded_segment_free(bounded_segment *s)
{
    VECTOR_FREE(&s->commands);
    VECTOR_FREE(&s->pieces);
    VECTOR_FREE(&s->packed);
    VECTOR_FREE(&s->parts);
}

typedef struct bounded {
    bounded_segment *segments; /* per plan segment */
    VkCommandBuffer commands;  /* of the piece that is being measured */
    uint64_t longest_ns;       /* of all that was measured */
} bounded;

/* Makes e->bounded, if the executable has a bound that it may exceed. */
rlxvk_status bounded_create(rlxvk_executable *e);
/* Takes what another executable of the same program has measured. */
rlxvk_status bounded_copy(rlxvk_executable *e, const rlxvk_executable *from);
/* Executes one round of a segment, measures it, and records the segment anew. Submits the batch
 * before, and waits. */
rlxvk_status bounded_measure(rlxvk_executable *e, uint32_t segment);
/* Records the parts and groups of a measured segment again, into the same command buffers. */
rlxvk_status bounded_record(rlxvk_executable *e, uint32_t segment);
/* Call it if the active extent has changed and nothing is in flight. Segments whose measured times
 * say too little of the new one are measured again by the next run. */
void bounded_adapt(rlxvk_executable *e);

#endif
