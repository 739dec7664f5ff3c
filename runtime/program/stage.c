/*
 * The stages of compiling: from a graph to a schedule, its plan and its pipelines. The steps get
 * the order with the fewest barriers that does not need too much memory.
 */
#include "program/stage.h"
#include "program/bound.h"
#include "program/room.h"
#include "program/share.h"

#include <string.h>

/* ---- Rewriting ---- */

rlxvk_status stage_source(program *p, const rlxvk_graph *graph)
{
    rlxvk_status status;
    TRY(op_verify(graph));
    TRY(graph_clone(graph, &p->source));
    if (p->options.shorter)
        TRY(rewrite_add_count(p->source));
    TRY(graph_clone(p->source, &p->graph));
    TRY(rewrite_make_gradients(p->graph));
error:
    return status;
}

static bool may_halve(const program_options *o, const program *sharer)
{
    return o->weight_storage != RLXVK_WEIGHTS_AS_DECLARED || (sharer && sharer->halves);
}

/* This is the last rewrite, because all readers of a param must be known. */
static rlxvk_status hold_weights(program *p, const program *sharer)
{
    const program_options *o = &p->options;
    holding_options how = {.storage = o->weight_storage,
                           .held_as = share_held_as,
                           .sharer = sharer,
                           .keep_all = o->keep_all,
                           .strided = o->strided,
                           .on_host = o->on_host};
    return may_halve(o, sharer) ? rewrite_hold_weights(p->graph, &how, &p->halves) : RLXVK_OK;
}

rlxvk_status stage_rewrite(program *p, const program *sharer)
{
    const program_options *o = &p->options;
    rewrite_options how = {.fusion = o->fusion,
                           .regions = o->regions,
                           .profile = &p->device->setup.profile,
                           .precision = o->precision,
                           .on_host = o->on_host,
                           .prepared_bytes = o->prepared_bytes,
                           .may_join = share_may_join,
                           .sharer = sharer,
                           .may_halve = may_halve(o, sharer),
                           .names_matvec =
                               variant_named(&o->variants, CHOICE_matvec) != VARIANT_NONE};
    rlxvk_status status;
    if (!o->keep_all)
        TRY(rewrite_graph(p->graph, &how));
    if (o->fusion)
        TRY(rewrite_find_norm_pairs(p->graph, &p->pairs));
    TRY(hold_weights(p, sharer));
error:
    return status;
}

/* ---- Lowering ---- */

static bool wants_matrix_layout(const rlxvk_graph *g)
{
    for (uint32_t id = 0; id < g->nodes.count; id++)
        if (node_row(graph_node(g, id))->family->execution.matrix_layout)
            return true;
    return false;
}

rlxvk_status stage_lower(program *p)
{
    const program_options *o = &p->options;
    schedule_options how = {.profile = &p->device->setup.profile,
                            .keep_all = o->keep_all,
                            .forbid_host = o->forbid_host,
                            .strided = o->strided,
                            .on_host = o->on_host,
                            .precision = o->precision,
                            .prepared_bytes = o->prepared_bytes,
                            .variants = o->variants,
                            .tuning = &p->context->tuning,
                            .pairs = p->pairs.items,
                            .pair_count = p->pairs.count};
    bool bf16 = o->precision == RLXVK_PRECISION_BF16;
    rlxvk_status status;
    if ((o->precision == RLXVK_PRECISION_F16 || bf16) && wants_matrix_layout(p->graph))
        TRY(vk_matrix_layout(p->device, bf16, &how.matrix_in_lanes));
    TRY(schedule_create(p->graph, &how, &p->schedule));
error:
    return status;
}

/* Custom ops do not go to the host, because one flag stands for all of them. */
bool stage_finds_excess(const program *p, op_kind *out_op)
{
    const schedule *s = &p->schedule;
    for (size_t i = 0; i < s->dispatches.count && !p->options.forbid_host; i++) {
        const dispatch *d = &s->dispatches.items[i];
        const node *n = graph_node(s->graph, d->node);
        if (kernel_bindings(kernel_find(d->kernel), d->constants) <=
                p->device->setup.profile.storage_buffers_per_stage ||
            d->kernel >= KERNEL_COUNT || node_lacks_host(n))
            continue;
        *out_op = (op_kind)n->op;
        return true;
    }
    return false;
}

/* ---- Planning ---- */

/* Index operands and results with flags are pinned, because they are read after the run. */
static void pin_checked(const program *p, bool *pinned)
{
    for (uint32_t id = 0; id < p->graph->nodes.count; id++)
        if (node_row(graph_node(p->graph, id))->family->checks.flags)
            pinned[id] = true;
    for (uint32_t id = 0; id < p->graph->nodes.count && p->options.check_index; id++) {
        const node *n = graph_node(p->graph, id);
        if (node_row(n)->family->checks.indices)
            pinned[n->inputs[node_row(n)->family->checks.indices(p->graph, n).operand]] = true;
    }
}

/* The plan options for program order. plan_levels sets reuse_in_level later. */
static plan_options layout_of(const program *p, const bool *shared, const bool *pinned)
{
    const device_profile *profile = &p->device->setup.profile;
    return (plan_options){.max_block_bytes = profile->max_allocation_bytes,
                          .max_binding_bytes = profile->max_binding_bytes,
                          .alignment = profile->slot_alignment,
                          .bump = !p->options.reuse_memory,
                          .guard_bytes = p->options.canary ? CANARY_BYTES : 0,
                          .keep_all = p->options.keep_all,
                          .full_barrier = p->options.full_barrier,
                          .no_barrier = p->options.no_barrier,
                          .device_bytes = room_on_device(p),
                          .host_bytes = p->options.host_bytes,
                          .shared = shared,
                          .pinned = pinned};
}

/* Copies the steps in program order. restore_order puts them back. */
static rlxvk_status keep_order(const schedule *s, step **in_order)
{
    size_t bytes = s->steps.count * sizeof **in_order;
    if (!(*in_order = memory_allocate(bytes + 1)))
        return status_fail_memory("steps");
    if (bytes)
        memcpy(*in_order, s->steps.items, bytes);
    return RLXVK_OK;
}

static void restore_order(schedule *s, const step *in_order)
{
    if (s->steps.count)
        memcpy(s->steps.items, in_order, s->steps.count * sizeof *in_order);
}

/* Whether a plan needs no more room than the limit or another plan, and no more weights lie on the
 * host. */
static bool fits_as_well(const plan *tried, const plan *before, const plan_options *layout)
{
    return plan_device_bytes(tried) <= MAX(layout->device_bytes, plan_device_bytes(before)) &&
           tried->class_bytes[CLASS_HOST_WEIGHTS] <= before->class_bytes[CLASS_HOST_WEIGHTS];
}

/* Tries level order, which needs fewer barriers and more memory: first without and then with reuse
 * inside a level. p->plan is the plan of program order. It stays if both tries need too much
 * scratch memory: over a quarter and over 16 MiB more than program order, or more than there is
 * beside the weights. */
static rlxvk_status plan_levels(program *p, plan_options *layout)
{
    uint64_t most = p->plan.scratch_peak + MAX(p->plan.scratch_peak / 4, 16u << 20);
    step *in_order = NULL;
    plan tried = {0};
    rlxvk_status status;
    TRY(keep_order(&p->schedule, &in_order));
    TRY(reorder_schedule(&p->schedule));
    for (int tight = 0; tight < 2; tight++) {
        layout->reuse_in_level = tight;
        TRY(plan_create(&p->schedule, layout, &tried));
        if (tried.scratch_peak <= most && fits_as_well(&tried, &p->plan, layout)) {
            plan_destroy(&p->plan);
            p->plan = tried;
            goto error;
        }
        plan_destroy(&tried);
        tried = (plan){0};
    }
    restore_order(&p->schedule, in_order);
error:
    memory_free(in_order);
    return status;
}

rlxvk_status stage_plan(program *p, const bool *shared)
{
    bool *pinned = memory_zeroed(p->graph->nodes.count + 1, sizeof *pinned);
    plan_options layout = layout_of(p, shared, pinned);
    rlxvk_status status;
    if (!pinned)
        return status_fail_memory("plan");
    pin_checked(p, pinned);
    TRY(plan_create(&p->schedule, &layout, &p->plan));
    if (p->options.reorder)
        TRY(plan_levels(p, &layout));
error:
    memory_free(pinned);
    return status;
}

/* ---- Pipelines ---- */

/* A kernel has a fixed number of buffers. The limit of invocations and of shared memory is kept by
 * the choice of variants. */
static rlxvk_status check_buffers(const program *p)
{
    uint32_t limit = p->device->setup.profile.storage_buffers_per_stage;
    for (size_t i = 0; i < p->schedule.dispatches.count; i++) {
        const dispatch *d = &p->schedule.dispatches.items[i];
        if (d->operand_count > limit)
            return status_fail(RLXVK_E_UNSUPPORTED,
                               "node %u (%s): kernel '%s' has %u storage buffers; the device "
                               "takes %u a stage",
                               d->node, node_row(graph_node(p->graph, d->node))->name,
                               kernel_find(d->kernel)->name, d->operand_count, limit);
    }
    return RLXVK_OK;
}

/* Dispatches that may be cut get pipelines for ranges of their workgroups. These also launch whole
 * grids, so they are the only ones. The exceptions are dispatches that launch fewer workgroups
 * under an extent: they keep a pipeline for that, and get their second one here. */
static rlxvk_status get_ranges(program *p, pipeline_request *requests)
{
    size_t count = p->schedule.dispatches.count;
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < count; i++) {
        if (!bound_cuts(p, i))
            continue;
        if (!p->ranges && !(p->ranges = memory_zeroed(count, sizeof *p->ranges)))
            return status_fail_memory("pipelines");
        p->ranges[i] = p->pipelines[i];
        if (requests[i].ranges)
            continue;
        memcpy(requests[i].grid, p->schedule.dispatches.items[i].groups, sizeof requests[i].grid);
        requests[i].ranges = true;
        TRY(pipeline_get_all(p->device, &requests[i], 1, &p->ranges[i]));
    }
error:
    return status;
}

rlxvk_status stage_pipelines(program *p)
{
    size_t count = p->schedule.dispatches.count;
    pipeline_request *requests = memory_zeroed(count + 1, sizeof *requests);
    rlxvk_status status;
    p->pipelines = memory_zeroed(count + 1, sizeof *p->pipelines);
    if (!requests || !p->pipelines)
        TRY(status_fail_memory("pipelines"));
    TRY(check_buffers(p));
    for (size_t i = 0; i < count; i++) {
        const dispatch *d = &p->schedule.dispatches.items[i];
        requests[i].kernel = d->kernel;
        requests[i].constant_count = (uint8_t)kernel_find(d->kernel)->constant_count;
        memcpy(requests[i].constants, d->constants, sizeof d->constants);
        if (extent_scales(&p->extent, i))
            extent_grid(&p->extent.groups[i], requests[i].grid);
        else if ((requests[i].ranges = bound_cuts(p, i)))
            memcpy(requests[i].grid, d->groups, sizeof d->groups);
        p->sets[d->operand_count]++;
    }
    TRY(pipeline_get_all(p->device, requests, count, p->pipelines));
    TRY(get_ranges(p, requests));
error:
    memory_free(requests);
    return status;
}
