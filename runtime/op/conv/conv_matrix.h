/* Convolutions and their gradients on the device's matrix units. */
#ifndef RLXVK_CONV_MATRIX_H
#define RLXVK_CONV_MATRIX_H

#include "op/conv/conv_emit.h"

/*
 * Does conv_matrix_lower take this problem? It does if the precision asks for it, the device has
 * the units, and channels, positions and K fill one. With several groups, each must have that many
 * channels of x and y. If RLXVK_VARIANT names a variant of `conv` and none of `conv_matrix`, the
 * answer is no. The problem's sizes must be filled in.
 */
bool conv_matrix_wanted(const lowering *l, const conv_problem *p);
/* Emits all dispatches, with the epilogue. */
rlxvk_status conv_matrix_lower(lowering *l, conv_problem *p);

#endif
