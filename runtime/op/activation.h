/*
 * The activations as their table tells them (glsl/args/activation.def): codes, the host's
 * one formula each, how far a kernel may be from it. Used wherever an activation is computed, alone
 * or as part of another op.
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

/* The op that is this activation alone; their rows follow each other. */
static inline op_kind activation_op(uint32_t code)
{
    return (op_kind)(OP_gelu + code);
}
/* The code of what an op carries: UNARY_NONE for RLXVK_ACTIVATION_NONE; and back. */
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
/* The derivative at x; 1 of none. */
double activation_slope(uint32_t code, double x);
/* How far a kernel may be from y, the host's value at x: what the op table's row allows, and more
 * where the slope there makes more of a rounded operand (*out_more > 0). */
double activation_tolerance(uint32_t code, double x, double y, double *out_more);
/* y of x that a kernel knows to within `tolerance`, and how far it may then be from y: INFINITY
 * where it may be on the other side of the domain's end, so that y is to be left open, NaN or not.
 */
double activation_carry(uint32_t code, double x, double tolerance, double *out_bound);

#endif
