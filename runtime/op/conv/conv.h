/* What conv.c, conv_host.c and im2col.c share: the options of a window, checked and completed. */
#ifndef RLXVK_CONV_H
#define RLXVK_CONV_H

#include "op/op.h"

typedef struct conv_attributes {
    rlxvk_conv_options options; /* kernel taken from w, defaults filled for every spatial axis */
} conv_attributes;

#define CONV_AXES 3 /* spatial axes at most */

/* Fills in the defaults for `axes` spatial axes (kernel must be there already) and checks the
 * values: E_ATTR; E_TOO_LARGE beyond 2^31 - 1. */
rlxvk_status conv_check_options(const node *n, rlxvk_conv_options *options, uint32_t axes);

/* How many windows fit on an axis of `in` cells. */
rlxvk_status conv_window_count(const node *n, const rlxvk_conv_options *options, uint32_t axis,
                               int64_t in, int64_t *out);

void conv_describe_options(const rlxvk_conv_options *options, text *out);

rlxvk_status conv_host(const host_call *call);

/* For divide() of divide.glsl; `by` in [1, 2^31). */
uint32_t conv_divide_multiplier(uint32_t by);

/* C(K) of the specification: what a sum of `terms` products may be off by, S the sum of their
 * magnitudes. */
double conv_bound(double terms, double magnitude);

#endif
