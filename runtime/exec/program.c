/*
 * The life of a program, and its leaves by name and number.
 */
#include "exec/program.h"
#include "op/random/random.h"

/* ---- Leaves and results ---- */

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

rlxvk_status program_list(program *p)
{
    size_t nodes = p->source->nodes.count + 1;
    bool *written = memory_zeroed(p->graph->nodes.count + 1, sizeof *written);
    p->params = memory_zeroed(nodes, sizeof *p->params);
    p->inputs = memory_zeroed(nodes, sizeof *p->inputs);
    p->results = memory_zeroed(p->graph->outputs.count + 1, sizeof *p->results);
    p->leaf_index = memory_zeroed(nodes, sizeof *p->leaf_index);
    bool made = written && p->params && p->inputs && p->results && p->leaf_index;
    if (made) {
        mark_written(p->graph, written);
        list_leaves(p, written);
        list_results(p);
    }
    for (size_t i = 0; i < p->schedule.steps.count; i++)
        p->host_step_count += p->schedule.steps.items[i].host;
    memory_free(written);
    return made ? RLXVK_OK : status_fail_memory("name tables");
}

uint32_t program_input_of(const rlxvk_graph *source, const char *name)
{
    uint32_t id = name ? op_find_input(source, name) : NODE_NONE;
    return id == NODE_NONE || random_is_state(graph_node(source, id)) ? NODE_NONE : id;
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

uint32_t program_submissions(const program *p)
{
    uint32_t submissions = 0;
    for (size_t i = 0; i < p->plan.segments.count; i++)
        submissions += !p->plan.segments.items[i].host;
    return submissions;
}

/* ---- Holders ---- */

rlxvk_status program_create(rlxvk_context *context, program **out)
{
    program *p = memory_zeroed(1, sizeof *p);
    if (!p)
        return status_fail_memory("program");
    p->context = context;
    p->device = context->device;
    p->references = 1;
    *out = p;
    return RLXVK_OK;
}

program *program_retain(program *p)
{
    pthread_mutex_lock(&p->context->lock);
    p->references++;
    pthread_mutex_unlock(&p->context->lock);
    return p;
}

void program_release(program *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->context->lock);
    bool last = --p->references == 0;
    pthread_mutex_unlock(&p->context->lock);
    if (!last)
        return;
    void *tables[] = {p->params, p->inputs, p->results, p->leaf_index, p->pipelines};
    for (size_t i = 0; i < ARRAY_COUNT(tables); i++)
        memory_free(tables[i]);
    plan_destroy(&p->plan);
    schedule_destroy(&p->schedule);
    VECTOR_FREE(&p->pairs);
    rlxvk_graph_destroy(p->graph);
    rlxvk_graph_destroy(p->source);
    memory_free(p);
}
