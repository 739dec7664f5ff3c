/*
 * Compiling: verify -> rewrite -> schedule -> plan -> allocate -> record. Everything before
 * allocation is pure data.
 */
#include "exec/compile.h"
#include "exec/dump.h"
#include "exec/executable.h"
#include "exec/options.h"
#include "exec/stage.h"

static rlxvk_status report_stage(rlxvk_executable *e)
{
    unsigned dump = e->context->switches.dump, check = e->context->switches.check;
    rlxvk_status status = RLXVK_OK;
    if (e->options.dump)
        TRY(switches_parse_dump(e->options.dump, "compile option dump", &dump));
    if (dump & DUMP_GRAPH)
        dump_graph(e, e->source, "graph");
    if (dump & DUMP_REWRITE)
        TRY(dump_rewrite(e));
    if (dump & DUMP_PLAN)
        dump_plan(e);
    if (dump & DUMP_BARRIERS)
        dump_barriers(e);
    if (toggle(e->options.check_plan, check & CHECK_PLAN))
        TRY(plan_check(&e->schedule, &e->plan, NULL));
error:
    return status;
}

rlxvk_status compile_graph(rlxvk_context *context, const rlxvk_graph *graph,
                           const rlxvk_compile_options *options, rlxvk_executable **out)
{
    rlxvk_executable *e = memory_zeroed(1, sizeof *e);
    double start = context->trace ? trace_now() : 0;
    rlxvk_status status;
    if (!e)
        return status_fail_memory("executable");
    e->context = context;
    e->device = context->device;
    e->options = options ? *options : (rlxvk_compile_options){0};
    options_apply(e);
    TRY(stage_rewrite(e, graph));
    TRY(stage_plan(e));
    TRY(report_stage(e));
    TRY(executable_prepare(e));
    if (context->switches.debug)
        dump_summary(e);
    e->options.dump = NULL; /* what is the caller's ends with the call */
    e->options.share_with = NULL;
    e->options.shared_inputs = NULL;
    e->options.shared_input_count = 0;
    trace_span(context->trace, "compile", TRACE_HOST, start,
               context->trace ? trace_now() - start : 0, NULL);
    *out = e;
    return RLXVK_OK;
error:
    rlxvk_executable_destroy(e);
    return status;
}

rlxvk_status rlxvk_compile(rlxvk_context *context, const rlxvk_graph *graph,
                           const rlxvk_compile_options *options, rlxvk_executable **out_executable)
{
    rlxvk_status status;
    TRY(status_require(context, "compile", "context"));
    TRY(status_require(graph, "compile", "graph"));
    TRY(status_require(out_executable, "compile", "out_executable"));
    if (options)
        TRY(options_check(context, options));
    TRY(compile_graph(context, graph, options, out_executable));
error:
    return status;
}
