/*
 * The only place that decides between an option of the call and a switch of the context.
 */
#include "program/options.h"
#include "op/choice/variant.h"
#include "op/random/random.h"

#include <string.h>

#define MOST_IN_FLIGHT 1024 /* each has staging memory of its own */
#define MOST_BINDINGS  1024

/* ---- Lists of names ---- */

static rlxvk_status force_row(const char *name, size_t length, const char *what,
                              bool on_host[OP_COUNT])
{
    char row[64] = "";
    memcpy(row, name, MIN(length, sizeof row - 1));
    op_kind op = length < sizeof row ? op_find(row) : OP_COUNT;
    if (op == OP_COUNT)
        return status_fail(RLXVK_E_ATTR,
                           "%s: there is no op '%s'; give row names, or "
                           "name none and ask for all: RLXVK_FORCE_HOST=all, option force_host",
                           what, row);
    on_host[op] = true;
    return RLXVK_OK;
}

/* Reads RLXVK_FORCE_HOST: "all", or names of ops with commas between them. */
static rlxvk_status force_text(const char *names, bool on_host[OP_COUNT])
{
    rlxvk_status status = RLXVK_OK;
    for (const char *at = names; *at; at += *at == ',') {
        size_t length = strcspn(at, ",");
        if (length == 3 && strncmp(at, "all", 3) == 0)
            memset(on_host, true, OP_COUNT * sizeof *on_host);
        else if (length)
            TRY(force_row(at, length, "RLXVK_FORCE_HOST", on_host));
        at += length;
    }
error:
    return status;
}

static rlxvk_status resolve_host(const switches *s, const rlxvk_compile_options *given,
                                 bool on_host[OP_COUNT])
{
    rlxvk_status status;
    if (given->force_host == RLXVK_DEFAULT && !given->host_ops && !given->host_op_count)
        return force_text(s->force_host, on_host);
    memset(on_host, given->force_host == RLXVK_ON, OP_COUNT * sizeof *on_host);
    TRY(status_require_items(given->host_ops, given->host_op_count, "compile", "host_ops"));
    for (size_t i = 0; i < given->host_op_count; i++) {
        const char *name = given->host_ops[i];
        TRY(status_require(name, "compile", "a name in host_ops"));
        TRY(force_row(name, strlen(name), "compile option host_ops", on_host));
    }
error:
    return status;
}

static rlxvk_status resolve_variants(const switches *s, const rlxvk_compile_options *given,
                                     variant_set *out)
{
    rlxvk_status status;
    if (!given->variants && !given->variant_count)
        return variant_parse(s->variant, "RLXVK_VARIANT", out);
    TRY(status_require_items(given->variants, given->variant_count, "compile", "variants"));
    for (size_t i = 0; i < given->variant_count; i++) {
        TRY(status_require(given->variants[i].kind, "compile", "a kind in variants"));
        TRY(status_require(given->variants[i].row, "compile", "a row in variants"));
        TRY(variant_add(&given->variants[i], "compile option variants", out));
    }
error:
    return status;
}

/* ---- Checks ---- */

rlxvk_status options_read_rng(const rlxvk_rng_options *given, rlxvk_rng_options *o)
{
    rlxvk_status status;
    TRY(sized_read(SIZED(rlxvk_rng_options), given ? given : &rng_defaults, o));
    if (o->backend != RLXVK_RNG_PHILOX && o->backend != RLXVK_RNG_MINSTD &&
        o->backend != RLXVK_RNG_ZERO)
        return status_fail(RLXVK_E_ATTR, "rng: there is no backend %d; there are 0 to 2",
                           (int)o->backend);
error:
    return status;
}

static rlxvk_status check(const rlxvk_compile_options *o)
{
    if (o->max_in_flight > MOST_IN_FLIGHT)
        return status_fail(RLXVK_E_ATTR, "compile option max_in_flight is %u; at most %d",
                           o->max_in_flight, MOST_IN_FLIGHT);
    if (o->cached_bindings > MOST_BINDINGS)
        return status_fail(RLXVK_E_ATTR, "compile option cached_bindings is %u; at most %d",
                           o->cached_bindings, MOST_BINDINGS);
    if ((unsigned)o->precision > RLXVK_PRECISION_SPLIT)
        return status_fail(RLXVK_E_ATTR, "compile option precision is %d; it takes 0 (f32) to %d",
                           (int)o->precision, RLXVK_PRECISION_SPLIT);
    if ((unsigned)o->extent_promise > RLXVK_EXTENT_SHORTER)
        return status_fail(RLXVK_E_ATTR, "compile option extent_promise is %d; it takes 0 to %d",
                           (int)o->extent_promise, RLXVK_EXTENT_SHORTER);
    if ((unsigned)o->weight_storage > RLXVK_WEIGHTS_BF16)
        return status_fail(RLXVK_E_ATTR,
                           "compile option weight_storage is %d; it takes 0 (as declared) to %d",
                           (int)o->weight_storage, RLXVK_WEIGHTS_BF16);
    if (o->dump >= 2 * RLXVK_DUMP_NONE)
        return status_fail(RLXVK_E_ATTR,
                           "compile option dump is 0x%x; it takes bits of rlxvk_dump, below 0x%x",
                           o->dump, 2 * RLXVK_DUMP_NONE);
    return RLXVK_OK;
}

/* ---- Options over switches ---- */

/* Options for the graph and its plan. */
static void resolve_plan(const switches *s, const rlxvk_compile_options *given, program_options *o)
{
    o->forbid_host = toggle(given->forbid_host, false);
    o->allow_unset = toggle(given->allow_unset, false);
    o->keep_all = toggle(given->keep_all, false) || s->nan_trace || s->dump_nodes;
    o->fusion = toggle(given->fusion, !s->no_fusion) && !o->keep_all;
    o->regions = o->fusion && toggle(given->regions, !s->no_regions);
    o->strided = o->fusion && !s->no_strided_access;
    o->reorder = toggle(given->reorder, true) && !o->keep_all;
    o->canary = s->check & CHECK_CANARY;
    o->reuse_memory = toggle(given->reuse_memory, !s->bump_plan) && !o->keep_all && !o->canary;
    o->check_plan = toggle(given->check_plan, s->check & CHECK_PLAN);
    o->no_barrier = s->no_barrier;
    o->shorter = given->extent_promise == RLXVK_EXTENT_SHORTER;
    o->weight_storage = given->weight_storage;
    uint64_t prepared_bytes = given->prepared_bytes ? given->prepared_bytes : s->prepared_bytes;
    o->prepared_bytes = o->fusion ? prepared_bytes : 0;
    o->device_bytes = given->device_memory_bytes;
    o->host_bytes = given->host_weights_bytes;
}

/* A display hangs if a GPU is busy for long, and the system then ends the work. */
static uint64_t default_submission_ms(const device *d)
{
    return d->setup.may_display ? 500 : RLXVK_NO_SUBMISSION_BOUND;
}

static void resolve_submissions(const rlxvk_context *context, const rlxvk_compile_options *given,
                                program_options *o)
{
    uint64_t ms = given->max_submission_ms ? given->max_submission_ms
                                           : default_submission_ms(context->device);
    o->sliced = context->switches.sliced && !o->check_results;
    if (ms <= UINT64_MAX / 1000000 && !o->check_results)
        o->submission_ns = ms * 1000000;
}

/* What a GPU does in a second takes a software driver minutes. */
static uint64_t default_timeout_s(const device *d)
{
    return profile_is_software(&d->setup.profile) ? 3600 : 60;
}

/* Options for runs. */
static void resolve_runs(const rlxvk_context *context, const rlxvk_compile_options *given,
                         program_options *o)
{
    const switches *s = &context->switches;
    o->cached = toggle(given->cached, !s->no_cache);
    o->check_results = s->check & CHECK_RESULTS;
    o->marks = s->check & CHECK_LOSS;
    o->profiled = toggle(given->profile, context->trace != NULL) && !o->check_results;
    o->timed = toggle(given->time_runs, false) && !o->check_results;
    o->full_barrier = toggle(given->full_barrier, s->full_barrier) || !o->cached || o->profiled;
    o->force_upload = s->force_input_upload;
    o->check_index = toggle(given->check_index, s->check & CHECK_INDEX);
    o->check_packed = toggle(given->check_packed, s->check & CHECK_PACKED);
    o->max_in_flight = (given->max_in_flight ? given->max_in_flight : 2) + 1;
    o->timeout_ns =
        given->timeout_ns ? given->timeout_ns : default_timeout_s(context->device) * 1000000000u;
    resolve_submissions(context, given, o);
}

rlxvk_status options_resolve(const rlxvk_context *context, const rlxvk_compile_options *given,
                             program_options *out)
{
    const switches *s = &context->switches;
    rlxvk_status status;
    TRY(check(given));
    *out = (program_options){.dump = given->dump ? given->dump : s->dump};
    TRY(options_read_rng(given->rng, &out->rng));
    /* F32 is the default of the option, so it does not override the switch. */
    out->precision = given->precision == RLXVK_PRECISION_F32 ? s->precision : given->precision;
    resolve_plan(s, given, out);
    resolve_runs(context, given, out);
    TRY(resolve_host(s, given, out->on_host));
    TRY(resolve_variants(s, given, &out->variants));
error:
    return status;
}

program_options options_for_nodes(const program_options *o)
{
    program_options kept = *o;
    kept.keep_all = kept.allow_unset = true;
    kept.fusion = kept.regions = kept.reorder = kept.reuse_memory = false;
    kept.prepared_bytes = 0;
    kept.device_bytes = 0;                           /* it needs more memory */
    kept.weight_storage = RLXVK_WEIGHTS_AS_DECLARED; /* params were rounded already */
    kept.dump = 0;
    return kept;
}
