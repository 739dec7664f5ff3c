/* Memory that two executables share. */
#ifndef RLXVK_EXEC_SHARE_H
#define RLXVK_EXEC_SHARE_H

#include "exec/state.h"

/* Marks the leaves, per node, that use the other executable's memory. */
void share_mark(const rlxvk_executable *e, bool *shared);
/* Shared leaves carry over whether they have content. */
void share_adopt(rlxvk_executable *e);

#endif
