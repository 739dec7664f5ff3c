/* Content of one executable to another. */
#ifndef RLXVK_EXEC_COPY_H
#define RLXVK_EXEC_COPY_H

#include "exec/state.h"

/* Copies params, inputs with the state of their handles, and the random state between executables
 * of one source graph. */
rlxvk_status copy_content(rlxvk_executable *to, rlxvk_executable *from);

#endif
