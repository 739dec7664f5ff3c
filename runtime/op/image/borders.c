/* Convolutions with separate padding before and after each axis, convolutions of any number of
 * spatial axes, and instance norm. All are composites of other ops. */
#include "op/compose/composite.h"

#define SPATIAL 3

static bool is_image(rlxvk_graph *g, const char *row, rlxvk_tensor x, rlxvk_shape *out)
{
    *out = rlxvk_tensor_shape(g, x);
    return (out->rank >= 3 && out->rank <= 2 + SPATIAL) ||
           composite_fail(g, row, RLXVK_E_SHAPE,
                          "x has rank %u; must be [N, C, 1 to 3 spatial axes]", out->rank);
}

/* Pads x and convolves it. The padding that both sides have in common is left to conv; only the
 * rest needs a pad op. */
static rlxvk_tensor padded(rlxvk_graph *g, const char *row, const rlxvk_tensor operands[3],
                           const rlxvk_conv_options *options, const int64_t *before,
                           const int64_t *after)
{
    rlxvk_conv_options o = {0};
    rlxvk_shape shape = rlxvk_tensor_shape(g, operands[0]);
    int64_t more[2][SPATIAL] = {{0}};
    bool uneven = false;
    rlxvk_tensor x = operands[0];
    size_t start = g->nodes.count;
    if (!op_take(g, row, SIZED(rlxvk_conv_options), options, &o))
        return RLXVK_NONE;
    for (uint32_t i = 0; i + 2 < shape.rank; i++) {
        if (before[i] < 0 || after[i] < 0 || o.padding[i]) {
            composite_fail(g, row, RLXVK_E_ATTR,
                           "axis %u: padding %lld before and %lld after, %lld in the options; must "
                           "not be negative, that of the options 0",
                           i + 2, (long long)before[i], (long long)after[i],
                           (long long)o.padding[i]);
            return RLXVK_NONE;
        }
        o.padding[i] = MIN(before[i], after[i]);
        more[0][i] = before[i] - o.padding[i];
        more[1][i] = after[i] - o.padding[i];
        uneven = uneven || before[i] != after[i];
    }
    if (uneven)
        x = rlxvk_pad(g, x, more[0], more[1], shape.rank - 2, NULL);
    return composite_end(g, row, start, rlxvk_conv(g, x, operands[1], operands[2], &o));
}

rlxvk_tensor rlxvk_conv_padded(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                               const rlxvk_conv_options *options, const int64_t *before,
                               const int64_t *after)
{
    static const char row[] = "conv_padded";
    const rlxvk_tensor operands[] = {x, w, bias};
    rlxvk_shape shape;
    if (!composite_begin(g, row, operands, 2) ||
        graph_fail(g, status_require_items(before, 1, row, "before")) != RLXVK_OK ||
        graph_fail(g, status_require_items(after, 1, row, "after")) != RLXVK_OK ||
        !is_image(g, row, x, &shape))
        return RLXVK_NONE;
    for (uint32_t i = 0; i + 2 < shape.rank; i++)
        if (!composite_number(g, row, "the padding", before[i]) ||
            !composite_number(g, row, "the padding", after[i]))
            return RLXVK_NONE;
    return padded(g, row, operands, options, before, after);
}

rlxvk_tensor rlxvk_conv_same(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                             const rlxvk_conv_options *options)
{
    static const char row[] = "conv_same";
    const rlxvk_tensor operands[] = {x, w, bias};
    int64_t before[SPATIAL] = {0}, after[SPATIAL] = {0};
    rlxvk_shape shape, kernel;
    rlxvk_conv_options o;
    if (!composite_begin(g, row, operands, 2) || !is_image(g, row, x, &shape) ||
        !op_take(g, row, SIZED(rlxvk_conv_options), options, &o))
        return RLXVK_NONE;
    kernel = rlxvk_tensor_shape(g, w);
    for (uint32_t i = 0; i + 2 < shape.rank; i++) {
        int64_t in = shape.dims[i + 2], k = i + 2 < kernel.rank ? kernel.dims[i + 2] : 1;
        int64_t s = o.stride[i] ? o.stride[i] : 1;
        int64_t d = o.dilation[i] ? o.dilation[i] : 1;
        if (!composite_number(g, row, "a dim of x", in) ||
            !composite_number(g, row, "a dim of w", k))
            return RLXVK_NONE;
        if (s < 1 || d < 1 || k < 1 || MAX(MAX(s, d), MAX(k, in)) > INT32_MAX) {
            composite_fail(
                g, row, RLXVK_E_ATTR,
                "axis %u: %lld cells, kernel %lld, stride %lld, dilation %lld; must be 1 "
                "to 2^31 - 1",
                i + 2, (long long)in, (long long)k, (long long)s, (long long)d);
            return RLXVK_NONE;
        }
        int64_t windows = (in + s - 1) / s;
        int64_t total = in ? MAX((windows - 1) * s + d * (k - 1) + 1 - in, 0) : 0;
        before[i] = total / 2;
        after[i] = total - before[i];
    }
    return padded(g, row, operands, options, before, after);
}

rlxvk_tensor rlxvk_conv_transpose(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w, rlxvk_tensor bias,
                                  const rlxvk_conv_options *options)
{
    return rlxvk_conv_transpose2d(g, x, w, bias, options);
}

rlxvk_tensor rlxvk_instance_norm(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                 rlxvk_tensor beta, float eps)
{
    static const char row[] = "instance_norm";
    if (!composite_begin(g, row, &x, 1))
        return RLXVK_NONE;
    rlxvk_shape shape = rlxvk_tensor_shape(g, x);
    if (shape.rank < 2) {
        composite_fail(g, row, RLXVK_E_SHAPE, "x has rank %u; must be [N, C, ..]", shape.rank);
        return RLXVK_NONE;
    }
    if (!composite_number(g, row, "the channels", shape.dims[1]))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    return composite_end(g, row, start,
                         rlxvk_group_norm(g, x, gamma, beta, MAX(shape.dims[1], 1), eps));
}
