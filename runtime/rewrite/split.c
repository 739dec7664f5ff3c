/* Which weights are read in parts, and how large the parts are. */
#include "rewrite/split.h"

bool split_is_needed(const pass *p, const node *n, uint32_t operand)
{
    const rewrite_options *options = p->context;
    const node *w = fuse_operand(p, n, operand);
    uint64_t bytes = shape_numel(&w->shape) * rlxvk_dtype_size((rlxvk_dtype)w->dtype);
    return options->profile && !(options->on_host && options->on_host[n->op]) &&
           node_is_weight(w) && bytes > options->profile->max_binding_bytes &&
           shape_numel(&n->shape) > 0;
}

uint64_t split_rows(const pass *p, const node *w, uint64_t columns, uint64_t unit)
{
    const rewrite_options *options = p->context;
    const device_profile *profile = options->profile;
    bool halves = w->dtype == RLXVK_F32 && options->may_halve;
    uint64_t bytes = columns * rlxvk_dtype_size((rlxvk_dtype)w->dtype);
    uint64_t least = columns * rlxvk_dtype_size(halves ? RLXVK_F16 : (rlxvk_dtype)w->dtype);
    while (unit * least % MAX(profile->slot_alignment, 1))
        unit *= 2;
    return profile->max_binding_bytes / bytes / unit * unit;
}

rlxvk_tensor split_reaches(rlxvk_graph *g, rlxvk_tensor index, int64_t start, uint32_t rank)
{
    rlxvk_shape shape = rlxvk_tensor_shape(g, index);
    while (shape.rank < rank)
        shape.dims[shape.rank++] = 1;
    return rlxvk_reshape(g, rlxvk_ge(g, index, rlxvk_scalar(g, (float)start - 0.5f)), shape);
}
