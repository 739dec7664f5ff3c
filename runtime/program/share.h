/* Decides which leaves of a program may lie in the memory of another executable. */
#ifndef RLXVK_PROGRAM_SHARE_H
#define RLXVK_PROGRAM_SHARE_H

#include "program/program.h"

/* Whether these params of a graph as built may lie in one piece of memory, in this order. They may
 * if the program `sharer` joins exactly these params in this order, or has none of them alive. If
 * `sharer` is NULL, they always may. */
bool share_may_join(const void *sharer, const char *const *names, uint32_t count);

/* The dtype in which program `sharer` holds a live param of the same name, shape and declared
 * dtype. To be shared, the param must be held like that here, too. Returns `otherwise` if there is
 * no such param, or if `sharer` is NULL. */
rlxvk_dtype share_held_as(const void *sharer, const node *param, rlxvk_dtype otherwise);

/* Marks the shared leaves, per node of `p`, which is lowered and listed. These are params that are
 * alike in `theirs`, or the node that joins them, and the inputs that the options name.
 *   E_UNKNOWN_NAME    a named input is not in both graphs, or it is dead in `theirs`
 *   E_DTYPE, E_SHAPE  a named input differs */
rlxvk_status share_match(const program *p, const program *theirs, const rlxvk_compile_options *o,
                         bool *shared);

#endif
