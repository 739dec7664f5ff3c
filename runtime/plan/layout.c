/*
 * Decides where values lie in memory. Weights and state get addresses one after the other and keep
 * them. Scratch is placed by liveness (place.c), and first, because what it leaves of the device
 * decides which weights stay there (host_weights.c). Equal blocks form one address space, and no
 * value crosses a block boundary.
 *
 * If a loop reads a value before it writes it, the value comes from before the loop or from the
 * round before. Such a value lives as long as the loop.
 *
 * In place: if an operand dies at the step that first writes the result, and the op family allows
 * it, both share one placement (a "group").
 */
#include "plan/place.h"

typedef struct layout {
    const schedule *s;
    const plan_options *options;
    plan *p;
    uint32_t *group; /* per value: the value that represents its group */
    uint64_t block_bytes;
} layout;

/* "scratch of attention 'attn' (node 12)": names a temporary by the node whose dispatch uses it. */
static void describe_scratch(const schedule *s, uint32_t value, text *out)
{
    char label[NODE_LABEL];
    for (size_t i = 0; i < s->dispatches.count; i++) {
        const dispatch *d = &s->dispatches.items[i];
        for (uint32_t k = 0; k < d->operand_count; k++)
            if (d->operands[k].value == value) {
                text_append(out, "scratch of %s", op_node_label(s->graph, d->node, label));
                return;
            }
    }
    text_append(out, "a temporary");
}

static rlxvk_status check_bytes(const layout *l, uint32_t value, uint64_t bytes, uint64_t limit)
{
    char who[NODE_LABEL + SHAPE_TEXT] = "", label[NODE_LABEL], shape[SHAPE_TEXT];
    text t = {.buffer = who, .size = sizeof who};
    if (bytes <= limit)
        return RLXVK_OK;
    if (value < l->s->graph->nodes.count)
        text_append(&t, "%s of shape %s", op_node_label(l->s->graph, value, label),
                    shape_text(&graph_node(l->s->graph, value)->shape, shape));
    else
        describe_scratch(l->s, value, &t);
    return status_fail(
        RLXVK_E_TOO_LARGE,
        "%s needs %llu bytes; this device binds at most %llu and allocates at most %llu; "
        "split the tensor",
        who, (unsigned long long)bytes, (unsigned long long)l->options->max_binding_bytes,
        (unsigned long long)l->block_bytes);
}

static rlxvk_status check_size(const layout *l, uint32_t value, uint64_t bytes)
{
    uint64_t guards = MIN(2 * l->options->guard_bytes, l->block_bytes);
    return check_bytes(l, value, bytes, l->block_bytes - guards);
}

/* A value may be larger than what the device binds, if each dispatch reads only a part of it. */
static rlxvk_status check_bindings(const layout *l)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < l->s->dispatches.count; i++) {
        const dispatch *d = &l->s->dispatches.items[i];
        for (uint32_t k = 0; k < d->operand_count; k++)
            TRY(check_bytes(l, d->operands[k].value, d->operands[k].size,
                            l->options->max_binding_bytes));
    }
error:
    return status;
}

/* A value lives from the first step that touches its slot to the last one. Operands name the owner
 * of the slot, so a reader of a view keeps the root alive. If the parts of a concat are written
 * directly into it, it lives from the first part on. */
static void mark_live(const schedule *s, plan *p)
{
    operand o;
    for (uint32_t i = 0; i < s->steps.count; i++)
        for (uint32_t m = 0; schedule_step_operand(s, &s->steps.items[i], m, &o); m++) {
            slot *v = &p->slots[o.value];
            v->first = MIN(v->first, i);
            v->last = MAX(v->last, i);
        }
}

static void pin(plan *p, uint32_t root, uint8_t class)
{
    p->slots[root].class = class;
}

/* Whether the first access to a value, in this step, reads something that must already be there.
 * Temporaries begin without content. */
static bool found_there(const schedule *s, const slot *v, uint32_t index, const operand *o)
{
    return v->first == index && (o->access & ACCESS_READ) && o->value < s->graph->nodes.count;
}

static void stretch_over_loop(const schedule *s, const schedule_loop *l, plan *p)
{
    uint32_t last = l->first + l->count - 1;
    operand o;
    for (uint32_t i = l->first; i <= last; i++)
        for (uint32_t m = 0; schedule_step_operand(s, &s->steps.items[i], m, &o); m++) {
            slot *v = &p->slots[o.value];
            if (v->first >= l->first && !found_there(s, v, i, &o))
                continue;
            v->first = MIN(v->first, l->first);
            v->last = MAX(v->last, last);
        }
}

/* Values that prepared steps leave to the other steps must stay between runs. */
static void pin_prepared(const schedule *s, plan *p)
{
    for (uint32_t v = 0; v < p->value_count; v++) {
        slot *at = &p->slots[v];
        if (at->class != CLASS_SCRATCH || at->first >= s->prepared || at->last < s->prepared)
            continue;
        at->class = CLASS_WEIGHTS;
        p->prepared_bytes += at->size;
    }
}

/* Pins values whose content must outlive a run or exists before its first step, because liveness by
 * steps does not see that. Inputs are written before the steps, and outputs are read after them. If
 * an output is a view of a weight or an input, it is pinned already. */
static void choose_classes(const schedule *s, const plan_options *options, plan *p)
{
    const rlxvk_graph *g = s->graph;
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const node *n = graph_node(g, id);
        if (node_is_weight(n)) /* the root may be a node that joins params */
            pin(p, s->values.items[id].root, CLASS_WEIGHTS);
        else if (node_is_input(n) || options->keep_all || (options->pinned && options->pinned[id]))
            pin(p, s->values.items[id].root, CLASS_STATE);
    }
    for (size_t i = 0; i < s->temporaries.count; i++)
        if (s->temporaries.items[i].content)
            pin(p, (uint32_t)(g->nodes.count + i), CLASS_WEIGHTS);
    pin_prepared(s, p);
    for (size_t i = 0; i < g->outputs.count; i++) {
        uint32_t root = s->values.items[g->outputs.items[i]].root;
        if (p->slots[root].class == CLASS_SCRATCH)
            pin(p, root, CLASS_STATE);
    }
}

/* Whether a value needs memory: it must be a root, and be pinned or be touched by some step. */
static bool needs_slot(const schedule *s, const plan *p, uint32_t value)
{
    bool node_value = value < s->graph->nodes.count;
    if (node_value && s->values.items[value].root != value)
        return false;
    return p->slots[value].class != CLASS_SCRATCH || p->slots[value].first != UINT32_MAX;
}

/* A block is allocated only as far as its last value reaches. */
static rlxvk_status cover(layout *l, uint8_t class, uint64_t end)
{
    uint64_t block = end ? (end - 1) / l->block_bytes : 0;
    while (end && l->p->blocks[class].count <= block)
        if (!VECTOR_PUSH(&l->p->blocks[class], 0))
            return status_fail_memory("blocks");
    if (end) {
        uint64_t *bytes = &l->p->blocks[class].items[block];
        *bytes = MAX(*bytes, end - block * l->block_bytes);
    }
    return RLXVK_OK;
}

/* Gives a value its address. If there are guards, `at` is the address of the guard before it. */
static rlxvk_status settle(layout *l, uint32_t value, uint64_t at)
{
    slot *v = &l->p->slots[value];
    v->block = (uint32_t)(at / l->block_bytes);
    v->offset = at % l->block_bytes + l->options->guard_bytes;
    return cover(l, v->class, at + v->size + 2 * l->options->guard_bytes);
}

static bool is_shared(const layout *l, uint32_t value)
{
    return value < l->s->graph->nodes.count && l->options->shared && l->options->shared[value];
}

static rlxvk_status place_pinned(layout *l)
{
    uint64_t next[CLASS_COUNT] = {0}, guards = 2 * l->options->guard_bytes;
    rlxvk_status status = RLXVK_OK;
    for (uint32_t v = 0; v < l->p->value_count && status == RLXVK_OK; v++) {
        slot *at = &l->p->slots[v];
        bool pinned = at->class != CLASS_SCRATCH || l->options->bump;
        if (!needs_slot(l->s, l->p, v) || !pinned)
            continue;
        TRY(check_size(l, v, at->size));
        if (is_shared(l, v)) {
            at->block = SLOT_SHARED + v;
            continue;
        }
        next[at->class] = place_fit(next[at->class], at->size + guards, l->block_bytes);
        TRY(settle(l, v, next[at->class]));
        next[at->class] += at->size + guards;
        l->p->class_bytes[at->class] = next[at->class];
    }
error:
    return status;
}

/* Bytes of all pinned values, with their guards. */
static uint64_t pinned_bytes(const layout *l)
{
    uint64_t sum = 0;
    for (uint32_t v = 0; v < l->p->value_count; v++) {
        const slot *at = &l->p->slots[v];
        bool pinned = at->class != CLASS_SCRATCH || l->options->bump;
        if (needs_slot(l->s, l->p, v) && pinned && !is_shared(l, v))
            sum = saturated_sum(sum, at->size + 2 * l->options->guard_bytes);
    }
    return sum;
}

uint64_t plan_device_bytes(const plan *p)
{
    uint64_t sum = 0;
    for (int c = 0; c < CLASS_COUNT; c++)
        for (size_t i = 0; c != CLASS_HOST_WEIGHTS && i < p->blocks[c].count; i++)
            sum = saturated_sum(sum, p->blocks[c].items[i]);
    return sum;
}

/* Blocks of pinned values have no gaps, so the excess is exact. */
static rlxvk_status move_weights(layout *l)
{
    uint64_t needed = saturated_sum(pinned_bytes(l), plan_device_bytes(l->p));
    if (!l->options->host_bytes || needed <= l->options->device_bytes)
        return RLXVK_OK;
    return plan_move_weights(l->s, l->options, needed - l->options->device_bytes, l->p);
}

/*
 * ---- In-place groups ----
 *
 * All values of a group have one address, so at most one of them may hold content at a time. The
 * first value is read for the last time by the step that first writes the second. The op family
 * promises that this step reads each element before it overwrites it (op_family.memory.in_place).
 * Its operands carry the promise as OVERLAP_FIRST.
 */

static uint32_t find_group(layout *l, uint32_t value)
{
    while (l->group[value] != value)
        value = l->group[value] = l->group[l->group[value]];
    return value;
}

/* Whether the result may take the slot of `value` in this dispatch. Every operand with that value
 * must be read first, also if it belongs to the other node of a pair. */
static bool operands_agree(const layout *l, const step *at, uint32_t value)
{
    operand o;
    bool agree = true;
    for (uint32_t i = 0; schedule_step_operand(l->s, at, i, &o); i++)
        agree =
            agree && (o.value != value || (o.access == ACCESS_READ && o.overlap == OVERLAP_FIRST));
    return agree;
}

/* If a node has several dispatches, it takes the slot only if step `index` is both the last reader
 * and the first writer. Otherwise the lives of the two values overlap or do not meet. */
static void try_in_place(layout *l, uint32_t index, uint32_t from)
{
    const step *at = &l->s->steps.items[index];
    uint32_t to = at->node;
    slot *a = &l->p->slots[from], *b = &l->p->slots[to];
    if (l->s->values.items[to].root != to || from == to || a->class != CLASS_SCRATCH ||
        b->class != CLASS_SCRATCH || a->size != b->size || a->last != index || b->first != index ||
        !operands_agree(l, at, from))
        return;
    uint32_t group = find_group(l, to); /* itself until an operand gives it a slot */
    if (group == to)                    /* only one operand can give its slot */
        l->group[to] = find_group(l, from);
}

static void group_in_place(layout *l)
{
    operand o;
    for (uint32_t i = 0; i < l->s->steps.count; i++) {
        const step *at = &l->s->steps.items[i];
        for (uint32_t k = 0; !at->host && schedule_step_operand(l->s, at, k, &o); k++)
            if (o.overlap == OVERLAP_FIRST)
                try_in_place(l, i, o.value);
    }
}

/* ---- Scratch ---- */

/* The last step at which a slot is taken. In level order, memory is not reused within the level
 * that frees it, because the two steps would need a barrier between them. */
static uint32_t taken_until(const layout *l, const slot *at)
{
    uint32_t end = l->s->steps.items[at->last].level_end;
    return l->options->reuse_in_level ? at->last : MAX(at->last, end);
}

/* Makes one item for each group. It lives from the birth of the group's first value to the death of
 * its last one. Each value begins at the step at which the one before it ends, so the span has no
 * gaps and nothing is wasted. */
static rlxvk_status collect(layout *l, item **out_items, size_t *out_count)
{
    item *items = memory_zeroed(l->p->value_count + 1, sizeof *items);
    uint32_t *where = memory_zeroed(l->p->value_count + 1, sizeof *where);
    size_t count = 0;
    if (!items || !where) {
        memory_free(items);
        memory_free(where);
        return status_fail_memory("layout");
    }
    for (uint32_t v = 0; v < l->p->value_count; v++) {
        const slot *at = &l->p->slots[v];
        if (at->class != CLASS_SCRATCH || at->first == UINT32_MAX)
            continue;
        uint32_t group = find_group(l, v);
        if (!where[group]) {
            items[count] = (item){.group = group, .first = at->first, .size = at->size};
            where[group] = (uint32_t)++count;
        }
        item *into = &items[where[group] - 1];
        into->first = MIN(into->first, at->first);
        into->last = MAX(into->last, taken_until(l, at));
    }
    memory_free(where);
    *out_items = items;
    *out_count = count;
    return RLXVK_OK;
}

static rlxvk_status settle_scratch(layout *l, const item *items, size_t count)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < count; i++)
        TRY(settle(l, items[i].group, items[i].at));
    for (uint32_t v = 0; v < l->p->value_count; v++) {
        slot *at = &l->p->slots[v];
        if (at->class != CLASS_SCRATCH || at->first == UINT32_MAX)
            continue;
        at->block = l->p->slots[find_group(l, v)].block;
        at->offset = l->p->slots[find_group(l, v)].offset;
        l->p->scratch_unshared += at->size;
    }
error:
    return status;
}

/* Sizes are checked before placing. If a value fits no block, no order of placement helps. */
static rlxvk_status layout_scratch(layout *l)
{
    item *items = NULL;
    size_t count = 0;
    rlxvk_status status = RLXVK_OK;
    for (uint32_t v = 0; v < l->p->value_count; v++)
        if (needs_slot(l->s, l->p, v))
            TRY(check_size(l, v, l->p->slots[v].size));
    group_in_place(l);
    TRY(collect(l, &items, &count));
    TRY(place_items(items, count, l->block_bytes, l->p));
    l->p->class_bytes[CLASS_SCRATCH] = l->p->scratch_peak;
    TRY(settle_scratch(l, items, count));
error:
    memory_free(items);
    return status;
}

rlxvk_status plan_layout(const schedule *s, const plan_options *options, plan *p)
{
    layout l = {s, options, p, memory_allocate((p->value_count + 1) * sizeof(uint32_t)),
                options->max_block_bytes / options->alignment * options->alignment};
    rlxvk_status status = l.group ? RLXVK_OK : status_fail_memory("layout");
    for (uint32_t v = 0; v < p->value_count && status == RLXVK_OK; v++) {
        uint64_t bytes = schedule_value_bytes(s, v);
        l.group[v] = v;
        p->slots[v] = (slot){.block = SLOT_NONE,
                             .class = CLASS_SCRATCH,
                             .size = round_up(bytes, options->alignment),
                             .bytes = bytes,
                             .first = UINT32_MAX};
    }
    if (status == RLXVK_OK) {
        mark_live(s, p);
        for (size_t i = 0; i < s->loops.count; i++)
            stretch_over_loop(s, &s->loops.items[i], p);
        choose_classes(s, options, p);
        status = check_bindings(&l);
    }
    if (status == RLXVK_OK && !options->bump)
        status = layout_scratch(&l);
    if (status == RLXVK_OK)
        status = move_weights(&l);
    if (status == RLXVK_OK)
        status = place_pinned(&l);
    memory_free(l.group);
    return status;
}
