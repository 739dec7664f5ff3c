/* Lists everything that is wrong with a graph, one entry for each cause. */
#ifndef RLXVK_PROBLEM_H
#define RLXVK_PROBLEM_H

#include "op/op.h"

#include <rlxvk_symbols.h>

/* Zeroed except the memory for items. Problems beyond that are only counted. */
typedef struct problem_list {
    sized_array items; /* rlxvk_problem */
    size_t count;
    bool *bad; /* per node; NULL: no node is bad yet */
} problem_list;

/* Notes the thread's last error as a problem of node `id`, or of the graph if id is NODE_NONE. It
 * does nothing if `status` is OK. E_OUT_OF_HOST_MEMORY is returned, because it is not a problem of
 * the graph. */
rlxvk_status problem_note(problem_list *list, const rlxvk_graph *g, uint32_t id,
                          rlxvk_status status);
/* Whether a node can be checked. It cannot if it or an operand is bad, because the shape of a bad
 * operand is unknown. A node with a bad operand becomes bad, too, but it is not a problem of its
 * own. */
bool problem_may_check(problem_list *list, const rlxvk_graph *g, uint32_t id);
/* Frees all but the items. */
void problem_list_end(problem_list *list);

/* op_verify that goes on after a problem. */
rlxvk_status op_verify_each(const rlxvk_graph *g, problem_list *list);

#endif
