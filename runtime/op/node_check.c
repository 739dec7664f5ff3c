/*
 * Checks nodes. Every node passes op_check once, whether a user built it or a rewrite made it. The
 * operands must exist and precede it, and the family must take their number and storage. Then infer
 * gives the node its shape.
 */
#include "op/op.h"

#include <stdio.h>
#include <string.h>

const char *op_call_label(const rlxvk_graph *g, const char *row, char buffer[CALL_LABEL])
{
    text t = {.buffer = buffer, .size = CALL_LABEL};
    text_append(&t, "%s (node %zu)", row, g->nodes.count);
    return buffer;
}

bool op_take(rlxvk_graph *g, const char *row, const sized *type, const void *given, void *own)
{
    char label[CALL_LABEL];
    rlxvk_status status;
    if (!graph_ready(g, row))
        return false;
    status = sized_read(type, given, own);
    if (status != RLXVK_OK)
        graph_fail(g, status_fail_within(status, "%s", op_call_label(g, row, label)));
    return status == RLXVK_OK;
}

const char *op_node_label(const rlxvk_graph *g, uint32_t id, char buffer[NODE_LABEL])
{
    const node *n = graph_node(g, id);
    uint16_t op = n->origin ? n->origin_op : n->op;
    text t = {.buffer = buffer, .size = NODE_LABEL};
    text_append(&t, "%s", op_table[op].name);
    if (n->name)
        text_append(&t, " '%.255s'", n->name);
    text_append(&t, " (node %u", op_node_origin(g, id));
    if (op != n->op)
        text_append(&t, ", in %s", node_row(n)->name);
    if (n->gradient_of)
        text_append(&t, ", for the gradient of node %u", n->gradient_of - 1);
    text_append(&t, ")");
    return buffer;
}

#define OPERANDS_NAMED 4 /* in an error */

/* " (node 57 of 'h.31' and node 12)": the number that the node would get, and its operands, because
 * many nodes have the same op. In a gradient the user did not write the operands, so it names the
 * node whose gradient it is. */
static void describe_place(const node *n, text *out)
{
    const rlxvk_graph *g = n->building;
    char label[NODE_LABEL];
    text_append(out, " (node %zu", g->nodes.count);
    if (g->gradient_of) {
        text_append(out, ", for the gradient of %s)", op_node_label(g, g->gradient_of - 1, label));
        return;
    }
    for (uint32_t i = 0; i < MIN(n->input_count, OPERANDS_NAMED); i++) {
        uint32_t id = n->inputs[i];
        const char *name = id < g->nodes.count ? graph_node(g, id)->name : NULL;
        text_append(out, "%s", i == 0 ? " of " : i + 1 == n->input_count ? " and " : ", ");
        if (name)
            text_append(out, "'%.60s'", name);
        else
            text_append(out, "node %u", id);
    }
    text_append(out, n->input_count > OPERANDS_NAMED ? ", ...)" : ")");
}

/* "matmul", "layer_norm 'final' (node 57 of 'h')". Leaves have only their name. */
static void describe_op(const node *n, text *out)
{
    text_append(out, "%s", node_row(n)->name);
    if (n->name)
        text_append(out, " '%s'", n->name);
    if (n->building && (n->input_count || !n->name))
        describe_place(n, out);
}

rlxvk_status op_fail(const node *n, rlxvk_status status, const char *format, ...)
{
    char who[512] = "", message[768];
    text t = {.buffer = who, .size = sizeof who};
    va_list list;
    va_start(list, format);
    text_format(message, sizeof message, format, list);
    va_end(list);
    describe_op(n, &t);
    return status_fail(status, "%s: %s", who, message);
}

rlxvk_status op_axis(const node *n, int32_t axis, uint32_t rank, int32_t *out)
{
    int32_t extent = rank ? (int32_t)rank : 1;
    if (axis < -extent || axis >= extent)
        return op_fail(n, RLXVK_E_AXIS, "axis %d outside rank %u; use %d .. %d", axis, rank,
                       -extent, extent - 1);
    *out = axis < 0 ? axis + extent : axis;
    return RLXVK_OK;
}

rlxvk_status op_require_dtype(const rlxvk_graph *g, const node *n, uint32_t index,
                              rlxvk_dtype wanted, const char *remedy)
{
    rlxvk_dtype dtype = input_dtype(g, n, index);
    if (dtype == wanted)
        return RLXVK_OK;
    return op_fail(n, RLXVK_E_DTYPE, "operand %u is %s; takes %s, %s", index,
                   rlxvk_dtype_name(dtype), rlxvk_dtype_name(wanted), remedy);
}

rlxvk_status op_require_shape(const rlxvk_graph *g, const node *n, uint32_t i, const char *role,
                              rlxvk_shape wanted)
{
    char have[SHAPE_TEXT], want[SHAPE_TEXT];
    if (shape_equal(input_shape(g, n, i), &wanted))
        return RLXVK_OK;
    return op_fail(n, RLXVK_E_SHAPE, "%s is %s; must be %s", role,
                   shape_text(input_shape(g, n, i), have), shape_text(&wanted, want));
}

rlxvk_status op_require_vector(const rlxvk_graph *g, const node *n, uint32_t i, const char *role,
                               int64_t length, const char *like)
{
    char shape[SHAPE_TEXT];
    uint32_t wide = 0;
    const rlxvk_shape *s = input_shape(g, n, i);
    for (uint32_t k = 0; k < s->rank; k++)
        wide += s->dims[k] != 1;
    if (wide <= 1 && shape_numel(s) == (uint64_t)length)
        return RLXVK_OK;
    return op_fail(n, RLXVK_E_SHAPE, "%s has shape %s; needs %lld elements, as the %s", role,
                   shape_text(s, shape), (long long)length, like);
}

rlxvk_status op_require_writable(const rlxvk_graph *g, const node *n, uint32_t i)
{
    uint16_t op = graph_node(g, n->inputs[i])->op;
    if (op != OP_input && op != OP_param)
        return op_fail(n, RLXVK_E_ATTR,
                       "operand %u is written in place but is a %s; it must be an input or a param",
                       i, op_table[op].name);
    for (uint32_t k = 0; k < n->input_count; k++)
        if (k != i && n->inputs[k] == n->inputs[i])
            return op_fail(n, RLXVK_E_ATTR, "operands %u and %u are one tensor; one is written", i,
                           k);
    return RLXVK_OK;
}

uint32_t op_first_in_place(const rlxvk_graph *g, const node *n)
{
    (void)g, (void)n;
    return 1;
}

/* Ops along an axis see three dims, whatever the rank: the product of the dims before it, the axis,
 * and the product of the dims behind it. */
axis_view op_axis_view(const rlxvk_shape *s, int32_t axis)
{
    if (s->rank == 0)
        return (axis_view){1, 1, 1};
    return (axis_view){shape_product(s, 0, (uint32_t)axis), (uint64_t)s->dims[axis],
                       shape_product(s, (uint32_t)axis + 1, s->rank)};
}

bool op_reorder_axis(const node *n, axis_order *order, void *attributes)
{
    axis_attributes *a = attributes;
    (void)n;
    a->axis = order->place[a->axis];
    return true;
}

bool op_reorder_none(const node *n, axis_order *order, void *attributes)
{
    (void)attributes;
    return order->rank == n->shape.rank;
}

void op_describe_axis(const node *n, text *out)
{
    text_append(out, " axis=%d", ((const axis_attributes *)n->attributes)->axis);
}

/* Storage is checked here for all ops, so a family only declares which storage it takes. */
static rlxvk_status check_operand(const rlxvk_graph *g, const node *n, uint32_t i)
{
    const op_family *family = node_row(n)->family;
    if (n->inputs[i] >= g->nodes.count)
        return op_fail(n, RLXVK_E_DANGLING, "operand %u is node %u of %zu", i, n->inputs[i],
                       g->nodes.count);
    storage s = op_node_storage(g, n->inputs[i]);
    bool raw_allowed = family->storage.raw_inputs >> MIN(i, 31) & 1;
    if (s == STORAGE_RAW && !raw_allowed)
        return op_fail(n, RLXVK_E_DTYPE, "operand %u is raw %s bytes; insert a cast", i,
                       rlxvk_dtype_name(input_dtype(g, n, i)));
    if (s == STORAGE_PAIR && !family->storage.pairs)
        return op_fail(n, RLXVK_E_DTYPE, "operand %u is complex; this op takes real tensors", i);
    return RLXVK_OK;
}

uint32_t op_shape_sizes(rlxvk_shape *s, int64_t *out[OP_MOST_SIZES])
{
    uint32_t count = MIN(s->rank, RLXVK_MAX_RANK);
    for (uint32_t i = 0; i < count; i++)
        out[i] = &s->dims[i];
    return count;
}

static rlxvk_status check_shape(const node *n)
{
    uint64_t numel;
    char buffer[SHAPE_TEXT];
    for (uint32_t i = 0; i < n->shape.rank; i++)
        if (n->shape.dims[i] < 0)
            return op_fail(n, RLXVK_E_SHAPE, "dim %u is %lld; dims are >= 0", i,
                           (long long)n->shape.dims[i]);
    if (!shape_numel_checked(&n->shape, &numel))
        return op_fail(n, RLXVK_E_TOO_LARGE, "shape %s has 2^31 elements or more; split the tensor",
                       shape_text(&n->shape, buffer));
    return RLXVK_OK;
}

/* Checks the number of operands, then the operands, then calls infer. So infer can rely on operands
 * that exist in a storage that the family takes. */
rlxvk_status op_check(const rlxvk_graph *g, node *n, void *attributes)
{
    const op_row *row = node_row(n);
    rlxvk_status status;
    if (n->input_count < row->fewest_inputs || n->input_count > row->most_inputs)
        return op_fail(n, RLXVK_E_ARITY, "%u operands; takes %u to %u", n->input_count,
                       row->fewest_inputs, row->most_inputs);
    for (uint32_t i = 0; i < n->input_count; i++)
        TRY(check_operand(g, n, i));
    TRY(row->family->infer(g, n, attributes));
    TRY(check_shape(n));
error:
    return status;
}
