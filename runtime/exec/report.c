/* Reports of an executable: outputs, memory, plan. */
#include "exec/bounded.h"
#include "exec/cached_bindings.h"

size_t rlxvk_executable_output_count(const rlxvk_executable *executable)
{
    return status_require(executable, "executable_output_count", "executable") == RLXVK_OK
               ? executable_source(executable)->outputs.count
               : 0;
}

static bool has_output(const rlxvk_executable *e, const char *call, size_t index)
{
    return status_require(e, call, "executable") == RLXVK_OK &&
           index < executable_source(e)->outputs.count;
}

rlxvk_shape rlxvk_executable_output_shape(const rlxvk_executable *executable, size_t index)
{
    if (!has_output(executable, "executable_output_shape", index))
        return RLXVK_SCALAR;
    return executable->program ? executable->outputs[index].result->shape
                               : cached_shape(executable->bindings,
                                              executable_source(executable)->outputs.items[index]);
}

rlxvk_dtype rlxvk_executable_output_dtype(const rlxvk_executable *executable, size_t index)
{
    if (!has_output(executable, "executable_output_dtype", index))
        return RLXVK_F32;
    const rlxvk_graph *g = executable_source(executable);
    return (rlxvk_dtype)graph_node(g, g->outputs.items[index])->dtype;
}

/* If there is no executable to share with, this one has memory for the shared leaves, which the
 * plan leaves out. */
static void count_bytes(const rlxvk_executable *e, uint64_t bytes[CLASS_COUNT])
{
    const plan *plan = &e->program->plan;
    for (int c = 0; c < CLASS_COUNT; c++)
        bytes[c] = plan->class_bytes[c];
    bytes[CLASS_HOST_WEIGHTS] = 0; /* without the gaps between blocks */
    for (size_t i = 0; i < plan->blocks[CLASS_HOST_WEIGHTS].count; i++)
        bytes[CLASS_HOST_WEIGHTS] += plan->blocks[CLASS_HOST_WEIGHTS].items[i];
    for (uint32_t v = 0; v < plan->value_count; v++)
        if (e->locations[v].pool && e->locations[v].pool == e->detached[0])
            bytes[plan->slots[v].class] += plan->slots[v].size;
        else if (e->locations[v].pool && e->locations[v].pool == e->detached[1])
            bytes[CLASS_HOST_WEIGHTS] += plan->slots[v].size;
}

static void describe_memory(const rlxvk_executable *e, rlxvk_memory_report *out)
{
    const program *p = e->program;
    uint64_t bytes[CLASS_COUNT];
    count_bytes(e, bytes);
    *out = (rlxvk_memory_report){
        .weight_bytes = bytes[CLASS_WEIGHTS],
        .state_bytes = bytes[CLASS_STATE],
        .scratch_bytes = bytes[CLASS_SCRATCH],
        .staging_bytes = e->staging.size + e->read_staging.size + e->chunk_up.size +
                         e->chunk_down.size + e->stop_words.size + e->marks.size +
                         (e->group_counts ? e->group_counts->blocks[0].size : 0),
        .scratch_lower_bound = p->plan.scratch_lower_bound,
        .scratch_unshared = p->plan.scratch_unshared,
        .recomputed_bytes = p->graph->recomputed_bytes,
        .prepared_bytes = p->plan.prepared_bytes,
        .host_weight_bytes = bytes[CLASS_HOST_WEIGHTS],
    };
    for (int c = 0; c < CLASS_COUNT; c++)
        if (c != CLASS_HOST_WEIGHTS)
            out->block_count += (uint32_t)p->plan.blocks[c].count;
    out->block_count += e->detached[0] ? e->detached[0]->count : 0;
}

void rlxvk_executable_memory(const rlxvk_executable *executable, rlxvk_memory_report *out_report)
{
    rlxvk_memory_report report = {0};
    if (status_require(out_report, "executable_memory", "out_report") != RLXVK_OK)
        return;
    if (status_require(executable, "executable_memory", "executable") == RLXVK_OK &&
        executable->program)
        describe_memory(executable, &report);
    sized_write(SIZED(rlxvk_memory_report), &report, out_report);
}

static void describe_plan(const rlxvk_executable *e, rlxvk_plan_report *out)
{
    const program *p = e->program;
    uint32_t host = (uint32_t)p->host_step_count;
    *out = (rlxvk_plan_report){
        .dispatches = (uint32_t)p->schedule.steps.count - p->schedule.prepared - host,
        .loops = (uint32_t)p->plan.loops.count,
        .executed_dispatches = program_executed(p),
        .barriers = p->plan.barrier_count,
        .host_steps = host,
        .segments = (uint32_t)p->plan.segments.count - program_first_segment(p),
        .submissions_per_run = program_submissions(p),
        .runs = e->runs,
        .submissions = e->submissions,
        .prepared_dispatches = p->schedule.prepared,
        .preparations = e->preparations,
        .run_submissions = e->run_submissions,
        .longest_submission_ms = e->bounded ? (double)e->bounded->longest_ns * 1e-6 : 0,
    };
}

void rlxvk_executable_plan(const rlxvk_executable *executable, rlxvk_plan_report *out_report)
{
    rlxvk_plan_report report = {0};
    if (status_require(out_report, "executable_plan", "out_report") != RLXVK_OK)
        return;
    if (status_require(executable, "executable_plan", "executable") == RLXVK_OK &&
        executable->program)
        describe_plan(executable, &report);
    sized_write(SIZED(rlxvk_plan_report), &report, out_report);
}

static void describe_bindings(const rlxvk_executable *e, rlxvk_cached_bindings_report *out)
{
    const cached_bindings *f = e->bindings;
    *out = (rlxvk_cached_bindings_report){.members = (uint32_t)f->members.count,
                                          .capacity = f->capacity,
                                          .hits = f->hits,
                                          .misses = f->misses,
                                          .evictions = f->evictions};
}

static void report_bindings(const rlxvk_executable *executable, const char *call,
                            rlxvk_cached_bindings_report *out_report)
{
    rlxvk_cached_bindings_report report = {0};
    if (status_require(out_report, call, "out_report") != RLXVK_OK)
        return;
    if (status_require(executable, call, "executable") == RLXVK_OK && executable->bindings)
        describe_bindings(executable, &report);
    sized_write(SIZED(rlxvk_cached_bindings_report), &report, out_report);
}

void rlxvk_executable_cached_bindings(const rlxvk_executable *executable,
                                      rlxvk_cached_bindings_report *out_report)
{
    report_bindings(executable, "executable_cached_bindings", out_report);
}

void rlxvk_executable_family(const rlxvk_executable *executable,
                             rlxvk_cached_bindings_report *out_report)
{
    report_bindings(executable, "executable_family", out_report);
}

rlxvk_status rlxvk_executable_symbols(const rlxvk_executable *executable, rlxvk_binding *bindings,
                                      size_t capacity, size_t *out_count)
{
    rlxvk_status status;
    TRY(status_require(executable, "executable_symbols", "executable"));
    TRY(status_require_items(bindings, capacity, "executable_symbols", "bindings"));
    TRY(status_require(out_count, "executable_symbols", "out_count"));
    const cached_bindings *f = executable->bindings;
    *out_count = f ? cached_symbol_count(f) : 0;
    for (size_t i = 0; i < MIN(*out_count, capacity); i++)
        bindings[i] =
            (rlxvk_binding){cached_symbol(f, i),
                            f->current == CACHED_NONE ? -1 : f->members.items[f->current].sizes[i]};
error:
    return status;
}
