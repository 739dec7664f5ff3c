/*
 * Places barriers by byte ranges. Every byte is marked with the last step that read it and the last
 * step that wrote it. A step needs a barrier if, since the last barrier,
 *   - another step wrote bytes that it reads or writes, or
 *   - another step read bytes that it writes.
 * One global memory barrier settles all conflicts with earlier steps.
 *
 * Ranges are of bytes, not of values, for two reasons. Two values may share memory, one after the
 * other or in place. And several steps may write parts of one value at once, for example the parts
 * of a concat. A barrier clears no marks. Marks from before it are ignored: `since` is the first
 * step after the last barrier.
 */
#include "plan/plan.h"

/* The bytes of a block that a step's operand touches; space: class * 2^24 + block. */
static byte_range plan_range(const plan *p, const operand *o)
{
    const slot *s = &p->slots[o->value];
    return (byte_range){((uint32_t)s->class << 24) + s->block, s->offset + o->first, o->size};
}

/* Marks are step numbers + 1. `since` is the first step after the last barrier. */
static barrier operand_hazard(const plan *p, marks *m, uint32_t since, const operand *o)
{
    byte_range range = plan_range(p, o);
    /* Writes are checked first. A write since the last barrier conflicts with any access, and the
     * barrier for it settles reads, too. */
    uint32_t written = marks_highest(m, MARK_WRITTEN, range);
    if (written > since)
        return (barrier){o->access & ACCESS_READ ? HAZARD_RAW : HAZARD_WAW, o->value, written - 1};
    uint32_t read = o->access & ACCESS_WRITE ? marks_highest(m, MARK_READ, range) : 0;
    if (read > since)
        return (barrier){HAZARD_WAR, o->value, read - 1};
    return (barrier){HAZARD_NONE, 0, 0};
}

static barrier step_hazard(const schedule *s, const plan *p, marks *m, uint32_t since,
                           uint32_t index)
{
    operand o;
    barrier found = {HAZARD_NONE, 0, 0};
    for (uint32_t i = 0;
         found.kind == HAZARD_NONE && schedule_step_operand(s, &s->steps.items[index], i, &o); i++)
        found = operand_hazard(p, m, since, &o);
    return found;
}

/* If an operand is read and written, it is marked only as written, because everything that
 * conflicts with the read also conflicts with the write. */
static void remember(const schedule *s, const plan *p, marks *m, uint32_t index)
{
    operand o;
    for (uint32_t i = 0; schedule_step_operand(s, &s->steps.items[index], i, &o); i++)
        marks_raise(m, o.access & ACCESS_WRITE ? MARK_WRITTEN : MARK_READ, plan_range(p, &o),
                    index + 1);
}

static rlxvk_status name_ranges(const schedule *s, const plan *p, marks *m)
{
    operand o;
    for (uint32_t i = 0; i < s->steps.count; i++)
        for (uint32_t k = 0; schedule_step_operand(s, &s->steps.items[i], k, &o); k++)
            if (!marks_add(m, plan_range(p, &o)))
                return status_fail_memory("hazards");
    return marks_seal(m);
}

/* The segment that begins with step `at`; the number of segments if `at` is behind the last
 * step. */
static uint32_t segment_at(const plan *p, uint32_t at)
{
    uint32_t i = 0;
    while (i < p->segments.count && p->segments.items[i].first < at)
        i++;
    return i;
}

/* Inner loops come first in the list, so `opens` ends up as the outermost loop. */
static rlxvk_status plan_loops(const schedule *s, plan *p)
{
    for (uint32_t i = 0; i < s->loops.count; i++) {
        const schedule_loop *from = &s->loops.items[i];
        uint32_t first = segment_at(p, from->first);
        uint32_t end = segment_at(p, from->first + from->count);
        segment *at = &p->segments.items[first];
        plan_loop l = {first, end - first, from->times, from->stop, at->opens};
        uint32_t rounds = MIN(PLAN_GROUP_DISPATCHES / from->count, PLAN_GROUP_ROUNDS);
        if (l.count == 1 && !at->host && !l.inner) {
            at->rounds = (uint32_t)MIN(MAX(rounds, 1), from->times);
            at->rest = (uint32_t)(from->times % at->rounds);
        }
        at->opens = i + 1;
        if (!VECTOR_PUSH(&p->loops, l))
            return status_fail_memory("loops");
    }
    return RLXVK_OK;
}

/* Each run of dispatches becomes one segment, which is recorded once and submitted as a whole. A
 * host step waits for the segment before it, and the segment after it waits for the host step. */
static rlxvk_status plan_segments(const schedule *s, plan *p)
{
    uint32_t hosts = 0;
    for (uint32_t i = 0; i < s->steps.count; i++) {
        bool host = s->steps.items[i].host;
        segment *last = p->segments.count ? &p->segments.items[p->segments.count - 1] : NULL;
        if (last && !host && !last->host && !schedule_edge(s, i))
            last->count++;
        else if (!VECTOR_PUSH(&p->segments, ((segment){i, 1, host, hosts, 0, 1, 0})))
            return status_fail_memory("segments");
        hosts += host;
    }
    return plan_loops(s, p);
}

/* Whether a loop begins at this step. Its last step then comes before the first one, in the next
 * round. */
static bool begins_loop(const schedule *s, uint32_t index, uint32_t *out_last)
{
    for (uint32_t i = 0; i < s->loops.count; i++)
        if (s->loops.items[i].first == index) {
            *out_last = index + s->loops.items[i].count - 1;
            return true;
        }
    return false;
}

/* Whether the steps of a round up to its first barrier conflict with those of the round before
 * behind its last barrier (`since`). All steps of the loop must be marked. */
static bool rounds_meet(const schedule *s, const plan *p, marks *m, const schedule_loop *l,
                        uint32_t since)
{
    bool meet = false;
    for (uint32_t i = l->first; i < l->first + l->count && !meet; i++) {
        if (i > l->first && p->barriers[i].kind != HAZARD_NONE)
            break;
        meet = step_hazard(s, p, m, since, i).kind != HAZARD_NONE;
    }
    return meet;
}

/* For loops that end with step `last`: removes the barrier between rounds if the barriers inside
 * are enough. */
static void spare_barriers(const schedule *s, plan *p, marks *m, uint32_t last, uint32_t since)
{
    for (size_t i = 0; i < s->loops.count; i++) {
        const schedule_loop *l = &s->loops.items[i];
        barrier *b = &p->barriers[l->first];
        if (l->first + l->count - 1 != last || b->kind != HAZARD_LOOP ||
            rounds_meet(s, p, m, l, since))
            continue;
        b->kind = HAZARD_NONE;
        p->barrier_count--;
    }
}

rlxvk_status plan_barriers(const schedule *s, const plan_options *options, plan *p)
{
    marks m = {0};
    uint32_t since = 0;
    rlxvk_status status;
    TRY(plan_segments(s, p));
    if (options->no_barrier)
        return RLXVK_OK;
    TRY(name_ranges(s, p, &m));
    for (uint32_t i = 0; i < s->steps.count; i++) {
        uint32_t last;
        /* Here no barrier is needed. Waiting on a host step orders more than a barrier would, and
         * every command buffer begins with a barrier. So do the recordings on both sides of a
         * loop's edge. */
        if (s->steps.items[i].host || (i > 0 && s->steps.items[i - 1].host) || schedule_edge(s, i))
            since = i;
        barrier b = step_hazard(s, p, &m, since, i);
        if (begins_loop(s, i, &last))
            b = (barrier){HAZARD_LOOP, 0, last};
        if (options->full_barrier && i > since && b.kind == HAZARD_NONE)
            b = (barrier){HAZARD_FORCED, 0, i - 1};
        if (b.kind != HAZARD_NONE) {
            p->barrier_count++;
            since = i;
        }
        p->barriers[i] = b;
        remember(s, p, &m, i);
        if (!options->full_barrier)
            spare_barriers(s, p, &m, i, since);
    }
    p->visits += m.visits;
error:
    marks_destroy(&m);
    return status;
}
