/* The dispatches of a convolution, once its kernel is chosen. */
#ifndef RLXVK_CONV_EMIT_H
#define RLXVK_CONV_EMIT_H

#include "args/conv.h"
#include "op/conv/conv.h"
#include "op/conv/conv_select.h"

/* What is done to the sums (conv/epilogue.glsl); zeros: nothing. */
typedef struct conv_epilogue {
    uint32_t bits; /* CONV_EPILOGUE_... */
    rlxvk_activation activation;
    operand bias, residual; /* where the bits say that they are there */
} conv_epilogue;

typedef struct conv_problem {
    uint32_t node;
    const conv_class *class;
    conv_shape shape;
    operand x, w, y;
    conv_epilogue epilogue;
    bool transposed;
    bool swapped; /* a gradient of w, as conv.glsl has it; its "w" is dy */
    bool deep;    /* three spatial axes */
    uint64_t slice, splits;
    struct conv_args args;
} conv_problem;

/* Of a problem of which the operands and its kind are set: the rest, and its dispatches. y, whose
 * cells the windows make, is dy where it is swapped. */
rlxvk_status conv_lower_problem(lowering *l, conv_problem *p, const rlxvk_shape *x,
                                const rlxvk_shape *y, const rlxvk_conv_options *o);
rlxvk_status conv_emit(lowering *l, conv_problem *p);

#endif
