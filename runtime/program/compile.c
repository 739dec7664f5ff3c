/* Compiling: verify -> rewrite -> schedule -> plan -> pipelines make a program. */
#include "program/compile.h"
#include "program/bucket_axes.h"
#include "program/dump.h"
#include "program/room.h"
#include "program/share.h"
#include "program/stage.h"

/* Makes the plan. Leaves whose memory belongs to another executable get no slots. */
static rlxvk_status plan_shared(program *p, const rlxvk_compile_options *given,
                                const program *sharer)
{
    bool *shared;
    rlxvk_status status;
    if (!sharer)
        return stage_plan(p, NULL);
    if (!(shared = memory_zeroed(p->graph->nodes.count + 1, sizeof *shared)))
        return status_fail_memory("shared leaves");
    TRY(share_match(p, sharer, given, shared));
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

/* If *out_changed is set in the end, there is no program, because `tried` was changed and the graph
 * must be compiled again. That is if a kernel of an op has more storage buffers than the device
 * takes, so that the op must run on the host. Or it is if prepared weights exceed the memory that
 * is allowed. */
static rlxvk_status compile_once(rlxvk_context *context, const rlxvk_graph *graph,
                                 program_options *tried, const rlxvk_compile_options *given,
                                 const program *sharer, program **out, bool *out_changed)
{
    const rlxvk_bucket_axis *axes = given ? given->bucket_axes : NULL;
    size_t axis_count = given ? given->bucket_axis_count : 0;
    trace *trace = context->trace;
    op_kind excess = OP_COUNT;
    program *p = NULL;
    rlxvk_status status;
    *out_changed = false;
    TRY(program_create(context, &p));
    p->options = *tried;
    TRY(stage_source(p, graph));
    if (tried->shorter)
        TRACE_TRY(trace, "shorten", bucket_axes_shorten(p, axes, axis_count));
    TRACE_TRY(trace, "rewrite", stage_rewrite(p, sharer));
    TRACE_TRY(trace, "lower", stage_lower(p));
    if ((*out_changed = stage_finds_excess(p, &excess))) {
        tried->on_host[excess] = true;
        goto error;
    }
    TRY(program_list(p));
    TRACE_TRY(trace, "extent", bucket_axes_analyze(p, axes, axis_count));
    TRACE_TRY(trace, "plan", plan_shared(p, given, sharer));
    if ((*out_changed = room_prepare_less(p, tried)))
        goto error;
    TRY(room_check(p));
    TRY(report(p));
    TRACE_TRY(trace, "pipelines", stage_pipelines(p));
    *out = p;
    return RLXVK_OK;
error:
    program_release(p);
    return status;
}

/* Ops go to the host one by one. With each, the graph is rewritten anew, because it may then be
 * fused in another way, or not at all. */
rlxvk_status compile_program(rlxvk_context *context, const rlxvk_graph *graph,
                             const program_options *options, const rlxvk_compile_options *given,
                             const program *sharer, program **out)
{
    program_options tried = *options;
    bool changed;
    rlxvk_status status;
    do
        TRY(compile_once(context, graph, &tried, given, sharer, out, &changed));
    while (changed);
error:
    return status;
}
