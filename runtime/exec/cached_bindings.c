/* See cached_bindings.h. */
#include "exec/cached_bindings.h"
#include "program/name.h"

#include <string.h>

/* ---- Life ---- */

static rlxvk_status create(const rlxvk_graph *graph, const binding_list *sizes,
                           const rlxvk_compile_options *given, cached_bindings **out)
{
    cached_bindings *f = memory_zeroed(1, sizeof *f);
    rlxvk_status status;
    TRY(f ? RLXVK_OK : status_fail_memory("executable"));
    f->current = CACHED_NONE;
    TRY(bind_graph(graph, sizes, &f->graph));
    TRY(bucket_axes_resolve(f->graph, given, &f->axes));
    *out = f;
    return RLXVK_OK;
error:
    cached_destroy(f);
    return status;
}

rlxvk_status cached_create(const rlxvk_graph *graph, const binding_list *sizes,
                           const program_options *options, const rlxvk_compile_options *given,
                           cached_bindings **out)
{
    rlxvk_compile_options axes = {.bucket_axes = given->bucket_axes,
                                  .bucket_axis_count = given->bucket_axis_count};
    rlxvk_status status;
    TRY(op_verify(graph));
    TRY(create(graph, sizes, &axes, out));
    (*out)->options = *options;
    (*out)->capacity = given->cached_bindings ? given->cached_bindings : 8;
error:
    return status;
}

rlxvk_status cached_copy(const cached_bindings *from, cached_bindings **out)
{
    static const binding_list none = {0};
    rlxvk_compile_options axes = {.bucket_axes = from->axes.items,
                                  .bucket_axis_count = from->axes.count};
    cached_bindings *f = NULL;
    rlxvk_status status;
    TRY(create(from->graph, &none, &axes, &f));
    f->options = from->options;
    f->capacity = from->capacity;
    for (size_t i = 0; i < from->params.count; i++) {
        const cached_param *p = &from->params.items[i];
        TRY(cached_keep_param(f, p->source, p->dtype, p->bytes, p->size));
    }
    for (size_t i = 0; i < from->feeds.count; i++) {
        cached_feed feed = from->feeds.items[i];
        feed.name = graph_node(f->graph, op_find_input(f->graph, feed.name))->name;
        if (!VECTOR_PUSH(&f->feeds, feed))
            TRY(status_fail_memory("feeds"));
    }
    *out = f;
    return RLXVK_OK;
error:
    cached_destroy(f);
    return status;
}

rlxvk_status cached_open(rlxvk_context *context, cached_bindings *f, rlxvk_executable **out)
{
    rlxvk_executable *e = memory_zeroed(1, sizeof *e);
    if (!e) {
        cached_destroy(f);
        return status_fail_memory("executable");
    }
    e->context = context;
    e->device = context->device;
    e->rng = f->options.rng;
    e->bindings = f;
    f->context = context_retain(context);
    *out = e;
    return RLXVK_OK;
}

rlxvk_status cached_adopt(cached_bindings *f, const cached_binding *like)
{
    cached_binding m = {.used = 1, .feeds_version = f->feeds_version};
    size_t bytes = cached_symbol_count(f) * sizeof *m.sizes;
    if (!(m.sizes = memory_allocate(bytes)) || !VECTOR_PUSH(&f->members, m)) {
        memory_free(m.sizes);
        return status_fail_memory("executable");
    }
    memcpy(m.sizes, like->sizes, bytes);
    f->current = 0;
    f->switches = 1;
    return RLXVK_OK;
}

void cached_destroy(cached_bindings *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->members.count; i++) {
        executable_end(f->members.items[i].state);
        memory_free(f->members.items[i].sizes);
    }
    VECTOR_FREE(&f->members);
    cached_drop_params(f);
    VECTOR_FREE(&f->feeds);
    VECTOR_FREE(&f->axes);
    rlxvk_graph_destroy(f->graph);
    if (f->context)
        context_release(f->context);
    memory_free(f);
}

/* ---- Symbols ---- */

size_t cached_symbol_count(const cached_bindings *f)
{
    return f->graph->symbols->sizes[0].count;
}

uint32_t cached_symbol(const cached_bindings *f, size_t index)
{
    return f->graph->symbols->sizes[0].items[index].symbol;
}

rlxvk_shape cached_shape(const cached_bindings *f, uint32_t source)
{
    return f->graph->symbols->nodes.items[source].shape;
}

/* ---- Params ---- */

static cached_param *find_param(const cached_bindings *f, uint32_t source)
{
    for (size_t i = 0; i < f->params.count; i++)
        if (f->params.items[i].source == source)
            return &f->params.items[i];
    return NULL;
}

rlxvk_status cached_check_param(const cached_bindings *f, const char *call, uint32_t source)
{
    char text[SHAPE_TEXT];
    rlxvk_shape shape = cached_shape(f, source);
    if (!symbol_in_shape(&shape))
        return RLXVK_OK;
    return status_fail(RLXVK_E_UNBOUND_SYMBOL,
                       "%s: param '%s' is %s; bind the symbols first, with rlxvk_bind_symbols",
                       call, graph_node(f->graph, source)->name,
                       symbol_shape_text(f->graph, &shape, text));
}

rlxvk_status cached_reserve_params(cached_bindings *f, size_t count)
{
    return VECTOR_RESERVE(&f->params, count) ? RLXVK_OK : status_fail_memory("param");
}

rlxvk_status cached_take_param(cached_bindings *f, uint32_t source, rlxvk_dtype dtype, void *bytes,
                               size_t size)
{
    cached_param p = {source, dtype, size, bytes}, *known = find_param(f, source);
    if (known) {
        memory_free(known->bytes);
        *known = p;
    } else if (!VECTOR_PUSH(&f->params, p)) {
        memory_free(bytes);
        return status_fail_memory("param");
    }
    return RLXVK_OK;
}

rlxvk_status cached_keep_param(cached_bindings *f, uint32_t source, rlxvk_dtype dtype,
                               const void *bytes, size_t size)
{
    void *copy = memory_allocate(size + 1);
    if (!copy)
        return status_fail_memory("param");
    if (size)
        memcpy(copy, bytes, size);
    return cached_take_param(f, source, dtype, copy, size);
}

bool cached_has_param(const cached_bindings *f, uint32_t source)
{
    return find_param(f, source) != NULL;
}

void cached_drop_params(cached_bindings *f)
{
    for (size_t i = 0; i < f->params.count; i++)
        memory_free(f->params.items[i].bytes);
    VECTOR_FREE(&f->params);
}

/* ---- Feeds ---- */

static cached_feed *feed_of(cached_bindings *f, uint32_t input)
{
    const char *name = graph_node(f->graph, input)->name;
    for (size_t i = 0; i < f->feeds.count; i++)
        if (f->feeds.items[i].name == name)
            return &f->feeds.items[i];
    return VECTOR_PUSH(&f->feeds, ((cached_feed){name, -1, -1, false}))
               ? &f->feeds.items[f->feeds.count - 1]
               : NULL;
}

rlxvk_status cached_note_feed(cached_bindings *f, const char *call, const char *name,
                              enum cached_feed_kind kind, size_t index)
{
    uint32_t input = program_input_of(f->graph, name);
    cached_feed *feed;
    if (input == NODE_NONE)
        return name_unknown(f->graph, call, "input", name);
    if (kind != CACHED_FEED_NONE && index >= f->graph->outputs.count)
        return status_fail(RLXVK_E_INDEX, "%s: output %zu of %zu; the first is 0", call, index,
                           f->graph->outputs.count);
    if (!(feed = feed_of(f, input)))
        return status_fail_memory("feeds");
    if (kind == CACHED_FEED_NONE)
        feed->feed = feed->row_feed = -1;
    else if (kind == CACHED_FEED_ROWS)
        feed->row_feed = (int64_t)index;
    else
        feed->feed = (int64_t)index;
    if (kind != CACHED_FEED_ROWS)
        feed->prefix = kind == CACHED_FEED_PREFIX;
    f->feeds_version++;
    if (f->current != CACHED_NONE) /* has it already */
        f->members.items[f->current].feeds_version = f->feeds_version;
    return RLXVK_OK;
}
