/* Rules out the dispatches that are surely short. */
#include "program/bound.h"

/* On a slow device, a compute unit reads 250 MB/s, and a dispatch starts in 10 us. */
enum { BYTE_NS = 4, DISPATCH_NS = 10000 };

uint64_t bound_estimate(const program *p, size_t dispatch)
{
    const struct dispatch *d = &p->schedule.dispatches.items[dispatch];
    uint64_t bytes = 0, units = MAX(p->device->setup.profile.compute_units, 1);
    for (uint32_t i = 0; i < d->operand_count; i++)
        bytes = saturated_sum(bytes, d->operands[i].size);
    return saturated_sum(saturated_product(saturated_product(bytes, BYTE_NS),
                                           divide_up(bound_groups(d), units)),
                         DISPATCH_NS);
}

uint64_t bound_estimate_all(const program *p)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < p->plan.segments.count; i++) {
        const segment *g = &p->plan.segments.items[i];
        uint64_t round = 0;
        for (uint32_t s = g->first; !g->host && s < g->first + g->count; s++)
            round = saturated_sum(round, bound_estimate(p, p->schedule.steps.items[s].dispatch));
        all = saturated_sum(all, saturated_product(round, MAX(program_times(p, i), 1)));
    }
    return all;
}

bool bound_cuts(const program *p, size_t dispatch)
{
    const struct dispatch *d = &p->schedule.dispatches.items[dispatch];
    const program_options *o = &p->options;
    bool idle = extent_scales(&p->extent, dispatch) && d->turn == TURN_FEW_ROWS;
    bool may = o->sliced || (o->submission_ns && bound_estimate(p, dispatch) > o->submission_ns);
    return may && bound_groups(d) > 1 && !idle && pipeline_takes_ranges(d->kernel);
}
