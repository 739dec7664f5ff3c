/*
 * Compiling: verify -> rewrite -> schedule -> plan -> pipelines make a program. Then its first
 * executable is made.
 */
#include "exec/compile.h"
#include "exec/axes.h"
#include "exec/dump.h"
#include "exec/executable.h"
#include "exec/param.h"
#include "exec/share.h"
#include "exec/stage.h"

/* Makes the plan. Leaves whose memory belongs to another executable get no slots. */
static rlxvk_status plan_shared(program *p, const rlxvk_compile_options *sharing)
{
    bool *shared;
    rlxvk_status status;
    if (!sharing || !sharing->share_with)
        return stage_plan(p, NULL);
    if (!(shared = memory_zeroed(p->graph->nodes.count + 1, sizeof *shared)))
        return status_fail_memory("shared leaves");
    TRY(share_match(p, sharing->share_with->program, sharing, shared));
    TRY(stage_plan(p, shared));
error:
    memory_free(shared);
    return status;
}

static rlxvk_status report(const program *p)
{
    unsigned dump = p->options.dump;
    rlxvk_status status = RLXVK_OK;
    if (dump & RLXVK_DUMP_GRAPH)
        dump_graph(p, p->source, "graph");
    if (dump & RLXVK_DUMP_REWRITE)
        TRY(dump_rewrite(p));
    if (dump & RLXVK_DUMP_PLAN)
        dump_plan(p);
    if (dump & RLXVK_DUMP_BARRIERS)
        dump_barriers(p);
    if (p->options.check_plan)
        TRY(plan_check(&p->schedule, &p->plan, NULL));
    if (p->context->switches.debug)
        dump_summary(p);
error:
    return status;
}

static rlxvk_status compile_program(rlxvk_context *context, const rlxvk_graph *graph,
                                    const exec_options *options, const rlxvk_compile_options *given,
                                    program **out)
{
    const program *sharer = given && given->share_with ? given->share_with->program : NULL;
    const rlxvk_bucket_axis *axes = given ? given->bucket_axes : NULL;
    size_t axis_count = given ? given->bucket_axis_count : 0;
    trace *trace = context->trace;
    program *p = NULL;
    rlxvk_status status;
    TRY(program_create(context, &p));
    p->options = *options;
    TRY(stage_source(p, graph));
    if (options->shorter)
        TRACE_TRY(trace, "shorten", axes_shorten(p, axes, axis_count));
    TRACE_TRY(trace, "rewrite", stage_rewrite(p, sharer));
    TRACE_TRY(trace, "lower", stage_lower(p));
    TRY(program_list(p));
    TRACE_TRY(trace, "extent", axes_analyze(p, axes, axis_count));
    TRACE_TRY(trace, "plan", plan_shared(p, given));
    TRY(report(p));
    TRACE_TRY(trace, "pipelines", stage_pipelines(p));
    *out = p;
    return RLXVK_OK;
error:
    program_release(p);
    return status;
}

rlxvk_status compile_graph(rlxvk_context *context, const rlxvk_graph *graph,
                           const exec_options *options, const rlxvk_compile_options *given,
                           rlxvk_executable **out)
{
    double begin = trace_begin(context->trace);
    program *p = NULL;
    rlxvk_status status;
    TRY(vk_require_device(context->device, "compile"));
    TRY(compile_program(context, graph, options, given, &p));
    TRY(executable_create(p, given ? given->share_with : NULL, NULL, out));
    param_begin_states(*out);
error:
    trace_end(context->trace, "compile", begin, NULL);
    program_release(p); /* the executable has its own reference */
    return status;
}
