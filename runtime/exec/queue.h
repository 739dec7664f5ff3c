/* Submitting recorded commands and waiting for them. */
#ifndef RLXVK_EXEC_QUEUE_H
#define RLXVK_EXEC_QUEUE_H

#include "exec/state.h"

/* Submits command buffers in order. */
rlxvk_status queue_submit(rlxvk_executable *e, const VkCommandBuffer *buffers, uint32_t count);
/* Those in e->batch, which it empties. */
rlxvk_status queue_submit_batch(rlxvk_executable *e);
/* Until the timeline has reached a value, or all there is. Past the deadline the executable is
 * lost. */
rlxvk_status queue_wait(rlxvk_executable *e, uint64_t reach);
rlxvk_status queue_wait_all(rlxvk_executable *e);
/* E_DEVICE_LOST once the device was lost or a deadline passed. */
rlxvk_status queue_usable(const rlxvk_executable *e);

#endif
