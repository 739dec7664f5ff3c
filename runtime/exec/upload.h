/* Copies inputs into their slots. */
#ifndef RLXVK_EXEC_UPLOAD_H
#define RLXVK_EXEC_UPLOAD_H

#include "exec/executable.h"

/* Copies `item` into its input's slot: in place, staged for this ticket, or blocking. */
rlxvk_status upload_input(rlxvk_executable *e, input_state *in, uint32_t ticket,
                          const rlxvk_run_input *item);
/* Whether the next run writes this input, because it is given or restored from its mirror. */
bool upload_is_due(const rlxvk_executable *e, const input_state *in);
/* Uploads all inputs that are due. */
rlxvk_status upload_all(rlxvk_executable *e, uint32_t ticket);

#endif
