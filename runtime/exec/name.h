/* Finds leaves by name. */
#ifndef RLXVK_EXEC_NAME_H
#define RLXVK_EXEC_NAME_H

#include "exec/state.h"

/* NULL if the name is NULL or the graph as built has no such leaf. */
input_state *name_find_input(rlxvk_executable *e, const char *name);
param_state *name_find_param(rlxvk_executable *e, const char *name);
/* Says why there is no leaf of this op ("input" or "param") with this name:
 *   E_UNKNOWN_NAME   the sentence lists the names that there are; or, if the name is a leaf of the
 *                    other op, how to use it
 *   E_NULL           the name is NULL */
rlxvk_status name_unknown(const rlxvk_graph *source, const char *call, const char *row,
                          const char *name);
/* Finds an input as name_find_input does, or fails like name_unknown. */
rlxvk_status name_live_input(rlxvk_executable *e, const char *call, const char *name,
                             input_state **out);

#endif
