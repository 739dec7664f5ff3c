/* Finds leaves by name. */
#ifndef RLXVK_EXEC_LEAF_H
#define RLXVK_EXEC_LEAF_H

#include "exec/executable.h"

/* NULL if the name is NULL or the graph as built has no such leaf. */
input_state *leaf_find_input(rlxvk_executable *e, const char *name);
param_state *leaf_find_param(rlxvk_executable *e, const char *name);
/* Finds an input as leaf_find_input does, or fails like name_unknown. */
rlxvk_status leaf_live_input(rlxvk_executable *e, const char *call, const char *name,
                             input_state **out);

#endif
