/*
 * The schedule: every node lowered to plain-data dispatches, or marked to run on the host, in an
 * order that respects all dependencies. Pure.
 */
#ifndef RLXVK_SCHEDULE_H
#define RLXVK_SCHEDULE_H

#include "graph/pair.h"
#include "op/op.h"
#include "op/value.h"

typedef struct schedule_options {
    const device_profile *profile;
    bool keep_all; /* every node gets memory of its own */
    bool forbid_host;
    bool reorder;        /* level order */
    bool strided;        /* nodes may lie in others' memory at strides */
    const bool *on_host; /* per row of the op table: forced to the host; may be NULL */
    rlxvk_precision precision;
    bool matrix_in_lanes;        /* vk_matrix_layout, of the precision's matrices */
    variant_set variants;        /* rows of kernel tables that the caller names */
    const struct tuning *tuning; /* measured ones; may be NULL */
    const node_pair *pairs;
    size_t pair_count;
    uint64_t prepared_bytes; /* most memory for what lowerings lay out of weights */
} schedule_options;

/* One dispatch, or one node on the host. A node of several dispatches makes several steps. */
typedef struct step {
    uint32_t node;
    uint32_t dispatch;  /* index; unused for a host step */
    uint32_t level_end; /* in level order: the last step of its level; else 0 */
    bool host;
} step;

/* Steps that are done again and again. Inner loops stand before those they are in. */
typedef struct schedule_loop {
    uint32_t first, count; /* steps; at least one */
    uint64_t times;
    uint32_t stop; /* node whose first word, once 0, says that nothing changes any more; NODE_NONE:
                    * none */
} schedule_loop;

typedef struct schedule {
    const rlxvk_graph *graph; /* borrowed */
    value_map values;
    VECTOR(dispatch) dispatches;
    arena operands;     /* those of the dispatches */
    VECTOR(step) steps; /* in execution order */
    uint32_t prepared;  /* so many of them, the first, are due only when params were set */
    VECTOR(schedule_loop) loops;
    VECTOR(temporary) temporaries; /* value id = node count + index */
    VECTOR(variant_query) queries; /* where a kernel variant had to be chosen */
    uint64_t visits;               /* tree nodes looked at by reorder_schedule */
} schedule;

rlxvk_status schedule_create(const rlxvk_graph *g, const schedule_options *options, schedule *out);
void schedule_destroy(schedule *s);

/* How many nodes have been lowered so far. Process-wide: tests see by it what compiles and what
 * does not. */
uint64_t schedule_lowered_count(void);

/* Nodes and temporaries. */
static inline uint32_t schedule_value_count(const schedule *s)
{
    return (uint32_t)(s->graph->nodes.count + s->temporaries.count);
}

/* Bytes that a value takes, unaligned. */
uint64_t schedule_value_bytes(const schedule *s, uint32_t value);

/* What a step touches, host steps included, one operand at a time: false past the last. */
bool schedule_step_operand(const schedule *s, const step *at, uint32_t index, operand *out);

/* Whether a loop begins at this step, or a loop or what is prepared ends before it: no step crosses
 * that. */
static inline bool schedule_edge(const schedule *s, uint32_t index)
{
    bool edge = s->prepared && index == s->prepared;
    for (size_t i = 0; i < s->loops.count && !edge; i++)
        edge = index == s->loops.items[i].first ||
               index == s->loops.items[i].first + s->loops.items[i].count;
    return edge;
}

/* Moves to the front what depends on weights alone and was marked for that (prepare.c). */
rlxvk_status prepare_schedule(schedule *s, uint64_t most_bytes);

/* Rearranges the steps into dependency levels, apart before, in and behind loops. */
rlxvk_status reorder_schedule(schedule *s);

#endif
