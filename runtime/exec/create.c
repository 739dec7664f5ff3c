/* Creates executables: of a program, or of a graph, which is compiled first. */
#include "exec/create.h"
#include "exec/active_extent.h"
#include "exec/allocate.h"
#include "exec/bounded.h"
#include "exec/diagnose.h"
#include "exec/host_step.h"
#include "exec/locate.h"
#include "exec/param.h"
#include "exec/record.h"
#include "exec/rng.h"
#include "program/compile.h"
#include "program/room.h"

rlxvk_status create_executable(program *p, const rlxvk_executable *share_with,
                               const rlxvk_executable *copy_of, rlxvk_executable **out)
{
    trace *trace = p->context->trace;
    device *d = p->device;
    rlxvk_executable *e = NULL;
    rlxvk_status status;
    TRY(executable_begin(p, &e));
    e->diagnosed = diagnose_needed(e);
    TRY(command_pool_create(d, &e->pool));
    TRY(command_buffers_allocate(d, e->pool, 1, &e->transfer));
    TRY(vk_timeline_create(d, &e->timeline));
    TRACE_TRY(trace, "allocate", room_explain(p, allocate_memory(e, share_with, copy_of)));
    TRY(host_steps_prepare(e));
    TRY(active_prepare(e));
    TRACE_TRY(trace, "record", record_all(e));
    TRY(bounded_create(e));
    locate_contents(e, share_with); /* changes share_with, so nothing may fail after it */
    rng_prepare(e);
    active_find_count(e);
    *out = e;
    return RLXVK_OK;
error:
    executable_end(e);
    return status;
}

/* *out_again: memory could not be allocated, and `options` were changed so that less is needed. */
static rlxvk_status create_once(rlxvk_context *context, const rlxvk_graph *graph,
                                program_options *options, const rlxvk_compile_options *given,
                                rlxvk_executable **out, bool *out_again)
{
    const rlxvk_executable *share_with = given ? given->share_with : NULL;
    program *p = NULL;
    rlxvk_status status;
    *out_again = false;
    TRY(compile_program(context, graph, options, given, share_with ? share_with->program : NULL,
                        &p));
    status = create_executable(p, share_with, NULL, out);
    *out_again = status == RLXVK_E_OUT_OF_DEVICE_MEMORY && room_shrink(p, options);
error:
    program_release(p); /* the executable has its own reference */
    return status;
}

rlxvk_status create_compiled(rlxvk_context *context, const rlxvk_graph *graph,
                             const program_options *options, const rlxvk_compile_options *given,
                             rlxvk_executable **out)
{
    double begin = trace_begin(context->trace);
    program_options tried = *options;
    status_sentence before;
    rlxvk_status status;
    bool again;
    status_save(&before);
    TRY(vk_require_device(context->device, "compile"));
    while ((status = create_once(context, graph, &tried, given, out, &again)) != RLXVK_OK && again)
        status_restore(&before);
    if (status == RLXVK_OK)
        param_begin_states(*out);
error:
    trace_end(context->trace, "compile", begin, NULL);
    return status;
}
