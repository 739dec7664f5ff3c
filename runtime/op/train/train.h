/* What ops that write params in place share. */
#ifndef RLXVK_TRAIN_OPS_H
#define RLXVK_TRAIN_OPS_H

#include "op/op.h"

/* Whether operand `i` may be written: an F32 param or input (E_DTYPE, E_ATTR) that no other operand
 * is (E_ATTR). */
rlxvk_status train_check_written(const rlxvk_graph *g, const node *n, uint32_t i);
/* Operand `i`, called `name` in errors, has `length` elements (E_SHAPE). */
rlxvk_status train_check_numbers(const rlxvk_graph *g, const node *n, uint32_t i, const char *name,
                                 int64_t length);

#endif
