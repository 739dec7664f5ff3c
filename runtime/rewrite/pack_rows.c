/*
 * Packs rows of a bucket for matrix products, if extent_promise is RLXVK_EXTENT_SHORTER. The active
 * rows of a batch [B, S, K] lie apart: each batch has S rows, of which only the first are active. A
 * product of all B S rows cannot skip the others. Packed (op/array/pack_first.c), the active rows
 * of all batches come first, and the product ends behind them.
 *
 * A node may have two forms in the new graph: plain, or packed as a matrix [rows, last axis]. A
 * product of rows is made packed. So are elementwise ops, norms and softmax along the last axis if
 * they read a packed node. The other form is made when a reader or an output needs it. A reshape
 * changes neither form, so it is made in the form that is read.
 */
#include "op/array/keep_first.h"
#include "op/bucket.h"
#include "op/row_matrix.h"
#include "rewrite/pass.h"

#define MOST_OPERANDS 4 /* of a node that takes packed rows */

typedef struct packing {
    const shorten_inputs *inputs;
    rlxvk_graph before; /* the old nodes */
    bucket_walk walk;   /* through the old nodes */
    bool *outputs;
    bool *packs;                /* the node itself is made packed */
    rlxvk_tensor *plain, *rows; /* forms that were made; id 0: not yet */
    uint32_t count;             /* old id of the count of active rows */
} packing;

static int64_t last_dim(const rlxvk_shape *s)
{
    return s->rank ? s->dims[s->rank - 1] : 1;
}

/* Whether the active rows of a node are vectors along its last axis and lie apart. */
static bool lies_apart(const packing *s, uint32_t id)
{
    const node *n = graph_node(&s->before, id);
    uint64_t span = s->walk.spans[id], numel = shape_numel(&n->shape);
    uint64_t last = (uint64_t)last_dim(&n->shape);
    return span && span < numel && last && span / s->walk.unit % last == 0 && n->dtype != RLXVK_C64;
}

static uint64_t row_count(const packing *s, uint32_t id)
{
    const rlxvk_shape *shape = &graph_node(&s->before, id)->shape;
    return shape_numel(shape) / (uint64_t)last_dim(shape);
}

/* ---- Forms ---- */

static rlxvk_tensor reshaped(rlxvk_graph *g, rlxvk_tensor x, rlxvk_shape shape)
{
    rlxvk_shape now = rlxvk_tensor_shape(g, x);
    return shape_equal(&now, &shape) ? x : rlxvk_reshape(g, x, shape);
}

static rlxvk_shape packed_shape(const packing *s, uint32_t id)
{
    int64_t last = last_dim(&graph_node(&s->before, id)->shape);
    return RLXVK_SHAPE((int64_t)row_count(s, id), last);
}

/* The rows as [batches, rows of a bucket, elements of a row], packed or unpacked. */
static rlxvk_tensor moved(const pass *p, const packing *s, uint32_t id, rlxvk_tensor x, bool pack)
{
    rlxvk_graph *g = p->graph;
    uint64_t span = s->walk.spans[id], numel = shape_numel(&graph_node(&s->before, id)->shape);
    rlxvk_shape apart =
        RLXVK_SHAPE((int64_t)(numel / span), (int64_t)s->walk.unit, (int64_t)(span / s->walk.unit));
    rlxvk_tensor count = tensor_of(g, p->map[s->count]);
    x = reshaped(g, x, apart);
    return pack ? rlxvk_pack_first(g, x, count, 1) : rlxvk_unpack_first(g, x, count, 1);
}

static bool is_reshape(const packing *s, uint32_t id)
{
    return graph_node(&s->before, id)->op == OP_reshape;
}

/* The first node before a chain of reshapes whose rows can be packed as well. */
static uint32_t root_of(const packing *s, uint32_t id)
{
    while (is_reshape(s, id) && lies_apart(s, graph_node(&s->before, id)->inputs[0]))
        id = graph_node(&s->before, id)->inputs[0];
    return id;
}

static rlxvk_tensor plain_form(pass *p, packing *s, uint32_t id)
{
    uint32_t root = root_of(s, id);
    if (!s->packs[id])
        return tensor_of(p->graph, p->map[id]);
    if (!s->plain[root].id)
        s->plain[root] = moved(p, s, root, s->rows[root], false);
    return reshaped(p->graph, s->plain[root], graph_node(&s->before, id)->shape);
}

static rlxvk_tensor packed_form(pass *p, packing *s, uint32_t id)
{
    uint32_t root = root_of(s, id);
    if (!s->rows[root].id)
        s->rows[root] = moved(p, s, root, tensor_of(p->graph, p->map[root]), true);
    return reshaped(p->graph, s->rows[root], packed_shape(s, id));
}

/* ---- Nodes that take packed rows ---- */

/* Whether an operand is the same for all rows: one number, or a vector along the last axis. */
static bool is_one_row(const packing *s, uint32_t id)
{
    const rlxvk_shape *shape = &graph_node(&s->before, id)->shape;
    return s->walk.spans[id] == BUCKET_FIXED && shape_numel(shape) == (uint64_t)last_dim(shape);
}

static bool is_product_of_rows(const packing *s, const node *n)
{
    return row_matrix_is_product(n, input_shape(&s->before, n, 1)) && lies_apart(s, n->inputs[0]) &&
           s->walk.spans[n->inputs[1]] == BUCKET_FIXED;
}

static bool reads_packed(const packing *s, uint32_t id)
{
    const node *n = graph_node(&s->before, id);
    bool any = false;
    for (uint32_t i = 0; i < n->input_count; i++) {
        uint32_t from = n->inputs[i];
        bool rows = lies_apart(s, from) && row_count(s, from) == row_count(s, id);
        if (!rows && !is_one_row(s, from))
            return false;
        any = any || (rows && s->packs[from]);
    }
    return any;
}

static bool takes_packed(const packing *s, uint32_t id)
{
    const node *n = graph_node(&s->before, id);
    return lies_apart(s, id) && n->input_count <= MOST_OPERANDS &&
           (n->op == OP_matmul ? is_product_of_rows(s, n)
                               : row_matrix_is_rowwise(n) && reads_packed(s, id));
}

static rlxvk_tensor make_packed(pass *p, packing *s, uint32_t id)
{
    const node *n = graph_node(&s->before, id);
    uint32_t ids[MOST_OPERANDS];
    for (uint32_t i = 0; i < n->input_count; i++) {
        uint32_t from = n->inputs[i];
        const rlxvk_shape *shape = input_shape(&s->before, n, i);
        rlxvk_tensor x = tensor_of(p->graph, p->map[from]);
        if (s->walk.spans[from] != BUCKET_FIXED)
            x = packed_form(p, s, from);
        else if (n->op != OP_matmul && shape->rank > 1)
            x = reshaped(p->graph, x, RLXVK_SHAPE(last_dim(shape)));
        ids[i] = x.id - 1;
    }
    uint32_t made = op_append_again(p->graph, n, ids, row_matrix_adapt);
    return made == NODE_NONE ? RLXVK_NONE : tensor_of(p->graph, made);
}

/* ---- The pass ---- */

/* If a plain node reads a packed one, it finds the plain form in the map. */
static void need_plain(pass *p, packing *s, const node *n)
{
    for (uint32_t i = 0; i < n->input_count; i++)
        if (s->packs[n->inputs[i]])
            p->map[n->inputs[i]] = plain_form(p, s, n->inputs[i]).id - 1;
}

static uint32_t rule(pass *p, uint32_t id)
{
    packing *s = (packing *)p->context;
    const node *n = &p->nodes[id];
    bucket_walk_node(&s->walk, id, s->inputs->on_host && s->inputs->on_host[n->op]);
    if (is_reshape(s, id) && s->packs[n->inputs[0]] && lies_apart(s, id)) {
        s->packs[id] = true;
        s->rows[id] = packed_form(p, s, id);
    } else if (takes_packed(s, id)) {
        s->packs[id] = true;
        s->rows[id] = make_packed(p, s, id);
    } else {
        need_plain(p, s, n);
        return NODE_NONE;
    }
    if (!s->rows[id].id)
        return NODE_NONE; /* the graph has failed */
    return (s->outputs[id] ? plain_form(p, s, id) : s->rows[id]).id - 1;
}

/* Tensors that are written in place may change between the making of the two forms, so a graph that
 * writes is not packed. */
static bool writes_nothing(const rlxvk_graph *g)
{
    bool none = true;
    for (uint32_t id = 0; id < g->nodes.count && none; id++) {
        const op_family *family = node_row(graph_node(g, id))->family;
        none = !node_writes(graph_node(g, id)) && !family->loop.opens;
    }
    return none;
}

rlxvk_status rewrite_pack_rows(rlxvk_graph *g, const shorten_inputs *inputs)
{
    size_t count = g->nodes.count + 1;
    rlxvk_status status = RLXVK_OK;
    packing s = {.inputs = inputs,
                 .before = *g,
                 .outputs = memory_zeroed(count, sizeof *s.outputs),
                 .packs = memory_zeroed(count, sizeof *s.packs),
                 .plain = memory_zeroed(count, sizeof *s.plain),
                 .rows = memory_zeroed(count, sizeof *s.rows),
                 .count = graph_find(g, OP_input, EXTENT_COUNT_NAME)};
    if (!s.outputs || !s.packs || !s.plain || !s.rows)
        TRY(status_fail_memory("packed rows"));
    for (size_t i = 0; i < g->outputs.count; i++)
        s.outputs[g->outputs.items[i]] = true;
    TRY(bucket_walk_begin(&s.before, inputs->items, inputs->count, inputs->precision, NULL,
                          &s.walk));
    if (s.walk.unit > 1 && s.count != NODE_NONE && writes_nothing(g)) {
        TRY(rewrite_run_pass(g, rule, &s));
        TRY(graph_index_names(g));
        TRY(op_verify(g));
    }
error:
    bucket_walk_end(&s.walk);
    memory_free(s.outputs);
    memory_free(s.packs);
    memory_free(s.plain);
    memory_free(s.rows);
    return status;
}
