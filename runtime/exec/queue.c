/*
 * Submission. Every submission signals the next value of the executable's timeline. So waiting for
 * the last value waits for all.
 */
#include "exec/queue.h"
#include "exec/loss.h"

/* Submissions need not wait for each other, because every command buffer begins with a barrier
 * against everything before it on the queue. Only if there are queries does a submission wait for
 * the one before, because queries are reset. */
rlxvk_status queue_submit(rlxvk_executable *e, const VkCommandBuffer *buffers, uint32_t count)
{
    uint64_t after = e->queries ? e->submitted : 0;
    rlxvk_status status;
    if (count == 0)
        return RLXVK_OK;
    TRY(vk_queue_submit(e->device, e->timeline, after, e->submitted + 1, buffers, count));
    e->submitted++;
    e->submissions++;
    return RLXVK_OK;
error:
    e->lost = e->lost || vk_is_lost(e->device);
    return loss_explain(e, status);
}

rlxvk_status queue_submit_batch(rlxvk_executable *e)
{
    uint32_t count = e->batch_count;
    rlxvk_status status;
    e->batch_count = 0;
    e->last_batch_count = count;
    e->batch_ns = 0;
    TRY(queue_submit(e, e->batch, count));
    e->row_feeds_pending = false; /* row feeds go into a run's first batch */
error:
    return status;
}

/* The deadline is for one submission. A run with loops or a bound of time makes many, so we wait
 * for one after the other. */
rlxvk_status queue_wait(rlxvk_executable *e, uint64_t reach)
{
    rlxvk_status status = RLXVK_OK;
    bool many = e->program->plan.loops.count || e->bounded;
    uint64_t next = many ? MIN(e->reached + 1, reach) : reach;
    for (; next <= reach && status == RLXVK_OK; next++)
        status = vk_timeline_wait(e->device, e->timeline, next, e->program->options.timeout_ns);
    e->lost = e->lost || status != RLXVK_OK;
    if (status == RLXVK_OK)
        e->reached = MAX(e->reached, reach);
    return loss_explain(e, status);
}

rlxvk_status queue_wait_all(rlxvk_executable *e)
{
    return queue_wait(e, e->submitted);
}

rlxvk_status queue_usable(const rlxvk_executable *e)
{
    if (e->lost && !vk_is_lost(e->device))
        return status_fail(RLXVK_E_DEVICE_LOST,
                           "a deadline passed before; destroy this executable");
    return vk_require_device(e->device, "run");
}
