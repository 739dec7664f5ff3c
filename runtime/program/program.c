/*
 * Creates and releases programs, and finds their leaves by name.
 */
#include "program/program.h"
#include "op/random/random.h"

/* ---- Leaves and results ---- */

/* Marks the nodes that other nodes write in place. */
static void mark_written(const rlxvk_graph *g, bool *written)
{
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const node *n = graph_node(g, id);
        uint32_t writes = node_writes(n);
        for (uint32_t i = 0; i < n->input_count && writes >> i; i++)
            written[n->inputs[i]] |= writes >> i & 1;
    }
}

/* `written` tells for each node of the rewritten graph whether a node writes it. */
static void list_leaves(program *p, const bool *written)
{
    for (uint32_t id = 0; id < p->source->nodes.count; id++) {
        const node *n = graph_node(p->source, id);
        if (!node_is_param(n) && !node_is_input(n))
            continue;
        program_leaf **leaves = node_is_param(n) ? &p->params : &p->inputs;
        size_t *count = node_is_param(n) ? &p->param_count : &p->input_count;
        uint32_t live = graph_find(p->graph, n->op, n->name);
        p->leaf_index[id] = (uint32_t)*count;
        (*leaves)[(*count)++] = (program_leaf){.name = n->name,
                                               .node = live,
                                               .source = id,
                                               .in_place = live != NODE_NONE && written[live]};
    }
}

static void list_results(program *p)
{
    for (size_t i = 0; i < p->graph->outputs.count; i++) {
        const node *n = graph_node(p->graph, p->graph->outputs.items[i]);
        p->results[p->result_count++] =
            (program_result){p->graph->outputs.items[i], n->shape, (rlxvk_dtype)n->dtype};
    }
}

/* Marks the values that prepared steps read or write. */
static void mark_prepared(const schedule *s, bool *touched)
{
    operand o;
    for (uint32_t i = 0; i < s->prepared; i++)
        for (uint32_t k = 0; schedule_step_operand(s, &s->steps.items[i], k, &o); k++)
            touched[o.value] = true;
}

static void find_prepared(program *p, bool *touched)
{
    mark_prepared(&p->schedule, touched);
    for (size_t i = 0; i < p->param_count; i++)
        p->params[i].prepared = p->params[i].node != NODE_NONE &&
                                touched[p->schedule.values.items[p->params[i].node].root];
}

rlxvk_status program_list(program *p)
{
    size_t nodes = p->source->nodes.count + 1, values = schedule_value_count(&p->schedule) + 1;
    bool *written = memory_zeroed(2 * values, sizeof *written);
    p->params = memory_zeroed(nodes, sizeof *p->params);
    p->inputs = memory_zeroed(nodes, sizeof *p->inputs);
    p->results = memory_zeroed(p->graph->outputs.count + 1, sizeof *p->results);
    p->leaf_index = memory_zeroed(nodes, sizeof *p->leaf_index);
    bool made = written && p->params && p->inputs && p->results && p->leaf_index;
    if (made) {
        mark_written(p->graph, written);
        list_leaves(p, written);
        list_results(p);
        find_prepared(p, written + values);
    }
    for (size_t i = 0; i < p->schedule.steps.count; i++)
        p->host_step_count += p->schedule.steps.items[i].host;
    memory_free(written);
    return made ? RLXVK_OK : status_fail_memory("name tables");
}

uint32_t program_input_of(const rlxvk_graph *source, const char *name)
{
    uint32_t id = name ? op_find_input(source, name) : NODE_NONE;
    return id == NODE_NONE || op_is_own_input(graph_node(source, id)) ? NODE_NONE : id;
}

const program_leaf *program_find_input(const program *p, const char *name)
{
    uint32_t id = program_input_of(p->source, name);
    return id == NODE_NONE ? NULL : &p->inputs[p->leaf_index[id]];
}

const program_leaf *program_find_param(const program *p, const char *name)
{
    uint32_t id = name ? op_find_param(p->source, name) : NODE_NONE;
    return id == NODE_NONE ? NULL : &p->params[p->leaf_index[id]];
}

/* ---- What a run does ---- */

uint64_t program_times(const program *p, uint32_t segment)
{
    uint64_t times = segment >= program_first_segment(p);
    for (size_t i = 0; i < p->plan.loops.count; i++) {
        const plan_loop *l = &p->plan.loops.items[i];
        if (segment - l->first < l->count && !size_multiply(times, l->times, &times))
            times = UINT64_MAX;
    }
    return times;
}

uint64_t program_executed(const program *p)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->plan.segments.count; i++)
        if (!p->plan.segments.items[i].host)
            sum += p->plan.segments.items[i].count * program_times(p, i);
    return sum;
}

/* How often command buffers of a segment are submitted. The last rounds of a loop, fewer than a
 * group, count once. */
static uint64_t program_replays(const program *p, uint32_t segment)
{
    return divide_up(program_times(p, segment), p->plan.segments.items[segment].rounds);
}

uint32_t program_submissions(const program *p)
{
    uint64_t replays = 0, hosts = 0, looks = 0, runs = 0;
    for (uint32_t i = 0; i < p->plan.segments.count; i++) {
        const segment *g = &p->plan.segments.items[i];
        *(g->host ? &hosts : &replays) += program_replays(p, i);
        runs += !g->host && i >= program_first_segment(p);
    }
    if (p->plan.loops.count == 0)
        return (uint32_t)runs;
    for (size_t i = 0; i < p->plan.loops.count; i++)
        if (p->plan.loops.items[i].stop != NODE_NONE)
            looks += program_replays(p, p->plan.loops.items[i].first);
    return (uint32_t)MIN(replays / QUEUE_BATCH_LOOPS + hosts + looks + 1, UINT32_MAX);
}

/* ---- Holders ---- */

rlxvk_status program_create(rlxvk_context *context, program **out)
{
    program *p = memory_zeroed(1, sizeof *p);
    if (!p)
        return status_fail_memory("program");
    p->context = context_retain(context);
    p->device = context->device;
    p->references = 1;
    *out = p;
    return RLXVK_OK;
}

program *program_retain(program *p)
{
    system_lock_take(&p->context->lock);
    p->references++;
    system_lock_release(&p->context->lock);
    return p;
}

void program_release(program *p)
{
    if (!p)
        return;
    system_lock_take(&p->context->lock);
    bool last = --p->references == 0;
    system_lock_release(&p->context->lock);
    if (!last)
        return;
    void *tables[] = {p->params, p->inputs, p->results, p->leaf_index, p->pipelines, p->ranges};
    for (size_t i = 0; i < ARRAY_COUNT(tables); i++)
        memory_free(tables[i]);
    extent_destroy(&p->extent);
    plan_destroy(&p->plan);
    schedule_destroy(&p->schedule);
    VECTOR_FREE(&p->pairs);
    rlxvk_graph_destroy(p->graph);
    rlxvk_graph_destroy(p->source);
    context_release(p->context);
    memory_free(p);
}
