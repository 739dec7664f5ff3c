/* What an executable tells of itself: outputs, memory, plan. */
#include "exec/family.h"

size_t rlxvk_executable_output_count(const rlxvk_executable *executable)
{
    return status_require(executable, "executable_output_count", "executable") == RLXVK_OK
               ? state_source(executable)->outputs.count
               : 0;
}

static bool has_output(const rlxvk_executable *e, const char *call, size_t index)
{
    return status_require(e, call, "executable") == RLXVK_OK &&
           index < state_source(e)->outputs.count;
}

rlxvk_shape rlxvk_executable_output_shape(const rlxvk_executable *executable, size_t index)
{
    if (!has_output(executable, "executable_output_shape", index))
        return RLXVK_SCALAR;
    return executable->program
               ? executable->outputs[index].result->shape
               : family_shape(executable->family, state_source(executable)->outputs.items[index]);
}

rlxvk_dtype rlxvk_executable_output_dtype(const rlxvk_executable *executable, size_t index)
{
    if (!has_output(executable, "executable_output_dtype", index))
        return RLXVK_F32;
    const rlxvk_graph *g = state_source(executable);
    return (rlxvk_dtype)graph_node(g, g->outputs.items[index])->dtype;
}

/* What the plan left out as shared is an executable's own where there is nobody to share with. */
static void count_bytes(const rlxvk_executable *e, uint64_t bytes[CLASS_COUNT])
{
    const plan *plan = &e->program->plan;
    for (int c = 0; c < CLASS_COUNT; c++)
        bytes[c] = plan->class_bytes[c];
    for (uint32_t v = 0; v < plan->value_count && e->detached; v++)
        if (program_shares(e->program, v))
            bytes[plan->slots[v].class] += plan->slots[v].size;
}

void rlxvk_executable_memory(const rlxvk_executable *executable, rlxvk_memory_report *out_report)
{
    if (status_require(out_report, "executable_memory", "out_report") != RLXVK_OK)
        return;
    *out_report = (rlxvk_memory_report){0};
    if (status_require(executable, "executable_memory", "executable") != RLXVK_OK ||
        !executable->program)
        return;
    const program *p = executable->program;
    uint64_t bytes[CLASS_COUNT];
    count_bytes(executable, bytes);
    *out_report = (rlxvk_memory_report){
        .weight_bytes = bytes[CLASS_WEIGHTS],
        .state_bytes = bytes[CLASS_STATE],
        .scratch_bytes = bytes[CLASS_SCRATCH],
        .staging_bytes = executable->staging.size + executable->read_staging.size +
                         executable->chunk_up.size + executable->chunk_down.size +
                         executable->stop_words.size +
                         (executable->group_counts ? executable->group_counts->blocks[0].size : 0),
        .scratch_lower_bound = p->plan.scratch_lower_bound,
        .scratch_unshared = p->plan.scratch_unshared,
        .recomputed_bytes = p->graph->recomputed_bytes,
        .prepared_bytes = p->plan.prepared_bytes,
    };
    for (int c = 0; c < CLASS_COUNT; c++)
        out_report->block_count += (uint32_t)p->plan.blocks[c].count;
    out_report->block_count += executable->detached ? executable->detached->count : 0;
}

void rlxvk_executable_plan(const rlxvk_executable *executable, rlxvk_plan_report *out_report)
{
    if (status_require(out_report, "executable_plan", "out_report") != RLXVK_OK)
        return;
    *out_report = (rlxvk_plan_report){0};
    if (status_require(executable, "executable_plan", "executable") != RLXVK_OK ||
        !executable->program)
        return;
    const program *p = executable->program;
    uint32_t host = (uint32_t)p->host_step_count;
    *out_report = (rlxvk_plan_report){
        .dispatches = (uint32_t)p->schedule.steps.count - p->schedule.prepared - host,
        .loops = (uint32_t)p->plan.loops.count,
        .executed_dispatches = program_executed(p),
        .barriers = p->plan.barrier_count,
        .host_steps = host,
        .segments = (uint32_t)p->plan.segments.count - program_first_segment(p),
        .submissions_per_run = program_submissions(p),
        .runs = executable->runs,
        .submissions = executable->submissions,
        .prepared_dispatches = p->schedule.prepared,
        .preparations = executable->preparations,
    };
}

void rlxvk_executable_family(const rlxvk_executable *executable, rlxvk_family_report *out_report)
{
    if (status_require(out_report, "executable_family", "out_report") != RLXVK_OK)
        return;
    *out_report = (rlxvk_family_report){0};
    if (status_require(executable, "executable_family", "executable") != RLXVK_OK ||
        !executable->family)
        return;
    const family *f = executable->family;
    *out_report = (rlxvk_family_report){.members = (uint32_t)f->members.count,
                                        .capacity = f->capacity,
                                        .hits = f->hits,
                                        .misses = f->misses,
                                        .evictions = f->evictions};
}

rlxvk_status rlxvk_executable_symbols(const rlxvk_executable *executable, rlxvk_binding *bindings,
                                      size_t capacity, size_t *out_count)
{
    rlxvk_status status;
    TRY(status_require(executable, "executable_symbols", "executable"));
    TRY(status_require_items(bindings, capacity, "executable_symbols", "bindings"));
    TRY(status_require(out_count, "executable_symbols", "out_count"));
    const family *f = executable->family;
    *out_count = f ? family_symbol_count(f) : 0;
    for (size_t i = 0; i < MIN(*out_count, capacity); i++)
        bindings[i] =
            (rlxvk_binding){family_symbol(f, i), f->current == FAMILY_NOBODY
                                                     ? -1
                                                     : f->members.items[f->current].sizes[i]};
error:
    return status;
}
