/*
 * Loads params from a file. Everything is checked before the first param is written. First come
 * names, dtypes and shapes from the file's list. Then the whole content is read.
 */
#include "exec/archive.h"
#include "exec/cached_bindings.h"
#include "exec/leaf.h"

#include <rlxvk_files.h>
#include <string.h>

#define NAMES_LISTED 4 /* in an error */

typedef struct loading {
    rlxvk_executable *e;
    const rlxvk_graph *graph; /* as built */
    archive file;
    bool convert;
    rlxvk_param_item *items; /* one for each entry that is loaded; their bytes are owned */
    size_t count;
} loading;

/* ---- Names ---- */

/* The first names of a kind, and how many there are. */
typedef struct name_list {
    char text[NAMES_LISTED * 72];
    size_t count;
} name_list;

static void add_name(name_list *l, const char *name)
{
    text t = {l->text, sizeof l->text, l->count ? strlen(l->text) : 0};
    if (l->count < NAMES_LISTED)
        text_append(&t, "%s'%.60s'", l->count ? ", " : "", name);
    else if (l->count == NAMES_LISTED)
        text_append(&t, ", ...");
    l->count++;
}

/* A param on which no output depends is dropped, so the file may lack it. */
static bool is_needed(const rlxvk_executable *e, const char *name)
{
    const param_state *p = leaf_find_param((rlxvk_executable *)e, name);
    return !p || p->leaf->node != NODE_NONE;
}

static rlxvk_status check_missing(const loading *l)
{
    name_list missing = {0};
    size_t params = 0;
    for (uint32_t id = 0; id < l->graph->nodes.count; id++) {
        const node *n = graph_node(l->graph, id);
        if (!node_is_param(n) || !is_needed(l->e, n->name))
            continue;
        params++;
        if (!archive_find(&l->file, n->name))
            add_name(&missing, n->name);
    }
    return missing.count == 0
               ? RLXVK_OK
               : status_fail(RLXVK_E_UNSET_PARAM,
                             "the file lacks %zu of %zu params: %s; allow_missing leaves them as "
                             "they are",
                             missing.count, params, missing.text);
}

static rlxvk_status check_unknown(const loading *l)
{
    name_list unknown = {0};
    for (size_t i = 0; i < l->file.entries.count; i++)
        if (op_find_param(l->graph, l->file.entries.items[i].name) == NODE_NONE)
            add_name(&unknown, l->file.entries.items[i].name);
    return unknown.count == 0
               ? RLXVK_OK
               : status_fail(RLXVK_E_UNKNOWN_NAME,
                             "%zu of the file's %zu names are no params of the executable: %s; "
                             "allow_unknown skips them",
                             unknown.count, l->file.entries.count, unknown.text);
}

/* ---- Arrays ---- */

static bool is_real(rlxvk_dtype t)
{
    return t == RLXVK_F32 || t == RLXVK_F16 || t == RLXVK_BF16 || t == RLXVK_F64;
}

static rlxvk_status check_dtype(const loading *l, const archive_entry *entry, rlxvk_dtype own)
{
    bool both_real = is_real(own) && is_real(entry->dtype);
    if (entry->dtype == own || (l->convert && both_real))
        return RLXVK_OK;
    return status_fail(RLXVK_E_DTYPE, "param '%s' is %s, the file has %s%s", entry->name,
                       rlxvk_dtype_name(own), entry->type,
                       both_real ? "; `convert` rounds it"
                                 : "; save it with the param's type, or declare the param so");
}

/* If nothing is bound yet, only params without symbols in their shape can be loaded. */
static rlxvk_status check_entry(const loading *l, const archive_entry *entry, uint32_t param)
{
    const node *n = graph_node(l->graph, param);
    char own[SHAPE_TEXT], given[SHAPE_TEXT];
    rlxvk_status status;
    if (!l->e->program)
        TRY(cached_check_param(l->e->bindings, "load", param));
    TRY(check_dtype(l, entry, (rlxvk_dtype)n->dtype));
    if (!shape_equal(&n->shape, &entry->shape))
        return status_fail(RLXVK_E_SHAPE,
                           "param '%s' is %s, the file has %s; save it in that shape", entry->name,
                           shape_text(&n->shape, own), shape_text(&entry->shape, given));
    if (entry->column_major)
        return status_fail(RLXVK_E_UNSUPPORTED,
                           "'%s' is in Fortran's order; save numpy.ascontiguousarray of it",
                           entry->name);
error:
    return status;
}

static rlxvk_status check_entries(const loading *l)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < l->file.entries.count; i++) {
        uint32_t param = op_find_param(l->graph, l->file.entries.items[i].name);
        if (param != NODE_NONE)
            TRY(check_entry(l, &l->file.entries.items[i], param));
    }
error:
    return status;
}

static rlxvk_status read_entry(loading *l, const archive_entry *entry)
{
    rlxvk_param_item *item = &l->items[l->count];
    void *bytes = memory_allocate(entry->size);
    if (!bytes)
        return status_fail_memory("the content of a file");
    *item = (rlxvk_param_item){entry->name, bytes, entry->size, entry->dtype,
                               RLXVK_SIZE_OF(rlxvk_param_item)};
    l->count++;
    return archive_read(&l->file, entry, bytes);
}

static rlxvk_status read_entries(loading *l)
{
    rlxvk_status status;
    l->items = memory_zeroed(l->file.entries.count, sizeof *l->items);
    if (!l->items)
        return status_fail_memory("the content of a file");
    for (size_t i = 0; i < l->file.entries.count; i++)
        if (op_find_param(l->graph, l->file.entries.items[i].name) != NODE_NONE)
            TRY(read_entry(l, &l->file.entries.items[i]));
    status = RLXVK_OK;
error:
    return status;
}

/* Checks everything that the file's list tells, before the content is read. */
static rlxvk_status check_list(const loading *l, const rlxvk_load_options *options)
{
    rlxvk_status status = RLXVK_OK;
    if (options->allow_unknown != RLXVK_ON)
        TRY(check_unknown(l));
    if (options->allow_missing != RLXVK_ON)
        TRY(check_missing(l));
    TRY(check_entries(l));
error:
    return status;
}

static rlxvk_status load(loading *l, const char *path, const rlxvk_load_options *options)
{
    const archive_format *format;
    rlxvk_status status;
    TRY(archive_format_of(path, &format));
    TRY(archive_open(path, format, &l->file));
    status = check_list(l, options);
    if (status != RLXVK_OK)
        return status_fail_within(status, "'%s'", path);
    TRY(read_entries(l));
    TRY(rlxvk_set_params(l->e, l->items, l->count));
error:
    return status;
}

static void free_loading(loading *l)
{
    for (size_t i = 0; i < l->count; i++)
        memory_free((void *)l->items[i].bytes);
    memory_free(l->items);
    archive_close(&l->file);
}

rlxvk_status rlxvk_load_params(rlxvk_executable *executable, const char *path,
                               const rlxvk_load_options *options)
{
    rlxvk_load_options o;
    loading l = {.e = executable};
    rlxvk_status status;
    TRY(status_require(executable, "load_params", "executable"));
    TRY(status_require(path, "load_params", "path"));
    TRY(sized_read(SIZED(rlxvk_load_options), options, &o));
    double begin = trace_begin(executable->context->trace);
    l.graph = executable_source(executable);
    l.convert = o.convert == RLXVK_ON;
    status = load(&l, path, &o);
    free_loading(&l);
    trace_end(executable->context->trace, "load_params", begin, NULL);
    if (status != RLXVK_OK)
        return status_fail_within(status, "load_params");
error:
    return status;
}
