/* The dispatches of a convolution whose kernel is chosen. */
#ifndef RLXVK_CONV_EMIT_H
#define RLXVK_CONV_EMIT_H

#include "args/conv.h"
#include "op/conv/conv.h"
#include "op/conv/conv_choice.h"

/* What the kernel does after the sums (conv/epilogue.glsl). If all members are 0, it does
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
    bool swapped; /* a gradient of w (see conv.glsl): "w" is dy */
    bool deep;    /* three spatial axes */
    uint64_t slice, splits;
    struct conv_args args;
} conv_problem;

/* Completes a problem whose operands and kind are set, and emits its dispatches. `y` is the shape
 * with one cell for each window; if the problem is swapped, that is the shape of dy. */
rlxvk_status conv_lower_problem(lowering *l, conv_problem *p, const rlxvk_shape *x,
                                const rlxvk_shape *y, const rlxvk_conv_options *o);
rlxvk_status conv_emit(lowering *l, conv_problem *p);

#endif
