/*
 * Times of the last run, from the timestamps that its segments write. They go to the caller, or to
 * the trace as spans.
 */
#include "exec/timing.h"
#include "exec/record.h"

static double tick_microseconds(const rlxvk_executable *e)
{
    return e->device->snapshot.properties.limits.timestampPeriod / 1e3;
}

static rlxvk_status read_query(const rlxvk_executable *e, uint32_t query, uint64_t *out)
{
    rlxvk_status status;
    VK(e->device, GetQueryPoolResults(e->device->handle, e->queries, query, 1, sizeof *out, out,
                                      sizeof *out, VK_QUERY_RESULT_64_BIT));
error:
    return status;
}

/* Reads ticks[2 s + edge] of every step s of a segment: its begin (edge 0) or its end (edge 1). */
static rlxvk_status segment_times(const rlxvk_executable *e, uint32_t index, uint32_t edge,
                                  uint64_t *ticks)
{
    const segment *g = &e->program->plan.segments.items[index];
    size_t stride = 2 * sizeof *ticks;
    rlxvk_status status;
    VK(e->device,
       GetQueryPoolResults(e->device->handle, e->queries, record_first_query(e, index) + edge,
                           g->count, g->count * stride - edge * sizeof *ticks,
                           ticks + 2 * g->first + edge, stride, VK_QUERY_RESULT_64_BIT));
error:
    return status;
}

/* Reads the times of all steps from `first` on, which must begin a segment. */
static rlxvk_status step_times(const rlxvk_executable *e, uint32_t first, uint64_t *ticks)
{
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = first ? program_first_segment(e->program) : 0;
         i < e->program->plan.segments.count && e->queries; i++)
        for (uint32_t edge = 0; edge < 2 && !e->program->plan.segments.items[i].host; edge++)
            TRY(segment_times(e, i, edge, ticks));
error:
    return status;
}

static const char *step_name(const rlxvk_executable *e, const step *s)
{
    if (s->host)
        return node_row(graph_node(e->program->graph, s->node))->name;
    return kernel_find(e->program->schedule.dispatches.items[s->dispatch].kernel)->name;
}

static uint64_t step_executions(const rlxvk_executable *e, uint32_t step)
{
    uint32_t i = 0;
    for (const segment *g = e->program->plan.segments.items; step - g[i].first >= g[i].count;)
        i++;
    return program_times(e->program, i);
}

rlxvk_status timing_trace(rlxvk_executable *e, const ticket_state *run)
{
    uint32_t begin = run->prepares ? 0 : e->program->schedule.prepared;
    size_t count = e->program->schedule.steps.count;
    uint64_t *ticks = memory_zeroed(2 * count + 1, sizeof *ticks), first = UINT64_MAX;
    double period = tick_microseconds(e);
    char detail[512];
    rlxvk_status status;
    if (!ticks)
        return status_fail_memory("trace");
    TRY(step_times(e, begin, ticks));
    for (size_t i = begin; i < count; i++)
        first = e->program->schedule.steps.items[i].host ? first : MIN(first, ticks[2 * i]);
    for (size_t i = begin; i < count; i++) {
        const step *s = &e->program->schedule.steps.items[i];
        text t = {detail, sizeof detail, 0};
        if (s->host)
            continue;
        text_append(&t, "\"node\":%u,\"step\":%zu", s->node, i);
        if (e->program->plan.loops.count)
            text_append(&t, ",\"times\":%llu", (unsigned long long)step_executions(e, (uint32_t)i));
        trace_detail_name(&t, graph_node(e->program->graph, s->node)->name);
        trace_span(e->context->trace, step_name(e, s), TRACE_GPU,
                   run->submitted_at + (double)(ticks[2 * i] - first) * period,
                   (double)(ticks[2 * i + 1] - ticks[2 * i]) * period, detail);
    }
error:
    memory_free(ticks);
    return status;
}

/* Checks that there are timestamps. Then waits, because the last run may still be in flight. */
static rlxvk_status check_timed(const rlxvk_executable *e, bool asked, const char *what,
                                const char *option)
{
    if (e->program->options.check_results)
        return status_fail(RLXVK_E_UNSUPPORTED,
                           "%s: RLXVK_CHECK=results runs one step at a time and measures none",
                           what);
    if (!asked || (!e->queries && e->program->schedule.steps.count))
        return status_fail(RLXVK_E_UNSUPPORTED,
                           "%s: compile with the option %s, on a device with timestamps", what,
                           option);
    if (e->runs == 0)
        return status_fail(RLXVK_E_UNSUPPORTED, "%s: nothing has run yet", what);
    return vk_timeline_wait(e->device, e->timeline, e->submitted, e->program->options.timeout_ns);
}

rlxvk_status rlxvk_executable_run_time(const rlxvk_executable *executable, double *out_microseconds)
{
    const rlxvk_executable *e = executable;
    uint64_t begin, end, sum = 0;
    rlxvk_status status;
    TRY(executable_require(e, "executable_run_time"));
    TRY(status_require(out_microseconds, "executable_run_time", "out_microseconds"));
    TRY(check_timed(e, e->program->options.timed || e->program->options.profiled,
                    "executable_run_time", "time_runs"));
    for (uint32_t i = program_first_segment(e->program);
         i < e->program->plan.segments.count && e->queries;) {
        const segment *g = &e->program->plan.segments.items[i];
        uint32_t loop = g->opens;
        bool timed = loop || !g->host;
        if (timed) {
            uint32_t first = loop ? record_loop_query(e, loop - 1) : record_first_query(e, i);
            TRY(read_query(e, first, &begin));
            TRY(read_query(e, loop ? first + 1 : record_last_query(e, i), &end));
            sum += end - begin;
        }
        i += loop ? e->program->plan.loops.items[loop - 1].count : 1;
    }
    *out_microseconds = (double)sum * tick_microseconds(e);
error:
    return status;
}

rlxvk_status rlxvk_executable_profile(const rlxvk_executable *executable, rlxvk_step_time *steps,
                                      size_t capacity, size_t *out_count)
{
    const rlxvk_executable *e = executable;
    uint64_t *ticks = NULL;
    sized_array array;
    rlxvk_status status;
    TRY(executable_require(e, "executable_profile"));
    TRY(status_require_items(steps, capacity, "executable_profile", "steps"));
    TRY(status_require(out_count, "executable_profile", "out_count"));
    array = sized_room(SIZED(rlxvk_step_time), steps, capacity);
    TRY(check_timed(e, e->program->options.profiled, "executable_profile", "profile"));
    size_t count = e->program->schedule.steps.count;
    double period = tick_microseconds(e);
    if (!(ticks = memory_zeroed(2 * count + 1, sizeof *ticks)))
        TRY(status_fail_memory("executable_profile"));
    TRY(step_times(e, e->preparations ? 0 : e->program->schedule.prepared, ticks));
    for (size_t i = 0; i < MIN(count, capacity); i++) {
        const step *s = &e->program->schedule.steps.items[i];
        const node *n = graph_node(e->program->graph, s->node);
        const rlxvk_step_time time = {.name = step_name(e, s),
                                      .node = n->name ? n->name : "",
                                      .node_id = op_node_origin(e->program->graph, s->node),
                                      .gpu = !s->host,
                                      .times = step_executions(e, (uint32_t)i),
                                      .microseconds =
                                          (double)(ticks[2 * i + 1] - ticks[2 * i]) * period};
        sized_put(SIZED(rlxvk_step_time), &array, i, &time);
    }
    *out_count = count;
error:
    memory_free(ticks);
    return status;
}
