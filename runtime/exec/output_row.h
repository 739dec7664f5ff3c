/* Rows of nodes. */
#ifndef RLXVK_EXEC_OUTPUT_ROW_H
#define RLXVK_EXEC_OUTPUT_ROW_H

#include "exec/executable.h"
#include "program/slot.h"

/* E_RANGE if row `row` of `row_elements` elements does not lie inside the node. */
rlxvk_status output_row_check(const rlxvk_executable *e, const char *call, uint32_t id,
                              uint64_t row, uint64_t row_elements);
/* Reads `elements` elements of node `id` from index `first` on, after all pending work is done. The
 * node lies at `from`. The type must be one that slot_length accepts. */
rlxvk_status output_row_read(rlxvk_executable *e, uint32_t id, location from, uint64_t first,
                             uint64_t elements, slot_type type, void *data);

#endif
