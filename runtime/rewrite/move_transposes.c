/*
 * Moves transposes towards the end of the graph, where pairs of inverse ones cancel. Models with
 * channels in the last axis have such pairs around each convolution.
 *
 * A value that is transpose(x, order) can be computed as x, so that only those who need the value
 * itself transpose it. That holds for the result of a transpose, and for a node whose operands are
 * such values, if its family can reorder it. Operands that broadcast follow by a reshape, if their
 * axes longer than 1 keep their order. Weights follow by a transpose that runs when they are set.
 * Such values that read each other form a group. The whole
 * group is computed in the other order, if that leaves fewer elements to transpose:
 *
 *   before   its transposes, and transposes that read it
 *   after    one for each value that others read, or that is an output, and those among the
 *            transposes that read it that do not cancel
 *
 * Invariant: no value of a group is read in another loop than it was, and what its transposes read
 * is never written in place. Outputs keep their nodes.
 */
#include "op/movement/movement.h"
#include "op/view.h"
#include "rewrite/pass.h"

#include <string.h>

#define MOST_ROUNDS 8

/* A node's place in the analysis. */
typedef struct value {
    bool possible;              /* it is transpose(x, order) of a value x that can be computed */
    bool is_output, stays;      /* others read it as it is */
    uint32_t loop;              /* equal numbers: in the same loop, or outside of all */
    uint32_t group;             /* a node of its group; the first node of a group is its own */
    axis_order order, operands; /* of itself; of those of its operands that are of the group */
    uint32_t x;                 /* in the new graph */
} value;

typedef struct group {
    uint64_t before, after;
    uint32_t last; /* the last transpose that reads it */
    bool chosen, blocked;
} group;

typedef struct analysis {
    const rlxvk_graph *g;
    const node *nodes;
    value *values;
    group *groups; /* by the first node */
    bool *written;
} analysis;

/* ---- Orders ---- */

static axis_order order_of(const node *n)
{
    const transpose_attributes *a = n->attributes;
    axis_order order = {.rank = a->count};
    memcpy(order.place, a->perm, sizeof order.place);
    return order;
}

static bool same_order(const axis_order *a, const axis_order *b)
{
    return a->rank == b->rank && memcmp(a->place, b->place, a->rank * sizeof *a->place) == 0;
}

/* transpose(transpose(x, first), second) is transpose(x, result). */
static axis_order compose(const axis_order *first, const axis_order *second)
{
    axis_order out = {.rank = first->rank};
    for (uint32_t i = 0; i < out.rank; i++)
        out.place[i] = first->place[second->place[i]];
    return out;
}

/* Whether elements keep their places, because axes longer than 1 keep their order. `s` has at most
 * as many axes as the order. *out is the shape in the other order. */
static bool keeps_places(const rlxvk_shape *s, const axis_order *o, rlxvk_shape *out)
{
    uint32_t added = o->rank - s->rank;
    int32_t latest = -1;
    bool keeps = true;
    *out = (rlxvk_shape){.rank = o->rank};
    for (uint32_t i = 0; i < o->rank; i++) {
        int64_t dim = i < added ? 1 : s->dims[i - added];
        out->dims[o->place[i]] = dim;
        if (dim == 1)
            continue;
        keeps = keeps && o->place[i] > latest;
        latest = o->place[i];
    }
    return keeps;
}

/* How many elements a transpose to this value moves. Weights are transposed once. */
static uint64_t moved(const analysis *a, uint32_t id, const axis_order *order)
{
    const node *n = &a->nodes[id];
    rlxvk_shape other;
    bool weight = n->op == OP_transpose && node_is_weight(&a->nodes[n->inputs[0]]);
    return weight || keeps_places(&n->shape, order, &other) ? 0 : shape_numel(&n->shape);
}

/* ---- Groups ---- */

static uint32_t group_of(value *values, uint32_t id)
{
    while (values[id].group != id)
        id = values[id].group = values[values[id].group].group;
    return id;
}

/* The first node stands for the group. */
static void join_groups(value *values, uint32_t a, uint32_t b)
{
    a = group_of(values, a);
    b = group_of(values, b);
    values[MAX(a, b)].group = MIN(a, b);
}

static bool is_of_group(const analysis *a, uint32_t id, uint32_t i, const axis_order *order)
{
    const value *v = &a->values[a->nodes[id].inputs[i]];
    return v->possible && v->loop == a->values[id].loop && same_order(&v->order, order);
}

/* Whether operand i, which is not of the group, can be had in the other order: by a reshape if it
 * broadcasts, or because it is a weight, which is transposed once. */
static bool follows(const analysis *a, uint32_t id, uint32_t i, const axis_order *order)
{
    uint32_t from = a->nodes[id].inputs[i];
    const rlxvk_shape *s = &a->nodes[from].shape;
    rlxvk_shape other;
    bool elementwise = node_row(&a->nodes[id])->family->execution.elementwise;
    if (s->rank > order->rank || (s->rank < order->rank && !elementwise))
        return false;
    if (node_is_weight(&a->nodes[from]) && !a->written[from])
        return op_node_storage(a->g, from) == STORAGE_WORD;
    return elementwise && keeps_places(s, order, &other);
}

/* The order of the operands of a node that can be reordered. False if it cannot. */
static bool operand_order(const analysis *a, uint32_t id, axis_order *out)
{
    const node *n = &a->nodes[id];
    bool found = false;
    for (uint32_t i = 0; i < n->input_count && !found; i++) {
        const value *v = &a->values[n->inputs[i]];
        if ((found = v->possible && v->loop == a->values[id].loop))
            *out = v->order;
    }
    for (uint32_t i = 0; i < n->input_count && found; i++)
        found = is_of_group(a, id, i, out) || follows(a, id, i, out);
    return found;
}

static void find_member(analysis *a, uint32_t id)
{
    const node *n = &a->nodes[id];
    const op_family *family = node_row(n)->family;
    value *v = &a->values[id];
    uint64_t attributes[64];
    if (n->op == OP_transpose) {
        v->order = order_of(n);
        v->possible = !a->written[n->inputs[0]] && op_node_storage(a->g, id) != STORAGE_RAW;
        return;
    }
    if (!family->views.reorder || n->attribute_size > sizeof attributes ||
        !operand_order(a, id, &v->operands))
        return;
    v->order = v->operands;
    if (n->attributes)
        memcpy(attributes, n->attributes, n->attribute_size);
    v->possible = family->views.reorder(n, &v->order, attributes) && v->order.rank == n->shape.rank;
    for (uint32_t i = 0; i < n->input_count && v->possible; i++)
        if (is_of_group(a, id, i, &v->operands))
            join_groups(a->values, id, n->inputs[i]);
}

/* ---- What a group costs ---- */

static bool reads_inside(const analysis *a, uint32_t id, uint32_t i)
{
    const value *v = &a->values[id];
    return v->possible && a->nodes[id].op != OP_transpose && is_of_group(a, id, i, &v->operands);
}

/* A transpose that reads a value and may be replaced. */
static bool is_turned_again(const analysis *a, uint32_t id)
{
    return a->nodes[id].op == OP_transpose && !a->values[id].is_output;
}

static void count_reader(analysis *a, uint32_t id, uint32_t i)
{
    const node *n = &a->nodes[id];
    value *v = &a->values[n->inputs[i]];
    if (!v->possible || reads_inside(a, id, i))
        return;
    if (!is_turned_again(a, id) || a->values[id].loop != v->loop) {
        v->stays = true;
        return;
    }
    axis_order own = order_of(n), whole = compose(&v->order, &own);
    group *g = &a->groups[group_of(a->values, n->inputs[i])];
    g->last = MAX(g->last, id);
    g->before += moved(a, id, &own);
    g->after += pass_is_identity(&whole) ? 0 : moved(a, id, &whole);
}

static void count_costs(analysis *a)
{
    for (uint32_t id = 0; id < a->g->nodes.count; id++)
        for (uint32_t i = 0; i < a->nodes[id].input_count; i++)
            count_reader(a, id, i);
    for (uint32_t id = 0; id < a->g->nodes.count; id++) {
        const value *v = &a->values[id];
        if (!v->possible)
            continue;
        group *g = &a->groups[group_of(a->values, id)];
        uint64_t size = moved(a, id, &v->order);
        g->before += a->nodes[id].op == OP_transpose ? size : 0;
        g->after += v->stays || v->is_output ? size : 0;
    }
}

/* Chooses groups. A transpose belongs to one chosen group at most: as a value of one, or as a
 * reader of another. The next round sees what is left. */
static bool choose_groups(analysis *a)
{
    bool any = false;
    for (uint32_t first = 0; first < a->g->nodes.count; first++) {
        group *g = &a->groups[first];
        if (g->after >= g->before || g->blocked)
            continue;
        bool fits = true;
        for (uint32_t pass = 0; pass < 2 && fits; pass++)
            for (uint32_t id = first; id <= g->last; id++) {
                const node *n = &a->nodes[id];
                if (!is_turned_again(a, id) || !a->values[n->inputs[0]].possible ||
                    group_of(a->values, n->inputs[0]) != first)
                    continue;
                group *own = &a->groups[group_of(a->values, id)];
                fits = fits && !own->chosen && own != g;
                own->blocked = own->blocked || pass == 1;
            }
        g->chosen = fits;
        any = any || fits;
    }
    return any;
}

/* ---- The pass ---- */

static bool is_chosen(const analysis *a, uint32_t id)
{
    return a->values[id].possible && a->groups[group_of(a->values, id)].chosen;
}

/* Operand i in the other order. */
static uint32_t reordered_operand(pass *p, const analysis *a, uint32_t id, uint32_t i,
                                  const axis_order *order)
{
    uint32_t from = p->nodes[id].inputs[i], made = p->map[from];
    const rlxvk_shape *s = &p->nodes[from].shape;
    size_t first = p->graph->nodes.count;
    shape_attributes shape;
    memset(&shape, 0, sizeof shape);
    if (is_of_group(a, id, i, order))
        return a->values[from].x;
    if (shape_numel(s) == 1 && node_row(&p->nodes[id])->family->execution.elementwise)
        return made;
    if (keeps_places(s, order, &shape.shape))
        return op_append(p->graph, OP_reshape, &made, 1, &shape, NULL);
    axis_order back = {.rank = order->rank};
    for (uint32_t k = 0; k < order->rank; k++) {
        uint32_t added = order->rank - s->rank;
        shape.shape.dims[k] = k < added ? 1 : s->dims[k - added];
        back.place[order->place[k]] = (int32_t)k;
    }
    if (s->rank < order->rank)
        made = op_append(p->graph, OP_reshape, &made, 1, &shape, NULL);
    if (made != NODE_NONE)
        made = pass_transpose(p, made, &back, NULL);
    for (size_t k = first; k < p->graph->nodes.count; k++)
        p->graph->nodes.items[k].prepare = true;
    return made;
}

static uint32_t move_member(pass *p, const analysis *a, uint32_t id)
{
    const node *n = &p->nodes[id];
    value *v = &a->values[id];
    uint64_t attributes[64];
    axis_order result = v->operands;
    uint32_t *inputs = arena_allocate(&p->graph->memory, n->input_count * sizeof *inputs);
    if (!inputs) {
        graph_fail(p->graph, status_fail_memory("transposes"));
        return NODE_NONE;
    }
    for (uint32_t i = 0; i < n->input_count; i++)
        if ((inputs[i] = reordered_operand(p, a, id, i, &v->operands)) == NODE_NONE)
            return NODE_NONE;
    if (n->attributes)
        memcpy(attributes, n->attributes, n->attribute_size);
    (void)node_row(n)->family->views.reorder(n, &result, attributes);
    v->x = op_append(p->graph, (op_kind)n->op, inputs, n->input_count,
                     n->attributes ? attributes : NULL, n->name);
    return v->x == NODE_NONE ? NODE_NONE : pass_transpose(p, v->x, &v->order, n->name);
}

static uint32_t move_transpose(pass *p, uint32_t id)
{
    const analysis *a = p->context;
    const node *n = &p->nodes[id];
    if (is_chosen(a, id) && n->op == OP_transpose) {
        a->values[id].x = p->map[n->inputs[0]];
        return NODE_NONE;
    }
    if (is_chosen(a, id))
        return move_member(p, a, id);
    if (n->op == OP_transpose && is_turned_again(a, id) && is_chosen(a, n->inputs[0]) &&
        a->values[n->inputs[0]].loop == a->values[id].loop) {
        axis_order own = order_of(n), whole = compose(&a->values[n->inputs[0]].order, &own);
        return pass_transpose(p, a->values[n->inputs[0]].x, &whole, n->name);
    }
    return NODE_NONE;
}

static void number_loops(analysis *a)
{
    op_loop loop;
    for (uint32_t id = 0, number = 0; id < a->g->nodes.count; id++) {
        const node *n = &a->nodes[id];
        number += node_row(n)->family->loop.opens || node_closes_loop(n, &loop);
        a->values[id].loop = number;
        a->values[id].group = id;
    }
}

static rlxvk_status run_round(rlxvk_graph *g, bool *again)
{
    size_t count = g->nodes.count + 1;
    analysis a = {.g = g,
                  .nodes = g->nodes.items,
                  .values = memory_zeroed(count, sizeof *a.values),
                  .groups = memory_zeroed(count, sizeof *a.groups),
                  .written = rewrite_find_written(g)};
    rlxvk_status status;
    *again = false;
    TRY(a.values && a.groups && a.written ? RLXVK_OK : status_fail_memory("transposes"));
    number_loops(&a);
    for (size_t i = 0; i < g->outputs.count; i++)
        a.values[g->outputs.items[i]].is_output = true;
    for (uint32_t id = 0; id < g->nodes.count; id++)
        find_member(&a, id);
    count_costs(&a);
    *again = choose_groups(&a);
    if (*again)
        TRY(rewrite_run_pass(g, move_transpose, &a));
    if (*again)
        TRY(pass_drop_dead(g));
error:
    memory_free(a.values);
    memory_free(a.groups);
    memory_free(a.written);
    return status;
}

rlxvk_status move_transposes(rlxvk_graph *g, const rewrite_options *options)
{
    bool again = true;
    rlxvk_status status = RLXVK_OK;
    (void)options;
    for (int round = 0; round < MOST_ROUNDS && again; round++)
        TRY(run_round(g, &again));
error:
    return status;
}
