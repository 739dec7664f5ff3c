/*
 * The soundness proof of a plan, by brute force over all pairs: deliberately simple and sharing no
 * code with the planner.
 */
#include "plan/plan.h"

#include <string.h>

static bool ranges_meet(const plan *p, const operand *a, const operand *b)
{
    const slot *x = &p->slots[a->value], *y = &p->slots[b->value];
    uint64_t from_x = x->offset + a->first, from_y = y->offset + b->first;
    return a->size && b->size && x->class == y->class && x->block == y->block &&
           from_x < from_y + b->size && from_y < from_x + a->size;
}

/* Any pair of operands on common bytes of which one writes. Reads never conflict, so no barrier is
 * asked for between two readers, however they overlap. */
static bool steps_conflict(const schedule *s, const plan *p, uint32_t i, uint32_t j)
{
    operand a, b;
    for (uint32_t m = 0; schedule_step_operand(s, &s->steps.items[i], m, &a); m++)
        for (uint32_t n = 0; schedule_step_operand(s, &s->steps.items[j], n, &b); n++)
            if (((a.access | b.access) & ACCESS_WRITE) && ranges_meet(p, &a, &b))
                return true;
    return false;
}

/* epochs[i]: barriers and segment boundaries up to and including the one before step i. */
static void number_epochs(const schedule *s, const plan *p, uint32_t *epochs)
{
    uint32_t epoch = 0;
    for (uint32_t i = 0; i < s->steps.count; i++) {
        bool boundary = i > 0 && (s->steps.items[i].host || s->steps.items[i - 1].host);
        if (boundary || p->barriers[i].kind != HAZARD_NONE)
            epoch++;
        epochs[i] = epoch;
    }
}

/* needed[e]: some conflicting pair has the e-th barrier alone between its steps, so that the plan
 * without it would be unsound. A pair with two or more between them proves neither needed. */
static rlxvk_status check_barriers(const schedule *s, const plan *p, const uint32_t *epochs,
                                   bool *needed)
{
    for (uint32_t j = 0; j < s->steps.count; j++)
        for (uint32_t i = 0; i < j; i++) {
            if (epochs[j] - epochs[i] > 1 || !steps_conflict(s, p, i, j))
                continue;
            if (epochs[j] == epochs[i])
                return status_fail(
                    RLXVK_E_RANGE,
                    "plan: steps %u (node %u) and %u (node %u) touch the same bytes with "
                    "no barrier between them",
                    i, s->steps.items[i].node, j, s->steps.items[j].node);
            needed[epochs[j]] = true;
        }
    return RLXVK_OK;
}

static uint32_t count_needless(const schedule *s, const plan *p, const uint32_t *epochs,
                               const bool *needed)
{
    uint32_t needless = 0;
    for (uint32_t i = 1; i < s->steps.count; i++)
        needless += p->barriers[i].kind != HAZARD_NONE && !needed[epochs[i]];
    return needless;
}

/* What is known of a value while the steps go by. */
typedef struct content {
    bool any;     /* it has some: from outside, or a step wrote it */
    bool spoiled; /* another value was written over it since */
} content;

static bool comes_from_outside(const schedule *s, uint32_t value)
{
    size_t nodes = s->graph->nodes.count;
    return value < nodes ? graph_node(s->graph, value)->input_count == 0
                         : s->temporaries.items[value - nodes].content != NULL;
}

/* A value that is written as well as read may begin with nothing: the step's own working memory. */
static rlxvk_status check_read(const schedule *s, uint32_t index, const operand *o,
                               const content *c)
{
    uint32_t node = s->steps.items[index].node;
    if (!(o->access & ACCESS_READ) || o->size == 0)
        return RLXVK_OK;
    if (c->spoiled)
        return status_fail(RLXVK_E_RANGE,
                           "plan: step %u (node %u) reads value %u after its slot was reused",
                           index, node, o->value);
    if (!c->any && !(o->access & ACCESS_WRITE))
        return status_fail(RLXVK_E_RANGE,
                           "plan: step %u (node %u) reads value %u before any step wrote it", index,
                           node, o->value);
    return RLXVK_OK;
}

/* A write gives the value content and spoils that of all others it reaches. */
static void note_write(const plan *p, const operand *o, content *contents)
{
    operand whole = {.value = o->value, .size = p->slots[o->value].bytes};
    for (uint32_t v = 0; v < p->value_count; v++) {
        operand other = {.value = v, .size = p->slots[v].bytes};
        if (v != o->value && contents[v].any && p->slots[v].block != SLOT_NONE &&
            ranges_meet(p, &whole, &other))
            contents[v].spoiled = true;
    }
    contents[o->value].any = true;
}

/* Which value's bytes a step reads must be what that value's last writer left there. */
static rlxvk_status check_contents(const schedule *s, const plan *p, content *contents)
{
    operand o;
    rlxvk_status status = RLXVK_OK;
    for (uint32_t v = 0; v < p->value_count; v++)
        contents[v].any = comes_from_outside(s, v);
    for (uint32_t i = 0; i < s->steps.count; i++) {
        for (uint32_t m = 0; schedule_step_operand(s, &s->steps.items[i], m, &o); m++)
            TRY(check_read(s, i, &o, &contents[o.value]));
        for (uint32_t m = 0; schedule_step_operand(s, &s->steps.items[i], m, &o); m++)
            if ((o.access & ACCESS_WRITE) && o.size)
                note_write(p, &o, contents);
    }
    for (uint32_t v = 0; v < p->value_count; v++)
        if (contents[v].spoiled && p->slots[v].class != CLASS_SCRATCH)
            return status_fail(RLXVK_E_RANGE, "plan: pinned value %u is overwritten by another", v);
error:
    return status;
}

rlxvk_status plan_check(const schedule *s, const plan *p, uint32_t *out_needless)
{
    size_t steps = s->steps.count;
    uint32_t *epochs = memory_zeroed(steps + 1, sizeof *epochs);
    bool *needed = memory_zeroed(steps + 2, sizeof *needed);
    content *contents = memory_zeroed(p->value_count + 1, sizeof *contents);
    rlxvk_status status;
    TRY(epochs && needed && contents ? RLXVK_OK : status_fail_memory("plan check"));
    number_epochs(s, p, epochs);
    TRY(check_barriers(s, p, epochs, needed));
    TRY(check_contents(s, p, contents));
    if (out_needless)
        *out_needless = count_needless(s, p, epochs, needed);
error:
    memory_free(epochs);
    memory_free(needed);
    memory_free(contents);
    return status;
}
