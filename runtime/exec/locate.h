/* Where the values of an executable lie, once its own pools are made. */
#ifndef RLXVK_EXEC_LOCATE_H
#define RLXVK_EXEC_LOCATE_H

#include "exec/state.h"

/* `share_with`: whose memory shared leaves lie in. NULL: they get blocks of their own, e->detached.
 */
rlxvk_status locate_values(rlxvk_executable *e, const rlxvk_executable *share_with);
/* Gives every leaf the record of what is known of its content: its own, or that of whoever it
 * shares with, and with it what the other's handle was. Notes there that it is shared. */
void locate_contents(rlxvk_executable *e, const rlxvk_executable *share_with);

#endif
