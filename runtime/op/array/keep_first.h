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
/* E_SHAPE unless operand 1 has exactly one element. */
rlxvk_status keep_first_check_count(const rlxvk_graph *g, const node *n);

#endif
