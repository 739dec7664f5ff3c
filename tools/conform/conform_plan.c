/* See conform_plan.h. Both processes run the same program, so functions and constants have the same
 * distances from each other in both, wherever it is loaded. */
#include "conform/conform_plan.h"
#include "conform/conform_resume.h"
#include "system/worker.h"

#include <string.h>

struct conform_plan {
    intptr_t run, row, kind; /* distances; 0: NULL */
    size_t items;
    bool has_variant, ordered;
    char variant[128];
    rlxvk_precision precision;
    uint16_t kernel;
    size_t cases;
    struct {
        uint32_t index, turn; /* of a case among all; and which case comes then */
    } list[];
};

static const char anchor;

static intptr_t distance_of(const void *thing)
{
    return thing ? (intptr_t)((uintptr_t)thing - (uintptr_t)&anchor) : 0;
}

static const void *at_distance(intptr_t distance)
{
    return distance ? (const void *)((uintptr_t)&anchor + (uintptr_t)distance) : NULL;
}

static size_t bytes_of(const conform_job *j)
{
    return sizeof *j->plan + j->all_cases * sizeof *j->plan->list;
}

rlxvk_status conform_plan_create(conform_job *j)
{
    j->all_cases = j->cases.count;
    j->plan = worker_memory(bytes_of(j));
    return j->plan ? RLXVK_OK : status_fail_memory("cases");
}

void conform_plan_destroy(conform_job *j)
{
    worker_memory_free(j->plan, bytes_of(j));
    j->plan = NULL;
}

void conform_plan_write(conform_job *j, const conform_pool *pool)
{
    conform_plan *p = j->plan;
    p->run = distance_of((const void *)(uintptr_t)pool->run);
    p->row = distance_of(j->setup.row);
    p->kind = distance_of(j->kind);
    p->items = pool->items;
    p->has_variant = j->setup.variant != NULL;
    snprintf(p->variant, sizeof p->variant, "%s", p->has_variant ? j->setup.variant : "");
    p->precision = j->setup.precision;
    p->kernel = j->setup.kernel;
    p->ordered = j->order != NULL;
    p->cases = j->cases.count;
    for (size_t i = 0; i < j->cases.count; i++)
        p->list[i].index = j->cases.items[i].index;
    for (size_t i = 0; p->ordered && i < pool->items; i++)
        p->list[i].turn = (uint32_t)j->order[i];
}

/* The cases that are left of all, in the caller's order. */
static rlxvk_status read_cases(conform_job *j)
{
    const conform_plan *p = j->plan;
    conform_case *all = j->cases.items;
    j->cases.items = NULL;
    j->cases.count = j->cases.capacity = 0;
    rlxvk_status status =
        VECTOR_RESERVE(&j->cases, p->cases) ? RLXVK_OK : status_fail_memory("cases");
    for (size_t i = 0; status == RLXVK_OK && i < p->cases; i++)
        j->cases.items[j->cases.count++] = all[p->list[i].index];
    memory_free(all);
    if (status != RLXVK_OK || !p->ordered)
        return status;
    j->order = memory_zeroed(p->items, sizeof *j->order);
    for (size_t i = 0; j->order && i < p->items; i++)
        j->order[i] = p->list[i].turn;
    return j->order ? RLXVK_OK : status_fail_memory("cases");
}

rlxvk_status conform_plan_read(conform_job *j, conform_pool *pool)
{
    const conform_plan *p = j->plan;
    j->setup.row = at_distance(p->row);
    j->setup.variant = p->has_variant ? p->variant : NULL;
    j->setup.precision = p->precision;
    j->setup.kernel = p->kernel;
    j->kind = at_distance(p->kind);
    *pool = (conform_pool){.items = p->items, .processes = 1};
    pool->run = (bool (*)(void *, size_t))(uintptr_t)at_distance(p->run);
    rlxvk_status status = read_cases(j);
    return status == RLXVK_OK && p->ordered ? conform_resume_join(j) : status;
}
