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
    return x->class == y->class && x->block == y->block && from_x < from_y + b->size &&
           from_y < from_x + a->size;
}

static bool steps_conflict(const schedule *s, const plan *p, uint32_t i, uint32_t j)
{
    operand a, b;
    for (uint32_t m = 0; step_operand(s, &s->steps.items[i], m, &a); m++)
        for (uint32_t n = 0; step_operand(s, &s->steps.items[j], n, &b); n++)
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

static rlxvk_status check_barriers(const schedule *s, const plan *p, const uint32_t *epochs,
                                   bool *needed)
{
    for (uint32_t j = 0; j < s->steps.count; j++)
        for (uint32_t i = 0; i < j; i++) {
            if (epochs[j] - epochs[i] > 1 || !steps_conflict(s, p, i, j))
                continue;
            if (epochs[j] == epochs[i])
                return fail(RLXVK_E_RANGE,
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

/* Whether the step needs what the slot holds: a dispatch that reads scratch which it is the first
 * to write reads what it wrote itself. */
static bool needs_content(const plan *p, const operand *o, const bool *written)
{
    bool first_writer = (o->access & ACCESS_WRITE) && !written[o->value];
    return (o->access & ACCESS_READ) && o->size > 0 &&
           !(first_writer && p->slots[o->value].class == CLASS_SCRATCH);
}

/* Which value's bytes a step reads must be what that value's last writer left there: no other value
 * may be written over them in between. Tracked per value as "the bytes of v were overwritten by
 * another value at step t". */
static rlxvk_status check_reads(const schedule *s, const plan *p, bool *spoiled, bool *written)
{
    operand o;
    for (uint32_t i = 0; i < s->steps.count; i++) {
        const step *at = &s->steps.items[i];
        for (uint32_t m = 0; step_operand(s, at, m, &o); m++)
            if (needs_content(p, &o, written) && spoiled[o.value])
                return fail(RLXVK_E_RANGE,
                            "plan: step %u (node %u) reads value %u after its slot was reused", i,
                            at->node, o.value);
        for (uint32_t m = 0; step_operand(s, at, m, &o); m++) {
            if (!(o.access & ACCESS_WRITE))
                continue;
            operand whole = {.value = o.value, .size = p->slots[o.value].bytes};
            for (uint32_t v = 0; v < p->value_count; v++) {
                operand other = {.value = v, .size = p->slots[v].bytes};
                if (v != o.value && p->slots[v].block != SLOT_NONE &&
                    ranges_meet(p, &whole, &other))
                    spoiled[v] = true;
            }
            if (!written[o.value])
                spoiled[o.value] = false;
            written[o.value] = true;
        }
    }
    for (uint32_t v = 0; v < p->value_count; v++)
        if (spoiled[v] && p->slots[v].class != CLASS_SCRATCH)
            return fail(RLXVK_E_RANGE, "plan: pinned value %u is overwritten by another", v);
    return RLXVK_OK;
}

rlxvk_status plan_check(const schedule *s, const plan *p, uint32_t *out_needless)
{
    size_t steps = s->steps.count, flags = MAX(steps, p->value_count) + 2;
    uint32_t *epochs = memory_zeroed(steps + 1, sizeof *epochs);
    bool *bits = memory_zeroed(3 * flags, sizeof *bits);
    rlxvk_status status = epochs && bits ? RLXVK_OK : fail_memory("plan check");
    if (status == RLXVK_OK) {
        number_epochs(s, p, epochs);
        status = check_barriers(s, p, epochs, bits);
    }
    if (status == RLXVK_OK)
        status = check_reads(s, p, bits + flags, bits + 2 * flags);
    if (status == RLXVK_OK && out_needless)
        *out_needless = count_needless(s, p, epochs, bits);
    memory_free(epochs);
    memory_free(bits);
    return status;
}
