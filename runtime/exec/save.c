/* Saves params to a file. Everything is listed and checked before the file is begun. */
#include "exec/archive.h"
#include "exec/cached_bindings.h"
#include "exec/leaf.h"
#include "program/name.h"

#include <rlxvk_files.h>
#include <string.h>

typedef VECTOR(archive_entry) entry_list;

static rlxvk_status check_written(const rlxvk_executable *e, const param_state *p)
{
    const program_options *options = &e->program->options;
    if (p->content->written || options->allow_unset)
        return RLXVK_OK;
    return status_fail(RLXVK_E_UNSET_PARAM,
                       "param '%s' was never set; set it, or name those to save in the options",
                       p->leaf->name);
}

static rlxvk_status add_param(const rlxvk_executable *e, const param_state *p, entry_list *list)
{
    const node *n = graph_node(e->program->source, p->leaf->source);
    archive_entry entry = {.name = p->leaf->name,
                           .dtype = (rlxvk_dtype)n->dtype,
                           .shape = n->shape,
                           .size =
                               shape_numel(&n->shape) * rlxvk_dtype_size((rlxvk_dtype)n->dtype)};
    rlxvk_status status;
    TRY(check_written(e, p));
    if (!VECTOR_PUSH(list, entry))
        return status_fail_memory("the list of params");
error:
    return status;
}

static rlxvk_status add_all(const rlxvk_executable *e, entry_list *list)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < e->program->param_count; i++)
        if (e->params[i].leaf->node != NODE_NONE)
            TRY(add_param(e, &e->params[i], list));
error:
    return status;
}

static rlxvk_status add_named(rlxvk_executable *e, const rlxvk_save_options *options,
                              entry_list *list)
{
    rlxvk_status status;
    TRY(status_require_items(options->names, options->name_count, "names", "names"));
    for (size_t i = 0; i < options->name_count; i++) {
        const char *name = options->names[i];
        param_state *p = leaf_find_param(e, name);
        if (!p)
            return name_unknown(e->program->source, "names", "param", name);
        if (p->leaf->node == NODE_NONE)
            return status_fail(RLXVK_E_UNKNOWN_NAME,
                               "'%s' was dropped as dead; no output depends on it", name);
        for (size_t k = 0; k < list->count; k++)
            if (list->items[k].name == p->leaf->name)
                return status_fail(RLXVK_E_DUP_NAME, "'%s' stands in names twice", name);
        TRY(add_param(e, p, list));
    }
error:
    return status;
}

/* Sorts params by the size of their elements, large ones first. Otherwise their order stays. If the
 * elements of a file begin at a multiple of 8, every array is then aligned. */
static rlxvk_status order(entry_list *list)
{
    archive_entry *ordered = memory_allocate(list->count * sizeof *ordered);
    size_t count = 0;
    if (!ordered)
        return status_fail_memory("the list of params");
    for (size_t size = 8; size; size /= 2)
        for (size_t i = 0; i < list->count; i++)
            if (rlxvk_dtype_size(list->items[i].dtype) == size)
                ordered[count++] = list->items[i];
    memory_free(list->items);
    list->items = ordered;
    list->capacity = list->count;
    return RLXVK_OK;
}

static rlxvk_status write_params(rlxvk_executable *e, const archive_format *format,
                                 archive_writer *w)
{
    void *bytes = NULL;
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < w->count; i++) {
        archive_entry *entry = &w->entries[i];
        memory_free(bytes);
        if (!(bytes = memory_allocate(entry->size)))
            TRY(status_fail_memory("a param's content"));
        TRY(rlxvk_read_param_bytes(e, entry->name, bytes, entry->size));
        TRY(format->put(w, entry, bytes));
    }
error:
    memory_free(bytes);
    return status;
}

static rlxvk_status save(rlxvk_executable *e, const char *path, const rlxvk_save_options *options)
{
    const archive_format *format;
    entry_list list = {0};
    archive_writer w = {0};
    rlxvk_status status;
    TRY(archive_format_of(path, &format));
    TRY(options->names || options->name_count ? add_named(e, options, &list) : add_all(e, &list));
    TRY(order(&list));
    TRY(archive_create(path, format, list.items, list.count, &w));
    TRY(write_params(e, format, &w));
    status = format->end(&w);
error:
    new_file_discard(&w.file);
    VECTOR_FREE(&list);
    return status;
}

rlxvk_status rlxvk_save_params(rlxvk_executable *executable, const char *path,
                               const rlxvk_save_options *options)
{
    rlxvk_save_options o;
    rlxvk_status status;
    TRY(executable_require(executable, "save_params"));
    TRY(status_require(path, "save_params", "path"));
    TRY(sized_read(SIZED(rlxvk_save_options), options, &o));
    double begin = trace_begin(executable->context->trace);
    status = save(executable, path, &o);
    trace_end(executable->context->trace, "save_params", begin, NULL);
    if (status != RLXVK_OK)
        return status_fail_within(status, "save_params");
error:
    return status;
}
