/*
 * LU factors with partial pivoting, in f32, for solve.c and det.c. If the matrices are small, one
 * workgroup factors each. Larger ones are factored in panels of SOLVE_PANEL columns: factor the
 * panel, apply its row exchanges and U's rows to the other columns, update the rest.
 *
 * Limits: on software devices N <= 2048, because their loops end after 65535 rounds.
 */
#ifndef RLXVK_LU_H
#define RLXVK_LU_H

#include "args/matmul.h"
#include "op/op.h"

#define LU_WHOLE 64 /* largest matrix that is one panel */

typedef struct lu_factors {
    uint32_t node, n, batch, workgroup;
    operand matrix; /* the matrices, one behind the other; becomes their factors */
    operand pivots; /* lu_lower makes it: glsl/matmul/lu.glsl */
} lu_factors;

/* E_UNSUPPORTED if the device cannot factor matrices of this size. */
rlxvk_status lu_check_size(const lowering *l, const node *n, int64_t size);
/* A power of two that suits the rows, because lanes beyond the rows would only wait. */
uint32_t lu_workgroup(const device_profile *profile, int64_t n);
/* Factors f->matrix in place. Afterwards both operands are read. */
rlxvk_status lu_lower(lowering *l, lu_factors *f);

#endif
