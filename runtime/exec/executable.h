/* Creating an executable: the state of a program, ready to run. */
#ifndef RLXVK_EXEC_EXECUTABLE_H
#define RLXVK_EXEC_EXECUTABLE_H

#include "exec/state.h"

/* Compiles nothing. Both executables may be NULL:
 *   share_with   shared leaves lie in its memory; if NULL, they get memory of the new executable
 *   copy_of      its memory is copied */
rlxvk_status executable_create(program *p, const rlxvk_executable *share_with,
                               const rlxvk_executable *copy_of, rlxvk_executable **out);

#endif
