/* Rows that end at a count. Under an active extent this is the count of active rows. It is an input
 * of the library itself, whose name no builder call accepts. */
#ifndef RLXVK_KEEP_FIRST_H
#define RLXVK_KEEP_FIRST_H

#include "op/op.h"

typedef struct keep_first_attributes {
    int64_t each;
    int32_t axis;
    float fill;
} keep_first_attributes;

#define EXTENT_COUNT_NAME "rlxvk.extent"
bool keep_first_is_count(const node *n);
/* Infers a node whose result is like operand 0. Operand 1 is a count of places along the axis. */
rlxvk_status keep_first_infer_along(const rlxvk_graph *g, node *n, int32_t *axis);

#endif
