/* What the ops on packed weights share: checks and kernel constants of dequant.c. */
#ifndef RLXVK_DEQUANT_H
#define RLXVK_DEQUANT_H

#include "op/op.h"

#define DEQUANT_UNIT_ELEMENTS 32 /* that glsl/dequant.glsl decodes at a time */

/* E_DTYPE unless operand `index` is packed bytes. */
rlxvk_status dequant_check_packed(const rlxvk_graph *g, const node *n, uint32_t index);
/* Specialization constants 1 to 6 of every kernel that includes dequant.glsl. */
void dequant_set_format(dispatch *d, uint32_t type, const operand *packed);
/* Index of the last word of the packed slot. */
uint32_t dequant_last_word(const operand *packed);

#endif
