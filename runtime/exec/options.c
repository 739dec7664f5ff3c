/*
 * What a compile was asked for: the options of the call over the switches of the context. The one
 * place that decides which of the two goes first.
 */
#include "exec/options.h"
#include "op/choice/variant.h"

#include <string.h>

#define MOST_IN_FLIGHT 1024 /* each has staging memory of its own */

/* Turns "all" or row names into OP_COUNT flags. */
static rlxvk_status parse_rows(const char *names, bool on_host[OP_COUNT])
{
    char row[64];
    for (const char *at = names; at && *at;) {
        size_t length = strcspn(at, ",");
        bool all = length == 3 && strncmp(at, "all", 3) == 0;
        if (length >= sizeof row)
            return status_fail(RLXVK_E_ATTR, "force_host: '%s' names no op; give row names or all",
                               at);
        memcpy(row, at, length);
        row[length] = 0;
        op_kind op = op_find(row);
        if (!all && op == OP_COUNT && length)
            return status_fail(RLXVK_E_ATTR,
                               "force_host: there is no op '%s'; give row names or all", row);
        for (uint32_t i = 0; i < OP_COUNT; i++)
            on_host[i] = on_host[i] || all || i == op;
        at += length + (at[length] == ',');
    }
    return RLXVK_OK;
}

rlxvk_status options_force_rows(const rlxvk_executable *e, bool on_host[OP_COUNT])
{
    const char *rows = e->options.force_host;
    return parse_rows(rows ? rows : e->context->switches.force_host, on_host);
}

void options_apply(rlxvk_executable *e)
{
    const rlxvk_compile_options *o = &e->options;
    const switches *s = &e->context->switches;
    bool diagnosing = s->nan_trace || s->dump_nodes;
    e->keep_all = o->keep_all || diagnosing;
    e->cached = toggle(o->cached, !s->no_cache);
    e->profiled = toggle(o->profile, e->context->trace != NULL);
    e->timed = toggle(o->time_runs, false);
    e->full_barrier = toggle(o->full_barrier, s->full_barrier) || !e->cached || e->profiled;
    e->force_upload = s->force_input_upload;
    e->check_index = toggle(o->check_index, s->check & CHECK_INDEX);
    e->check_packed = toggle(o->check_packed, s->check & CHECK_PACKED);
    e->max_in_flight = (o->max_in_flight ? o->max_in_flight : 2) + 1;
    e->timeout_ns = o->timeout_ns ? o->timeout_ns : 60ull * 1000000000ull;
}

/* The option strings that a clone needs outlive the caller's. */
rlxvk_status options_keep(rlxvk_executable *e)
{
    const char **strings[] = {&e->options.force_host, &e->options.matmul, &e->options.variant};
    for (size_t i = 0; i < ARRAY_COUNT(strings); i++)
        if (*strings[i] && !(*strings[i] = arena_copy_string(&e->source->memory, *strings[i])))
            return status_fail_memory("compile options");
    return RLXVK_OK;
}

static bool wants_matrix_layout(const rlxvk_graph *g)
{
    for (uint32_t id = 0; id < g->nodes.count; id++)
        if (node_row(graph_node(g, id))->family->matrix_layout)
            return true;
    return false;
}

/* Which kernels the caller wants: options go before switches. */
rlxvk_status options_read_modes(rlxvk_executable *e, schedule_options *how)
{
    const rlxvk_compile_options *o = &e->options;
    rlxvk_status status;
    how->matmul = e->context->switches.matmul;
    how->precision = o->precision;
    how->tuning = &e->context->tuning;
    how->variants = o->variant ? o->variant : e->context->switches.variant;
    if ((unsigned)o->precision > RLXVK_PRECISION_SPLIT)
        return status_fail(RLXVK_E_ATTR, "compile option precision is %d; it takes 0 (f32) to %d",
                           (int)o->precision, RLXVK_PRECISION_SPLIT);
    if (o->matmul)
        TRY(switches_parse_matmul(o->matmul, "compile option matmul", &how->matmul));
    if (how->matmul == MATMUL_COOP) {
        how->matmul = MATMUL_AUTO;
        if (o->precision == RLXVK_PRECISION_F32)
            how->precision = RLXVK_PRECISION_F16;
    }
    e->precision = how->precision;
    if (how->precision == RLXVK_PRECISION_F16 && wants_matrix_layout(e->graph))
        TRY(vk_matrix_layout(e->device, &how->matrix_in_lanes));
    TRY(variant_check(how->variants, o->variant ? "compile option variant" : "RLXVK_VARIANT"));
error:
    return status;
}

rlxvk_status options_check(const rlxvk_context *context, const rlxvk_compile_options *o)
{
    rlxvk_status status;
    if (o->max_in_flight > MOST_IN_FLIGHT)
        return status_fail(RLXVK_E_ATTR, "compile option max_in_flight is %u; at most %d",
                           o->max_in_flight, MOST_IN_FLIGHT);
    if (o->share_with && o->share_with->context != context)
        return status_fail(RLXVK_E_ATTR,
                           "compile option share_with is an executable of another context; "
                           "memory is shared within one");
    TRY(status_require_items(o->shared_inputs, o->shared_input_count, "compile", "shared_inputs"));
    for (size_t i = 0; i < o->shared_input_count; i++)
        TRY(status_require(o->shared_inputs[i], "compile", "a name in shared_inputs"));
error:
    return status;
}
