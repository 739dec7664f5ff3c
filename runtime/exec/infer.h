/* Sizes of symbols from the lengths of a run's inputs. */
#ifndef RLXVK_EXEC_INFER_H
#define RLXVK_EXEC_INFER_H

#include "exec/state.h"
#include "op/bind.h"

/* Adds what the lengths tell. E_UNKNOWN_NAME, E_LENGTH: no multiple of what is known of the shape;
 * E_BIND_AMBIGUOUS: two symbols of one input that nothing else tells, or no whole root;
 * E_BIND_CONFLICT: two inputs tell two sizes. */
rlxvk_status infer_sizes(const rlxvk_graph *g, const char *call, const sized_array *inputs,
                         binding_list *out);

#endif
