/* Optimizers, and sums of gradients. */
#ifndef RLXVK_ARGS_TRAIN_H
#define RLXVK_ARGS_TRAIN_H

#include "args/types.h"

#define OPTIMIZER_ADAMW 0
#define OPTIMIZER_SGD   1
#define OPTIMIZER_LION  2

/* `decay` is of weights; beta1 is the momentum of SGD. Corrections: 1 - beta1^step, 1 - beta2^step.
 */
struct optimizer_args {
    u32 numel;
    u32 parameter_offset, gradient_offset, first_offset, second_offset;
    u32 schedule_offset, scale_offset;
    f32 rate, beta1, beta2, rest1, rest2, eps, decay; /* rest: 1 - beta */
    f32 correction1, correction2;
};

struct accumulate_args {
    u32 numel, sum_offset, t_offset, keep_offset;
};

#endif
