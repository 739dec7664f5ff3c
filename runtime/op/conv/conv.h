/* What conv.c, conv_backward.c, conv_host.c and im2col.c share: the options of a window, checked
 * and completed. */
#ifndef RLXVK_CONV_H
#define RLXVK_CONV_H

#include "op/op.h"

#define CONV_AXES 3 /* spatial axes at most */

typedef struct conv_attributes {
    rlxvk_conv_options options;    /* kernel taken from w, defaults filled for every spatial axis */
    int64_t input_size[CONV_AXES]; /* of conv_backward_input */
    /* fused_conv only: which of its operands are there, and what becomes of them. */
    bool has_bias, has_residual, activation_first;
    rlxvk_activation activation;
} conv_attributes;

/* Operand numbers of a convolution's bias and residual; 0: it has none. */
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

/* x of rank 3 to 5, w of the same; by these names. */
rlxvk_status conv_check_ranks(const node *n, const char *x_name, const rlxvk_shape *x,
                              const char *w_name, const rlxvk_shape *w);
/* The kernel is w's spatial dims; a given one must say the same. */
rlxvk_status conv_take_kernel(const node *n, const rlxvk_shape *w, rlxvk_conv_options *o);
/* Fills in the defaults for `axes` spatial axes (kernel must be there already) and checks the
 * values: E_ATTR; E_TOO_LARGE beyond 2^31 - 1. */
rlxvk_status conv_check_options(const node *n, rlxvk_conv_options *options, uint32_t axes);

/* How many windows fit on an axis of `in` cells. */
rlxvk_status conv_window_count(const node *n, const rlxvk_conv_options *options, uint32_t axis,
                               int64_t in, int64_t *out);

void conv_describe_options(const rlxvk_conv_options *options, text *out);

/* The first cells of each spatial axis, as many as `shape` has. */
rlxvk_tensor conv_crop(rlxvk_graph *g, rlxvk_tensor t, rlxvk_shape shape);

rlxvk_status conv_host(const host_call *call);
rlxvk_status conv_backward_input_host(const host_call *call);
rlxvk_status conv_backward_weight_host(const host_call *call);

/* For divide() of divide.glsl; `by` in [1, 2^31). */
uint32_t conv_divide_multiplier(uint32_t by);

/* C(K) of the specification: what a sum of `terms` products may be off by, S the sum of their
 * magnitudes. */
double conv_bound(double terms, double magnitude);

#endif
