/* max_anisotropy: ops in front of the splats raise scales that are too small. Because scales are
 * logarithms, the lower bound of a splat is its largest scale minus log(max_anisotropy). A raised
 * scale depends only on the largest one, so its gradient is added to that of the largest. */
#include "op/gradient.h"
#include "op/splat/gaussian_splat.h"

#include <rlxvk_train.h>

#include <math.h>

#define AXES 3

bool gaussian_splat_limits(const rlxvk_gaussian_splat_options *o)
{
    return o->max_anisotropy >= 1 && isfinite(o->max_anisotropy);
}

typedef struct limits {
    rlxvk_tensor scales, largest, least, raised; /* [N, 3]; index and bound for each splat; flags */
} limits;

static limits find_limits(rlxvk_graph *g, rlxvk_tensor scales, float most)
{
    rlxvk_shape shape = rlxvk_tensor_shape(g, scales);
    limits l = {0};
    l.scales = rlxvk_reshape(g, scales, RLXVK_SHAPE((int64_t)shape_numel(&shape) / AXES, AXES));
    l.largest = rlxvk_argmax(g, l.scales, 1, true);
    l.least = rlxvk_sub(g, rlxvk_take_along_axis(g, l.scales, l.largest, 1),
                        gradient_scalar(g, log((double)most)));
    l.raised = rlxvk_lt(g, l.scales, l.least);
    return l;
}

rlxvk_tensor gaussian_splat_limit_scales(rlxvk_graph *g, rlxvk_tensor scales, float most)
{
    limits l = find_limits(g, scales, most);
    return rlxvk_reshape(g, rlxvk_where(g, l.raised, l.least, l.scales),
                         rlxvk_tensor_shape(g, scales));
}

/* Changes only the gradients of scales in the packed gradients of the backward op. */
rlxvk_tensor gaussian_splat_limit_gradients(rlxvk_graph *g, rlxvk_tensor scales, float most,
                                            rlxvk_tensor gradients)
{
    limits l = find_limits(g, scales, most);
    rlxvk_shape shape = rlxvk_tensor_shape(g, l.scales), all = rlxvk_tensor_shape(g, gradients);
    int64_t words = AXES * shape.dims[0], behind = 2 * words;
    int32_t across = 1;
    rlxvk_tensor zero = gradient_scalar(g, 0);
    rlxvk_tensor own = rlxvk_reshape(g, rlxvk_narrow(g, gradients, 0, words, words), shape);
    rlxvk_tensor moved = rlxvk_where(g, l.raised, own, zero);
    rlxvk_tensor sums = rlxvk_reduce_sum(g, moved, &across, 1, true);
    rlxvk_tensor sum = rlxvk_take_along_axis_backward(g, sums, l.largest, 1, AXES);
    rlxvk_tensor limited = rlxvk_add(g, rlxvk_where(g, l.raised, zero, own), sum);
    rlxvk_tensor parts[] = {rlxvk_narrow(g, gradients, 0, 0, words),
                            rlxvk_reshape(g, limited, RLXVK_SHAPE(words)),
                            rlxvk_narrow(g, gradients, 0, behind, all.dims[0] - behind)};
    return rlxvk_concat(g, parts, 3, 0);
}
