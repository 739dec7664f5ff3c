/*
 * Proves that a plan is sound, by brute force over all pairs of steps. It is deliberately simple
 * and shares no code with the planner.
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

/* Two steps conflict if they have operands on common bytes and at least one of the two writes.
 * Reads never conflict, so two readers need no barrier. */
static bool steps_conflict(const schedule *s, const plan *p, uint32_t i, uint32_t j)
{
    operand a, b;
    for (uint32_t m = 0; schedule_step_operand(s, &s->steps.items[i], m, &a); m++)
        for (uint32_t n = 0; schedule_step_operand(s, &s->steps.items[j], n, &b); n++)
            if (((a.access | b.access) & ACCESS_WRITE) && ranges_meet(p, &a, &b))
                return true;
    return false;
}

/* Whether two operands of one dispatch may have bytes in common if `a` writes. For operands that
 * the graph gives, the op family says so (`overlap`). For its own bindings, the lowering is
 * responsible. */
static bool may_overlap(const plan *p, const operand *a, const operand *b)
{
    const slot *x = &p->slots[a->value], *y = &p->slots[b->value];
    if (b->overlap == OVERLAP_FIRST)
        return x->offset == y->offset && a->first == b->first && a->offset == b->offset &&
               a->size == b->size;
    return a->value == b->value && b->overlap != OVERLAP_NONE;
}

/* The invocations of a dispatch run in no order. So it must not write a byte that it reads through
 * another operand, unless each element is read before it is written. */
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

/* The steps in execution order, with two rounds of every loop. Two are enough because each later
 * round meets the same state as the second one. */
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

/* The largest loop that begins with step `first` and has fewer than `size` steps; NULL if there is
 * none. */
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

/* Lists steps [first, end). Of the loops that begin with `first`, it unrolls only those with fewer
 * than `size` steps. */
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

/* epochs[k] counts the barriers and segment boundaries before the k-th step of the order, including
 * the one directly before it. */
static void number_epochs(const schedule *s, const plan *p, const step_order *order,
                          uint32_t *epochs)
{
    uint32_t epoch = 0;
    for (uint32_t k = 0; k < order->count; k++) {
        uint32_t i = order->items[k];
        uint32_t before = k > 0 ? order->items[k - 1] : i;
        bool boundary = k > 0 && (s->steps.items[i].host || s->steps.items[before].host);
        /* A loop's rounds run in one command buffer, so only a barrier separates them. */
        bool edge = before < i && is_edge(s, i);
        if (boundary || edge || p->barriers[i].kind != HAZARD_NONE)
            epoch++;
        epochs[k] = epoch;
    }
}

/* needed[e]: some conflicting pair has only the e-th barrier between its steps, so without it the
 * plan would be unsound. If a pair has two or more barriers between its steps, it proves none of
 * them needed. */
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

/* A barrier in a loop's body is needed if either round needs it. */
static uint32_t count_needless(const plan *p, const step_order *order, const uint32_t *epochs,
                               const bool *needed, bool *at_step)
{
    uint32_t needless = 0;
    for (uint32_t k = 0; k < order->count; k++)
        at_step[order->items[k]] |= needed[epochs[k]];
    for (uint32_t k = 1; k < order->count; k++) {
        uint32_t i = order->items[k];
        needless += p->barriers[i].kind != HAZARD_NONE && !at_step[i];
        at_step[i] = true; /* count it once */
    }
    return needless;
}

/* What is known about a value while the steps are followed. */
typedef struct content {
    bool any;     /* it has content: from outside, or a step wrote it */
    bool spoiled; /* another value was written over it since */
    bool written; /* by a step */
} content;

static bool comes_from_outside(const schedule *s, uint32_t value)
{
    size_t nodes = s->graph->nodes.count;
    return value < nodes ? graph_node(s->graph, value)->input_count == 0 ||
                               graph_node(s->graph, value)->joins_params
                         : s->temporaries.items[value - nodes].content != NULL;
}

/* If a step reads and writes a value, the value may begin without content: it is the step's
 * scratch. */
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

/* Whether a value's life begins with this operand; in a loop it begins again in each round. That is
 * so if the step only writes it, or if it is the step's own scratch. */
static bool begins_life(const schedule *s, const plan *p, uint32_t index, const operand *o)
{
    bool working = o->value >= s->graph->nodes.count;
    return index == p->slots[o->value].first && (o->access & ACCESS_WRITE) &&
           (working || !(o->access & ACCESS_READ));
}

/* A write gives the value content and spoils every other value whose bytes overlap. */
static void note_write(const plan *p, const operand *o, content *contents)
{
    operand whole = {.value = o->value, .size = p->slots[o->value].bytes};
    for (uint32_t v = 0; v < p->value_count; v++) {
        operand other = {.value = v, .size = p->slots[v].bytes};
        if (v != o->value && contents[v].any && p->slots[v].block != SLOT_NONE &&
            ranges_meet(p, &whole, &other))
            contents[v].spoiled = true;
    }
    contents[o->value].any = contents[o->value].written = true;
}

/* If a step reads a value, its bytes must be those that the value's last writer left. */
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
        if (p->slots[v].class == CLASS_HOST_WEIGHTS &&
            (contents[v].written || !comes_from_outside(s, v)))
            return status_fail(RLXVK_E_RANGE, "plan: value %u lies on the host and is written", v);
    for (uint32_t v = 0; v < p->value_count; v++)
        if (contents[v].spoiled && p->slots[v].class != CLASS_SCRATCH)
            return status_fail(RLXVK_E_RANGE, "plan: pinned value %u is overwritten by another", v);
error:
    return status;
}

/* Whether a run may execute step `j` but skip prepared step `i`. It may not if `j` writes a value
 * of `i`, or reads one that `i` left in scratch memory, because others overwrite that. */
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

/* Values of prepared steps stay until they are prepared again, and no run may change them. */
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
