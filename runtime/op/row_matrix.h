/*
 * Nodes whose result has rows, vectors along the last axis, each of which is made of the same rows
 * of the operands. Such a node can be made again of matrices [rows, last axis], whatever axes the
 * rows had before and in whatever order they lie (rewrite/pack_rows.c).
 */
#ifndef RLXVK_ROW_MATRIX_H
#define RLXVK_ROW_MATRIX_H

#include "op/op.h"

/* A product of rows by one matrix; `b`: operand 1. */
bool row_matrix_is_product(const node *n, const rlxvk_shape *b);
/* An elementwise op, or a norm or softmax along the last axis. Operands that are the same for all
 * rows are single numbers or vectors along the last axis. */
bool row_matrix_is_rowwise(const node *n);
/* Makes a copy of the node's attributes those of a node of matrices. */
void row_matrix_adapt(const node *n, void *attributes);

#endif
