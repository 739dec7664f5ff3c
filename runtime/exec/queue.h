/* Submits recorded commands and waits for them. */
#ifndef RLXVK_EXEC_QUEUE_H
#define RLXVK_EXEC_QUEUE_H

#include "exec/executable.h"

/* Submits command buffers in order. */
rlxvk_status queue_submit(rlxvk_executable *e, const VkCommandBuffer *buffers, uint32_t count);
/* Submits the command buffers in e->batch and empties it. */
rlxvk_status queue_submit_batch(rlxvk_executable *e);
/* Wait until the timeline reaches a value, or the last one submitted. If the deadline passes, the
 * executable is lost. */
rlxvk_status queue_wait(rlxvk_executable *e, uint64_t reach);
rlxvk_status queue_wait_all(rlxvk_executable *e);
/* E_DEVICE_LOST if the device was lost or a deadline passed. */
rlxvk_status queue_usable(const rlxvk_executable *e);

#endif
