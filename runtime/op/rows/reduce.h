/* Reducing rows on behalf of other families. */
#ifndef RLXVK_REDUCE_H
#define RLXVK_REDUCE_H

#include "op/rows/row_tile.h"

/* y [outer, inner] = reduction of the rows of x [outer, length, inner] by a REDUCE_ code;
 * `divisor`: of REDUCE_MEAN. */
rlxvk_status reduce_rows(lowering *l, axis_view rows, uint32_t code, float divisor, operand x,
                         operand y);
/* y [outer, chunks, inner] = reduction of each chunk. */
rlxvk_status reduce_chunks(lowering *l, axis_view rows, row_chunks chunks, uint32_t code, operand x,
                           operand y);

#endif
