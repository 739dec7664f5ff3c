/*
 * See onnx.h: names, and the order of nodes. A graph inside a node may read values of the graphs
 * around it. So that node comes behind the nodes whose values its graphs read.
 */
#include "model/name_map.h"
#include "model/onnx.h"

#include <string.h>

#define NO_NODE        UINT32_MAX
#define IS_INPUT       (UINT32_MAX - 1)
#define IS_INITIALIZER (UINT32_MAX - 2)

typedef struct edge {
    uint32_t from, to; /* nodes of one graph */
} edge;

typedef struct scope {
    struct scope *outer;
    name_map names; /* to the node that makes the value */
    uint32_t node;  /* the one that is being looked at */
    VECTOR(edge) edges;
} scope;

typedef struct checker {
    arena *a;
    const char *where; /* the outermost graph, or a function */
} checker;

static rlxvk_status check_graph(checker *k, onnx_graph *g, scope *outer);

/* ---- Names ---- */

static rlxvk_status define(checker *k, scope *s, const char *name, uint32_t node)
{
    if (*name == 0)
        return RLXVK_OK;
    if (name_find(&s->names, name) != NAME_NONE)
        return status_fail(RLXVK_E_DUP_NAME,
                           "%s: two values have the name '%.200s'; rename one of them", k->where,
                           name);
    return name_put(&s->names, name, node);
}

/* In files of early versions every initializer is an input, too. */
static rlxvk_status define_initializer(checker *k, scope *s, const char *name)
{
    return name_find(&s->names, name) == IS_INPUT ? name_put(&s->names, name, IS_INITIALIZER)
                                                  : define(k, s, name, IS_INITIALIZER);
}

static rlxvk_status define_all(checker *k, const onnx_graph *g, scope *s)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < g->input_count; i++)
        TRY(define(k, s, g->inputs[i].name, IS_INPUT));
    for (size_t i = 0; i < g->initializer_count; i++)
        TRY(define_initializer(k, s, g->initializers[i].name));
    for (size_t i = 0; i < g->input_count; i++)
        g->inputs[i].is_weight = name_find(&s->names, g->inputs[i].name) == IS_INITIALIZER;
    for (size_t i = 0; i < g->node_count; i++)
        for (size_t o = 0; o < g->nodes[i].output_count; o++)
            TRY(define(k, s, g->nodes[i].outputs[o], (uint32_t)i));
error:
    return status;
}

/* Looks a name up from the innermost graph outwards. The nodes that contain the reader depend on
 * the node that makes the value. */
static rlxvk_status use(checker *k, scope *s, const char *name, const onnx_node *reader)
{
    if (*name == 0)
        return RLXVK_OK;
    for (; s; s = s->outer) {
        uint32_t from = name_find(&s->names, name);
        if (from == NAME_NONE)
            continue;
        if (from < IS_INITIALIZER && s->node != NO_NODE &&
            !VECTOR_PUSH(&s->edges, (edge){from, s->node}))
            return status_fail_memory("order of nodes");
        return RLXVK_OK;
    }
    return status_fail(RLXVK_E_UNKNOWN_NAME,
                       "%s: %s '%.80s' reads '%.200s', which no input, initializer or node has",
                       k->where, reader ? reader->op : "graph", reader ? reader->name : "output",
                       name);
}

static rlxvk_status use_all(checker *k, onnx_graph *g, scope *s)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < g->node_count; i++) {
        const onnx_node *n = &g->nodes[i];
        s->node = (uint32_t)i;
        for (size_t j = 0; j < n->input_count; j++)
            TRY(use(k, s, n->inputs[j], n));
        for (size_t j = 0; j < n->attribute_count; j++)
            if (n->attributes[j].graph)
                TRY(check_graph(k, n->attributes[j].graph, s));
    }
    s->node = NO_NODE;
    for (size_t i = 0; i < g->output_count; i++)
        TRY(use(k, s, g->outputs[i].name, NULL));
error:
    return status;
}

/* ---- Order ---- */

/* Lists of the edges by the node where they begin: those of node i are from starts[i] on. */
typedef struct order {
    uint32_t *starts, *targets, *missing, *queue;
} order;

static void order_edges(const scope *s, size_t count, order *o)
{
    for (size_t i = 0; i < s->edges.count; i++) {
        o->starts[s->edges.items[i].from + 1]++;
        o->missing[s->edges.items[i].to]++;
    }
    for (size_t i = 0; i < count; i++)
        o->starts[i + 1] += o->starts[i];
    for (size_t i = s->edges.count; i-- > 0;)
        o->targets[--o->starts[s->edges.items[i].from + 1]] = s->edges.items[i].to;
    /* Each start was moved to its beginning, one place too far to the right. */
    memmove(o->starts, o->starts + 1, count * sizeof *o->starts);
    o->starts[count] = (uint32_t)s->edges.count;
}

/* Takes nodes whose operands are there, the first ones first as far as possible. */
static size_t take_nodes(size_t count, order *o)
{
    size_t taken = 0, queued = 0;
    for (size_t i = 0; i < count; i++)
        if (o->missing[i] == 0)
            o->queue[queued++] = (uint32_t)i;
    for (; taken < queued; taken++)
        for (uint32_t e = o->starts[o->queue[taken]]; e < o->starts[o->queue[taken] + 1]; e++)
            if (--o->missing[o->targets[e]] == 0)
                o->queue[queued++] = o->targets[e];
    return taken;
}

static rlxvk_status refuse_circle(checker *k, const onnx_graph *g, const order *o)
{
    size_t i = 0;
    while (o->missing[i] == 0)
        i++;
    return status_fail(RLXVK_E_ORDER,
                       "%s: node %zu, %s '%.80s', needs its own result, directly or through other "
                       "nodes",
                       k->where, i, g->nodes[i].op, g->nodes[i].name);
}

static bool is_sorted(const scope *s)
{
    for (size_t i = 0; i < s->edges.count; i++)
        if (s->edges.items[i].from >= s->edges.items[i].to)
            return false;
    return true;
}

static rlxvk_status sort_nodes(checker *k, onnx_graph *g, const scope *s)
{
    size_t count = g->node_count;
    order o = {0};
    onnx_node *sorted;
    rlxvk_status status = RLXVK_OK;
    if (is_sorted(s))
        return RLXVK_OK;
    o.starts = memory_zeroed(count + 1, sizeof *o.starts);
    o.targets = memory_zeroed(s->edges.count, sizeof *o.targets);
    o.missing = memory_zeroed(count, sizeof *o.missing);
    o.queue = memory_zeroed(count, sizeof *o.queue);
    sorted = arena_allocate(k->a, count * sizeof *sorted);
    if (!o.starts || !o.targets || !o.missing || !o.queue || !sorted)
        TRY(status_fail_memory("order of nodes"));
    order_edges(s, count, &o);
    if (take_nodes(count, &o) < count)
        TRY(refuse_circle(k, g, &o));
    for (size_t i = 0; i < count; i++)
        sorted[i] = g->nodes[o.queue[i]];
    g->nodes = sorted;
error:
    memory_free(o.starts);
    memory_free(o.targets);
    memory_free(o.missing);
    memory_free(o.queue);
    return status;
}

/* ---- Graphs ---- */

static rlxvk_status check_graph(checker *k, onnx_graph *g, scope *outer)
{
    scope s = {.outer = outer, .node = NO_NODE};
    rlxvk_status status;
    if (g->node_count >= IS_INITIALIZER)
        return status_fail(RLXVK_E_TOO_LARGE, "%s: too many nodes", k->where);
    TRY(define_all(k, g, &s));
    TRY(use_all(k, g, &s));
    TRY(sort_nodes(k, g, &s));
error:
    name_destroy(&s.names);
    VECTOR_FREE(&s.edges);
    return status;
}

/* A function's body has no inputs of its own; the function names them. */
static rlxvk_status check_function(checker *k, onnx_function *f)
{
    scope s = {.node = NO_NODE};
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < f->input_count; i++)
        TRY(define(k, &s, f->inputs[i], IS_INPUT));
    TRY(define_all(k, &f->body, &s));
    TRY(use_all(k, &f->body, &s));
    for (size_t i = 0; i < f->output_count; i++)
        TRY(use(k, &s, f->outputs[i], NULL));
    TRY(sort_nodes(k, &f->body, &s));
error:
    name_destroy(&s.names);
    VECTOR_FREE(&s.edges);
    return status;
}

rlxvk_status onnx_check(onnx_model *model, arena *a)
{
    checker k = {.a = a, .where = "graph"};
    rlxvk_status status;
    TRY(check_graph(&k, &model->graph, NULL));
    for (size_t i = 0; i < model->function_count; i++) {
        k.where = model->functions[i].name;
        TRY(check_function(&k, &model->functions[i]));
    }
error:
    return status;
}
