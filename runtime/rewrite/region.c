/*
 * Elementwise regions: a tree of elementwise nodes becomes one node. A node is absorbed by its only
 * reader, so no value is lost that others read, and no cycle can arise. The last node, the tail,
 * gives the region its place, shape and name. Nodes join in program order as long as the device has
 * a kernel for the whole region. So if a chain exceeds the limits, it is cut at the last position
 * that fits.
 *
 * Conditions:
 *   - each member's dims are the tail's dims or a suffix of them
 *   - so are the dims of each tensor that the region reads, unless it is a single element
 *   - all tensors are words
 *   - nothing is written in place between the first member and the tail, because all tensors are
 *     read at the tail
 *   - a sum that forms a pair with a norm is not a member
 *   - the region replaces at least two dispatches; views do not count, because they do no work
 *
 * If only the region reads a resize_nearest2x, it becomes the region's prologue. If a user built a
 * region too large for the device, it is split first (region_split.c).
 */
#include "args/elementwise.h"
#include "op/elementwise/region.h"
#include "op/view.h"
#include "rewrite/pass.h"

#include <string.h>

/* Facts about the graph before the pass. */
typedef struct marks {
    const rlxvk_graph *graph;
    const rewrite_options *options;
    uint32_t *uses;
    uint32_t *writes; /* nodes before this one that write in place */
    uint32_t *first;  /* the first of the nodes absorbed so far, or itself */
    bool *eligible;   /* may be a member */
    bool *absorbed;   /* is a member of its reader's region */
} marks;

/* A region that is being built. */
typedef struct draft {
    uint32_t members[REGION_STEPS], member_count, working;
    uint32_t inputs[REGION_INPUTS], input_count;
    region_attributes attributes;
} draft;

/* ---- Members ---- */

static bool has_prologue(const draft *d)
{
    return d->attributes.prologue != RLXVK_REGION_PROLOGUE_NONE;
}

/* Adds `id` and the nodes it absorbed, operands before readers; false if they are too many. */
static bool add_members(const marks *m, uint32_t id, draft *d)
{
    const node *n = graph_node(m->graph, id);
    for (uint32_t i = 0; i < n->input_count; i++)
        if (m->absorbed[n->inputs[i]] && !add_members(m, n->inputs[i], d))
            return false;
    if (d->member_count == REGION_STEPS)
        return false;
    d->members[d->member_count++] = id;
    d->working += !view_is(m->graph, n, NULL);
    return true;
}

static void sort_members(draft *d)
{
    for (uint32_t i = 1; i < d->member_count; i++)
        for (uint32_t k = i; k > 0 && d->members[k - 1] > d->members[k]; k--) {
            uint32_t swap = d->members[k];
            d->members[k] = d->members[k - 1];
            d->members[k - 1] = swap;
        }
}

/* ---- Inputs ---- */

/* Whether a region with this tail can read the input of node `id` at half the resolution
 * instead. */
static bool is_resize(const marks *m, uint32_t id, uint32_t tail)
{
    const node *n = graph_node(m->graph, id);
    return n->op == OP_resize_nearest2x && m->uses[id] == 1 && m->writes[id] == m->writes[tail] &&
           !(m->options->on_host && m->options->on_host[n->op]) &&
           op_node_storage(m->graph, n->inputs[0]) == STORAGE_WORD &&
           shape_equal(&n->shape, &graph_node(m->graph, tail)->shape);
}

/* The operand number of a tensor from outside: its present one, or a new one. False if there is no
 * room or the tensor cannot be addressed. */
static bool take_input(const marks *m, uint32_t id, uint32_t tail, draft *d, uint8_t *out)
{
    region_attributes *a = &d->attributes;
    bool resize = !has_prologue(d) && is_resize(m, id, tail);
    uint32_t source = resize ? graph_node(m->graph, id)->inputs[0] : id;
    for (*out = 0; *out < d->input_count && !resize; ++*out)
        if (d->inputs[*out] == source && !(has_prologue(d) && a->prologue_input == *out))
            return true;
    *out = (uint8_t)d->input_count;
    if (d->input_count == REGION_INPUTS)
        return false;
    d->inputs[d->input_count++] = source;
    if (resize) {
        a->prologue = RLXVK_REGION_PROLOGUE_NEAREST_2X;
        a->prologue_input = *out;
        return true;
    }
    const rlxvk_shape *shape = &graph_node(m->graph, id)->shape;
    bool single = shape_numel(shape) == 1;
    a->scalar_mask |= single ? 1u << *out : 0;
    return region_modulus(shape, &a->shape, &a->modulus[*out]);
}

/* ---- Steps ---- */

static bool add_step(draft *d, region_step step)
{
    if (d->attributes.step_count == REGION_STEPS)
        return false;
    d->attributes.steps[d->attributes.step_count++] = step;
    return true;
}

static uint8_t last_step(const draft *d)
{
    return (uint8_t)(REGION_VALUES_OF_STEPS + d->attributes.step_count - 1);
}

/* a b + c as two steps. */
static bool add_fma(draft *d, const uint8_t operands[3])
{
    region_step product = {REGION_BINARY, BINARY_MUL, {operands[0], operands[1]}};
    if (!add_step(d, product))
        return false;
    return add_step(d, (region_step){REGION_BINARY, BINARY_ADD, {last_step(d), operands[2]}});
}

/* Adds the steps of member `id`. values[i] is the value that holds the result of member i of the
 * draft. */
static bool add_node(const marks *m, draft *d, uint32_t id, const uint8_t *values)
{
    const node *n = graph_node(m->graph, id);
    uint32_t tail = d->members[d->member_count - 1], modulus;
    region_step step;
    uint8_t operands[3] = {0};
    if (!region_modulus(&n->shape, &d->attributes.shape, &modulus))
        return false;
    for (uint32_t i = 0; i < n->input_count; i++) {
        uint32_t k = 0;
        while (k < d->member_count && d->members[k] != n->inputs[i])
            k++;
        if (k < d->member_count)
            operands[i] = values[k];
        else if (!take_input(m, n->inputs[i], tail, d, &operands[i]))
            return false;
    }
    if (n->op == OP_fma)
        return add_fma(d, operands);
    (void)region_step_of(n, &step);
    memcpy(step.operand, operands, sizeof operands);
    return add_step(d, step);
}

/* The region that ends in `tail` with the nodes absorbed so far; false if it is not possible. */
static bool draft_region(const marks *m, uint32_t tail, draft *d)
{
    uint8_t values[REGION_STEPS];
    *d = (draft){.attributes.shape = graph_node(m->graph, tail)->shape};
    if (!add_members(m, tail, d))
        return false;
    sort_members(d);
    for (uint32_t i = 0; i < d->member_count; i++) {
        if (!add_node(m, d, d->members[i], values))
            return false;
        values[i] = last_step(d);
    }
    const region_attributes *a = &d->attributes;
    return region_fits(region_size_of(a->steps, a->step_count, d->input_count),
                       m->options->profile);
}

/* ---- Marking ---- */

static bool can_be_member(const marks *m, uint32_t id)
{
    const node *n = graph_node(m->graph, id);
    region_step step;
    if ((n->op != OP_fma && !region_step_of(n, &step)) || n->dtype == RLXVK_C64 ||
        (m->options->on_host && m->options->on_host[n->op]))
        return false;
    for (uint32_t i = 0; i < n->input_count; i++)
        if (op_node_storage(m->graph, n->inputs[i]) != STORAGE_WORD)
            return false;
    return true;
}

static void absorb_operands(marks *m, uint32_t id)
{
    const node *n = graph_node(m->graph, id);
    draft d;
    m->first[id] = id;
    for (uint32_t i = 0; i < n->input_count && m->eligible[id]; i++) {
        uint32_t operand = n->inputs[i];
        if (!m->eligible[operand] || m->uses[operand] != 1 ||
            m->writes[m->first[operand]] != m->writes[id])
            continue;
        m->absorbed[operand] = true;
        m->absorbed[operand] = draft_region(m, id, &d);
        if (m->absorbed[operand])
            m->first[id] = MIN(m->first[id], m->first[operand]);
    }
}

static rlxvk_status mark(marks *m)
{
    const rlxvk_graph *g = m->graph;
    pair_list pairs = {0};
    rlxvk_status status;
    TRY(rewrite_find_norm_pairs(g, &pairs));
    for (uint32_t id = 0; id < g->nodes.count; id++)
        m->eligible[id] = can_be_member(m, id);
    for (size_t i = 0; i < pairs.count; i++)
        m->eligible[pairs.items[i].first] = false;
    for (uint32_t id = 0; id < g->nodes.count; id++)
        absorb_operands(m, id);
error:
    VECTOR_FREE(&pairs);
    return status;
}

/* ---- Rewriting ---- */

static uint32_t emit_region(pass *p, uint32_t id)
{
    const marks *m = p->context;
    uint32_t inputs[REGION_INPUTS], made;
    draft d;
    if (!m->eligible[id] || m->absorbed[id] || !draft_region(m, id, &d) ||
        d.working + has_prologue(&d) < 2)
        return NODE_NONE;
    for (uint32_t i = 0; i < d.input_count; i++)
        inputs[i] = p->map[d.inputs[i]];
    made = op_append(p->graph, OP_elementwise_region, inputs, d.input_count, &d.attributes,
                     p->nodes[id].name);
    if (made != NODE_NONE)
        p->graph->nodes.items[made].prepare = p->nodes[id].prepare;
    return made;
}

rlxvk_status region_make_all(rlxvk_graph *g, const rewrite_options *options)
{
    size_t count = g->nodes.count + 1;
    bool *flags = memory_zeroed(2 * count, sizeof *flags);
    const rlxvk_graph before = *g; /* its nodes stay in place until the pass is over */
    marks m = {.graph = &before,
               .options = options,
               .uses = rewrite_count_uses(g),
               .writes = rewrite_count_writes(g),
               .first = memory_zeroed(count, sizeof *m.first)};
    rlxvk_status status = RLXVK_OK;
    if (!flags || !m.uses || !m.writes || !m.first)
        TRY(status_fail_memory("regions"));
    m.eligible = flags;
    m.absorbed = flags + count;
    TRY(mark(&m));
    TRY(rewrite_run_pass(g, emit_region, &m));
error:
    memory_free(flags);
    memory_free(m.uses);
    memory_free(m.writes);
    memory_free(m.first);
    return status;
}
