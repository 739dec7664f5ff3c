/* The dispatches of a convolution whose kernel is chosen. */
#ifndef RLXVK_CONV_EMIT_H
#define RLXVK_CONV_EMIT_H

#include "args/conv.h"
#include "op/conv/conv.h"
#include "op/conv/conv_choice.h"

/* What the kernel does after the sums (conv/finish.glsl). If all members are 0, it does
 * nothing. */
typedef struct conv_epilogue {
    uint32_t bits; /* CONV_EPILOGUE_... */
    rlxvk_activation activation;
    operand bias, residual; /* read only if their bits are set */
} conv_epilogue;

typedef struct conv_problem {
    uint32_t node;
    const conv_class *class;
    conv_shape shape;
    operand x, w, y;
    conv_epilogue epilogue;
    bool transposed;
    bool swapped;    /* a gradient of w (see conv.glsl): "w" is dy */
    bool deep;       /* three spatial axes */
    uint64_t images; /* or, if swapped, channels of x in a group */
    uint64_t slice, splits;
    struct conv_args args;
} conv_problem;

/* Completes a problem whose operands and kind are set, and emits its dispatches. `y` is the shape
 * with one cell for each window; if the problem is swapped, that is the shape of dy. */
rlxvk_status conv_lower_problem(lowering *l, conv_problem *p, const rlxvk_shape *x,
                                const rlxvk_shape *y, const rlxvk_conv_options *o);
rlxvk_status conv_emit(lowering *l, conv_problem *p);

/* Parts of it that conv_matrix.c needs, too. */

void conv_set_epilogue(dispatch *d, const conv_epilogue *e);
/* The operand to bind. If the epilogue does not read it, any buffer will do: `stand_in`. */
operand conv_bias_of(const conv_epilogue *e, operand stand_in);
operand conv_residual_of(const conv_epilogue *e, operand stand_in);
/* Sums the p->splits partial results in p->y to y, and applies the epilogue. */
rlxvk_status conv_emit_sum(lowering *l, const conv_problem *p, operand y);

#endif
