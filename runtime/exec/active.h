/* The active extent of an executable: how many rows of its bucket matter. */
#ifndef RLXVK_EXEC_ACTIVE_H
#define RLXVK_EXEC_ACTIVE_H

#include "exec/state.h"

/* Makes the memory that scaled dispatches read their group counts from, those of all rows. */
rlxvk_status active_prepare(rlxvk_executable *e);
/* Finds the input that has the count of active rows, and writes it for a run. */
void active_find_count(rlxvk_executable *e);
rlxvk_status active_upload(rlxvk_executable *e, uint32_t ticket);
/* The extent of another executable of the same program. */
rlxvk_status active_copy(rlxvk_executable *e, const rlxvk_executable *from);

#endif
