/*
 * What depends on weights alone need not be done in every run: such steps are moved to the front,
 * where the executable leaves them out until a param that they read is set. Their results stay,
 * which takes memory; so only what rewrites make for that (node.prepare), and what lowerings lay
 * out anew of their operands (dispatch.prepares), up to a number of bytes.
 *
 * Invariant: a prepared step reads weights that no step writes, and values that prepared steps
 * alone write; it updates nothing in place. So done again it makes the same, and a run in which it
 * is left out finds what it made.
 */
#include "plan/schedule.h"

#include <string.h>

typedef struct preparing {
    schedule *s;
    bool *chosen;  /* per step: may be prepared, as far as is known */
    bool *foreign; /* per value: other steps write it, or a run gives it */
    bool *counted; /* per value: its bytes are */
} preparing;

static bool is_marked(const schedule *s, const step *at)
{
    return !at->host &&
           (s->dispatches.items[at->dispatch].prepares || graph_node(s->graph, at->node)->prepare);
}

static bool updates_in_place(const schedule *s, const step *at)
{
    operand o;
    for (uint32_t i = 0; schedule_step_operand(s, at, i, &o); i++)
        if (o.access == (ACCESS_READ | ACCESS_WRITE))
            return true;
    return false;
}

static void find_foreign(const preparing *p)
{
    const schedule *s = p->s;
    operand o;
    for (uint32_t v = 0; v < schedule_value_count(s); v++)
        p->foreign[v] = v < s->graph->nodes.count && node_is_input(graph_node(s->graph, v));
    for (uint32_t i = 0; i < s->steps.count; i++)
        for (uint32_t k = 0; schedule_step_operand(s, &s->steps.items[i], k, &o); k++)
            if ((o.access & ACCESS_WRITE) && !p->chosen[i])
                p->foreign[o.value] = true;
}

/* Drops the steps that touch what others make, until none does. */
static void settle(const preparing *p)
{
    operand o;
    for (bool changed = true; changed;) {
        changed = false;
        find_foreign(p);
        for (uint32_t i = 0; i < p->s->steps.count; i++)
            for (uint32_t k = 0;
                 p->chosen[i] && schedule_step_operand(p->s, &p->s->steps.items[i], k, &o); k++)
                if (p->foreign[o.value]) {
                    p->chosen[i] = false;
                    changed = true;
                }
    }
}

/* Of what a step writes and no step before it has. */
static uint64_t new_bytes(const preparing *p, const step *at)
{
    const schedule *s = p->s;
    uint64_t sum = 0;
    operand o;
    for (uint32_t k = 0; schedule_step_operand(s, at, k, &o); k++)
        if ((o.access & ACCESS_WRITE) && !p->counted[o.value]) {
            p->counted[o.value] = true;
            sum += schedule_value_bytes(s, o.value);
        }
    return sum;
}

/* What rewrites make is kept at any rate, and lowerings' layouts in what that leaves. */
static void keep_within(const preparing *p, uint64_t most)
{
    const schedule *s = p->s;
    for (int layouts = 0; layouts < 2; layouts++)
        for (uint32_t i = 0; i < s->steps.count; i++) {
            const step *at = &s->steps.items[i];
            if (!p->chosen[i] || graph_node(s->graph, at->node)->prepare == layouts)
                continue;
            uint64_t bytes = new_bytes(p, at);
            p->chosen[i] = !layouts || bytes <= most;
            most -= MIN(bytes, p->chosen[i] ? most : 0);
        }
}

/* Where loops stand when the chosen steps have left them. */
static void move_loops(schedule *s, const bool *chosen)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->loops.count; i++) {
        schedule_loop l = s->loops.items[i];
        uint32_t end = l.first + l.count, behind = 0;
        for (uint32_t k = l.first; k < s->steps.count; k++) {
            behind += chosen[k];
            l.count -= k < end && chosen[k];
        }
        l.first += behind;
        if (l.count)
            s->loops.items[kept++] = l;
    }
    s->loops.count = kept;
}

static rlxvk_status move_steps(schedule *s, const bool *chosen)
{
    size_t bytes = s->steps.count * sizeof(step);
    step *before = memory_allocate(bytes + 1);
    uint32_t next = 0;
    if (!before)
        return status_fail_memory("prepared steps");
    if (bytes)
        memcpy(before, s->steps.items, bytes);
    for (int pass = 1; pass >= 0; pass--) {
        for (uint32_t i = 0; i < s->steps.count; i++)
            if (chosen[i] == pass)
                s->steps.items[next++] = before[i];
        s->prepared = pass ? next : s->prepared;
    }
    memory_free(before);
    return RLXVK_OK;
}

rlxvk_status prepare_schedule(schedule *s, uint64_t most_bytes)
{
    size_t steps = s->steps.count + 1, values = schedule_value_count(s) + 1;
    bool *flags = memory_zeroed(steps + 2 * values, sizeof *flags), any = false;
    rlxvk_status status = RLXVK_OK;
    if (!flags)
        return status_fail_memory("prepared steps");
    preparing p = {s, flags, flags + steps, flags + steps + values};
    for (uint32_t i = 0; i < s->steps.count; i++) {
        const step *at = &s->steps.items[i];
        p.chosen[i] = is_marked(s, at) && !updates_in_place(s, at);
        any |= p.chosen[i];
    }
    if (any) {
        settle(&p);
        keep_within(&p, most_bytes);
        settle(&p); /* who reads what is not kept */
        move_loops(s, p.chosen);
        status = move_steps(s, p.chosen);
    }
    memory_free(flags);
    return status;
}
