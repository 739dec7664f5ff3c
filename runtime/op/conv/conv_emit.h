/* The dispatches of a convolution, once its kernel is chosen. */
#ifndef RLXVK_CONV_EMIT_H
#define RLXVK_CONV_EMIT_H

#include "args/conv.h"
#include "op/conv/conv.h"
#include "op/conv/conv_select.h"

typedef struct conv_problem {
    uint32_t node;
    const conv_class *class;
    conv_shape shape;
    operand x, w, bias, y;
    bool has_bias, transposed, deep; /* deep: three spatial axes */
    uint64_t slice, splits;
    struct conv_args args;
} conv_problem;

rlxvk_status conv_emit(lowering *l, conv_problem *p);

#endif
