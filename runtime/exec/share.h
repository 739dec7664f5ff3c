/* Which leaves of a program may lie in the memory of another executable. */
#ifndef RLXVK_EXEC_SHARE_H
#define RLXVK_EXEC_SHARE_H

#include "exec/program.h"

/* Whether these params of a graph as built may lie in one piece of memory, in this order: they do
 * so in the program `sharer`, or are none of its params; any may where that is NULL. */
bool share_may_join(const void *sharer, const char *const *names, uint32_t count);

/* As what dtype a live param of the same name, shape and declared dtype is held in the program
 * `sharer`, so that it may be shared; `otherwise` if there is none, or `sharer` is NULL. */
rlxvk_dtype share_held_as(const void *sharer, const node *param, rlxvk_dtype otherwise);

/* Marks them, per node of the lowered and listed program `p`: the params that `theirs` has alike,
 * or what joins them, and the inputs that the options name. E_UNKNOWN_NAME, E_DTYPE or E_SHAPE
 * where one of those is not in both, or not alike. */
rlxvk_status share_match(const program *p, const program *theirs, const rlxvk_compile_options *o,
                         bool *shared);

#endif
