/*
 * Steps that depend only on weights need not run every time. They are moved to the front, and the
 * executable skips them unless a param that they read was set. Their results must be kept, which
 * takes memory. So only two kinds of steps are prepared:
 *   - nodes that a rewrite made for it (node.prepare)
 *   - dispatches that change the layout of their operands (dispatch.prepares), up to a limit of
 *     bytes
 *
 * Invariant: a prepared step reads only weights that no step writes, and values that only prepared
 * steps write. It updates nothing in place. So running it again gives the same result, and a run
 * that skips it finds its result.
 */
#include "plan/schedule.h"

#include <string.h>

typedef struct preparing {
    schedule *s;
    bool *chosen;  /* per step: may be prepared, as far as known */
    bool *foreign; /* per value: an input, or written by other steps */
    bool *counted; /* per value: its bytes are counted */
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

/* Drops steps that touch values of other steps, until there are none left. */
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

/* Bytes of the values that this step writes and no step before it wrote. */
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

/* Steps of rewrites are always kept. Layouts of lowerings are kept if they fit the remaining
 * bytes. */
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

/* The ranges of loops after the chosen steps were moved out of them. */
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
        settle(&p); /* drops readers of values that are not kept */
        move_loops(s, p.chosen);
        status = move_steps(s, p.chosen);
    }
    memory_free(flags);
    return status;
}
