/* Takes a graph from its source to its plan, without a device. */
#ifndef RLXVK_PLANNED_H
#define RLXVK_PLANNED_H

#include "plan/plan.h"
#include "rewrite/rewrite.h"

typedef struct planned {
    rlxvk_graph *source, *graph;
    pair_list pairs;
    schedule schedule;
    plan plan;
} planned;

typedef struct planning {
    rewrite_options rewrite; /* for the clone of the source; pairs are found if `fusion` is set */
    schedule_options schedule;
    plan_options plan;
} planning;

/* Fills all members after p->source or, if there is no source, after p->graph. */
RLXVK_MUST_CHECK rlxvk_status planned_make(planned *p, const planning *how);
void planned_release(planned *p);

#endif
