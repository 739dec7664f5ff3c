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

/* What two operands of one dispatch may do on common bytes, of which `a` writes: the lowering knows
 * of the bindings that it chose itself, and the family of what the graph gives it. */
static bool may_overlap(const plan *p, const operand *a, const operand *b)
{
    const slot *x = &p->slots[a->value], *y = &p->slots[b->value];
    if (b->overlap == OVERLAP_FIRST)
        return x->offset == y->offset && a->first == b->first && a->offset == b->offset &&
               a->size == b->size;
    return a->value == b->value && b->overlap != OVERLAP_NONE;
}

/* Nothing orders the invocations of a dispatch: it writes no byte that it reads through another
 * operand, unless each element is read before it is written. */
static rlxvk_status check_alone(const schedule *s, const plan *p, uint32_t index)
{
    const step *at = &s->steps.items[index];
    operand a, b;
    for (uint32_t m = 0; schedule_step_operand(s, at, m, &a) && !at->host; m++)
        for (uint32_t n = 0; (a.access & ACCESS_WRITE) && schedule_step_operand(s, at, n, &b); n++)
            if (n != m && ranges_meet(p, &a, &b) && !may_overlap(p, &a, &b))
                return status_fail(
                    RLXVK_E_RANGE,
                    "plan: step %u (node %u) writes value %u over value %u, which it "
                    "has as another operand",
                    index, at->node, a.value, b.value);
    return RLXVK_OK;
}

/* The steps in the order of execution, with two rounds of every loop: what a round leaves to the
 * next is the same from then on. */
typedef VECTOR(uint32_t) step_order;

static bool is_edge(const schedule *s, uint32_t index)
{
    if (s->prepared && index == s->prepared)
        return true;
    for (size_t i = 0; i < s->loops.count; i++) {
        const schedule_loop *l = &s->loops.items[i];
        if (index == l->first || index == l->first + l->count)
            return true;
    }
    return false;
}

/* The loop that begins with step `first` and is the largest below `size` steps; NULL: none. */
static const schedule_loop *loop_from(const schedule *s, uint32_t first, uint32_t size)
{
    const schedule_loop *found = NULL;
    for (size_t i = 0; i < s->loops.count; i++) {
        const schedule_loop *l = &s->loops.items[i];
        if (l->first == first && l->count < size && (!found || l->count > found->count))
            found = l;
    }
    return found;
}

/* Steps [first, end); `size`: loops from `first` on are in question that have fewer steps. */
static bool list_steps(const schedule *s, uint32_t first, uint32_t end, uint32_t size,
                       step_order *out)
{
    for (uint32_t i = first; i < end;) {
        const schedule_loop *l = loop_from(s, i, i == first ? size : UINT32_MAX);
        if (!l) {
            if (!VECTOR_PUSH(out, i++))
                return false;
            continue;
        }
        for (int round = 0; round < 2; round++)
            if (!list_steps(s, i, i + l->count, l->count, out))
                return false;
        i += l->count;
    }
    return true;
}

/* epochs[k]: barriers and segment boundaries up to and including the one before the k-th in the
 * order. */
static void number_epochs(const schedule *s, const plan *p, const step_order *order,
                          uint32_t *epochs)
{
    uint32_t epoch = 0;
    for (uint32_t k = 0; k < order->count; k++) {
        uint32_t i = order->items[k];
        uint32_t before = k > 0 ? order->items[k - 1] : i;
        bool boundary = k > 0 && (s->steps.items[i].host || s->steps.items[before].host);
        /* Rounds follow one another in one command buffer: its barrier alone is between them. */
        bool edge = before < i && is_edge(s, i);
        if (boundary || edge || p->barriers[i].kind != HAZARD_NONE)
            epoch++;
        epochs[k] = epoch;
    }
}

/* needed[e]: some conflicting pair has the e-th barrier alone between its steps, so that the plan
 * without it would be unsound. A pair with two or more between them proves neither needed. */
static rlxvk_status check_barriers(const schedule *s, const plan *p, const step_order *order,
                                   const uint32_t *epochs, bool *needed)
{
    for (uint32_t j = 0; j < order->count; j++)
        for (uint32_t i = 0; i < j; i++) {
            uint32_t earlier = order->items[i], later = order->items[j];
            if (epochs[j] - epochs[i] > 1 || !steps_conflict(s, p, earlier, later))
                continue;
            if (epochs[j] == epochs[i])
                return status_fail(
                    RLXVK_E_RANGE,
                    "plan: steps %u (node %u) and %u (node %u) touch the same bytes with "
                    "no barrier between them",
                    earlier, s->steps.items[earlier].node, later, s->steps.items[later].node);
            needed[epochs[j]] = true;
        }
    return RLXVK_OK;
}

/* A barrier of a loop's body is needed where either round needs it. */
static uint32_t count_needless(const plan *p, const step_order *order, const uint32_t *epochs,
                               const bool *needed, bool *at_step)
{
    uint32_t needless = 0;
    for (uint32_t k = 0; k < order->count; k++)
        at_step[order->items[k]] |= needed[epochs[k]];
    for (uint32_t k = 1; k < order->count; k++) {
        uint32_t i = order->items[k];
        needless += p->barriers[i].kind != HAZARD_NONE && !at_step[i];
        at_step[i] = true; /* counted */
    }
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
    return value < nodes ? graph_node(s->graph, value)->input_count == 0 ||
                               graph_node(s->graph, value)->joins_params
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

/* Whether a value's life begins with this operand, in a later round of a loop anew: with a write,
 * or as the step's own working memory. */
static bool begins_life(const schedule *s, const plan *p, uint32_t index, const operand *o)
{
    bool working = o->value >= s->graph->nodes.count;
    return index == p->slots[o->value].first && (o->access & ACCESS_WRITE) &&
           (working || !(o->access & ACCESS_READ));
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
static rlxvk_status check_contents(const schedule *s, const plan *p, const step_order *order,
                                   content *contents)
{
    operand o;
    rlxvk_status status = RLXVK_OK;
    for (uint32_t v = 0; v < p->value_count; v++)
        contents[v].any = comes_from_outside(s, v);
    for (uint32_t k = 0; k < order->count; k++) {
        uint32_t i = order->items[k];
        for (uint32_t m = 0; schedule_step_operand(s, &s->steps.items[i], m, &o); m++) {
            contents[o.value].spoiled &= !begins_life(s, p, i, &o);
            TRY(check_read(s, i, &o, &contents[o.value]));
        }
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

/* Whether a run that leaves out prepared step `i`, and has step `j`, may meet what it left: not
 * where it is overwritten, nor where its memory is anybody's. */
static bool outlasts(const schedule *s, const plan *p, uint32_t i, uint32_t j)
{
    operand a, b;
    for (uint32_t m = 0; schedule_step_operand(s, &s->steps.items[i], m, &a); m++)
        for (uint32_t n = 0; schedule_step_operand(s, &s->steps.items[j], n, &b); n++)
            if (a.value == b.value &&
                ((b.access & ACCESS_WRITE) ||
                 ((a.access & ACCESS_WRITE) && p->slots[a.value].class == CLASS_SCRATCH)))
                return false;
    return true;
}

static bool reads_input(const schedule *s, uint32_t index)
{
    operand o;
    for (uint32_t m = 0; schedule_step_operand(s, &s->steps.items[index], m, &o); m++)
        if (o.value < s->graph->nodes.count && node_is_input(graph_node(s->graph, o.value)))
            return true;
    return false;
}

/* What is prepared stays until it is prepared again, and no run can make it another. */
static rlxvk_status check_prepared(const schedule *s, const plan *p)
{
    for (uint32_t i = 0; i < s->prepared; i++) {
        if (reads_input(s, i))
            return status_fail(RLXVK_E_RANGE, "plan: prepared step %u (node %u) reads an input", i,
                               s->steps.items[i].node);
        for (uint32_t j = s->prepared; j < s->steps.count; j++)
            if (!outlasts(s, p, i, j))
                return status_fail(
                    RLXVK_E_RANGE,
                    "plan: step %u (node %u) overwrites, or reads from scratch, what "
                    "prepared step %u (node %u) uses",
                    j, s->steps.items[j].node, i, s->steps.items[i].node);
    }
    return RLXVK_OK;
}

rlxvk_status plan_check(const schedule *s, const plan *p, uint32_t *out_needless)
{
    step_order order = {0};
    bool listed = list_steps(s, 0, (uint32_t)s->steps.count, UINT32_MAX, &order);
    size_t steps = order.count;
    uint32_t *epochs = memory_zeroed(steps + 1, sizeof *epochs);
    bool *needed = memory_zeroed(2 * steps + 3, sizeof *needed);
    content *contents = memory_zeroed(p->value_count + 1, sizeof *contents);
    rlxvk_status status;
    TRY(listed && epochs && needed && contents ? RLXVK_OK : status_fail_memory("plan check"));
    number_epochs(s, p, &order, epochs);
    TRY(check_barriers(s, p, &order, epochs, needed));
    TRY(check_contents(s, p, &order, contents));
    for (uint32_t i = 0; i < s->steps.count; i++)
        TRY(check_alone(s, p, i));
    TRY(check_prepared(s, p));
    if (out_needless)
        *out_needless = count_needless(p, &order, epochs, needed, needed + steps + 2);
error:
    VECTOR_FREE(&order);
    memory_free(epochs);
    memory_free(needed);
    memory_free(contents);
    return status;
}
