/*
 * The tables of an executable, where its values are, and how all of it goes. Whatever an executable
 * owns is freed here, half built or whole.
 */
#include "exec/state.h"

#include <string.h>

/* ---- Where things are ---- */

storage state_held(const rlxvk_executable *e, uint32_t id)
{
    return (storage)e->schedule.values.items[id].storage;
}

location state_location(const rlxvk_executable *e, uint32_t id)
{
    static const uint8_t bytes[] = {
        [STORAGE_WORD] = 4, [STORAGE_PAIR] = 8, [STORAGE_RAW] = 1, [STORAGE_HALF] = 2};
    const value *v = &e->schedule.values.items[id];
    location l = e->locations[v->root];
    l.offset += v->offset * bytes[v->storage];
    l.bytes = shape_numel(&graph_node(e->graph, id)->shape) * bytes[v->storage];
    return l;
}

uint64_t state_slot_bytes(const rlxvk_executable *e, uint32_t id)
{
    return round_up(MAX(state_location(e, id).bytes, 4), 4);
}

location state_output_location(const rlxvk_executable *e, const output_state *out)
{
    location l = state_location(e, out->node);
    if (out->copy)
        l = (location){out->copy, 0, 0, l.bytes};
    return l;
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
        if (node_is_param(n)) {
            e->leaf_index[id] = (uint32_t)e->param_count;
            e->params[e->param_count++] =
                (param_state){.name = n->name, .node = live, .source = id};
        }
        if (node_is_input(n)) {
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

rlxvk_status state_make_tables(rlxvk_executable *e)
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

/* ---- The end ---- */

static void free_staged(staged_copy *s)
{
    memory_free(s->commands);
    memory_free(s->offsets);
    *s = (staged_copy){0};
}

void release_memory(rlxvk_executable *e)
{
    for (size_t i = 0; i < e->input_count; i++)
        free_staged(&e->inputs[i].upload);
    for (size_t i = 0; i < e->output_count; i++) {
        free_staged(&e->outputs[i].readback);
        pool_release(e->context, e->outputs[i].copy);
    }
    for (int c = 0; c < CLASS_COUNT; c++)
        pool_release(e->context, e->pools[c]);
    for (size_t i = 0; i < e->borrowed.count; i++)
        pool_release(e->context, e->borrowed.items[i]);
    VECTOR_FREE(&e->borrowed);
    memory_block *blocks[] = {&e->staging, &e->read_staging, &e->chunk_up, &e->chunk_down};
    for (size_t i = 0; i < ARRAY_COUNT(blocks); i++)
        memory_block_destroy(e->device, blocks[i]);
    memory_free(e->locations);
}

void state_free_feeds(rlxvk_executable *e, feed_commands *f)
{
    const vk_functions *fn = &e->device->fn;
    VkCommandBuffer buffers[] = {f->copies, f->rows};
    for (size_t i = 0; i < ARRAY_COUNT(buffers); i++)
        if (buffers[i])
            fn->FreeCommandBuffers(e->device->handle, e->pool, 1, &buffers[i]);
    if (f->row_descriptors)
        fn->DestroyDescriptorPool(e->device->handle, f->row_descriptors, NULL);
    memory_block_destroy(e->device, &f->scratch);
    memory_block_destroy(e->device, &f->row_arguments);
    *f = (feed_commands){0};
}

void free_host_steps(rlxvk_executable *e)
{
    for (size_t k = 0; k < e->host_step_count; k++) {
        host_step *h = &e->host_steps[k];
        uint32_t count = graph_node(e->graph, e->schedule.steps.items[h->step].node)->input_count;
        for (uint32_t i = 0; h->buffers && i < 2 * count; i++)
            memory_free(h->buffers[i]);
        memory_free(h->buffers);
        memory_free(h->inputs);
        memory_free(h->result);
        memory_free(h->words);
    }
    memory_free(e->host_steps);
}

static void destroy_objects(rlxvk_executable *e)
{
    device *d = e->device;
    if (!d->handle)
        return;
    if (e->queries)
        d->fn.DestroyQueryPool(d->handle, e->queries, NULL);
    if (e->descriptors)
        d->fn.DestroyDescriptorPool(d->handle, e->descriptors, NULL);
    state_free_feeds(e, &e->feeds);
    if (e->pool)
        d->fn.DestroyCommandPool(d->handle, e->pool, NULL);
    if (e->timeline)
        d->fn.DestroySemaphore(d->handle, e->timeline, NULL);
}

void state_destroy(rlxvk_executable *e)
{
    free_host_steps(e);
    destroy_objects(e);
    release_memory(e);
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
