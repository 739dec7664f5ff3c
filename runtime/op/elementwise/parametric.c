/* Elementwise functions with parameters, and constants in one call. They are composites; rewriting
 * joins their ops into regions again. */
#include "op/compose/composite.h"
#include "op/gradient.h"

#include <rlxvk_ops_math.h>

rlxvk_tensor rlxvk_scalar(rlxvk_graph *g, float value)
{
    return graph_ready(g, "scalar")
               ? rlxvk_constant(g, RLXVK_F32, RLXVK_SCALAR, &value, sizeof value)
               : RLXVK_NONE;
}

rlxvk_tensor rlxvk_full(rlxvk_graph *g, rlxvk_shape shape, float value)
{
    if (!graph_ready(g, "full"))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    rlxvk_tensor one = rlxvk_scalar(g, value);
    return composite_end(g, "full", start, gradient_spread(g, one, shape));
}

static rlxvk_tensor sloped(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor slope)
{
    rlxvk_tensor zero = rlxvk_scalar(g, 0);
    return rlxvk_where(g, rlxvk_gt(g, x, zero), x, rlxvk_mul(g, x, slope));
}

rlxvk_tensor rlxvk_leaky_relu(rlxvk_graph *g, rlxvk_tensor x, float slope)
{
    if (!composite_begin(g, "leaky_relu", &x, 1))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    return composite_end(g, "leaky_relu", start, sloped(g, x, rlxvk_scalar(g, slope)));
}

rlxvk_tensor rlxvk_prelu(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor slope)
{
    if (!composite_begin(g, "prelu", (rlxvk_tensor[]){x, slope}, 2))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    return composite_end(g, "prelu", start, sloped(g, x, slope));
}

rlxvk_tensor rlxvk_clip(rlxvk_graph *g, rlxvk_tensor x, float low, float high)
{
    if (!composite_begin(g, "clip", &x, 1))
        return RLXVK_NONE;
    if (!(low <= high)) {
        composite_fail(g, "clip", RLXVK_E_ATTR, "low %g, high %g; low must not be above high",
                       (double)low, (double)high);
        return RLXVK_NONE;
    }
    size_t start = g->nodes.count;
    rlxvk_tensor y = rlxvk_max(g, x, rlxvk_scalar(g, low));
    return composite_end(g, "clip", start, rlxvk_min(g, y, rlxvk_scalar(g, high)));
}
