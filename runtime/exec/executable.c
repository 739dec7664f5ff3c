/*
 * The tables of an executable, the locations of its values, and its end. Everything that an
 * executable owns is freed here, even if it is half built.
 */
#include "exec/bounded.h"
#include "exec/cached_bindings.h"

/* ---- Checks ---- */

rlxvk_status executable_require(const rlxvk_executable *e, const char *call)
{
    rlxvk_status status = status_require(e, call, "executable");
    if (status == RLXVK_OK && !e->program)
        return status_fail(RLXVK_E_UNBOUND_SYMBOL,
                           "%s: the graph has symbols without sizes; bind them with "
                           "rlxvk_bind_symbols, or run with inputs whose lengths tell them",
                           call);
    return status;
}

bool executable_is_own(const rlxvk_executable *e, size_t input)
{
    return op_is_own_input(graph_node(e->program->source, e->program->inputs[input].source));
}

input_state *executable_own_input(rlxvk_executable *e, const char *name)
{
    uint32_t id = op_find_input(e->program->source, name);
    input_state *in = id == NODE_NONE ? NULL : &e->inputs[e->program->leaf_index[id]];
    if (in)
        in->content->written = true;
    return in;
}

const rlxvk_graph *executable_source(const rlxvk_executable *e)
{
    return e->program ? e->program->source : e->bindings->graph;
}

/* ---- Locations ---- */

location executable_location(const rlxvk_executable *e, uint32_t id)
{
    static const uint8_t bytes[] = {
        [STORAGE_WORD] = 4, [STORAGE_PAIR] = 8, [STORAGE_RAW] = 1, [STORAGE_HALF] = 2};
    const value *v = &e->program->schedule.values.items[id];
    location l = e->locations[v->root];
    l.offset += v->offset * bytes[v->storage];
    l.bytes = shape_numel(&graph_node(e->program->graph, id)->shape) * bytes[v->storage];
    return l;
}

uint64_t executable_slot_bytes(const rlxvk_executable *e, uint32_t id)
{
    return round_up(MAX(executable_location(e, id).bytes, 4), 4);
}

location executable_output_location(const rlxvk_executable *e, const output_state *out)
{
    location l = executable_location(e, out->result->node);
    if (out->copy)
        l = (location){out->copy, 0, 0, l.bytes};
    return l;
}

const VkCommandBuffer *executable_output_readback(const output_state *out)
{
    return out->copy ? out->copy_readback : out->readback.commands;
}

/* ---- Tables ---- */

static bool make_tables(rlxvk_executable *e)
{
    const program *p = e->program;
    size_t most = p->input_count + p->result_count + p->schedule.steps.count + QUEUE_BATCH_ROOM;
    e->locations = memory_zeroed(p->plan.value_count + 1, sizeof *e->locations);
    e->params = memory_zeroed(p->param_count + 1, sizeof *e->params);
    e->inputs = memory_zeroed(p->input_count + 1, sizeof *e->inputs);
    e->outputs = memory_zeroed(p->result_count + 1, sizeof *e->outputs);
    e->prepared = memory_zeroed(p->param_count + 1, sizeof *e->prepared);
    e->given = memory_zeroed(p->input_count + 1, sizeof *e->given);
    e->tickets = memory_zeroed(p->options.max_in_flight, sizeof *e->tickets);
    e->batch = memory_zeroed(most, sizeof *e->batch);
    return e->locations && e->params && e->prepared && e->inputs && e->outputs && e->given &&
           e->tickets && e->batch;
}

static void fill_tables(rlxvk_executable *e)
{
    const program *p = e->program;
    for (size_t i = 0; i < p->param_count; i++)
        e->params[i].leaf = &p->params[i];
    for (size_t i = 0; i < p->input_count; i++)
        e->inputs[i] = (input_state){.leaf = &p->inputs[i], .feed = -1, .row_feed = -1};
    for (size_t i = 0; i < p->result_count; i++)
        e->outputs[i].result = &p->results[i];
}

rlxvk_status executable_begin(program *p, rlxvk_executable **out)
{
    rlxvk_executable *e = memory_zeroed(1, sizeof *e);
    if (!e)
        return status_fail_memory("executable");
    e->context = p->context;
    e->device = p->device;
    e->program = program_retain(p);
    *out = e;
    if (!make_tables(e))
        return status_fail_memory("executable tables");
    fill_tables(e);
    return RLXVK_OK;
}

/* ---- The end ---- */

static void free_staged(staged_copy *s)
{
    memory_free(s->commands);
    memory_free(s->offsets);
}

static void free_leaves(rlxvk_executable *e)
{
    for (size_t i = 0; i < e->program->input_count && e->inputs; i++) {
        free_staged(&e->inputs[i].upload);
        memory_free(e->inputs[i].mirror);
    }
    for (size_t i = 0; i < e->program->result_count && e->outputs; i++) {
        free_staged(&e->outputs[i].readback);
        memory_free(e->outputs[i].copy_readback);
        pool_release(e->context, e->outputs[i].copy);
    }
}

static void free_memory(rlxvk_executable *e)
{
    for (int c = 0; c < CLASS_COUNT; c++)
        pool_release(e->context, e->pools[c]);
    for (size_t i = 0; i < ARRAY_COUNT(e->detached); i++)
        pool_release(e->context, e->detached[i]);
    pool_release(e->context, e->group_counts);
    for (size_t i = 0; i < e->borrowed.count; i++)
        pool_release(e->context, e->borrowed.items[i]);
    VECTOR_FREE(&e->borrowed);
    memory_block *blocks[] = {&e->staging,    &e->read_staging, &e->chunk_up,
                              &e->chunk_down, &e->stop_words,   &e->marks};
    for (size_t i = 0; i < ARRAY_COUNT(blocks); i++)
        memory_block_destroy(e->device, blocks[i]);
}

void executable_free_feeds(rlxvk_executable *e, feed_commands *f)
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

void executable_free_copy(rlxvk_executable *e, output_state *out)
{
    if (out->copy_readback && out->copy_readback[0])
        e->device->fn.FreeCommandBuffers(e->device->handle, e->pool,
                                         e->program->options.max_in_flight, out->copy_readback);
    memory_free(out->copy_readback);
    pool_release(e->context, out->copy);
    out->copy_readback = NULL;
    out->copy = NULL;
}

static void free_host_steps(rlxvk_executable *e)
{
    for (size_t k = 0; k < e->program->host_step_count && e->host_steps; k++) {
        host_step *h = &e->host_steps[k];
        for (uint32_t i = 0; h->buffers && i < h->buffer_count; i++)
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
    executable_free_feeds(e, &e->feeds);
    if (e->pool)
        d->fn.DestroyCommandPool(d->handle, e->pool, NULL);
    if (e->timeline)
        d->fn.DestroySemaphore(d->handle, e->timeline, NULL);
}

static void free_bounded(rlxvk_executable *e)
{
    bounded *b = e->bounded;
    for (size_t i = 0; b && b->segments && i < e->program->plan.segments.count; i++)
        bounded_segment_free(&b->segments[i]);
    if (b)
        memory_free(b->segments);
    memory_free(b);
    e->bounded = NULL;
}

void executable_end(rlxvk_executable *e)
{
    if (!e || vk_is_foreign(e->device)) /* a fork must not free objects of the parent */
        return;
    if (e->timeline && e->submitted) /* ignores the deadline, because nothing in use may be freed */
        (void)vk_timeline_wait(e->device, e->timeline, e->submitted, UINT64_MAX);
    if (!e->program) { /* nothing was bound */
        memory_free(e);
        return;
    }
    free_host_steps(e);
    destroy_objects(e);
    free_leaves(e);
    free_bounded(e);
    free_memory(e);
    void *tables[] = {e->locations, e->params, e->inputs,   e->outputs,  e->tickets,
                      e->given,     e->batch,  e->sets,     e->segments, e->rests,
                      e->stops,     e->stamps, e->prepared, e->canaries};
    for (size_t i = 0; i < ARRAY_COUNT(tables); i++)
        memory_free(tables[i]);
    program_release(e->program);
    memory_free(e);
}
