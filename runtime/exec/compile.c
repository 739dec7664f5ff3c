/*
 * Compiling: verify -> rewrite -> schedule -> plan -> pipelines make a program; then its first
 * executable is made.
 */
#include "exec/compile.h"
#include "exec/dump.h"
#include "exec/executable.h"
#include "exec/share.h"
#include "exec/stage.h"
#include "exec/ticket.h"

/* The plan, with the leaves left out whose memory is another executable's. */
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
                                    const exec_options *options,
                                    const rlxvk_compile_options *sharing, program **out)
{
    program *p = NULL;
    rlxvk_status status;
    TRY(program_create(context, &p));
    p->options = *options;
    TRY(stage_rewrite(p, graph));
    TRY(stage_lower(p));
    TRY(program_list(p));
    TRY(plan_shared(p, sharing));
    TRY(report(p));
    TRY(stage_pipelines(p));
    *out = p;
    return RLXVK_OK;
error:
    program_release(p);
    return status;
}

rlxvk_status compile_graph(rlxvk_context *context, const rlxvk_graph *graph,
                           const exec_options *options, const rlxvk_compile_options *sharing,
                           rlxvk_executable **out)
{
    double start = context->trace ? trace_now() : 0;
    program *p = NULL;
    rlxvk_status status;
    TRY(compile_program(context, graph, options, sharing, &p));
    TRY(executable_create(p, sharing ? sharing->share_with : NULL, NULL, out));
    trace_span(context->trace, "compile", TRACE_HOST, start,
               context->trace ? trace_now() - start : 0, NULL);
error:
    program_release(p); /* the executable holds it */
    return status;
}

/* What of the options is judged by the call itself. */
static rlxvk_status check_sharing(const rlxvk_context *context, const rlxvk_compile_options *o)
{
    rlxvk_status status;
    if (o->share_with && o->share_with->context != context)
        return status_fail(RLXVK_E_ATTR,
                           "compile option share_with is an executable of another context; "
                           "memory is shared within one");
    TRY(status_require_items(o->shared_inputs, o->shared_input_count, "compile", "shared_inputs"));
    for (size_t i = 0; i < o->shared_input_count; i++)
        TRY(status_require(o->shared_inputs[i], "compile", "a name in shared_inputs"));
    if (o->shared_input_count && !o->share_with)
        return status_fail(RLXVK_E_ATTR,
                           "compile option shared_inputs has %zu names, and share_with is NULL: "
                           "say whose memory they are to use",
                           o->shared_input_count);
error:
    return status;
}

rlxvk_status rlxvk_compile(rlxvk_context *context, const rlxvk_graph *graph,
                           const rlxvk_compile_options *options, rlxvk_executable **out_executable)
{
    static const rlxvk_compile_options defaults = {0};
    const rlxvk_compile_options *given = options ? options : &defaults;
    exec_options resolved;
    rlxvk_status status;
    TRY(status_require(context, "compile", "context"));
    TRY(status_require(graph, "compile", "graph"));
    TRY(status_require(out_executable, "compile", "out_executable"));
    if (graph->symbols && graph->status == RLXVK_OK)
        TRY(status_fail(RLXVK_E_UNBOUND_SYMBOL,
                        "compile: the graph has symbols; bind them first, with rlxvk_graph_bind"));
    TRY(check_sharing(context, given));
    TRY(options_resolve(context, given, &resolved));
    if (given->share_with) /* rows fed to what is about to be shared land first */
        TRY(ticket_flush(given->share_with));
    TRY(compile_graph(context, graph, &resolved, given, out_executable));
error:
    return status;
}
