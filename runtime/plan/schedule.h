/*
 * The schedule: the steps of a graph in an order that respects all dependencies. A step is one
 * dispatch (plain data), or one node that runs on the host. This layer is pure: it uses no device.
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
    bool reorder;        /* sort the steps into levels (reorder.c) */
    bool strided;        /* a node may be a strided view of another node's memory */
    const bool *on_host; /* per row of op.def: run it on the host; may be NULL */
    rlxvk_precision precision;
    bool matrix_in_lanes;        /* vk_matrix_layout, for the matrices of this precision */
    variant_set variants;        /* variants that the caller asks for */
    const struct tuning *tuning; /* measured choices of variants; may be NULL */
    const node_pair *pairs;
    size_t pair_count;
    uint64_t prepared_bytes; /* limit of memory for weights that are prepared in another layout */
} schedule_options;

/* One dispatch, or one node on the host. A node with several dispatches has several steps. */
typedef struct step {
    uint32_t node;
    uint32_t dispatch;  /* index; unused for a host step */
    uint32_t level_end; /* in level order: the last step of its level; else 0 */
    bool host;
} step;

/* Steps that are repeated. Inner loops come before the loops that contain them. */
typedef struct schedule_loop {
    uint32_t first, count; /* steps; at least one */
    uint64_t times;
    uint32_t stop; /* once the first word of this node is 0, more rounds change nothing; NODE_NONE:
                    * there is no such node */
} schedule_loop;

typedef struct schedule {
    const rlxvk_graph *graph; /* borrowed */
    value_map values;
    VECTOR(dispatch) dispatches;
    arena operands;     /* operands of the dispatches */
    VECTOR(step) steps; /* in execution order */
    uint32_t prepared;  /* the first so many steps run only after a param was set */
    VECTOR(schedule_loop) loops;
    VECTOR(temporary) temporaries; /* value id = node count + index */
    VECTOR(variant_query) queries; /* one for each choice of a kernel variant */
    uint64_t visits;               /* tree nodes visited by reorder_schedule */
} schedule;

rlxvk_status schedule_create(const rlxvk_graph *g, const schedule_options *options, schedule *out);
void schedule_destroy(schedule *s);

/* How many nodes this process has lowered so far. Tests use it to see whether a call compiles. */
uint64_t schedule_lowered_count(void);

/* The number of values: nodes and temporaries. */
static inline uint32_t schedule_value_count(const schedule *s)
{
    return (uint32_t)(s->graph->nodes.count + s->temporaries.count);
}

/* Bytes of a value, before alignment. */
uint64_t schedule_value_bytes(const schedule *s, uint32_t value);

/* Operand `index` of a step, also of a host step; false if it has fewer operands. */
bool schedule_step_operand(const schedule *s, const step *at, uint32_t index, operand *out);

/* Whether an edge lies before this step: a loop begins or ends there, or the prepared steps end. No
 * step is moved across an edge. */
static inline bool schedule_edge(const schedule *s, uint32_t index)
{
    bool edge = s->prepared && index == s->prepared;
    for (size_t i = 0; i < s->loops.count && !edge; i++)
        edge = index == s->loops.items[i].first ||
               index == s->loops.items[i].first + s->loops.items[i].count;
    return edge;
}

/* Moves prepared steps to the front: those that depend only on weights and are marked for it
 * (prepare.c). */
rlxvk_status prepare_schedule(schedule *s, uint64_t most_bytes);

/* Sorts the steps into dependency levels. Steps before, in and after a loop stay apart. */
rlxvk_status reorder_schedule(schedule *s);

#endif
