/* Computes the sizes of symbols from the lengths of a run's inputs. */
#ifndef RLXVK_EXEC_INFER_H
#define RLXVK_EXEC_INFER_H

#include "exec/executable.h"
#include "op/bind.h"

/* Adds the sizes that follow from the lengths.
 *   E_UNKNOWN_NAME     the graph has no such input
 *   E_LENGTH           a length is not a multiple of the product of the known dims
 *   E_BIND_AMBIGUOUS   an input has two unknown symbols that nothing else tells; a root is not
 *                      whole; or a known dim is 0
 *   E_BIND_CONFLICT    two inputs tell different sizes, or ROWS is not BATCH * SEQ
 *   E_TOO_LARGE        the product of the known dims overflows */
rlxvk_status infer_sizes(const rlxvk_graph *g, const char *call, const sized_array *inputs,
                         binding_list *out);

#endif
