/* Makes a plan: first the layout, then the barriers. Barriers depend on the layout because reused
 * memory causes conflicts that the values themselves do not have. */
#include "plan/plan.h"

rlxvk_status plan_create(const schedule *s, const plan_options *options, plan *out)
{
    plan p = {.value_count = schedule_value_count(s)};
    rlxvk_status status;
    p.slots = memory_zeroed(p.value_count + 1, sizeof *p.slots);
    p.barriers = memory_zeroed(s->steps.count + 1, sizeof *p.barriers);
    TRY(p.slots && p.barriers ? RLXVK_OK : status_fail_memory("plan"));
    TRY(plan_layout(s, options, &p));
    TRY(plan_barriers(s, options, &p));
    *out = p;
    return RLXVK_OK;
error:
    plan_destroy(&p);
    return status;
}

void plan_destroy(plan *p)
{
    memory_free(p->slots);
    memory_free(p->barriers);
    VECTOR_FREE(&p->segments);
    VECTOR_FREE(&p->loops);
    for (int c = 0; c < CLASS_COUNT; c++)
        VECTOR_FREE(&p->blocks[c]);
    *p = (plan){0};
}
