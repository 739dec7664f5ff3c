/* The active extent of an executable: how many rows of its bucket are active. */
#ifndef RLXVK_EXEC_ACTIVE_EXTENT_H
#define RLXVK_EXEC_ACTIVE_EXTENT_H

#include "exec/executable.h"

/* Makes the memory from which scaled dispatches read their group counts. It starts with the counts
 * for all rows. */
rlxvk_status active_prepare(rlxvk_executable *e);
/* find_count finds the input that has the count of active rows, if the graph has one. active_upload
 * writes it for a run. */
void active_find_count(rlxvk_executable *e);
rlxvk_status active_upload(rlxvk_executable *e, uint32_t ticket);
/* Gives `e` the extent of `from`, an executable of the same program. */
rlxvk_status active_copy(rlxvk_executable *e, const rlxvk_executable *from);

#endif
