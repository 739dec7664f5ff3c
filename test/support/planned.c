/* See planned.h. */
#include "support/planned.h"

rlxvk_status planned_make(planned *p, const planning *how)
{
    schedule_options schedule = how->schedule;
    rlxvk_status status = RLXVK_OK;
    if (p->source) {
        TRY(rlxvk_graph_status(p->source));
        TRY(graph_clone(p->source, &p->graph));
        TRY(rewrite_graph(p->graph, &how->rewrite));
        if (how->rewrite.fusion)
            TRY(rewrite_find_norm_pairs(p->graph, &p->pairs));
    }
    TRY(rlxvk_graph_status(p->graph));
    schedule.pairs = p->pairs.items;
    schedule.pair_count = p->pairs.count;
    TRY(schedule_create(p->graph, &schedule, &p->schedule));
    TRY(plan_create(&p->schedule, &how->plan, &p->plan));
error:
    return status;
}

void planned_release(planned *p)
{
    plan_destroy(&p->plan);
    schedule_destroy(&p->schedule);
    VECTOR_FREE(&p->pairs);
    rlxvk_graph_destroy(p->graph);
    rlxvk_graph_destroy(p->source);
}
