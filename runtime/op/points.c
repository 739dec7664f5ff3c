/* See points.h. A node's shape depends only on the shapes, types and storage of its operands, so a
 * graph that has only these is enough. An operand that is raw bytes becomes an input, because only
 * leaves are. */
#include "op/points.h"

#include <string.h>

/* A node as its builder call gave it, and a graph of its operands. */
typedef struct lone_node {
    const rlxvk_graph *from;
    node given;
    instance_attributes attributes;
    rlxvk_graph operands; /* lists nodes, but owns nothing of them */
    uint32_t *inputs;     /* the operands in their own graph */
    bool symbolic_sizes;  /* its attributes have symbols */
} lone_node;

static bool is_symbolic(const lone_node *l)
{
    for (uint32_t i = 0; i < l->given.input_count; i++)
        if (symbol_in_shape(&l->from->symbols->nodes.items[l->given.inputs[i]].shape))
            return true;
    return l->symbolic_sizes;
}

static rlxvk_status begin(const rlxvk_graph *g, uint32_t id, lone_node *l)
{
    int64_t *at[OP_MOST_SIZES];
    *l = (lone_node){.from = g, .operands = {.serial = g->serial}};
    l->given = instance_given(g, id, &l->attributes);
    uint32_t count = l->given.input_count;
    uint32_t sizes = instance_sizes(&l->given, l->given.attributes ? &l->attributes : NULL, at);
    for (uint32_t i = 0; i < sizes; i++)
        l->symbolic_sizes = l->symbolic_sizes || symbol_is_code(*at[i]);
    l->inputs = memory_zeroed(count + 1, sizeof *l->inputs);
    if (!l->inputs || !VECTOR_RESERVE(&l->operands.nodes, count + 1))
        return status_fail_memory("symbols");
    for (uint32_t i = 0; i < count; i++) {
        node *operand = &l->operands.nodes.items[i];
        *operand = *graph_node(g, l->given.inputs[i]);
        if (operand->input_count && op_node_storage(g, l->given.inputs[i]) == STORAGE_RAW)
            operand->op = OP_input;
        operand->input_count = 0;
        l->inputs[i] = i;
    }
    l->operands.nodes.count = count;
    return RLXVK_OK;
}

static void end(lone_node *l)
{
    VECTOR_FREE(&l->operands.nodes);
    memory_free(l->inputs);
}

/* Gives the operands their shapes at a point. Dims equal to `dim` are `value`, unless that is
 * negative. False if there is no such shape. */
static bool set_shapes(lone_node *l, uint32_t point, int64_t dim, int64_t value)
{
    const symbol_table *t = l->from->symbols;
    for (uint32_t i = 0; i < l->given.input_count; i++) {
        rlxvk_shape *shape = &l->operands.nodes.items[i].shape;
        uint64_t numel;
        *shape = t->nodes.items[l->given.inputs[i]].shape;
        for (uint32_t axis = 0; axis < shape->rank; axis++) {
            int64_t *at = &shape->dims[axis];
            *at = value >= 0 && *at == dim ? value : symbol_value(t, point, *at);
            if (*at <= 0)
                return false;
        }
        if (!shape_numel_checked(shape, &numel))
            return false;
    }
    return true;
}

static bool infer(const lone_node *l, uint32_t point, rlxvk_shape *out)
{
    const symbol_table *t = l->from->symbols;
    instance_attributes room = l->attributes;
    node n = l->given;
    n.attributes = n.attributes ? &room : NULL;
    n.building = &l->operands;
    n.inputs = l->inputs;
    if (instance_check(&l->operands, t, t->sizes[point].items, t->sizes[point].count, &n,
                       n.attributes ? &room : NULL) != RLXVK_OK)
        return false;
    *out = n.shape;
    return true;
}

rlxvk_status points_infer(const rlxvk_graph *g, uint32_t id, rlxvk_shape out[SYMBOL_POINTS])
{
    const symbol_table *t = g->symbols;
    status_sentence before;
    lone_node l;
    rlxvk_status status;
    TRY(begin(g, id, &l));
    for (uint32_t k = 0; k < SYMBOL_EXAMPLES; k++)
        out[k] = graph_node(t->examples[k] ? t->examples[k] : g, id)->shape;
    status_save(&before);
    for (uint32_t k = SYMBOL_EXAMPLES; k < SYMBOL_POINTS; k++)
        if (!is_symbolic(&l) || !set_shapes(&l, k, 0, -1) || !infer(&l, k, &out[k]))
            out[k].rank = POINT_MISSED;
    status_restore(&before);
error:
    end(&l);
    return status;
}

bool points_infer_changed(const rlxvk_graph *g, uint32_t id, int64_t dim, int64_t value,
                          rlxvk_shape *out)
{
    status_sentence before;
    lone_node l;
    status_save(&before);
    bool fits = begin(g, id, &l) == RLXVK_OK && !l.symbolic_sizes &&
                set_shapes(&l, 0, dim, value) && infer(&l, 0, out);
    status_restore(&before);
    end(&l);
    return fits;
}
