/*
 * Compiling: verify -> rewrite -> schedule -> plan -> allocate -> record. Everything before
 * allocation is pure data. Also the executable's birth and death.
 */
#include "exec/executable.h"
#include "exec/option_list.h"
#include "op/choice/variant.h"

#include <stdlib.h>
#include <string.h>

#define MOST_IN_FLIGHT 1024 /* each has staging memory of its own */

/* ---- Options over switches ---- */

static void apply_options(rlxvk_executable *e)
{
    const rlxvk_compile_options *o = &e->options;
    const switches *s = &e->context->switches;
    bool diagnosing = s->nan_trace || s->dump_nodes;
    e->keep_all = toggle(o->keep_all, false) || diagnosing;
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

/* ---- Leaves and outputs ---- */

/* Marks the nodes that some node writes in place. */
static void mark_written(const rlxvk_graph *g, bool *written)
{
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const node *n = graph_node(g, id);
        uint32_t writes = node_writes(n);
        for (uint32_t i = 0; i < n->input_count && writes >> i; i++)
            written[n->inputs[i]] |= writes >> i & 1;
    }
}

/* `written`: per node of the rewritten graph. */
static void list_leaves(rlxvk_executable *e, const bool *written)
{
    for (uint32_t id = 0; id < e->source->nodes.count; id++) {
        const node *n = graph_node(e->source, id);
        uint32_t live = n->name ? graph_find(e->graph, n->op, n->name) : NODE_NONE;
        if (n->op == OP_param) {
            e->leaf_index[id] = (uint32_t)e->param_count;
            e->params[e->param_count++] =
                (param_state){.name = n->name, .node = live, .source = id};
        }
        if (n->op == OP_input) {
            e->leaf_index[id] = (uint32_t)e->input_count;
            e->inputs[e->input_count++] =
                (input_state){.name = n->name,
                              .node = live,
                              .source = id,
                              .in_place = live != NODE_NONE && written[live],
                              .feed = -1,
                              .row_feed = -1};
        }
    }
    for (size_t i = 0; i < e->graph->outputs.count; i++) {
        const node *n = graph_node(e->graph, e->graph->outputs.items[i]);
        e->outputs[e->output_count++] = (output_state){.node = e->graph->outputs.items[i],
                                                       .shape = n->shape,
                                                       .dtype = (rlxvk_dtype)n->dtype};
    }
}

static rlxvk_status make_tables(rlxvk_executable *e)
{
    size_t nodes = e->source->nodes.count + 1;
    e->params = memory_zeroed(nodes, sizeof *e->params);
    e->inputs = memory_zeroed(nodes, sizeof *e->inputs);
    e->outputs = memory_zeroed(e->graph->outputs.count + 1, sizeof *e->outputs);
    e->tickets = memory_zeroed(e->max_in_flight, sizeof *e->tickets);
    e->given = memory_zeroed(nodes, sizeof *e->given);
    e->leaf_index = memory_zeroed(nodes, sizeof *e->leaf_index);
    bool *written = memory_zeroed(e->graph->nodes.count + 1, sizeof *written);
    if (!e->params || !e->inputs || !e->outputs || !e->tickets || !e->given || !e->leaf_index ||
        !written) {
        memory_free(written);
        return status_fail_memory("name tables");
    }
    mark_written(e->graph, written);
    list_leaves(e, written);
    memory_free(written);
    size_t most = e->input_count + e->output_count + e->schedule.steps.count + 8;
    e->batch = memory_zeroed(most, sizeof *e->batch);
    return e->batch ? RLXVK_OK : status_fail_memory("submission batch");
}

/* ---- Sharing ---- */

/* Marks a leaf that can use the other executable's memory: same name, dtype, shape and storage. */
static void mark_if_alike(const rlxvk_executable *e, uint32_t id, bool *shared)
{
    const rlxvk_executable *other = e->options.share_with;
    const node *n = graph_node(e->graph, id);
    uint32_t theirs = graph_find(other->graph, n->op, n->name);
    if (theirs == NODE_NONE)
        return;
    const node *o = graph_node(other->graph, theirs);
    shared[id] = o->dtype == n->dtype && shape_equal(&o->shape, &n->shape) &&
                 node_held(other, theirs) == node_held(e, id);
}

/* All params, and the inputs that the caller names. */
static void mark_shared(const rlxvk_executable *e, bool *shared)
{
    for (uint32_t id = 0; id < e->graph->nodes.count; id++)
        if (graph_node(e->graph, id)->op == OP_param)
            mark_if_alike(e, id, shared);
    for (size_t i = 0; i < e->options.shared_input_count; i++) {
        uint32_t id = graph_find(e->graph, OP_input, e->options.shared_inputs[i]);
        if (id != NODE_NONE)
            mark_if_alike(e, id, shared);
    }
}

static bool is_shared(const rlxvk_executable *e, uint32_t id)
{
    return id != NODE_NONE && e->plan.slots[id].block >= SLOT_SHARED &&
           e->plan.slots[id].block != SLOT_NONE;
}

/* Shared leaves carry over whether they have content. From now on neither executable knows what a
 * shared input holds. */
static void adopt_shared_state(rlxvk_executable *e)
{
    rlxvk_executable *other = e->options.share_with;
    for (size_t i = 0; i < e->param_count; i++) {
        if (is_shared(e, e->params[i].node))
            e->params[i].set = find_param(other, e->params[i].name)->set;
    }
    for (size_t i = 0; i < e->input_count; i++) {
        bool shared = is_shared(e, e->inputs[i].node);
        input_state *theirs = shared ? find_input(other, e->inputs[i].name) : NULL;
        if (theirs) {
            e->inputs[i].shared = theirs->shared = true;
            e->inputs[i].written = theirs->written;
            e->inputs[i].resident = theirs->bound || theirs->resident;
        }
    }
}

/* ---- The stages ---- */

/* The option texts that a clone needs outlive the caller's. */
static rlxvk_status keep_options(rlxvk_executable *e)
{
    rlxvk_compile_options *o = &e->options;
    if (o->matmul && !(o->matmul = arena_copy_string(&e->source->memory, o->matmul)))
        return status_fail_memory("compile options");
    return option_list_keep(o, &e->source->memory);
}

static rlxvk_status rewrite_stage(rlxvk_executable *e, const rlxvk_graph *graph)
{
    bool on_host[OP_COUNT] = {false};
    rewrite_options options = {.fusion =
                                   toggle(e->options.fusion, !e->context->switches.no_fusion) &&
                                   !e->keep_all,
                               .profile = &e->device->choice.profile,
                               .on_host = on_host};
    rlxvk_status status;
    options.regions =
        options.fusion && toggle(e->options.regions, !e->context->switches.no_regions);
    TRY(option_list_force(&e->options, &e->context->switches, on_host));
    TRY(op_verify(graph));
    TRY(graph_clone(graph, &e->source));
    TRY(keep_options(e));
    TRY(graph_clone(graph, &e->graph));
    if (!e->keep_all)
        TRY(rewrite_graph(e->graph, &options));
    if (options.fusion)
        TRY(rewrite_find_norm_pairs(e->graph, &e->pairs));
error:
    return status;
}

/* Index operands and results with flags are read after the run, so they must still be there. */
static void pin_checked(const rlxvk_executable *e, bool *pinned)
{
    for (uint32_t id = 0; id < e->graph->nodes.count; id++)
        if (node_row(graph_node(e->graph, id))->family->singular_flags)
            pinned[id] = true;
    for (uint32_t id = 0; id < e->graph->nodes.count && e->check_index; id++) {
        const node *n = graph_node(e->graph, id);
        uint32_t operand;
        if (!node_row(n)->family->index_limit)
            continue;
        (void)node_row(n)->family->index_limit(e->graph, n, &operand);
        pinned[n->inputs[operand]] = true;
    }
}

static bool has_attention(const rlxvk_graph *g)
{
    for (uint32_t id = 0; id < g->nodes.count; id++)
        if (graph_node(g, id)->op == OP_attention)
            return true;
    return false;
}

/* Which kernels the caller wants: options go before switches. */
static rlxvk_status read_modes(rlxvk_executable *e, schedule_options *how)
{
    const rlxvk_compile_options *o = &e->options;
    rlxvk_status status;
    how->matmul = e->context->switches.matmul;
    how->precision = o->precision;
    how->tuning = &e->context->tuning;
    const char *source;
    TRY(option_list_variants(o, &e->context->switches, &e->source->memory, &how->variants,
                             &source));
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
    if (how->precision == RLXVK_PRECISION_F16 && has_attention(e->graph))
        TRY(vk_matrix_layout(e->device, &how->matrix_in_lanes));
    TRY(variant_check(how->variants, source));
error:
    return status;
}

/* From most memory and fewest barriers to the other end. */
enum plan_order { ORDER_LEVELS, ORDER_LEVELS_TIGHT, ORDER_PROGRAM };

/* `flags` holds two sets of node flags: shared, then pinned. */
static rlxvk_status plan_once(rlxvk_executable *e, enum plan_order order, const bool *on_host,
                              bool *flags)
{
    bool *shared = flags, *pinned = flags + e->graph->nodes.count;
    const device_profile *profile = &e->device->choice.profile;
    schedule_options how = {.profile = profile,
                            .keep_all = e->keep_all,
                            .forbid_host = toggle(e->options.forbid_host, false),
                            .reorder = order != ORDER_PROGRAM,
                            .on_host = on_host,
                            .pairs = e->pairs.items,
                            .pair_count = e->pairs.count};
    plan_options layout = {.max_block_bytes = profile->max_allocation_bytes,
                           .max_binding_bytes = profile->max_binding_bytes,
                           .alignment = profile->slot_alignment,
                           .bump =
                               !toggle(e->options.reuse_memory, !e->context->switches.bump_plan) ||
                               e->keep_all,
                           .keep_all = e->keep_all,
                           .full_barrier = e->full_barrier,
                           .reuse_in_level = order == ORDER_LEVELS_TIGHT,
                           .no_barrier = e->context->switches.no_barrier,
                           .shared = shared,
                           .pinned = pinned};
    rlxvk_status status;
    pin_checked(e, pinned);
    TRY(read_modes(e, &how));
    TRY(schedule_create(e->graph, &how, &e->schedule));
    if (e->options.share_with)
        mark_shared(e, shared);
    TRY(plan_create(&e->schedule, &layout, &e->plan));
error:
    return status;
}

/* Level order unless it costs memory: more than a quarter, and more than 16 MiB, above program
 * order. */
static rlxvk_status plan_stage(rlxvk_executable *e)
{
    bool on_host[OP_COUNT] = {false};
    bool *flags = memory_zeroed(2 * e->graph->nodes.count + 1, sizeof *flags);
    uint64_t in_order = 0;
    rlxvk_status status;
    if (!flags)
        return status_fail_memory("plan");
    TRY(option_list_force(&e->options, &e->context->switches, on_host));
    TRY(plan_once(e, ORDER_PROGRAM, on_host, flags));
    if (!toggle(e->options.reorder, true) || e->keep_all)
        goto error;
    in_order = e->plan.scratch_peak;
    for (int order = ORDER_LEVELS; order <= ORDER_PROGRAM; order++) {
        plan_destroy(&e->plan);
        schedule_destroy(&e->schedule);
        TRY(plan_once(e, (enum plan_order)order, on_host, flags));
        if (e->plan.scratch_peak <= in_order + MAX(in_order / 4, 16u << 20))
            break;
    }
error:
    memory_free(flags);
    return status;
}

static rlxvk_status device_stage(rlxvk_executable *e)
{
    device *d = e->device;
    rlxvk_status status;
    TRY(make_tables(e));
    e->diagnosed = needs_diagnosis(e);
    TRY(rng_prepare(e));
    TRY(command_pool_create(d, &e->pool));
    TRY(command_buffers_allocate(d, e->pool, 1, &e->transfer));
    TRY(vk_timeline_create(d, &e->timeline));
    TRY(executable_allocate(e));
    TRY(host_steps_prepare(e));
    TRY(record_all(e));
    if (e->options.share_with)
        adopt_shared_state(e);
error:
    return status;
}

static rlxvk_status report_stage(rlxvk_executable *e)
{
    unsigned check = e->context->switches.check;
    unsigned dump = e->options.dump ? e->options.dump : e->context->switches.dump;
    rlxvk_status status = RLXVK_OK;
    if (dump & RLXVK_DUMP_GRAPH)
        dump_graph(e, e->source, "graph");
    if (dump & RLXVK_DUMP_REWRITE)
        TRY(dump_rewrite(e));
    if (dump & RLXVK_DUMP_PLAN)
        dump_plan(e);
    if (dump & RLXVK_DUMP_BARRIERS)
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
    apply_options(e);
    TRY(rewrite_stage(e, graph));
    TRY(plan_stage(e));
    TRY(report_stage(e));
    TRY(device_stage(e));
    if (context->switches.debug)
        dump_summary(e);
    e->options.dump = 0;          /* once is enough */
    e->options.share_with = NULL; /* what is the caller's ends with the call */
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

static rlxvk_status check_options(const rlxvk_context *context, const rlxvk_compile_options *o)
{
    rlxvk_status status;
    if (o->max_in_flight > MOST_IN_FLIGHT)
        return status_fail(RLXVK_E_ATTR, "compile option max_in_flight is %u; at most %d",
                           o->max_in_flight, MOST_IN_FLIGHT);
    if (o->share_with && o->share_with->context != context)
        return status_fail(RLXVK_E_ATTR,
                           "compile option share_with is an executable of another context; "
                           "memory is shared within one");
    if (o->dump >= 2 * RLXVK_DUMP_NONE)
        return status_fail(RLXVK_E_ATTR,
                           "compile option dump is 0x%x; it takes bits of rlxvk_dump, below 0x%x",
                           o->dump, 2 * RLXVK_DUMP_NONE);
    TRY(option_list_check(o));
    TRY(status_require_items(o->shared_inputs, o->shared_input_count, "compile", "shared_inputs"));
    for (size_t i = 0; i < o->shared_input_count; i++)
        TRY(status_require(o->shared_inputs[i], "compile", "a name in shared_inputs"));
error:
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
        TRY(check_options(context, options));
    TRY(compile_graph(context, graph, options, out_executable));
error:
    return status;
}

/* ---- Clone ---- */

static rlxvk_status copy_feeds(rlxvk_executable *to, const rlxvk_executable *from)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < from->input_count; i++) {
        to->inputs[i].feed = from->inputs[i].feed;
        to->inputs[i].row_feed = from->inputs[i].row_feed;
    }
    for (size_t i = 0; i < from->output_count; i++)
        if (from->outputs[i].copy)
            TRY(keep_output(to, &to->outputs[i]));
    TRY(record_feeds(to));
error:
    return status;
}

/* Outputs of the last run are read, and fed by rows, before the next. */
static rlxvk_status copy_outputs(rlxvk_executable *to, const rlxvk_executable *from)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < from->output_count; i++) {
        location source = output_location(from, &from->outputs[i]);
        location target = output_location(to, &to->outputs[i]);
        TRY(location_copy(to, &target, &source));
    }
error:
    return status;
}

rlxvk_status rlxvk_clone(rlxvk_executable *executable, rlxvk_executable **out_executable)
{
    rlxvk_executable *e = NULL;
    rlxvk_status status;
    TRY(status_require(executable, "clone", "executable"));
    TRY(status_require(out_executable, "clone", "out_executable"));
    TRY(compile_graph(executable->context, executable->source, &executable->options, &e));
    TRY(executable_copy_content(e, executable));
    TRY(copy_feeds(e, executable));
    TRY(copy_outputs(e, executable));
    *out_executable = e;
    return RLXVK_OK;
error:
    rlxvk_executable_destroy(e);
    return status;
}

/* ---- The end ---- */

static void destroy_objects(rlxvk_executable *e)
{
    device *d = e->device;
    if (!d->handle)
        return;
    if (e->queries)
        d->fn.DestroyQueryPool(d->handle, e->queries, NULL);
    if (e->descriptors)
        d->fn.DestroyDescriptorPool(d->handle, e->descriptors, NULL);
    feed_commands_destroy(e, &e->feeds);
    if (e->pool)
        d->fn.DestroyCommandPool(d->handle, e->pool, NULL);
    if (e->timeline)
        d->fn.DestroySemaphore(d->handle, e->timeline, NULL);
}

void rlxvk_executable_destroy(rlxvk_executable *executable)
{
    rlxvk_executable *e = executable;
    if (!e)
        return;
    if (e->timeline && e->submitted) /* whatever the deadline: nothing in use may be freed */
        (void)vk_timeline_wait(e->device, e->timeline, e->submitted, UINT64_MAX);
    host_steps_release(e);
    destroy_objects(e);
    executable_release_memory(e);
    for (size_t i = 0; i < e->input_count; i++)
        memory_free(e->inputs[i].mirror);
    void *tables[] = {e->params,     e->inputs, e->outputs, e->tickets,   e->given,
                      e->leaf_index, e->batch,  e->sets,    e->pipelines, e->segments};
    for (size_t i = 0; i < ARRAY_COUNT(tables); i++)
        memory_free(tables[i]);
    plan_destroy(&e->plan);
    schedule_destroy(&e->schedule);
    VECTOR_FREE(&e->pairs);
    rlxvk_graph_destroy(e->graph);
    rlxvk_graph_destroy(e->source);
    memory_free(e);
}
