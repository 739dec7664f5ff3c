/* Params: setting and reading weights. Everything is checked before anything is written. */
#include "exec/param.h"
#include "exec/cached_bindings.h"
#include "exec/leaf.h"
#include "exec/ticket.h"
#include "exec/transfer.h"
#include "graph/half.h"
#include "op/view.h"
#include "program/name.h"
#include "program/slot.h"

#include <string.h>

/* The data of a set call, and how to read them. */
typedef struct param_data {
    const char *call, *name;
    const void *data;
    size_t bytes;
    rlxvk_dtype dtype; /* of the data */
} param_data;

/* Finds the param as a node of the graph as built. */
static rlxvk_status find_param(const rlxvk_executable *e, const char *call, const char *name,
                               uint32_t *out)
{
    const rlxvk_graph *source;
    rlxvk_status status;
    TRY(status_require(e, call, "executable"));
    source = executable_source(e);
    *out = name ? op_find_param(source, name) : NODE_NONE;
    if (*out == NODE_NONE)
        return name_unknown(source, call, "param", name);
    if (!e->program)
        return cached_check_param(e->bindings, call, *out);
error:
    return status;
}

static rlxvk_status check_param(rlxvk_executable *e, const param_data *d, uint32_t *out)
{
    rlxvk_status status;
    TRY(find_param(e, d->call, d->name, out));
    if ((unsigned)d->dtype >= RLXVK_DTYPE_COUNT)
        return status_fail(RLXVK_E_DTYPE, "%s: param '%s': %d is none of rlxvk_dtype", d->call,
                           d->name, (int)d->dtype);
    const node *n = graph_node(executable_source(e), *out);
    bool raw = op_node_storage(executable_source(e), *out) == STORAGE_RAW;
    bool data_raw = d->dtype == RLXVK_U8 || d->dtype == RLXVK_I8;
    uint64_t numel = shape_numel(&n->shape);
    uint64_t needed = numel * rlxvk_dtype_size(d->dtype);
    if (n->dtype == RLXVK_C64 && d->dtype == RLXVK_F32)
        needed = 2 * numel * 4;
    else if ((n->dtype == RLXVK_C64) != (d->dtype == RLXVK_C64) || (raw && !data_raw))
        return status_fail(RLXVK_E_DTYPE,
                           "%s: param '%s' is %s; %s data do not fit it; see rlxvk_set_param_typed",
                           d->call, d->name, rlxvk_dtype_name((rlxvk_dtype)n->dtype),
                           rlxvk_dtype_name(d->dtype));
    if (!slot_fits(needed, d->bytes, d->data))
        return slot_refuse(needed, "bytes", d->bytes, "%s: param '%s' needs", d->call, d->name);
error:
    return status;
}

/* ---- check_packed ---- */

/* Lets every reader of the param check its operand. `data` are the bytes or f32 words of the whole
 * param. */
static rlxvk_status check_readers(const rlxvk_graph *g, uint32_t source, const void *data)
{
    rlxvk_status status = RLXVK_OK;
    uint64_t unit = dtype_storage_element_bytes(op_node_storage(g, source)), offset;
    for (uint32_t id = source + 1; id < g->nodes.count; id++) {
        const node *n = graph_node(g, id);
        const op_family *family = node_row(n)->family;
        for (uint32_t i = 0; i < n->input_count && family->checks.check_content; i++)
            if (view_root(g, n->inputs[i], &offset) == source)
                TRY(family->checks.check_content(n, i, (const uint8_t *)data + offset * unit,
                                                 shape_numel(input_shape(g, n, i))));
    }
error:
    return status;
}

static rlxvk_status check_content(rlxvk_executable *e, uint32_t source, const param_data *d)
{
    const rlxvk_graph *g = executable_source(e);
    uint64_t numel = shape_numel(&graph_node(g, source)->shape);
    bool as_given = op_node_storage(g, source) == STORAGE_RAW || d->dtype == RLXVK_F32;
    float *words = NULL;
    rlxvk_status status = RLXVK_OK;
    if (!(e->program ? &e->program->options : &e->bindings->options)->check_packed || numel == 0 ||
        d->dtype == RLXVK_C64)
        return RLXVK_OK;
    if (!as_given && !(words = memory_allocate(numel * 4)))
        return status_fail_memory("param conversion");
    if (words)
        dtype_widen(d->dtype, d->data, numel, words);
    status = check_readers(g, source, words ? (const void *)words : d->data);
    memory_free(words);
    return status == RLXVK_OK ? status
                              : status_fail_within(status, "%s: param '%s'", d->call, d->name);
}

/* ---- Writing ---- */

/* Converts the caller's data to the slot's bytes, if they differ. */
static rlxvk_status convert(const node *n, storage held, const param_data *d, void *to)
{
    uint64_t numel = shape_numel(&n->shape);
    if (held != STORAGE_HALF) {
        dtype_widen(d->dtype, d->data, d->bytes / rlxvk_dtype_size(d->dtype), to);
        dtype_round((rlxvk_dtype)n->dtype, to, numel);
        return RLXVK_OK;
    }
    float *words = memory_allocate(numel * 4);
    if (!words)
        return status_fail_memory("param conversion");
    dtype_widen(d->dtype, d->data, numel, words);
    for (uint64_t i = 0; i < numel; i++)
        ((uint16_t *)to)[i] = n->dtype == RLXVK_F16 ? f32_to_f16(words[i]) : f32_to_bf16(words[i]);
    memory_free(words);
    return RLXVK_OK;
}

/* Marks the content as new. Returns whether the param has memory to write. */
static bool begin_write(param_state *p)
{
    p->content->written = true;
    p->content->version++;
    return p->leaf->node != NODE_NONE;
}

/* Whether the data of a live param are exactly its slot's bytes. */
static bool is_verbatim(const rlxvk_executable *e, const param_state *p, const param_data *d)
{
    const node *n = graph_node(e->program->graph, p->leaf->node);
    storage held = program_held(e->program, p->leaf->node);
    return held == STORAGE_RAW || (n->dtype == RLXVK_F32 && d->dtype == RLXVK_F32) ||
           (held == STORAGE_HALF && d->dtype == (rlxvk_dtype)n->dtype);
}

/* Allocates all host memory that setting needs, before anything is written. *out are the slot's
 * bytes if they differ from the data. If nothing is bound, *out is a copy of the data.
 * NULL if neither is needed. */
static rlxvk_status prepare_data(rlxvk_executable *e, const param_data *d, void **out)
{
    param_state *p = leaf_find_param(e, d->name);
    rlxvk_status status = RLXVK_OK;
    *out = NULL;
    if (p && (p->leaf->node == NODE_NONE || d->bytes == 0 || is_verbatim(e, p, d)))
        return RLXVK_OK;
    *out = p ? memory_zeroed(1, executable_slot_bytes(e, p->leaf->node))
             : memory_allocate(d->bytes + 1);
    if (!*out)
        return status_fail_memory("param");
    if (p)
        TRY(convert(graph_node(e->program->graph, p->leaf->node),
                    program_held(e->program, p->leaf->node), d, *out));
    else if (d->bytes)
        memcpy(*out, d->data, d->bytes);
error:
    return status;
}

static rlxvk_status write_param(rlxvk_executable *e, param_state *p, const param_data *d,
                                const void *prepared)
{
    if (!begin_write(p) || d->bytes == 0)
        return RLXVK_OK;
    location to = executable_location(e, p->leaf->node);
    return prepared ? transfer_write(e, &to, prepared, executable_slot_bytes(e, p->leaf->node))
                    : transfer_write(e, &to, d->data, d->bytes);
}

static rlxvk_status check_data(rlxvk_executable *e, const param_data *d)
{
    uint32_t source;
    rlxvk_status status;
    TRY(check_param(e, d, &source));
    TRY(check_content(e, source, d));
error:
    return status;
}

/* Call it after check_data and prepare_data. If nothing is bound yet, the cached bindings take over
 * the prepared bytes. */
static rlxvk_status store_data(rlxvk_executable *e, const param_data *d, void **prepared)
{
    double begin = trace_begin(e->context->trace);
    rlxvk_status status;
    if (!e->program) {
        void *bytes = *prepared;
        *prepared = NULL;
        return cached_take_param(e->bindings, op_find_param(e->bindings->graph, d->name), d->dtype,
                                 bytes, d->bytes);
    }
    TRY(ticket_flush(e));
    TRY(write_param(e, leaf_find_param(e, d->name), d, *prepared));
    trace_end_named(e->context->trace, d->call, begin, d->name, "bytes", d->bytes);
error:
    return status;
}

/* All items are checked, and all host memory is allocated, before the first one is written. */
static rlxvk_status set_all(rlxvk_executable *e, const param_data *data, size_t count)
{
    void **prepared = memory_zeroed(count, sizeof *prepared);
    rlxvk_status status;
    TRY(prepared ? RLXVK_OK : status_fail_memory("params"));
    for (size_t i = 0; i < count; i++)
        TRY(check_data(e, &data[i]));
    if (!e->program)
        TRY(cached_reserve_params(e->bindings, count));
    for (size_t i = 0; i < count; i++)
        TRY(prepare_data(e, &data[i], &prepared[i]));
    for (size_t i = 0; i < count; i++)
        TRY(store_data(e, &data[i], &prepared[i]));
error:
    for (size_t i = 0; prepared && i < count; i++)
        memory_free(prepared[i]);
    memory_free(prepared);
    return status;
}

static rlxvk_status set_param(rlxvk_executable *e, const param_data *d)
{
    void *prepared = NULL;
    rlxvk_status status;
    TRY(check_data(e, d));
    if (!e->program)
        TRY(cached_reserve_params(e->bindings, 1));
    TRY(prepare_data(e, d, &prepared));
    TRY(store_data(e, d, &prepared));
error:
    memory_free(prepared);
    return status;
}

/* ---- The public calls ---- */

/* E_DTYPE if the param's dtype is not in `accepted`. These calls do not tell the dtype of their
 * data, so the data could be misread. */
static rlxvk_status check_untyped(rlxvk_executable *e, const char *call, const char *name,
                                  uint32_t accepted, const node **out)
{
    uint32_t source;
    rlxvk_status status;
    TRY(find_param(e, call, name, &source));
    *out = graph_node(executable_source(e), source);
    if (!(accepted >> (*out)->dtype & 1))
        return status_fail(
            RLXVK_E_DTYPE,
            "%s: param '%s' is %s; use rlxvk_set_param_typed, which says the type of "
            "the data",
            call, name, rlxvk_dtype_name((rlxvk_dtype)(*out)->dtype));
error:
    return status;
}

rlxvk_status rlxvk_set_param(rlxvk_executable *executable, const char *name, const float *values,
                             size_t length)
{
    const node *n;
    rlxvk_status status;
    TRY(check_untyped(executable, "set_param", name, 1u << RLXVK_F32, &n));
    uint64_t needed = shape_numel(&n->shape);
    if (!slot_fits(needed, length, values))
        return slot_refuse(needed, "values", length, "set_param: param '%s' needs", name);
    param_data d = {"set_param", name, values, length * 4, RLXVK_F32};
    TRY(set_param(executable, &d));
error:
    return status;
}

/* Dtypes whose bytes on the host are also those on the device, or that are held as f32. */
enum {
    STORED = 1u << RLXVK_U8 | 1u << RLXVK_I8 | 1u << RLXVK_F16 | 1u << RLXVK_BF16 |
             1u << RLXVK_C64 | 1u << RLXVK_F32
};

rlxvk_status rlxvk_set_param_bytes(rlxvk_executable *executable, const char *name,
                                   const void *bytes, size_t length)
{
    const node *n;
    rlxvk_status status;
    TRY(check_untyped(executable, "set_param_bytes", name, STORED, &n));
    param_data d = {"set_param_bytes", name, bytes, length, (rlxvk_dtype)n->dtype};
    TRY(set_param(executable, &d));
error:
    return status;
}

rlxvk_status rlxvk_set_param_typed(rlxvk_executable *executable, const char *name,
                                   const void *bytes, size_t length, rlxvk_dtype dtype)
{
    param_data d = {"set_param_typed", name, bytes, length, dtype};
    return set_param(executable, &d);
}

rlxvk_status rlxvk_set_params(rlxvk_executable *executable, const rlxvk_param_item *items,
                              size_t count)
{
    sized_array array;
    rlxvk_param_item own;
    param_data *data = NULL;
    rlxvk_status status;
    TRY(status_require(executable, "set_params", "executable"));
    TRY(status_require_items(items, count, "set_params", "items"));
    TRY(sized_array_of(SIZED(rlxvk_param_item), items, count, &array));
    data = memory_allocate(count * sizeof *data);
    TRY(data ? RLXVK_OK : status_fail_memory("params"));
    for (size_t i = 0; i < count; i++) {
        const rlxvk_param_item *item = sized_item(SIZED(rlxvk_param_item), &array, i, &own);
        data[i] = (param_data){"set_params", item->name, item->bytes, item->length, item->dtype};
    }
    TRY(set_all(executable, data, count));
error:
    memory_free(data);
    return status;
}

void param_begin_states(rlxvk_executable *e)
{
    for (size_t i = 0; i < e->program->param_count; i++) {
        const node *n = graph_node(e->program->source, e->params[i].leaf->source);
        if (n->begins_as_zeros && !e->params[i].content->written)
            (void)begin_write(&e->params[i]);
    }
}

/* Keeps zeros for a param if nothing is bound, because it has no memory on the device yet. */
static rlxvk_status keep_zeros(cached_bindings *f, const node *n, uint32_t source)
{
    size_t bytes = shape_numel(&n->shape) * rlxvk_dtype_size((rlxvk_dtype)n->dtype);
    void *zeros = memory_zeroed(1, bytes + 1);
    rlxvk_status status = zeros ? cached_keep_param(f, source, (rlxvk_dtype)n->dtype, zeros, bytes)
                                : status_fail_memory("param");
    memory_free(zeros);
    return status;
}

rlxvk_status rlxvk_clear_param(rlxvk_executable *executable, const char *name)
{
    rlxvk_executable *e = executable;
    uint32_t source;
    rlxvk_status status;
    TRY(find_param(e, "clear_param", name, &source));
    if (!e->program)
        return keep_zeros(e->bindings, graph_node(executable_source(e), source), source);
    param_state *p = leaf_find_param(e, name);
    TRY(ticket_flush(e));
    if (!begin_write(p))
        return RLXVK_OK;
    location to = executable_location(e, p->leaf->node);
    if (to.bytes)
        TRY(transfer_clear(e, &to, executable_slot_bytes(e, p->leaf->node)));
error:
    return status;
}

static rlxvk_status read_param(rlxvk_executable *e, const char *name, void *data, size_t length,
                               bool in_bytes, slot_type type)
{
    param_state *p = leaf_find_param(e, name);
    uint64_t needed;
    void *bytes = NULL;
    double begin;
    rlxvk_status status;
    TRY(executable_require(e, "read_param"));
    begin = trace_begin(e->context->trace);
    if (!p)
        return name_unknown(e->program->source, "read_param", "param", name);
    if (p->leaf->node == NODE_NONE)
        return status_fail(RLXVK_E_UNKNOWN_NAME,
                           "read_param: '%s' was dropped as dead; no output depends on it", name);
    const node *n = graph_node(e->program->graph, p->leaf->node);
    storage held = program_held(e->program, p->leaf->node);
    TRY(slot_length(graph_node(e->program->source, p->leaf->source), held, type, &needed));
    needed = in_bytes ? slot_bytes(type, needed) : needed;
    if (!slot_fits(needed, length, data))
        return slot_refuse(needed, in_bytes ? "bytes" : "values", length,
                           "read_param: param '%s' has", name);
    if (length == 0)
        return RLXVK_OK;
    TRY(ticket_flush(e));
    location from = executable_location(e, p->leaf->node);
    if (!(bytes = memory_allocate(from.bytes)))
        TRY(status_fail_memory("read_param"));
    TRY(transfer_read(e, &from, bytes, from.bytes));
    slot_decode(n, held, type, bytes, shape_numel(&n->shape), data);
    trace_end_named(e->context->trace, "read_param", begin, name, "bytes", from.bytes);
error:
    memory_free(bytes);
    return status;
}

rlxvk_status rlxvk_read_param(rlxvk_executable *executable, const char *name, float *values,
                              size_t length)
{
    return read_param(executable, name, values, length, false, (slot_type){RLXVK_F32, false});
}

rlxvk_status rlxvk_read_param_typed(rlxvk_executable *executable, const char *name, void *bytes,
                                    size_t length, rlxvk_dtype dtype)
{
    return read_param(executable, name, bytes, length, true,
                      (slot_type){dtype, dtype == RLXVK_F32});
}

rlxvk_status rlxvk_read_param_bytes(rlxvk_executable *executable, const char *name, void *bytes,
                                    size_t length)
{
    const param_state *p = executable ? leaf_find_param(executable, name) : NULL;
    const node *n = p ? graph_node(executable->program->source, p->leaf->source) : NULL;
    return rlxvk_read_param_typed(executable, name, bytes, length,
                                  n ? (rlxvk_dtype)n->dtype : RLXVK_U8);
}
