/* Which leaves of a program may lie in the memory of another executable. */
#ifndef RLXVK_EXEC_SHARE_H
#define RLXVK_EXEC_SHARE_H

#include "exec/program.h"

/* Marks them, per node of the lowered and listed program `p`: the params that `theirs` has alike,
 * and the inputs that the options name. E_UNKNOWN_NAME, E_DTYPE or E_SHAPE where one of those is
 * not in both, or not alike. */
rlxvk_status share_match(const program *p, const program *theirs, const rlxvk_compile_options *o,
                         bool *shared);

#endif
