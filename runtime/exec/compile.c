/*
 * The begin and the end of executables. rlxvk_compile checks the options, and binds the symbols or
 * leaves them to runs.
 */
#include "exec/cached_bindings.h"
#include "exec/create.h"
#include "exec/member.h"
#include "exec/ticket.h"
#include "program/bucket_axes.h"

/* Checks the options for sharing memory. */
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
    if (o->share_with && !o->share_with->program)
        TRY(member_bind_examples(o->share_with, NULL));
    if (o->share_with) /* rows fed into memory that will be shared must arrive first */
        TRY(ticket_flush(o->share_with));
    if (o->shared_input_count && !o->share_with)
        return status_fail(RLXVK_E_ATTR,
                           "compile option shared_inputs has %zu names, and share_with is NULL: "
                           "say whose memory they are to use",
                           o->shared_input_count);
error:
    return status;
}

/* Creates an executable whose symbols are bound by runs. Nothing is compiled yet, unless it must
 * share memory now. */
static rlxvk_status open_with_symbols(rlxvk_context *context, const rlxvk_graph *graph,
                                      const binding_list *sizes, const program_options *options,
                                      const rlxvk_compile_options *given, rlxvk_executable **out)
{
    rlxvk_compile_options sharing = {.share_with = given->share_with,
                                     .shared_inputs = given->shared_inputs,
                                     .shared_input_count = given->shared_input_count};
    rlxvk_executable *e = NULL;
    cached_bindings *f;
    rlxvk_status status;
    TRY(cached_create(graph, sizes, options, given, &f));
    TRY(cached_open(context, f, &e));
    if (given->share_with)
        TRY(member_bind_examples(e, &sharing));
    *out = e;
    return RLXVK_OK;
error:
    rlxvk_executable_destroy(e);
    return status;
}

static rlxvk_status compile_symbols(rlxvk_context *context, const rlxvk_graph *graph,
                                    const program_options *options,
                                    const rlxvk_compile_options *given, rlxvk_executable **out)
{
    binding_list sizes = {0};
    rlxvk_graph *bound = NULL;
    rlxvk_status status;
    TRY(bind_resolve(given->bindings, given->binding_count, &sizes));
    if (bind_is_complete(graph, &sizes)) {
        TRY(op_verify(graph)); /* errors at any sizes come first */
        TRY(bind_graph(graph, &sizes, &bound));
        TRY(create_compiled(context, bound, options, given, out));
    } else {
        TRY(open_with_symbols(context, graph, &sizes, options, given, out));
    }
error:
    VECTOR_FREE(&sizes);
    rlxvk_graph_destroy(bound);
    return status;
}

rlxvk_status rlxvk_compile(rlxvk_context *context, const rlxvk_graph *graph,
                           const rlxvk_compile_options *options, rlxvk_executable **out_executable)
{
    rlxvk_compile_options given;
    program_options resolved;
    axis_list axes = {0};
    rlxvk_status status;
    TRY(status_require(out_executable, "compile", "out_executable"));
    *out_executable = NULL;
    TRY(status_require(context, "compile", "context"));
    TRY(status_require(graph, "compile", "graph"));
    TRY(sized_read(SIZED(rlxvk_compile_options), options, &given));
    TRY(check_sharing(context, &given));
    TRY(status_require_items(given.bindings, given.binding_count, "compile", "bindings"));
    TRY(options_resolve(context, &given, &resolved));
    TRY(bucket_axes_resolve(graph, &given, &axes));
    given.bucket_axes = axes.items; /* symbols may be numbers from here on */
    given.bucket_axis_count = axes.count;
    TRY((graph->symbols && graph->status == RLXVK_OK
             ? compile_symbols
             : create_compiled)(context, graph, &resolved, &given, out_executable));
error:
    VECTOR_FREE(&axes);
    return status;
}

/* The bindings come last, because they may hold the last reference to the context. */
void rlxvk_executable_destroy(rlxvk_executable *executable)
{
    if (!executable || vk_is_foreign(executable->device))
        return;
    cached_bindings *bindings = executable->bindings;
    executable_end(executable);
    cached_destroy(bindings);
}
