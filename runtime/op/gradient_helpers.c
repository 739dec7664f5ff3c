/* Helpers for gradient rules, in addition to the builder calls. */
#include "op/gradient.h"

void gradient_leave_out(rlxvk_graph *g, const node *n, uint32_t i)
{
    rlxvk_stop_gradient(g, tensor_of(g, n->inputs[i]));
}

rlxvk_tensor gradient_scalar(rlxvk_graph *g, double value)
{
    return rlxvk_scalar(g, (float)value);
}

rlxvk_tensor gradient_spread(rlxvk_graph *g, rlxvk_tensor scalar, rlxvk_shape shape)
{
    return shape.rank ? rlxvk_expand(g, scalar, shape) : scalar;
}

rlxvk_tensor gradient_filled(rlxvk_graph *g, double value, rlxvk_dtype dtype, rlxvk_shape shape)
{
    rlxvk_tensor one = gradient_scalar(g, value);
    return gradient_spread(g, dtype == RLXVK_C64 ? rlxvk_cast(g, one, dtype) : one, shape);
}

rlxvk_tensor gradient_unbroadcast(rlxvk_graph *g, rlxvk_tensor t, rlxvk_shape shape)
{
    rlxvk_shape from = rlxvk_tensor_shape(g, t);
    int32_t axes[RLXVK_MAX_RANK];
    size_t count = 0;
    if (shape_equal(&from, &shape))
        return t;
    uint32_t missing = from.rank - MIN(shape.rank, from.rank);
    for (uint32_t i = 0; i < from.rank; i++)
        if (i < missing || (shape.dims[i - missing] == 1 && from.dims[i] != 1))
            axes[count++] = (int32_t)i;
    if (count)
        t = rlxvk_reduce_sum(g, t, axes, count, false);
    return rlxvk_reshape(g, t, shape);
}

rlxvk_tensor gradient_expand_to(rlxvk_graph *g, rlxvk_tensor t, rlxvk_shape shape,
                                const int32_t *axes, size_t count)
{
    rlxvk_shape kept = shape;
    for (size_t i = 0; i < count; i++)
        kept.dims[axes[i]] = 1;
    t = rlxvk_reshape(g, t, kept);
    return shape.rank ? rlxvk_expand(g, t, shape) : t;
}
