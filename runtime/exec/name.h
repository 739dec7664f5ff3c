/* Leaves by name. */
#ifndef RLXVK_EXEC_NAME_H
#define RLXVK_EXEC_NAME_H

#include "exec/state.h"

/* NULL when the graph as built has none of it, or the name is NULL. */
input_state *name_find_input(rlxvk_executable *e, const char *name);
param_state *name_find_param(rlxvk_executable *e, const char *name);
/* Why there is no leaf of this row ("input", "param") with this name: E_UNKNOWN_NAME, naming those
 * there are, or saying that it is one of the other kind and what to do with it; E_NULL for no name
 * at all. */
rlxvk_status name_unknown(const rlxvk_graph *source, const char *call, const char *row,
                          const char *name);
/* name_find_input, or why there is none. */
rlxvk_status name_live_input(rlxvk_executable *e, const char *call, const char *name,
                             input_state **out);

#endif
