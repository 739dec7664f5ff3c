/* Birth and death of an executable whose plan is made. */
#include "exec/executable.h"
#include "exec/allocate.h"
#include "exec/diagnose.h"
#include "exec/host_step.h"
#include "exec/record.h"
#include "exec/rng.h"
#include "exec/share.h"

rlxvk_status executable_prepare(rlxvk_executable *e)
{
    device *d = e->device;
    rlxvk_status status;
    TRY(state_make_tables(e));
    e->diagnosed = diagnose_needed(e);
    TRY(rng_prepare(e));
    TRY(command_pool_create(d, &e->pool));
    TRY(command_buffers_allocate(d, e->pool, 1, &e->transfer));
    TRY(vk_timeline_create(d, &e->timeline));
    TRY(allocate_memory(e));
    TRY(host_steps_prepare(e));
    TRY(record_all(e));
    if (e->options.share_with)
        share_adopt(e);
error:
    return status;
}

void rlxvk_executable_destroy(rlxvk_executable *executable)
{
    rlxvk_executable *e = executable;
    if (!e)
        return;
    if (e->timeline && e->submitted) /* whatever the deadline: nothing in use may be freed */
        (void)vk_timeline_wait(e->device, e->timeline, e->submitted, UINT64_MAX);
    state_destroy(e);
}
