/* The dispatches of scatter and scatter_nd. */
#ifndef RLXVK_SCATTER_LOWER_H
#define RLXVK_SCATTER_LOWER_H

#include "args/array.h"
#include "op/array/scatter_choice.h"
#include "op/op.h"

typedef struct scatter_work {
    uint32_t mode;
    bool nd;
    struct scatter_args args; /* without its count */
    uint64_t numel, updates;  /* elements of y; updates */
    operand x, index, source, y;
} scatter_work;

rlxvk_status scatter_lower_by(lowering *l, const scatter_work *w, const scatter_path *path);

#endif
