/* What was running when the device was lost. */
#ifndef RLXVK_EXEC_LOSS_H
#define RLXVK_EXEC_LOSS_H

#include "exec/executable.h"

/* If `status` is E_DEVICE_LOST, adds to its text the dispatches that were submitted last, and what
 * the driver says. Returns `status`. */
rlxvk_status loss_explain(const rlxvk_executable *e, rlxvk_status status);

#endif
