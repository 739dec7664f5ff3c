/*
 * Ops that only rename memory: reshape, stop_gradient, after and branch_input. They are always
 * views of operand 0, in every storage, so nothing is lowered. The host function copies.
 */
#include "op/bucket.h"
#include "op/gradient.h"
#include "op/movement/movement.h"
#include "op/families.h"
#include "op/movement/layout.h"
#include "op/strided.h"

#include <string.h>

static bool whole_view(const rlxvk_graph *g, const node *n, uint64_t *out_offset)
{
    (void)g, (void)n;
    *out_offset = 0;
    return true;
}

static bool same_strided_view(const rlxvk_graph *g, const node *n, strided *at)
{
    return strided_reshape(input_shape(g, n, 0), &n->shape, at);
}

static rlxvk_status copy_host(const host_call *call)
{
    uint64_t numel = shape_numel(&call->node->shape);
    for (uint64_t i = 0; i < numel; i++)
        layout_host_move(call, i, &call->inputs[0], i);
    return RLXVK_OK;
}

/* ---- stop_gradient ---- */

rlxvk_tensor rlxvk_stop_gradient(rlxvk_graph *g, rlxvk_tensor x)
{
    return op_build(g, OP_stop_gradient, &x, 1, NULL);
}

static rlxvk_status same_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    (void)attributes;
    n->shape = *input_shape(g, n, 0);
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    return RLXVK_OK;
}

const op_family stop_gradient_family = {
    .name = "stop_gradient",
    .infer = same_infer,
    .storage = {.raw_inputs = 1, .pairs = true},
    .views = {.view = whole_view, .strided_view = same_strided_view},
    .execution = {.host = copy_host},
    .rows = {.bucket = bucket_same},
};

/* ---- after ---- */

rlxvk_tensor rlxvk_after(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor earlier)
{
    rlxvk_tensor inputs[] = {x, earlier};
    return op_build(g, OP_after, inputs, 2, NULL);
}

const op_family after_family = {
    .name = "after",
    .infer = same_infer,
    .storage = {.raw_inputs = 3, .half_inputs = 3, .pairs = true},
    .views = {.view = whole_view},
    .memory = {.waits = true},
    .execution = {.host = copy_host},
    .rows = {.bucket = bucket_first},
    .derivative = {.vjp = gradient_identity},
};

/* ---- branch_input ---- */

/* branch_input: a value that a branch reads from outside. The value is operand 0. If the branch is
 * not taken, its gradient is 0, whatever the branch's ops compute. Compiling drops these nodes
 * (rewrite/rewrite.c). */
static rlxvk_status branch_input_vjp(gradient_call *c)
{
    static const int32_t axes[RLXVK_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    const branch_attributes *a = c->n.attributes;
    rlxvk_graph *g = c->graph;
    rlxvk_tensor zero = gradient_scalar(g, 0), predicate = gradient_operand(c, 1);
    rlxvk_shape shape = gradient_shape(c, 1);
    rlxvk_tensor taken = a->otherwise ? rlxvk_eq(g, predicate, zero) : rlxvk_ne(g, predicate, zero);
    taken = rlxvk_cast(g, taken, RLXVK_F32);
    if (shape_numel(&shape) == 1) /* else: is it taken anywhere? An empty one is not */
        taken = rlxvk_reshape(g, taken, RLXVK_SCALAR);
    else
        taken = rlxvk_max(g, rlxvk_reduce_max(g, taken, axes, shape.rank, false), zero);
    gradient_give(c, 0, rlxvk_where(g, taken, c->dy, zero));
    return RLXVK_OK;
}

static void branch_input_describe(const node *n, text *out)
{
    text_append(out, " otherwise=%d", ((const branch_attributes *)n->attributes)->otherwise);
}

const op_family branch_input_family = {
    .name = "branch_input",
    .attribute_size = sizeof(branch_attributes),
    .infer = same_infer,
    .storage = {.raw_inputs = 3, .half_inputs = 3, .pairs = true},
    .views = {.view = whole_view},
    .execution = {.host = copy_host},
    .rows = {.bucket = bucket_first},
    .derivative = {.vjp = branch_input_vjp},
    .describe = branch_input_describe,
};

/* ---- reshape ---- */

rlxvk_tensor rlxvk_reshape(rlxvk_graph *g, rlxvk_tensor x, rlxvk_shape shape)
{
    return layout_build_shape(g, OP_reshape, x, shape);
}

/* The one dim that is -1; rank if there is none. */
static rlxvk_status find_wildcard(const node *n, const rlxvk_shape *target, uint32_t *out)
{
    *out = target->rank;
    for (uint32_t i = 0; i < target->rank; i++) {
        if (target->dims[i] >= 0)
            continue;
        if (target->dims[i] != -1 || *out != target->rank)
            return op_fail(n, RLXVK_E_ATTR, "dim %u of the new shape is %lld; one dim may be -1", i,
                           (long long)target->dims[i]);
        *out = i;
    }
    return RLXVK_OK;
}

static rlxvk_status fill_wildcard(const node *n, const rlxvk_shape *from, rlxvk_shape *target)
{
    uint32_t wildcard;
    uint64_t others, numel = shape_numel(from);
    char buffer[SHAPE_TEXT];
    rlxvk_status status;
    TRY(find_wildcard(n, target, &wildcard));
    if (wildcard == target->rank)
        return RLXVK_OK;
    target->dims[wildcard] = 1;
    if (!shape_numel_checked(target, &others))
        return op_fail(n, RLXVK_E_TOO_LARGE,
                       "the new shape has 2^31 elements or more; split the tensor");
    if (others == 0)
        return op_fail(n, RLXVK_E_ATTR, "dim %u is -1 beside a dim of 0; give it a value",
                       wildcard);
    if (numel % others)
        return op_fail(n, RLXVK_E_SHAPE,
                       "the %llu elements of %s are no multiple of %llu, the other dims' product",
                       (unsigned long long)numel, shape_text(from, buffer),
                       (unsigned long long)others);
    target->dims[wildcard] = (int64_t)(numel / others);
error:
    return status;
}

static rlxvk_status reshape_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_shape *target = &((shape_attributes *)attributes)->shape;
    const rlxvk_shape *from = input_shape(g, n, 0);
    char from_text[SHAPE_TEXT], to_text[SHAPE_TEXT];
    uint64_t numel;
    rlxvk_status status;
    if (target->rank > RLXVK_MAX_RANK)
        return op_fail(n, RLXVK_E_SHAPE, "rank %u above %d", target->rank, RLXVK_MAX_RANK);
    TRY(fill_wildcard(n, from, target));
    if (!shape_numel_checked(target, &numel) || numel != shape_numel(from))
        return op_fail(n, RLXVK_E_SHAPE,
                       "shape %s cannot become %s: the element counts differ; give as many",
                       shape_text(from, from_text), shape_text(target, to_text));
    n->shape = *target;
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

static rlxvk_status reshape_vjp(gradient_call *c)
{
    gradient_give(c, 0, rlxvk_reshape(c->graph, c->dy, gradient_shape(c, 0)));
    return RLXVK_OK;
}

const op_family reshape_family = {
    .name = "reshape",
    .attribute_size = sizeof(shape_attributes),
    .infer = reshape_infer,
    .sizes = layout_shape_sizes,
    .storage = {.raw_inputs = 1, .pairs = true},
    .views = {.view = whole_view, .strided_view = same_strided_view},
    .execution = {.foldable = true, .host = copy_host},
    .rows = {.bucket = bucket_same},
    .derivative = {.vjp = reshape_vjp},
    .describe = layout_describe_shape,
};
