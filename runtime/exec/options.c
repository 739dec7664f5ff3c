/*
 * The one place that decides which goes first: an option of the call, or a switch of the context.
 */
#include "exec/options.h"
#include "op/choice/variant.h"
#include "op/random/random.h"

#include <string.h>

#define MOST_IN_FLIGHT 1024 /* each has staging memory of its own */

/* ---- Strings ---- */

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

static rlxvk_status keep_strings(exec_options *o)
{
    const char **strings[] = {&o->given.force_host, &o->given.variant};
    for (size_t i = 0; i < ARRAY_COUNT(strings); i++)
        if (*strings[i] && !(*strings[i] = arena_copy_string(&o->memory, *strings[i])))
            return status_fail_memory("compile options");
    return RLXVK_OK;
}

/* ---- What may be asked for ---- */

rlxvk_status options_check_rng(const rlxvk_rng_options *o)
{
    if (o->backend != RLXVK_RNG_PHILOX && o->backend != RLXVK_RNG_MINSTD &&
        o->backend != RLXVK_RNG_ZERO)
        return status_fail(RLXVK_E_ATTR, "rng: there is no backend %d; there are 0 to 2",
                           (int)o->backend);
    return RLXVK_OK;
}

static rlxvk_status check(const rlxvk_compile_options *o)
{
    if (o->max_in_flight > MOST_IN_FLIGHT)
        return status_fail(RLXVK_E_ATTR, "compile option max_in_flight is %u; at most %d",
                           o->max_in_flight, MOST_IN_FLIGHT);
    if ((unsigned)o->precision > RLXVK_PRECISION_SPLIT)
        return status_fail(RLXVK_E_ATTR, "compile option precision is %d; it takes 0 (f32) to %d",
                           (int)o->precision, RLXVK_PRECISION_SPLIT);
    return o->rng ? options_check_rng(o->rng) : RLXVK_OK;
}

/* ---- Options over switches ---- */

/* What compiling does to the graph and its plan. */
static void resolve_plan(const switches *s, exec_options *o)
{
    const rlxvk_compile_options *given = &o->given;
    o->forbid_host = toggle(given->forbid_host, false);
    o->allow_unset = toggle(given->allow_unset, false);
    o->keep_all = toggle(given->keep_all, false) || s->nan_trace || s->dump_nodes;
    o->fusion = toggle(given->fusion, !s->no_fusion) && !o->keep_all;
    o->regions = o->fusion && toggle(given->regions, !s->no_regions);
    o->reorder = toggle(given->reorder, true) && !o->keep_all;
    o->reuse_memory = toggle(given->reuse_memory, !s->bump_plan) && !o->keep_all;
    o->check_plan = toggle(given->check_plan, s->check & CHECK_PLAN);
    o->no_barrier = s->no_barrier;
}

/* What runs do. */
static void resolve_runs(const rlxvk_context *context, exec_options *o)
{
    const rlxvk_compile_options *given = &o->given;
    const switches *s = &context->switches;
    o->cached = toggle(given->cached, !s->no_cache);
    o->profiled = toggle(given->profile, context->trace != NULL);
    o->timed = toggle(given->time_runs, false);
    o->full_barrier = toggle(given->full_barrier, s->full_barrier) || !o->cached || o->profiled;
    o->force_upload = s->force_input_upload;
    o->check_index = toggle(given->check_index, s->check & CHECK_INDEX);
    o->check_packed = toggle(given->check_packed, s->check & CHECK_PACKED);
    o->max_in_flight = (given->max_in_flight ? given->max_in_flight : 2) + 1;
    o->timeout_ns = given->timeout_ns ? given->timeout_ns : 60ull * 1000000000ull;
    o->rng = given->rng ? *given->rng : rng_defaults;
}

/* Which kernels are wanted. A precision of F32 is no option: the switch goes before it. */
static rlxvk_status resolve_kernels(const switches *s, exec_options *o)
{
    const rlxvk_compile_options *given = &o->given;
    rlxvk_status status;
    o->precision = given->precision == RLXVK_PRECISION_F32 ? s->precision : given->precision;
    TRY(parse_rows(given->force_host ? given->force_host : s->force_host, o->on_host));
    TRY(variant_parse(given->variant ? given->variant : s->variant,
                      given->variant ? "compile option variant" : "RLXVK_VARIANT", &o->variants));
error:
    return status;
}

/* The given ones outlive the call without what is only the call's. */
static void forget_call(rlxvk_compile_options *given)
{
    given->dump = NULL;
    given->rng = NULL;
    given->share_with = NULL;
    given->shared_inputs = NULL;
    given->shared_input_count = 0;
}

rlxvk_status options_resolve(const rlxvk_context *context, const rlxvk_compile_options *given,
                             exec_options *out)
{
    rlxvk_status status;
    *out = (exec_options){.given = given ? *given : (rlxvk_compile_options){0},
                          .dump = context->switches.dump};
    TRY(check(&out->given));
    TRY(keep_strings(out));
    resolve_plan(&context->switches, out);
    resolve_runs(context, out);
    TRY(resolve_kernels(&context->switches, out));
    if (out->given.dump)
        TRY(switches_parse_dump(out->given.dump, "compile option dump", &out->dump));
error:
    forget_call(&out->given);
    return status;
}

void options_destroy(exec_options *o)
{
    arena_destroy(&o->memory);
}
