/* Shared by the convolutions and im2col: attributes, checks of window options, host functions. */
#ifndef RLXVK_CONV_H
#define RLXVK_CONV_H

#include "op/op.h"

#define CONV_AXES 3 /* most spatial axes */

typedef struct conv_attributes {
    rlxvk_conv_options options;    /* kernel taken from w, defaults filled in for all axes */
    int64_t input_size[CONV_AXES]; /* only for conv_backward_input */
    /* Only for fused_conv: the operands that it has, and its activation. If `activation_first`, the
     * residual is added after the activation. */
    bool has_bias, has_residual, activation_first;
    rlxvk_activation activation;
} conv_attributes;

/* Operand numbers of a convolution's bias and residual, or 0 if it does not have one. */
static inline uint32_t conv_bias_input(const node *n)
{
    bool fused = node_code(n) == CONV_FUSED;
    return (fused ? ((const conv_attributes *)n->attributes)->has_bias : n->input_count == 3) ? 2
                                                                                              : 0;
}
static inline uint32_t conv_residual_input(const node *n)
{
    bool fused = node_code(n) == CONV_FUSED;
    return fused && ((const conv_attributes *)n->attributes)->has_residual ? n->input_count - 1 : 0;
}

/* E_SHAPE unless x has rank 3 to 5 and w has the same rank. Error sentences use the given names. */
rlxvk_status conv_check_ranks(const node *n, const char *x_name, const rlxvk_shape *x,
                              const char *w_name, const rlxvk_shape *w);
/* Sets the kernel of the options to the spatial dims of w. If the caller gave a kernel, it must be
 * the same. */
rlxvk_status conv_take_kernel(const node *n, const rlxvk_shape *w, rlxvk_conv_options *o);
/* Fills in the defaults for `axes` spatial axes and checks all values. The kernel must be set
 * already.
 *   E_ATTR        a value is not allowed
 *   E_TOO_LARGE   a value is above 2^31 - 1 */
rlxvk_status conv_check_options(const node *n, rlxvk_conv_options *options, uint32_t axes);

/* How many windows fit on an axis of `in` cells. */
rlxvk_status conv_window_count(const node *n, const rlxvk_conv_options *options, uint32_t axis,
                               int64_t in, int64_t *out);

void conv_describe_options(const rlxvk_conv_options *options, text *out);

/* Cuts t to `shape`: keeps the first cells of each spatial axis. */
rlxvk_tensor conv_crop(rlxvk_graph *g, rlxvk_tensor t, rlxvk_shape shape);

rlxvk_status conv_host(const host_call *call);
rlxvk_status conv_backward_input_host(const host_call *call);
rlxvk_status conv_backward_weight_host(const host_call *call);

/* The multiplier with which divide() of divide.glsl divides by `by`, which is in [1, 2^31). */
uint32_t conv_divide_multiplier(uint32_t by);

/* The error bound C(K) of the specification for a sum of K = `terms` products. `magnitude` is the
 * sum of their magnitudes. */
double conv_bound(double terms, double magnitude);

#endif
