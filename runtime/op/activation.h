/*
 * Activations, from the table glsl/args/activation.def: their codes, their formulas on the host,
 * and how far a kernel may be from them. All code that computes an activation uses this, whether
 * the op is only that activation or also does something else.
 */
#ifndef RLXVK_ACTIVATION_H
#define RLXVK_ACTIVATION_H

#include "args/elementwise.h"
#include "op/op.h"

enum unary_code {
#define ACTIVATION(code, NAME, ...) UNARY_##NAME = code,
#include "args/activation.def"
};

enum {
#define ACTIVATION(code, NAME, ...) UNARY_PLACE_##NAME,
#include "args/activation.def"
    UNARY_COUNT
};

/* The op that is only this activation. These ops are consecutive rows of op.def. */
static inline op_kind activation_op(uint32_t code)
{
    return (op_kind)(OP_gelu + code);
}
/* The code of the activation that an op includes: UNARY_NONE for RLXVK_ACTIVATION_NONE.
 * activation_of is the inverse. */
static inline uint32_t activation_code(rlxvk_activation a)
{
    return a == RLXVK_ACTIVATION_NONE ? UNARY_NONE : (uint32_t)a - 1;
}
static inline rlxvk_activation activation_of(uint32_t code)
{
    return code == UNARY_NONE ? RLXVK_ACTIVATION_NONE : (rlxvk_activation)(code + 1);
}
/* "none", "gelu". */
const char *activation_name(rlxvk_activation a);

double activation_host(uint32_t code, double x);
/* The derivative at x; 1 for UNARY_NONE. */
double activation_slope(uint32_t code, double x);
/* How far a kernel may be from y, the host's value at x. It is the tolerance of the op's row, plus
 * *out_more if a steep slope at x magnifies the rounding error of an operand. */
double activation_tolerance(uint32_t code, double x, double y, double *out_more);
/* Returns y for an x that a kernel knows to within `tolerance`, and sets how far the kernel's
 * result may then be from y. That is INFINITY if the end of the function's domain is within
 * `tolerance` of x. Then accept any value, also NaN. */
double activation_carry(uint32_t code, double x, double tolerance, double *out_bound);

#endif
