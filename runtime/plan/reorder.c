/*
 * Level order: a step's level is one more than the highest level of the earlier steps it conflicts
 * with (RAW, WAW, WAR on the same bytes of the same value). Steps of one level are independent and
 * share one barrier. Stable, so deterministic.
 */
#include "plan/schedule.h"

#include <stdlib.h>
#include <string.h>

typedef struct access {
    uint64_t first, size;
    uint32_t level, next; /* next access of the same value; UINT32_MAX ends the list */
    uint8_t kind;
} access;

typedef struct levels {
    uint32_t *head; /* per value: its latest access */
    VECTOR(access) accesses;
} levels;

static bool conflicts(const access *a, const operand *o)
{
    return ((a->kind | o->access) & ACCESS_WRITE) && a->first < o->first + o->size &&
           o->first < a->first + a->size;
}

static uint32_t level_of(const levels *t, const schedule *s, const step *at)
{
    uint32_t level = 0;
    operand o;
    for (uint32_t i = 0; step_operand(s, at, i, &o); i++)
        for (uint32_t a = t->head[o.value]; a != UINT32_MAX; a = t->accesses.items[a].next)
            if (conflicts(&t->accesses.items[a], &o))
                level = MAX(level, t->accesses.items[a].level + 1);
    return level;
}

static bool note(levels *t, const schedule *s, const step *at, uint32_t level)
{
    operand o;
    for (uint32_t i = 0; step_operand(s, at, i, &o); i++) {
        if (!VECTOR_PUSH(&t->accesses,
                         (access){o.first, o.size, level, t->head[o.value], o.access}))
            return false;
        t->head[o.value] = (uint32_t)t->accesses.count - 1;
    }
    return true;
}

typedef struct ranked {
    uint32_t level, index;
} ranked;

static int by_level(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static rlxvk_status rearrange(schedule *s, const ranked *ranks)
{
    step *steps = memory_allocate((s->steps.count + 1) * sizeof *steps);
    if (!steps)
        return fail_memory("reordered steps");
    for (size_t i = 0; i < s->steps.count; i++)
        steps[i] = s->steps.items[ranks[i].index];
    for (size_t i = s->steps.count, end = 0; i-- > 0; steps[i].level_end = (uint32_t)end)
        if (i + 1 == s->steps.count || ranks[i].level != ranks[i + 1].level)
            end = i;
    memory_free(s->steps.items);
    s->steps.items = steps;
    s->steps.capacity = s->steps.count + 1;
    return RLXVK_OK;
}

rlxvk_status schedule_reorder(schedule *s)
{
    uint32_t values = schedule_value_count(s);
    levels t = {.head = memory_allocate((values + 1) * sizeof *t.head)};
    ranked *ranks = memory_allocate((s->steps.count + 1) * sizeof *ranks);
    rlxvk_status status = RLXVK_OK;
    if (!t.head || !ranks)
        status = fail_memory("levels");
    else
        memset(t.head, 0xff, (values + 1) * sizeof *t.head);
    for (uint32_t i = 0; i < s->steps.count && status == RLXVK_OK; i++) {
        const step *at = &s->steps.items[i];
        ranks[i] = (ranked){level_of(&t, s, at), i};
        if (!note(&t, s, at, ranks[i].level))
            status = fail_memory("levels");
    }
    if (status == RLXVK_OK) {
        qsort(ranks, s->steps.count, sizeof *ranks, by_level);
        status = rearrange(s, ranks);
    }
    memory_free(t.head);
    memory_free(ranks);
    VECTOR_FREE(&t.accesses);
    return status;
}
