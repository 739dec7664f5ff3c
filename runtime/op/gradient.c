/*
 * Reverse-mode differentiation. The walk goes from the loss back. Each node that has received a
 * gradient passes gradients on to its operands, by its family's rule. Its readers come later in the
 * list, so all of them have added their part before. Nodes are only appended, so forward values can
 * be read in place.
 *
 * If a family has no rule but an expansion, the node is built again from simpler ops at the end of
 * the list. The walk then goes through these at once, back to the first of them.
 */
#include "op/gradient.h"
#include "op/gradient_node.h"
#include "op/recompute.h"
#include "op/view.h"

#include <rlxvk_train.h>

#include <string.h>

/* A gradient for some elements of an axis. */
typedef struct part {
    uint32_t owner, gradient;
    int32_t axis;
    int64_t start;
} part;

typedef struct entry {
    uint32_t gradient; /* of the node so far; NODE_NONE: it has none */
    bool wanted;       /* the node depends on a tensor in wrt, or is one */
} entry;

typedef struct gradients {
    rlxvk_graph *graph;
    VECTOR(entry) entries; /* of nodes 0 .. count - 1 */
    uint32_t marked;       /* number of nodes for which `wanted` is known */
    VECTOR(part) parts;    /* not yet joined */
    recompute again;
    uint32_t *writers; /* of each leaf: the last node that writes it in place; 0: there is none */
    size_t writer_count;
} gradients;

static rlxvk_status graph_status(const rlxvk_graph *g)
{
    return g->status == RLXVK_OK ? RLXVK_OK : status_fail(g->status, "%s", g->error);
}

/* ---- Gradients received so far ---- */

/* An entry for each node. */
static rlxvk_status grow(gradients *s)
{
    while (s->entries.count < s->graph->nodes.count)
        if (!VECTOR_PUSH(&s->entries, ((entry){NODE_NONE, false})))
            return status_fail_memory("gradients");
    return RLXVK_OK;
}

/* Whether anybody needs a gradient of the node. For a copy, its original decides. */
static bool is_wanted(const gradients *s, uint32_t id)
{
    return s->entries.items[recompute_original(&s->again, id)].wanted;
}

/* Whether the node passes gradients from its result on. Integers do so if they stand for real
 * numbers: the results of quantization, and results computed only from those. */
static bool passes_through(const gradients *s, const node *n)
{
    const op_family *family = node_row(n)->family;
    bool passes = dtype_is_continuous((rlxvk_dtype)n->dtype) || family->derivative.straight_through;
    for (uint32_t i = 0; i < n->input_count && !passes && n->dtype == RLXVK_I8; i++)
        passes = is_wanted(s, n->inputs[i]) && input_dtype(s->graph, n, i) == RLXVK_I8;
    return passes;
}

/* Marks the nodes since the last call. A node is wanted if it passes gradients on and an operand is
 * wanted. */
static rlxvk_status mark_wanted(gradients *s)
{
    const rlxvk_graph *g = s->graph;
    rlxvk_status status = grow(s);
    for (; status == RLXVK_OK && s->marked < s->entries.count; s->marked++) {
        const node *n = graph_node(g, s->marked);
        bool through = passes_through(s, n);
        for (uint32_t i = 0; i < n->input_count && through; i++)
            s->entries.items[s->marked].wanted |=
                gradient_flows((op_kind)n->op, i) && is_wanted(s, n->inputs[i]);
    }
    return status;
}

/* Converts a gradient to the dtype of its node. A real operand of a complex op gets only the real
 * part. */
static rlxvk_tensor fit_dtype(gradients *s, uint32_t id, rlxvk_tensor t)
{
    bool is_complex = graph_node(s->graph, id)->dtype == RLXVK_C64;
    if (is_complex == (rlxvk_tensor_dtype(s->graph, t) == RLXVK_C64))
        return t;
    return rlxvk_cast(s->graph, t, is_complex ? RLXVK_C64 : RLXVK_F32);
}

static void add_gradient(gradients *s, uint32_t id, rlxvk_tensor t)
{
    rlxvk_graph *g = s->graph;
    id = recompute_original(&s->again, id);
    entry *e = &s->entries.items[id];
    char have[SHAPE_TEXT], want[SHAPE_TEXT], label[NODE_LABEL];
    if (g->status != RLXVK_OK || !t.id || !e->wanted)
        return;
    t = fit_dtype(s, id, t);
    if (g->status != RLXVK_OK)
        return;
    rlxvk_shape shape = rlxvk_tensor_shape(g, t);
    if (!shape_equal(&shape, &graph_node(g, id)->shape)) {
        graph_fail(g, status_fail(RLXVK_E_SHAPE, "grad: %s of %s got a gradient of %s",
                                  op_node_label(g, id, label),
                                  shape_text(&graph_node(g, id)->shape, want),
                                  shape_text(&shape, have)));
        return;
    }
    if (e->gradient != NODE_NONE)
        t = rlxvk_add(g, tensor_of(g, e->gradient), t);
    if (g->status == RLXVK_OK)
        e->gradient = t.id - 1;
}

/* ---- Parts ---- */

/* The first part of the node along `axis` that begins at `start` or later; NULL: there is none. */
static part *next_part(gradients *s, uint32_t owner, int32_t axis, int64_t start)
{
    part *found = NULL;
    for (size_t i = 0; i < s->parts.count; i++) {
        part *p = &s->parts.items[i];
        if (p->owner == owner && p->axis == axis && p->start >= start && p->gradient != NODE_NONE &&
            (!found || p->start < found->start))
            found = p;
    }
    return found;
}

/* Joins parts along an axis that do not overlap, with zeros between them, into one gradient. */
static void join_parts(gradients *s, uint32_t owner, int32_t axis)
{
    rlxvk_graph *g = s->graph;
    const node n = *graph_node(g, owner);
    VECTOR(rlxvk_tensor) pieces = {0};
    int64_t at = 0, end = n.shape.dims[axis];
    bool held = true;
    while (at < end && held && g->status == RLXVK_OK) {
        part *p = next_part(s, owner, axis, at);
        rlxvk_shape gap = n.shape;
        gap.dims[axis] = (p ? p->start : end) - at;
        if (gap.dims[axis])
            held = VECTOR_PUSH(&pieces, gradient_filled(g, 0, (rlxvk_dtype)n.dtype, gap));
        at += gap.dims[axis];
        if (!p)
            break;
        held = held && VECTOR_PUSH(&pieces, tensor_of(g, p->gradient));
        at += graph_node(g, p->gradient)->shape.dims[axis];
        p->gradient = NODE_NONE; /* taken */
    }
    if (!held)
        graph_fail(g, status_fail_memory("gradients"));
    else if (pieces.count)
        add_gradient(s, owner,
                     pieces.count == 1 ? pieces.items[0]
                                       : rlxvk_concat(g, pieces.items, pieces.count, axis));
    VECTOR_FREE(&pieces);
}

/* Joins all parts that a node received. No earlier node reads it, so there will be no others. */
static void settle_parts(gradients *s, uint32_t id)
{
    for (size_t i = 0; i < s->parts.count && s->graph->status == RLXVK_OK; i++)
        while (s->parts.items[i].owner == id && s->parts.items[i].gradient != NODE_NONE &&
               s->graph->status == RLXVK_OK)
            join_parts(s, id, s->parts.items[i].axis);
    while (s->parts.count && s->parts.items[s->parts.count - 1].gradient == NODE_NONE)
        s->parts.count--;
}

/* ---- Functions for rules ---- */

/* The node that holds the value of node `id` for a computation on the gradient `dy`. */
static rlxvk_tensor value_of(gradients *s, uint32_t id, rlxvk_tensor dy)
{
    return tensor_of(s->graph, recompute_value(&s->again, id, dy.id - 1));
}

rlxvk_tensor gradient_operand(const gradient_call *c, uint32_t i)
{
    return value_of(c->all, c->n.inputs[i], c->dy);
}

rlxvk_tensor gradient_result(const gradient_call *c)
{
    return value_of(c->all, c->id, c->dy);
}

rlxvk_shape gradient_shape(const gradient_call *c, uint32_t i)
{
    return graph_node(c->graph, c->n.inputs[i])->shape;
}

bool gradient_wanted(const gradient_call *c, uint32_t i)
{
    return gradient_flows((op_kind)c->n.op, i) && is_wanted(c->all, c->n.inputs[i]);
}

static void note_given(gradient_call *c, uint32_t i)
{
    c->given |= i < 64 ? UINT64_C(1) << i : 0;
}

void gradient_give(gradient_call *c, uint32_t i, rlxvk_tensor gradient)
{
    if (!gradient.id)
        return;
    add_gradient(c->all, c->n.inputs[i], gradient);
    note_given(c, i);
}

void gradient_give_zero(gradient_call *c, uint32_t i)
{
    note_given(c, i);
}

void gradient_give_broadcast(gradient_call *c, uint32_t i, rlxvk_tensor gradient)
{
    if (gradient_wanted(c, i) && c->graph->status == RLXVK_OK)
        gradient_give(c, i, gradient_unbroadcast(c->graph, gradient, gradient_shape(c, i)));
}

void gradient_give_part(gradient_call *c, uint32_t i, int32_t axis, int64_t start,
                        rlxvk_tensor gradient)
{
    if (!gradient_wanted(c, i) || c->graph->status != RLXVK_OK)
        return;
    note_given(c, i);
    gradient = fit_dtype(c->all, c->n.inputs[i], gradient);
    part p = {recompute_original(&c->all->again, c->n.inputs[i]), gradient.id - 1, axis, start};
    if (c->graph->status == RLXVK_OK && graph_node(c->graph, p.gradient)->shape.dims[axis] > 0 &&
        !VECTOR_PUSH(&c->all->parts, p))
        graph_fail(c->graph, status_fail_memory("gradients"));
}

rlxvk_status gradient_identity(gradient_call *c)
{
    gradient_give(c, 0, c->dy);
    return RLXVK_OK;
}

/* ---- The walk ---- */

static rlxvk_status go_back(gradients *s, uint32_t first);

/* Differentiates the ops from `start` on, whose result replaces the node. */
static rlxvk_status differentiate_expansion(gradients *s, uint32_t id, uint32_t start,
                                            rlxvk_tensor result)
{
    rlxvk_status status = mark_wanted(s);
    add_gradient(s, result.id - 1, tensor_of(s->graph, s->entries.items[id].gradient));
    return status == RLXVK_OK ? go_back(s, start) : status;
}

static rlxvk_status refuse_operand(const gradients *s, uint32_t id, uint32_t i)
{
    char label[NODE_LABEL];
    return status_fail(RLXVK_E_UNSUPPORTED,
                       "grad: %s has no gradient for operand %u; put rlxvk_stop_gradient behind "
                       "that operand if it is to count as constant",
                       op_node_label(s->graph, id, label), i);
}

/* Checks that each wanted operand has received a gradient. Operands without elements need none. */
static rlxvk_status check_given(const gradient_call *c)
{
    for (uint32_t i = 0; i < MIN(c->n.input_count, 64u); i++)
        if (gradient_wanted(c, i) && !(c->given >> i & 1) &&
            shape_numel(input_shape(c->graph, &c->n, i)))
            return refuse_operand(c->all, c->id, i);
    return RLXVK_OK;
}

/* Checks that the expansion, which is the nodes from `start` on, reads each wanted operand. Loops
 * and gradient nodes are exceptions. */
static rlxvk_status check_read(const gradients *s, uint32_t id, const node *n, uint32_t start,
                               const uint32_t *values, rlxvk_tensor simpler)
{
    const rlxvk_graph *g = s->graph;
    bool inside = n->op == OP_loop_result || n->op == OP_gradient; /* they read the operands'
                                                                    * operands */
    for (uint32_t i = 0; i < n->input_count && !inside; i++) {
        bool read = !gradient_flows((op_kind)n->op, i) || !is_wanted(s, n->inputs[i]) ||
                    values[i] == simpler.id - 1;
        for (uint32_t k = start; k < g->nodes.count && !read; k++)
            for (uint32_t o = 0; o < graph_node(g, k)->input_count; o++)
                read |= graph_node(g, k)->inputs[o] == values[i];
        if (!read)
            return refuse_operand(s, id, i);
    }
    return RLXVK_OK;
}

/* The node's expansion, which reads the values of its operands. RLXVK_NONE if there is none, or if
 * it failed. */
static rlxvk_tensor expand_node(gradients *s, uint32_t id, rlxvk_tensor dy, uint32_t *out_start)
{
    rlxvk_graph *g = s->graph;
    const node given = *graph_node(g, id);
    node reading = given, *n = &reading;
    uint32_t made = 0;
    uint32_t *inputs = memory_allocate((n->input_count + 1) * sizeof *inputs);
    if (!inputs)
        graph_fail(g, status_fail_memory("gradients"));
    for (uint32_t i = 0; i < n->input_count && g->status == RLXVK_OK; i++)
        inputs[i] = value_of(s, n->inputs[i], dy).id - 1;
    n->inputs = inputs;
    *out_start = (uint32_t)g->nodes.count;
    if (g->status == RLXVK_OK)
        made = node_row(n)->family->derivative.expand(g, n).id;
    if (made && g->status == RLXVK_OK)
        graph_fail(g, check_read(s, id, &given, *out_start, inputs, (rlxvk_tensor){made}));
    memory_free(inputs);
    return (rlxvk_tensor){made};
}

static rlxvk_status apply_family(gradients *s, uint32_t id, const node *n)
{
    rlxvk_graph *g = s->graph;
    const op_family *family = node_row(n)->family;
    char label[NODE_LABEL];
    uint32_t start = 0;
    rlxvk_tensor dy = tensor_of(g, s->entries.items[id].gradient);
    rlxvk_tensor simpler = family->derivative.expand ? expand_node(s, id, dy, &start) : RLXVK_NONE;
    if (g->status != RLXVK_OK)
        return graph_status(g);
    if (simpler.id)
        return differentiate_expansion(s, id, start, simpler);
    if (!family->derivative.vjp)
        return status_fail(RLXVK_E_UNSUPPORTED,
                           "grad: %s has no gradient; put rlxvk_stop_gradient behind it, or take "
                           "the gradient of what comes before it",
                           op_node_label(g, id, label));
    gradient_call call = {g, *n, id, dy, 0, s};
    rlxvk_status status;
    TRY(family->derivative.vjp(&call));
    if (g->status == RLXVK_OK)
        TRY(check_given(&call));
error:
    return status;
}

/* Nodes that a rule appends note, for errors, the node whose gradient they compute. This is the
 * node that the user built, not one from its expansion. */
static rlxvk_status apply_rule(gradients *s, uint32_t id, const node *n)
{
    uint32_t before = s->graph->gradient_of;
    rlxvk_status status;
    s->graph->gradient_of = before ? before : id + 1;
    status = apply_family(s, id, n);
    s->graph->gradient_of = before;
    return status;
}

/* ---- The order of steps ---- */

/* 0 can mean that there is none, because node 0 has no operands and so writes nothing. */
static rlxvk_status find_writers(gradients *s)
{
    const rlxvk_graph *g = s->graph;
    uint64_t offset;
    s->writer_count = g->nodes.count;
    if (!(s->writers = memory_zeroed(s->writer_count + 1, sizeof *s->writers)))
        return status_fail_memory("gradients");
    for (uint32_t id = 0; id < s->writer_count; id++) {
        const node *n = graph_node(g, id);
        uint32_t writes = node_writes(n);
        for (uint32_t i = 0; i < n->input_count && writes >> i; i++) {
            uint32_t root = view_root(g, n->inputs[i], &offset);
            if ((writes >> i & 1) && graph_node(g, root)->input_count == 0)
                s->writers[root] = id;
        }
    }
    return RLXVK_OK;
}

/* Nodes from `start` on belong to the gradient of node `id` and must read the same values as that
 * node did. E_ORDER if a leaf was written in between, for example by an optimizer step. */
static rlxvk_status check_order(const gradients *s, uint32_t id, uint32_t start)
{
    const rlxvk_graph *g = s->graph;
    char labels[3][NODE_LABEL];
    uint64_t offset;
    for (uint32_t k = start; k < g->nodes.count; k++)
        for (uint32_t i = 0; i < graph_node(g, k)->input_count; i++) {
            uint32_t root = view_root(g, graph_node(g, k)->inputs[i], &offset);
            if (root < s->writer_count && s->writers[root] > id)
                return status_fail(
                    RLXVK_E_ORDER,
                    "grad: the gradient of %s reads %s, which %s has written since; take all "
                    "gradients before the first step, in one call of rlxvk_grad or several",
                    op_node_label(g, id, labels[0]), op_node_label(g, root, labels[1]),
                    op_node_label(g, s->writers[root], labels[2]));
        }
    return RLXVK_OK;
}

static rlxvk_status differentiate(gradients *s, uint32_t id)
{
    const node n = *graph_node(s->graph, id);
    uint32_t start = (uint32_t)s->graph->nodes.count;
    bool wanted = false;
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = 0; i < n.input_count; i++)
        wanted = wanted || (gradient_flows((op_kind)n.op, i) && is_wanted(s, n.inputs[i]));
    if (wanted)
        status = apply_rule(s, id, &n);
    if (wanted && status == RLXVK_OK && s->graph->status == RLXVK_OK)
        status = check_order(s, id, start);
    return graph_fail(s->graph, status);
}

/* Walks from the last node down to `first`. Rules append nodes behind; the walk does not visit
 * those, because nobody gave them a gradient. */
static rlxvk_status go_back(gradients *s, uint32_t first)
{
    rlxvk_status status = mark_wanted(s);
    for (uint32_t id = (uint32_t)s->entries.count; id-- > first && status == RLXVK_OK;) {
        settle_parts(s, id);
        if (s->entries.items[id].gradient != NODE_NONE && s->entries.items[id].wanted)
            status = differentiate(s, id);
        if (status == RLXVK_OK)
            status = graph_status(s->graph);
    }
    return status;
}

/* ---- rlxvk_grad ---- */

static bool tensors_given(rlxvk_graph *g, rlxvk_tensor loss, rlxvk_tensor seed,
                          const rlxvk_tensor *wrt, size_t count, rlxvk_tensor *out)
{
    if (!graph_ready(g, "grad") ||
        graph_fail(g, status_require_items(wrt, count, "grad", "wrt")) != RLXVK_OK ||
        graph_fail(g, status_require_items(out, count, "grad", "out_gradients")) != RLXVK_OK)
        return false;
    graph_fail(g, graph_take(g, loss, "grad", "loss", 0));
    if (seed.id && g->status == RLXVK_OK)
        graph_fail(g, graph_take(g, seed, "grad", "seed", 0));
    for (size_t i = 0; i < count && g->status == RLXVK_OK; i++)
        if (graph_fail(g, graph_take(g, wrt[i], "grad", "wrt", i)) == RLXVK_OK &&
            !dtype_is_continuous(rlxvk_tensor_dtype(g, wrt[i])))
            graph_fail(g, status_fail(RLXVK_E_DTYPE,
                                      "grad: wrt %zu is %s; gradients are of real "
                                      "and complex tensors",
                                      i, rlxvk_dtype_name(rlxvk_tensor_dtype(g, wrt[i]))));
    return g->status == RLXVK_OK;
}

/* The gradient of the loss: the seed, or 1 if there is none. */
static rlxvk_tensor begin(rlxvk_graph *g, rlxvk_tensor loss, rlxvk_tensor seed)
{
    rlxvk_shape shape = rlxvk_tensor_shape(g, loss), given = shape;
    char want[SHAPE_TEXT], have[SHAPE_TEXT];
    if (seed.id)
        given = rlxvk_tensor_shape(g, seed);
    if (!shape_equal(&shape, &given))
        graph_fail(g,
                   status_fail(RLXVK_E_SHAPE, "grad: seed is %s, the loss %s; they must be alike",
                               shape_text(&given, have), shape_text(&shape, want)));
    else if (!dtype_is_continuous(rlxvk_tensor_dtype(g, loss)) ||
             (!seed.id && rlxvk_tensor_dtype(g, loss) == RLXVK_C64))
        graph_fail(g, status_fail(RLXVK_E_DTYPE, "grad: the loss is %s%s",
                                  rlxvk_dtype_name(rlxvk_tensor_dtype(g, loss)),
                                  dtype_is_continuous(rlxvk_tensor_dtype(g, loss))
                                      ? "; give a seed, or take a real function of it"
                                      : ", which has no gradient"));
    else if (!seed.id && shape_numel(&shape) != 1)
        graph_fail(g, status_fail(RLXVK_E_SHAPE,
                                  "grad: the loss is %s; reduce it to one element, "
                                  "or give a seed of its shape",
                                  shape_text(&shape, have)));
    else
        return seed.id ? seed : gradient_filled(g, 1, RLXVK_F32, shape);
    return RLXVK_NONE;
}

static rlxvk_status differentiate_all(gradients *s, rlxvk_tensor loss, rlxvk_tensor seed,
                                      const rlxvk_tensor *wrt, size_t count, rlxvk_tensor *out)
{
    rlxvk_status status;
    rlxvk_graph *g = s->graph;
    TRY(recompute_create(g, &s->again));
    TRY(find_writers(s));
    TRY(grow(s));
    for (size_t i = 0; i < count; i++)
        s->entries.items[wrt[i].id - 1].wanted = true;
    TRY(mark_wanted(s));
    seed = begin(g, loss, seed);
    TRY(graph_status(g));
    add_gradient(s, loss.id - 1, seed);
    TRY(go_back(s, 0));
    for (size_t i = 0; i < count; i++) {
        uint32_t id = wrt[i].id - 1, gradient = s->entries.items[id].gradient;
        out[i] = gradient != NODE_NONE
                     ? tensor_of(g, gradient)
                     : gradient_filled(g, 0, (rlxvk_dtype)graph_node(g, id)->dtype,
                                       graph_node(g, id)->shape);
    }
    TRY(graph_status(g));
error:
    return status;
}

static void grad_numbers(rlxvk_graph *g, rlxvk_tensor loss, rlxvk_tensor seed,
                         const rlxvk_tensor *wrt, size_t count, rlxvk_tensor *out)
{
    gradients s = {.graph = g};
    graph_fail(g, differentiate_all(&s, loss, seed, wrt, count, out));
    VECTOR_FREE(&s.entries);
    memory_free(s.writers);
    VECTOR_FREE(&s.parts);
    recompute_destroy(&s.again);
}

void rlxvk_grad(rlxvk_graph *g, rlxvk_tensor loss, rlxvk_tensor seed, const rlxvk_tensor *wrt,
                size_t count, rlxvk_tensor *out_gradients)
{
    bool done = tensors_given(g, loss, seed, wrt, count, out_gradients);
    if (done) {
        (g->symbols ? gradient_node_build : grad_numbers)(g, loss, seed, wrt, count, out_gradients);
        done = g->status == RLXVK_OK;
    }
    if (!done && out_gradients && count)
        memset(out_gradients, 0, count * sizeof *out_gradients);
}
