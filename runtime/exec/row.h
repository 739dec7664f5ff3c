/* Rows of nodes. */
#ifndef RLXVK_EXEC_ROW_H
#define RLXVK_EXEC_ROW_H

#include "exec/state.h"

/* E_RANGE unless row `row` of `row_elements` lies in the node. */
rlxvk_status row_check(const rlxvk_executable *e, const char *call, uint32_t id, uint64_t row,
                       uint64_t row_elements);
/* Reads f32 words after everything pending has landed. `elements` are counted from `first`. */
rlxvk_status row_read(rlxvk_executable *e, location from, uint64_t first, uint64_t elements,
                      float *values);

#endif
