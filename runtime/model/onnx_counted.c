/* See onnx_counted.h. */
#include "model/onnx_counted.h"

#include <string.h>

/* How the counted axis of an operand becomes that of the result. NONE: the op mixes indices of
 * this axis, or takes no such operand. */
enum { NONE = -1 };
typedef int64_t moved_axis(call *c, size_t operand, uint32_t axis);

static int64_t elementwise(call *c, size_t operand, uint32_t axis)
{
    uint32_t rank = 0;
    for (size_t i = 0; i < c->input_count; i++)
        rank = MAX(rank, call_shape(c, i).rank);
    return (int64_t)axis + rank - call_shape(c, operand).rank;
}

static int64_t transposed(call *c, size_t operand, uint32_t axis)
{
    uint32_t rank = call_shape(c, operand).rank;
    size_t count;
    const int64_t *perm = call_integers(c, "perm", &count);
    if (!perm)
        return (int64_t)rank - 1 - axis;
    for (size_t i = 0; i < count; i++)
        if (perm[i] == axis)
            return (int64_t)i;
    return NONE;
}

/* Axes that the op removes, inserts or works on, as attribute or operand 1. */
static call_axes axes_of(call *c, uint32_t rank)
{
    int64_t since =
        strncmp(c->node->op, "Reduce", 6) == 0 && strcmp(c->node->op, "ReduceSum") != 0 ? 18 : 13;
    return call_read_axes(c, since, 1, rank);
}

static int64_t squeezed(call *c, size_t operand, uint32_t axis)
{
    call_axes axes = axes_of(c, call_shape(c, operand).rank);
    int64_t moved = axis;
    for (uint32_t i = 0; i < axes.count; i++) {
        if (axes.items[i] == (int32_t)axis)
            return NONE;
        moved -= axes.items[i] < (int32_t)axis;
    }
    return axes.given && operand == 0 ? moved : NONE;
}

static int64_t unsqueezed(call *c, size_t operand, uint32_t axis)
{
    const host_array *given = c->opset >= 13 ? call_known(c, 1) : NULL;
    uint32_t rank = call_shape(c, operand).rank;
    call_axes axes;
    uint64_t more = given ? given->numel : 0;
    size_t count;
    if (c->opset < 13 && call_integers(c, "axes", &count))
        more = count;
    if (operand != 0 || rank + more > RLXVK_MAX_RANK)
        return NONE;
    axes = axes_of(c, rank + (uint32_t)more);
    for (uint32_t at = 0, from = 0; at < rank + more; at++) {
        bool inserted = false;
        for (uint32_t i = 0; i < axes.count; i++)
            inserted = inserted || axes.items[i] == (int32_t)at;
        if (!inserted && from++ == axis)
            return at;
    }
    return NONE;
}

/* Of the indices; or of the data, along another axis. */
static int64_t gathered(call *c, size_t operand, uint32_t axis)
{
    rlxvk_shape data = call_shape(c, 0);
    int32_t along = call_axis(c, "axis", call_integer(c, "axis", 0), data.rank);
    if (operand == 1)
        return (int64_t)axis + along;
    if (axis == (uint32_t)along)
        return NONE;
    return (int32_t)axis < along ? (int64_t)axis : (int64_t)axis + call_shape(c, 1).rank - 1;
}

/* The indices say where in the data each row is; their last axis is gone then. */
static int64_t gathered_by_rows(call *c, size_t operand, uint32_t axis)
{
    return operand == 1 && axis + 1 < call_shape(c, 1).rank ? (int64_t)axis : NONE;
}

static int64_t along_another(call *c, size_t operand, uint32_t axis)
{
    int64_t first = strcmp(c->node->op, "Softmax") == 0 && c->opset >= 13 ? -1 : 0;
    rlxvk_shape s = call_shape(c, operand);
    int32_t along = call_axis(c, "axis", call_integer(c, "axis", first), s.rank);
    return along == (int32_t)axis ? NONE : (int64_t)axis;
}

static int64_t sliced(call *c, size_t operand, uint32_t axis)
{
    call_axes axes = {0};
    uint32_t rank = call_shape(c, operand).rank;
    if (operand != 0 || c->opset < 10)
        return NONE;
    if (call_has(c, 3))
        axes = call_read_axes(c, 10, 3, rank);
    for (uint32_t i = 0; i < axes.count; i++)
        if (axes.items[i] == (int32_t)axis)
            return NONE;
    return axes.given ? (int64_t)axis : NONE;
}

static int64_t reduced(call *c, size_t operand, uint32_t axis)
{
    bool keep = call_flag(c, "keepdims", true);
    int64_t moved = squeezed(c, operand, axis);
    return moved == NONE || !keep ? moved : (int64_t)axis;
}

/* Rows of the first factor. */
static int64_t multiplied(call *c, size_t operand, uint32_t axis)
{
    uint32_t a = call_shape(c, 0).rank, b = call_shape(c, 1).rank;
    return operand == 0 && b == 2 && axis + 1 < a ? (int64_t)axis : NONE;
}

/* In the order of the alphabet. */
static const struct {
    const char *op;
    moved_axis *moved;
} rules[] = {
    {"Abs", elementwise},
    {"Add", elementwise},
    {"And", elementwise},
    {"Cast", elementwise},
    {"Ceil", elementwise},
    {"Clip", elementwise},
    {"Concat", along_another},
    {"Cos", elementwise},
    {"Div", elementwise},
    {"Equal", elementwise},
    {"Erf", elementwise},
    {"Exp", elementwise},
    {"Floor", elementwise},
    {"Gather", gathered},
    {"GatherND", gathered_by_rows},
    {"Greater", elementwise},
    {"GreaterOrEqual", elementwise},
    {"LeakyRelu", elementwise},
    {"Less", elementwise},
    {"LessOrEqual", elementwise},
    {"Log", elementwise},
    {"LogSoftmax", along_another},
    {"MatMul", multiplied},
    {"Max", elementwise},
    {"Min", elementwise},
    {"Mod", elementwise},
    {"Mul", elementwise},
    {"Neg", elementwise},
    {"Not", elementwise},
    {"Or", elementwise},
    {"Pow", elementwise},
    {"Reciprocal", elementwise},
    {"ReduceMax", reduced},
    {"ReduceMean", reduced},
    {"ReduceMin", reduced},
    {"ReduceSum", reduced},
    {"Relu", elementwise},
    {"Round", elementwise},
    {"Sigmoid", elementwise},
    {"Sin", elementwise},
    {"Slice", sliced},
    {"Softmax", along_another},
    {"Split", along_another},
    {"Sqrt", elementwise},
    {"Squeeze", squeezed},
    {"Sub", elementwise},
    {"Tanh", elementwise},
    {"Transpose", transposed},
    {"Unsqueeze", unsqueezed},
    {"Where", elementwise},
    {"Xor", elementwise},
};

static moved_axis *find_rule(const call *c)
{
    for (size_t i = 0; *c->node->domain == 0 && i < ARRAY_COUNT(rules); i++)
        if (strcmp(rules[i].op, c->node->op) == 0)
            return rules[i].moved;
    return NULL;
}

void onnx_counts_begin(call *c, onnx_counts *out)
{
    moved_axis *rule = find_rule(c);
    *out = (onnx_counts){.axis = NONE};
    for (size_t i = 0; i < c->input_count && !c->failed; i++) {
        const onnx_value *v = c->inputs[i];
        int64_t axis;
        if (!v || !v->count.graph)
            continue;
        axis = rule ? rule(c, i, v->counted) : NONE;
        /* Two operands fit only if they have the same count at the same place. */
        if (axis == NONE ||
            (out->count.graph && (axis != out->axis || v->count.id != out->count.id)))
            call_need(c, v, "how many elements an operand has");
        out->count = v->count;
        out->axis = axis;
    }
}

void onnx_counts_end(call *c, const onnx_counts *counts)
{
    for (size_t i = 0; counts->count.graph && i < c->output_count; i++) {
        if (!c->outputs[i])
            continue;
        c->outputs[i]->count = counts->count;
        c->outputs[i]->counted = (uint32_t)counts->axis;
    }
}

void onnx_give_counted(call *c, size_t i, rlxvk_tensor t, rlxvk_tensor count, uint32_t axis,
                       int32_t type)
{
    t = rlxvk_keep_first(c->graph, t, count, (int32_t)axis, 0);
    call_give_as(c, i, t, type);
    if (c->failed || !call_wants(c, i))
        return;
    c->outputs[i]->count = count;
    c->outputs[i]->counted = axis;
}
