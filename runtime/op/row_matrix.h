/*
 * Nodes whose result has rows (vectors along the last axis), each of which depends only on the same
 * rows of the operands. rewrite/pack_rows.c can build them again with matrices [rows, last axis],
 * whatever axes the rows had before and in whatever order they lie.
 */
#ifndef RLXVK_ROW_MATRIX_H
#define RLXVK_ROW_MATRIX_H

#include "op/op.h"

/* A product of rows by one matrix. `b` is the shape of operand 1. */
bool row_matrix_is_product(const node *n, const rlxvk_shape *b);
/* An elementwise op, or a norm or softmax along the last axis. If an operand is the same for all
 * rows, it is a single number or a vector along the last axis. */
bool row_matrix_is_rowwise(const node *n);
/* Changes a copy of the node's attributes to those of a node of matrices. */
void row_matrix_adapt(const node *n, void *attributes);

#endif
