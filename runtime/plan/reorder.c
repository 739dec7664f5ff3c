/*
 * Level order: a step's level is one more than the highest level of the earlier steps that it
 * conflicts with. A conflict is RAW, WAW or WAR on the same bytes of the same value. Steps of one
 * level are independent and share one barrier. The sort is stable, so the result is deterministic.
 *
 * Steps of a loop stay together: their levels are above those of all steps before the loop, and
 * below those of all steps after it.
 *
 * If an op waits for a node that it does not read (op_family.memory.waits), that node is made at a
 * lower level, too.
 *
 * This is sound because, of two conflicting steps, the later one has the higher level, so sorting
 * by level keeps their order. Values have no memory yet. If the layout reuses memory later, that
 * can add hazards, but no order that must be kept. Level order costs memory, because all results of
 * a level are alive at once.
 */
#include "op/view.h"
#include "plan/marks.h"
#include "plan/schedule.h"

#include <stdlib.h>

/* The state for ops that wait, for all nodes up to that of the last step. */
typedef struct waiting {
    uint32_t *roots, *done; /* done: 1 + the level at which a root is made */
    uint32_t *lowest;       /* the lowest level that readers of a node may have */
    uint32_t next;
} waiting;

static rlxvk_status waiting_create(const rlxvk_graph *g, waiting *out)
{
    size_t count = g->nodes.count;
    *out = (waiting){.roots = memory_zeroed(3 * count + 1, sizeof *out->roots)};
    if (!out->roots)
        return status_fail_memory("levels");
    out->done = out->roots + count;
    out->lowest = out->done + count;
    view_roots(g, out->roots);
    return RLXVK_OK;
}

/* This works because steps are still in the order of their nodes, and a node comes after the node
 * that it waits for. */
static void waiting_reach(waiting *w, const rlxvk_graph *g, uint32_t end)
{
    for (; w->next < end; w->next++) {
        const node *n = graph_node(g, w->next);
        if (w->roots[w->next] == w->next)
            continue;
        w->lowest[w->next] = w->lowest[n->inputs[0]];
        if (node_row(n)->family->memory.waits)
            w->lowest[w->next] = MAX(w->lowest[w->next], w->done[w->roots[n->inputs[1]]]);
    }
}

/* The lowest level that this step may have. Marks are levels + 1, on the bytes of values. */
static uint32_t level_of(marks *m, const schedule *s, const waiting *w, const step *at)
{
    const node *n = graph_node(s->graph, at->node);
    uint32_t level = 0;
    operand o;
    for (uint32_t i = 0; i < n->input_count; i++)
        level = MAX(level, w->lowest[n->inputs[i]]);
    for (uint32_t i = 0; schedule_step_operand(s, at, i, &o); i++) {
        byte_range range = {o.value, o.first, o.size};
        level = MAX(level, marks_highest(m, MARK_WRITTEN, range));
        if (o.access & ACCESS_WRITE)
            level = MAX(level, marks_highest(m, MARK_READ, range));
    }
    return level;
}

static void note(marks *m, const schedule *s, const step *at, uint32_t level)
{
    operand o;
    for (uint32_t i = 0; schedule_step_operand(s, at, i, &o); i++)
        marks_raise(m, o.access & ACCESS_WRITE ? MARK_WRITTEN : MARK_READ,
                    (byte_range){o.value, o.first, o.size}, level + 1);
}

static rlxvk_status name_ranges(marks *m, const schedule *s)
{
    operand o;
    for (uint32_t i = 0; i < s->steps.count; i++)
        for (uint32_t k = 0; schedule_step_operand(s, &s->steps.items[i], k, &o); k++)
            if (!marks_add(m, (byte_range){o.value, o.first, o.size}))
                return status_fail_memory("levels");
    return marks_seal(m);
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
        return status_fail_memory("reordered steps");
    for (size_t i = 0; i < s->steps.count; i++)
        steps[i] = s->steps.items[ranks[i].index];
    /* From the end, so that the last step of a level comes first. */
    for (size_t i = s->steps.count, end = 0; i-- > 0; steps[i].level_end = (uint32_t)end)
        if (i + 1 == s->steps.count || ranks[i].level != ranks[i + 1].level)
            end = i;
    memory_free(s->steps.items);
    s->steps.items = steps;
    s->steps.capacity = s->steps.count + 1;
    return RLXVK_OK;
}

rlxvk_status reorder_schedule(schedule *s)
{
    marks m = {0};
    uint32_t lowest = 0, highest = 0; /* levels: lowest since the last edge, highest so far */
    ranked *ranks = memory_allocate((s->steps.count + 1) * sizeof *ranks);
    waiting w;
    rlxvk_status status;
    TRY(waiting_create(s->graph, &w));
    TRY(ranks ? name_ranges(&m, s) : status_fail_memory("levels"));
    for (uint32_t i = 0; i < s->steps.count; i++) {
        const step *at = &s->steps.items[i];
        if (i >= s->prepared) /* prepared steps are not in node order, but wait for no other */
            waiting_reach(&w, s->graph, at->node);
        if (schedule_edge(s, i))
            lowest = highest + 1;
        ranks[i] = (ranked){MAX(level_of(&m, s, &w, at), lowest), i};
        highest = MAX(highest, ranks[i].level);
        note(&m, s, at, ranks[i].level);
        w.done[at->node] = MAX(w.done[at->node], ranks[i].level + 1);
    }
    qsort(ranks, s->steps.count, sizeof *ranks, by_level);
    TRY(rearrange(s, ranks));
    s->visits += m.visits;
error:
    marks_destroy(&m);
    memory_free(ranks);
    memory_free(w.roots);
    return status;
}
