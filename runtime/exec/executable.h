/* Birth of an executable: a state of a program, ready to run. */
#ifndef RLXVK_EXEC_EXECUTABLE_H
#define RLXVK_EXEC_EXECUTABLE_H

#include "exec/state.h"

/* `share_with`: whose memory the leaves that the program shares lie in; NULL: they get memory of
 * the executable's own. `copy_of`: whose memory is copied, or NULL. Compiles nothing. */
rlxvk_status executable_create(program *p, const rlxvk_executable *share_with,
                               const rlxvk_executable *copy_of, rlxvk_executable **out);

#endif
