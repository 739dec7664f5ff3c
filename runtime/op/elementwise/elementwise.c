/*
 * Broadcast addressing. Each operand is read at the dot product of coordinates and strides; on axes
 * that it repeats, its stride is 0. Axes of size 1 are dropped. Neighbouring axes are merged if one
 * stride can walk both in every operand. The remaining axes decide for which form the kernel is
 * specialized:
 *   one axis    all operands are dense or single elements
 *   two axes    rows, columns, suffixes
 *   otherwise   a loop over the axes
 *
 * The arguments hold 6 axes. If more remain, operands are expanded into temporaries, one after the
 * other, until the axes merge. An expanded operand is dense and does not prevent a merge.
 */
#include "args/elementwise.h"
#include "constants/elementwise.h"
#include "op/elementwise/elementwise.h"
#include "op/movement/layout.h"

#include <math.h>
#include <string.h>

#define OPERANDS 3

typedef struct addressing {
    uint32_t rank, count;
    int64_t dims[RLXVK_MAX_RANK];
    int64_t strides[OPERANDS][RLXVK_MAX_RANK]; /* outermost axis first */
} addressing;

rlxvk_status elementwise_infer_shape(const rlxvk_graph *g, node *n)
{
    rlxvk_shape shape = *input_shape(g, n, 0);
    for (uint32_t i = 1; i < n->input_count; i++) {
        char so_far[SHAPE_TEXT], mine[SHAPE_TEXT];
        rlxvk_shape joined;
        if (!shape_broadcast(&shape, input_shape(g, n, i), &joined))
            return op_fail(n, RLXVK_E_SHAPE,
                           "operand %u of shape %s does not broadcast with %s; "
                           "right-aligned dims must be equal or 1",
                           i, shape_text(input_shape(g, n, i), mine), shape_text(&shape, so_far));
        shape = joined;
    }
    n->shape = shape;
    return RLXVK_OK;
}

uint32_t elementwise_in_place(const rlxvk_graph *g, const node *n)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < n->input_count; i++) {
        bool same_storage = (input_dtype(g, n, i) == RLXVK_C64) == (n->dtype == RLXVK_C64);
        if (same_storage && shape_numel(input_shape(g, n, i)) == shape_numel(&n->shape))
            mask |= 1u << i;
    }
    return mask;
}

/* ---- Lowering ---- */

static bool mergeable(const addressing *a, uint32_t outer, uint32_t inner)
{
    for (uint32_t o = 0; o < a->count; o++)
        if (a->strides[o][outer] != a->strides[o][inner] * a->dims[inner])
            return false;
    return true;
}

static void set_axis(addressing *to, uint32_t at, const addressing *from, uint32_t axis)
{
    to->dims[at] = from->dims[axis];
    for (uint32_t o = 0; o < from->count; o++)
        to->strides[o][at] = from->strides[o][axis];
}

/* Drops axes of size 1 and merges neighbours. The result has at least one axis. */
static addressing coalesce(const addressing *a)
{
    addressing out = {.count = a->count};
    for (uint32_t i = 0; i < a->rank; i++) {
        if (a->dims[i] == 1)
            continue;
        set_axis(&out, out.rank, a, i);
        if (out.rank && mergeable(&out, out.rank - 1, out.rank)) {
            int64_t outer = out.dims[out.rank - 1];
            set_axis(&out, out.rank - 1, a, i);
            out.dims[out.rank - 1] *= outer;
        } else {
            out.rank++;
        }
    }
    if (out.rank == 0)
        out.dims[out.rank++] = 1;
    return out;
}

static bool is_dense(const rlxvk_shape *shape, const int64_t *strides)
{
    int64_t dense[RLXVK_MAX_RANK];
    shape_strides(shape, dense);
    for (uint32_t i = 0; i < shape->rank; i++)
        if (shape->dims[i] != 1 && strides[i] != dense[i])
            return false;
    return true;
}

/* Copies an operand, repeated to `shape`, into a temporary, and replaces the operand by it. */
static rlxvk_status expand(lowering *l, const rlxvk_shape *shape, int64_t *strides, operand *o)
{
    strided_copy copy = layout_dense_copy(shape);
    operand temporary;
    rlxvk_status status;
    TRY(lower_temporary(l, dtype_storage_bytes((storage)o->storage, shape_numel(shape)),
                        &temporary));
    temporary.storage = o->storage;
    memcpy(copy.source, strides, sizeof copy.source);
    TRY(layout_emit_rows(l, &copy, *o, temporary));
    shape_strides(shape, strides);
    temporary.access = ACCESS_READ;
    *o = temporary;
error:
    return status;
}

/* Computes merged strides that fit the arguments. Expands operands if they do not. */
static rlxvk_status address(lowering *l, const node *n, operand *operands, addressing *out)
{
    addressing a = {.rank = n->shape.rank, .count = n->input_count};
    rlxvk_status status = RLXVK_OK;
    memcpy(a.dims, n->shape.dims, sizeof a.dims);
    for (uint32_t i = 0; i < a.count; i++)
        shape_broadcast_strides(input_shape(l->graph, n, i), &n->shape, a.strides[i]);
    *out = coalesce(&a);
    for (uint32_t i = 0; i < a.count && out->rank > ELEMENTWISE_AXES; i++) {
        if (is_dense(&n->shape, a.strides[i]))
            continue;
        TRY(expand(l, &n->shape, a.strides[i], &operands[i]));
        *out = coalesce(&a);
    }
error:
    return status;
}

static struct elementwise_args arguments_of(const addressing *a, const operand *operands)
{
    struct elementwise_args args = {.rank = a->rank, .numel = 1};
    for (uint32_t i = 0; i < a->rank; i++) {
        uint32_t axis = a->rank - 1 - i;
        args.numel *= (uint32_t)a->dims[axis];
        if (i + 1 < a->rank)
            args.dims[i] = (uint32_t)a->dims[axis];
        for (uint32_t o = 0; o < a->count; o++)
            args.strides[o * ELEMENTWISE_AXES + i] = (uint32_t)a->strides[o][axis];
    }
    for (uint32_t o = 0; o < a->count; o++)
        args.offsets[o] = operands[o].offset;
    args.target_offset = operands[a->count].offset;
    return args;
}

rlxvk_status elementwise_lower(lowering *l, uint32_t id, uint32_t kernel, uint32_t code)
{
    const node *n = graph_node(l->graph, id);
    dispatch d = {.kernel = (uint16_t)kernel};
    operand operands[OPERANDS + 1];
    addressing a;
    uint32_t pairs = 0;
    rlxvk_status status;
    for (uint32_t i = 0; i < n->input_count; i++) {
        operands[i] = lower_input(l, id, i);
        if (operands[i].storage == STORAGE_PAIR)
            pairs |= 1u << i;
    }
    operands[n->input_count] = lower_write(l, id);
    TRY(address(l, n, operands, &a));
    uint32_t form = a.rank == 1   ? ELEMENTWISE_LINE
                    : a.rank == 2 ? ELEMENTWISE_ROWS
                                  : ELEMENTWISE_LOOP;
    struct elementwise_args args = arguments_of(&a, operands);
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {ELEMENTWISE_CODE, code},
                  {ELEMENTWISE_FORM, form}, {ELEMENTWISE_PAIRS, pairs});
    lower_groups_in_order(l, &d, args.numel, elementwise_lot(d.constants[LOCAL_SIZE]));
    TRY(lower_emit(l, &d, &args, sizeof args, operands, n->input_count + 1));
error:
    return status;
}

/* ---- Host ---- */

uint64_t elementwise_host_index(const host_call *call, uint32_t input, uint64_t index)
{
    const rlxvk_shape *to = &call->node->shape, *from = &call->inputs[input].node->shape;
    int64_t coordinates[RLXVK_MAX_RANK], mine[RLXVK_MAX_RANK];
    layout_host_coordinates(to, index, coordinates);
    for (uint32_t i = 0; i < from->rank; i++)
        mine[i] = from->dims[i] == 1 ? 0 : coordinates[to->rank - from->rank + i];
    return layout_host_index(from, mine);
}

void elementwise_host_rounded(const host_call *call, uint64_t i)
{
    double exact = call->out[i], rounded = (float)exact;
    if (call->bound)
        call->bound[i] = isfinite(rounded) ? fabs(rounded - exact) : 0;
}

void elementwise_host_flush(const host_call *call, uint64_t i, double flushed)
{
    const op_row *row = node_row(call->node);
    double exact = call->out[i];
    if (!call->bound || exact == flushed || isnan(exact) || isnan(flushed))
        return;
    if (call->bound[i] < 0)
        call->bound[i] = row->atol + row->rtol * fabs(exact);
    call->bound[i] += isinf(flushed) || isinf(exact) ? INFINITY : fabs(exact - flushed);
}
