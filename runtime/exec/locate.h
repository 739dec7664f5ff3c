/* Finds the memory of each value of an executable, after its own pools are made. */
#ifndef RLXVK_EXEC_LOCATE_H
#define RLXVK_EXEC_LOCATE_H

#include "exec/executable.h"

/* Shared leaves lie in the memory of `share_with`. If it is NULL, they get blocks of their own,
 * e->detached: on the host if they lie there in `copy_of`, which may be NULL, too. */
rlxvk_status locate_values(rlxvk_executable *e, const rlxvk_executable *share_with,
                           const rlxvk_executable *copy_of);
/* Gives every leaf its content record. A shared leaf uses the record of `share_with`, which is
 * marked as shared. Its input is then resident if the input there is a handle. */
void locate_contents(rlxvk_executable *e, const rlxvk_executable *share_with);

#endif
