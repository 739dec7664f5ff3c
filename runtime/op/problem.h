/* What is wrong with a graph: all of it, one entry a cause. */
#ifndef RLXVK_PROBLEM_H
#define RLXVK_PROBLEM_H

#include "op/op.h"

#include <rlxvk_symbols.h>

/* Zeroed but for the room for items; what is beyond is counted. */
typedef struct problem_list {
    sized_array items; /* rlxvk_problem */
    size_t count;
    bool *bad; /* nodes; NULL: none yet */
} problem_list;

/* Takes the thread's last error, unless `status` is OK, as a problem of node `id`, or, with
 * NODE_NONE, of the graph. What is the host's trouble, not the graph's, is returned: running out of
 * memory. */
rlxvk_status problem_note(problem_list *list, const rlxvk_graph *g, uint32_t id,
                          rlxvk_status status);
/* Whether a node can be checked: not one known to be bad, nor where an operand is bad, since what
 * that gives is not known. Such a node counts as bad, too, and is no problem of its own. */
bool problem_may_check(problem_list *list, const rlxvk_graph *g, uint32_t id);
/* Frees what is no item. */
void problem_list_end(problem_list *list);

/* op_verify that goes on after what it finds. */
rlxvk_status op_verify_each(const rlxvk_graph *g, problem_list *list);

#endif
