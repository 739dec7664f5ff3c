/* Which leaves of a program may lie in the memory of another executable. */
#ifndef RLXVK_EXEC_SHARE_H
#define RLXVK_EXEC_SHARE_H

#include "exec/program.h"

/* Marks them, per node of the lowered program `p`: all params, and the inputs that the options
 * name, where `theirs` has a leaf alike. */
rlxvk_status share_match(const program *p, const program *theirs, const rlxvk_compile_options *o,
                         bool *shared);

#endif
