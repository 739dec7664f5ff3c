/*
 * The stages of compiling that make plain data: graph -> rewritten graph -> schedule -> plan.
 */
#include "exec/stage.h"
#include "exec/options.h"
#include "exec/share.h"

rlxvk_status stage_rewrite(rlxvk_executable *e, const rlxvk_graph *graph)
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
    TRY(options_force_rows(e, on_host));
    TRY(op_verify(graph));
    TRY(graph_clone(graph, &e->source));
    TRY(options_keep(e));
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
                            .forbid_host = e->options.forbid_host,
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
    TRY(options_read_modes(e, &how));
    TRY(schedule_create(e->graph, &how, &e->schedule));
    if (e->options.share_with)
        share_mark(e, shared);
    TRY(plan_create(&e->schedule, &layout, &e->plan));
error:
    return status;
}

/* Level order unless it costs memory: more than a quarter, and more than 16 MiB, above program
 * order. */
rlxvk_status stage_plan(rlxvk_executable *e)
{
    bool on_host[OP_COUNT] = {false};
    bool *flags = memory_zeroed(2 * e->graph->nodes.count + 1, sizeof *flags);
    uint64_t in_order = 0;
    rlxvk_status status;
    if (!flags)
        return status_fail_memory("plan");
    TRY(options_force_rows(e, on_host));
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
