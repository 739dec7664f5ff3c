/*
 * Creates and destroys executables. An executable owns its memory, command buffers and descriptor
 * sets. Everything that is compiled belongs to its program.
 */
#include "exec/executable.h"
#include "exec/active.h"
#include "exec/allocate.h"
#include "exec/diagnose.h"
#include "exec/family.h"
#include "exec/host_step.h"
#include "exec/locate.h"
#include "exec/record.h"
#include "exec/rng.h"

rlxvk_status executable_create(program *p, const rlxvk_executable *share_with,
                               const rlxvk_executable *copy_of, rlxvk_executable **out)
{
    trace *trace = p->context->trace;
    device *d = p->device;
    rlxvk_executable *e = NULL;
    rlxvk_status status;
    TRY(state_create(p, &e));
    e->diagnosed = diagnose_needed(e);
    TRY(command_pool_create(d, &e->pool));
    TRY(command_buffers_allocate(d, e->pool, 1, &e->transfer));
    TRY(vk_timeline_create(d, &e->timeline));
    TRACE_TRY(trace, "allocate", allocate_memory(e, share_with, copy_of));
    TRY(host_steps_prepare(e));
    TRY(active_prepare(e));
    TRACE_TRY(trace, "record", record_all(e));
    locate_contents(e, share_with); /* changes share_with, so nothing may fail after it */
    rng_prepare(e);
    active_find_count(e);
    *out = e;
    return RLXVK_OK;
error:
    rlxvk_executable_destroy(e);
    return status;
}

void rlxvk_executable_destroy(rlxvk_executable *executable)
{
    rlxvk_executable *e = executable;
    if (!e || vk_is_foreign(e->device)) /* a fork must not free objects of the parent */
        return;
    family_destroy(e->family);
    if (!e->program) { /* nothing was bound */
        memory_free(e);
        return;
    }
    if (e->timeline && e->submitted) /* ignores the deadline, because nothing in use may be freed */
        (void)vk_timeline_wait(e->device, e->timeline, e->submitted, UINT64_MAX);
    state_destroy(e);
}
