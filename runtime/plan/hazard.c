/*
 * Barriers by byte ranges. Since the last barrier the ranges written (W) and read (R) are kept; a
 * step needs a barrier when it reads or writes what W holds, or writes what R holds. One global
 * barrier clears both.
 */
#include "plan/plan.h"

typedef struct touched {
    byte_range range;
    uint32_t value, step;
    bool written;
} touched;

typedef struct window {
    VECTOR(touched) items;
} window;

byte_range plan_range(const plan *p, const operand *o)
{
    const slot *s = &p->slots[o->value];
    return (byte_range){((uint32_t)s->class << 24) + s->block, s->offset + o->first, o->size};
}

static bool overlap(const byte_range *a, const byte_range *b)
{
    return a->block == b->block && a->first < b->first + b->size && b->first < a->first + a->size;
}

static barrier find_hazard(const window *w, const byte_range *range, const operand *o)
{
    for (size_t i = 0; i < w->items.count; i++) {
        const touched *t = &w->items.items[i];
        bool write = o->access & ACCESS_WRITE;
        if ((!t->written && !write) || !overlap(&t->range, range))
            continue;
        uint8_t kind = !t->written ? HAZARD_WAR : write ? HAZARD_WAW : HAZARD_RAW;
        if (t->written && (o->access & ACCESS_READ))
            kind = HAZARD_RAW;
        return (barrier){kind, o->value, t->step};
    }
    return (barrier){HAZARD_NONE, 0, 0};
}

static barrier step_hazard(const schedule *s, const plan *p, const window *w, const step *at)
{
    operand o;
    barrier found = {HAZARD_NONE, 0, 0};
    for (uint32_t i = 0; found.kind == HAZARD_NONE && step_operand(s, at, i, &o); i++) {
        byte_range range = plan_range(p, &o);
        found = find_hazard(w, &range, &o);
    }
    return found;
}

static bool remember(const schedule *s, const plan *p, window *w, uint32_t index)
{
    operand o;
    for (uint32_t i = 0; step_operand(s, &s->steps.items[index], i, &o); i++)
        if (!VECTOR_PUSH(&w->items, (touched){plan_range(p, &o), o.value, index,
                                              (o.access & ACCESS_WRITE) != 0}))
            return false;
    return true;
}

static rlxvk_status plan_segments(const schedule *s, plan *p)
{
    for (uint32_t i = 0; i < s->steps.count; i++) {
        bool host = s->steps.items[i].host;
        segment *last = p->segments.count ? &p->segments.items[p->segments.count - 1] : NULL;
        if (last && !host && !last->host)
            last->count++;
        else if (!VECTOR_PUSH(&p->segments, (segment){i, 1, host}))
            return fail_memory("segments");
    }
    return RLXVK_OK;
}

rlxvk_status plan_barriers(const schedule *s, const plan_options *options, plan *p)
{
    window w = {0};
    rlxvk_status status = plan_segments(s, p);
    for (uint32_t i = 0; i < s->steps.count && status == RLXVK_OK; i++) {
        bool boundary = s->steps.items[i].host || (i > 0 && s->steps.items[i - 1].host);
        if (boundary)
            w.items.count = 0;
        barrier b = step_hazard(s, p, &w, &s->steps.items[i]);
        if (options->full_barrier && w.items.count && b.kind == HAZARD_NONE)
            b = (barrier){HAZARD_FORCED, 0, i - 1};
        if (options->no_barrier)
            b.kind = HAZARD_NONE;
        if (b.kind != HAZARD_NONE) {
            p->barrier_count++;
            w.items.count = 0;
        }
        p->barriers[i] = b;
        if (!remember(s, p, &w, i))
            status = fail_memory("hazards");
    }
    VECTOR_FREE(&w.items);
    return status;
}
