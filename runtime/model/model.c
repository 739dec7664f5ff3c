/* See rlxvk_model.h: opening, lists, graphs and executables of models. */
#include "base/input.h"
#include "base/sized.h"
#include "model/model.h"
#include "model/onnx_float8.h"
#include "model/onnx_import.h"

#include <rlxvk_ops.h>

#include <string.h>

/* Arrays on the host may have so many elements, and one more for each byte of the file. */
enum { HOST_ELEMENTS = 1 << 16 };

struct rlxvk_model {
    size_t size;    /* of the file */
    uint8_t *owned; /* the file's bytes, if they were read from a path */
    char *folder;   /* of external data; NULL: none */
    arena a;        /* of the structs */
    onnx_model onnx;
    name_map dims;          /* names of dims; the index is that of the symbol */
    const char **dim_names; /* for each input and axis; NULL: a number */
    bool *needs_value;
    import_count *counts; /* of the outputs of the last graph that has all of them */
    arena problem_arena;  /* of problems and spans */
    VECTOR(rlxvk_model_problem) problems;
    VECTOR(import_span) spans; /* of the last graph */
};

/* ---- Opening ---- */

void rlxvk_model_destroy(rlxvk_model *model)
{
    if (!model)
        return;
    name_destroy(&model->dims);
    arena_destroy(&model->a);
    arena_destroy(&model->problem_arena);
    VECTOR_FREE(&model->problems);
    VECTOR_FREE(&model->spans);
    memory_free(model->owned);
    memory_free(model->folder);
    memory_free(model);
}

static rlxvk_status name_dim(rlxvk_model *m, size_t input, uint32_t axis)
{
    const onnx_value_info *info = &m->onnx.graph.inputs[input];
    const char *name = info->dims[axis].name;
    size_t room = strlen(info->name) + 8;
    rlxvk_status status = RLXVK_OK;
    if (info->dims[axis].size >= 0)
        return RLXVK_OK;
    if (!name) {
        char *made = arena_allocate(&m->a, room);
        text t = {made, room, 0};
        if (!made)
            return status_fail_memory("dim of a model");
        text_append(&t, "%s.%u", info->name, axis);
        name = made;
    }
    m->dim_names[input * RLXVK_MAX_RANK + axis] = name;
    if (name_find(&m->dims, name) == NAME_NONE)
        TRY(name_put(&m->dims, name, m->dims.count));
error:
    return status;
}

static rlxvk_status name_dims(rlxvk_model *m)
{
    const onnx_graph *g = &m->onnx.graph;
    rlxvk_status status = RLXVK_OK;
    m->dim_names =
        arena_allocate(&m->a, (g->input_count + 1) * RLXVK_MAX_RANK * sizeof *m->dim_names);
    m->needs_value = arena_allocate(&m->a, g->input_count + 1);
    m->counts = arena_allocate(&m->a, (g->output_count + 1) * sizeof *m->counts);
    if (!m->dim_names || !m->needs_value || !m->counts)
        return status_fail_memory("inputs of a model");
    for (size_t i = 0; i < g->input_count; i++)
        for (uint32_t axis = 0; axis < MIN(g->inputs[i].rank, RLXVK_MAX_RANK); axis++)
            TRY(name_dim(m, i, axis));
error:
    return status;
}

static rlxvk_status begin(const rlxvk_model_options *options, rlxvk_model **out)
{
    rlxvk_model_options own;
    rlxvk_status status;
    TRY(sized_read(SIZED(rlxvk_model_options), options, &own));
    *out = memory_zeroed(1, sizeof **out);
    if (!*out)
        return status_fail_memory("model");
    if (own.folder && !((*out)->folder = memory_copy_string(own.folder)))
        return status_fail_memory("model");
error:
    return status;
}

static rlxvk_status read_model(rlxvk_model *m, wire_span bytes)
{
    rlxvk_status status;
    m->size = bytes.size;
    TRY(onnx_read(bytes, &m->a, &m->onnx));
    TRY(onnx_check(&m->onnx, &m->a));
    TRY(name_dims(m));
error:
    return status;
}

/* The folder of a path, without a final slash, or ".". */
static rlxvk_status take_folder(rlxvk_model *m, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (m->folder)
        return RLXVK_OK;
    m->folder = memory_copy_string(slash ? path : ".");
    if (!m->folder)
        return status_fail_memory("model");
    if (slash)
        m->folder[slash == path ? 1 : slash - path] = 0;
    return RLXVK_OK;
}

static rlxvk_status read_file(rlxvk_model *m, const char *path)
{
    input_file *file = NULL;
    rlxvk_status status;
    TRY(input_open(path, &file));
    if (file->length >= SIZE_MAX)
        TRY(status_fail(RLXVK_E_TOO_LARGE, "'%s' is too large for this machine", path));
    m->owned = memory_allocate((size_t)MAX(file->length, 1));
    if (!m->owned)
        TRY(status_fail_memory("model"));
    TRY(input_read(file, 0, file->length, m->owned));
    status = read_model(m, (wire_span){m->owned, (size_t)file->length});
    if (status != RLXVK_OK)
        status = status_fail_within(status, "'%s'", path);
error:
    input_close(file);
    return status;
}

rlxvk_status rlxvk_model_open(const char *path, const rlxvk_model_options *options,
                              rlxvk_model **out_model)
{
    rlxvk_model *m = NULL;
    rlxvk_status status;
    TRY(status_require(out_model, "model_open", "out_model"));
    *out_model = NULL;
    TRY(status_require(path, "model_open", "path"));
    TRY(begin(options, &m));
    TRY(take_folder(m, path));
    TRY(read_file(m, path));
    *out_model = m;
    return RLXVK_OK;
error:
    rlxvk_model_destroy(m);
    return status;
}

rlxvk_status rlxvk_model_open_bytes(const void *bytes, size_t size,
                                    const rlxvk_model_options *options, rlxvk_model **out_model)
{
    rlxvk_model *m = NULL;
    rlxvk_status status;
    TRY(status_require(out_model, "model_open_bytes", "out_model"));
    *out_model = NULL;
    TRY(status_require_items(bytes, size, "model_open_bytes", "bytes"));
    TRY(begin(options, &m));
    TRY(read_model(m, (wire_span){bytes, size}));
    *out_model = m;
    return RLXVK_OK;
error:
    rlxvk_model_destroy(m);
    return status;
}

/* ---- Lists ---- */

static int64_t symbol_of(const rlxvk_model *m, const char *name)
{
    return rlxvk_symbol(RLXVK_USER_SYMBOL + name_find(&m->dims, name));
}

static rlxvk_model_info describe(const rlxvk_model *m, const onnx_value_info *v, bool input,
                                 size_t index)
{
    rlxvk_model_info info = {.name = v->name, .type = "?", .dtype = RLXVK_DTYPE_COUNT};
    if (v->kind != ONNX_TENSOR)
        return info;
    info.type = onnx_type_name(v->type);
    (void)onnx_value_dtype(v->type, &info.dtype);
    info.has_shape = v->has_shape && v->rank <= RLXVK_MAX_RANK;
    info.shape.rank = info.has_shape ? v->rank : 0;
    for (uint32_t i = 0; i < info.shape.rank; i++) {
        const char *name = input ? m->dim_names[index * RLXVK_MAX_RANK + i] : v->dims[i].name;
        info.dim_names[i] = name;
        info.shape.dims[i] = name && input ? symbol_of(m, name) : v->dims[i].size;
    }
    info.needs_value = input && m->needs_value[index];
    info.count_output = input ? 0 : m->counts[index].output;
    info.count_axis = input ? 0 : m->counts[index].axis;
    return info;
}

rlxvk_status rlxvk_model_inputs(const rlxvk_model *model, rlxvk_model_info *infos, size_t capacity,
                                size_t *out_count)
{
    sized_array room = sized_room(SIZED(rlxvk_model_info), infos, capacity);
    size_t count = 0;
    rlxvk_status status;
    TRY(status_require(model, "model_inputs", "model"));
    TRY(status_require(out_count, "model_inputs", "out_count"));
    TRY(status_require_items(infos, capacity, "model_inputs", "infos"));
    for (size_t i = 0; i < model->onnx.graph.input_count; i++) {
        const onnx_value_info *v = &model->onnx.graph.inputs[i];
        rlxvk_model_info info = describe(model, v, true, i);
        if (v->is_weight)
            continue;
        if (count < capacity)
            sized_put(SIZED(rlxvk_model_info), &room, count, &info);
        count++;
    }
    *out_count = count;
error:
    return status;
}

rlxvk_status rlxvk_model_outputs(const rlxvk_model *model, rlxvk_model_info *infos, size_t capacity,
                                 size_t *out_count)
{
    sized_array room = sized_room(SIZED(rlxvk_model_info), infos, capacity);
    rlxvk_status status;
    TRY(status_require(model, "model_outputs", "model"));
    TRY(status_require(out_count, "model_outputs", "out_count"));
    TRY(status_require_items(infos, capacity, "model_outputs", "infos"));
    for (size_t i = 0; i < MIN(model->onnx.graph.output_count, capacity); i++) {
        rlxvk_model_info info = describe(model, &model->onnx.graph.outputs[i], false, i);
        sized_put(SIZED(rlxvk_model_info), &room, i, &info);
    }
    *out_count = model->onnx.graph.output_count;
error:
    return status;
}

rlxvk_status rlxvk_model_problems(const rlxvk_model *model, rlxvk_model_problem *problems,
                                  size_t capacity, size_t *out_count)
{
    sized_array room = sized_room(SIZED(rlxvk_model_problem), problems, capacity);
    rlxvk_status status;
    TRY(status_require(model, "model_problems", "model"));
    TRY(status_require(out_count, "model_problems", "out_count"));
    TRY(status_require_items(problems, capacity, "model_problems", "problems"));
    for (size_t i = 0; i < MIN(model->problems.count, capacity); i++)
        sized_put(SIZED(rlxvk_model_problem), &room, i, &model->problems.items[i]);
    *out_count = model->problems.count;
error:
    return status;
}

rlxvk_status rlxvk_model_node(const rlxvk_model *model, uint32_t node, rlxvk_model_source *out)
{
    rlxvk_model_source source = {.name = "", .op = ""};
    size_t low = 0, high;
    rlxvk_status status;
    TRY(status_require(model, "model_node", "model"));
    TRY(status_require(out, "model_node", "out_source"));
    high = model->spans.count;
    while (low < high) { /* the last span that begins at the node, or before */
        size_t middle = (low + high) / 2;
        if (model->spans.items[middle].first <= node)
            low = middle + 1;
        else
            high = middle;
    }
    if (low > 0) {
        source.name = model->spans.items[low - 1].name;
        source.op = model->spans.items[low - 1].op;
    }
    sized_write(SIZED(rlxvk_model_source), &source, out);
error:
    return status;
}

const onnx_model *model_contents(const rlxvk_model *model)
{
    return &model->onnx;
}

/* ---- Options of a graph ---- */

static rlxvk_status bind_dims(const rlxvk_model *m, const rlxvk_model_graph_options *o,
                              int64_t *sizes)
{
    sized_array items;
    rlxvk_status status;
    for (uint32_t i = 0; i < m->dims.count; i++)
        sizes[i] = -1;
    TRY(status_require_items(o->bindings, o->binding_count, "model_graph", "bindings"));
    TRY(sized_array_of(SIZED(rlxvk_model_binding), o->bindings, o->binding_count, &items));
    for (size_t i = 0; i < o->binding_count; i++) {
        rlxvk_model_binding room;
        const rlxvk_model_binding *b = sized_item(SIZED(rlxvk_model_binding), &items, i, &room);
        uint32_t dim;
        TRY(status_require(b->name, "model_graph", "bindings[].name"));
        dim = name_find(&m->dims, b->name);
        if (dim == NAME_NONE)
            return status_fail(RLXVK_E_UNKNOWN_NAME,
                               "no dim of the model's inputs is called '%.80s'", b->name);
        if (b->size < 0 || b->size > INT32_MAX)
            return status_fail(RLXVK_E_RANGE,
                               "dim '%.80s': the size %lld is outside of 0 .. 2^31 - 1", b->name,
                               (long long)b->size);
        sizes[dim] = b->size;
    }
error:
    return status;
}

static rlxvk_shape bound_shape(const rlxvk_model *m, size_t input, const int64_t *sizes)
{
    const onnx_value_info *v = &m->onnx.graph.inputs[input];
    rlxvk_shape s = {.rank = MIN(v->rank, RLXVK_MAX_RANK)};
    for (uint32_t i = 0; i < s.rank; i++) {
        const char *name = m->dim_names[input * RLXVK_MAX_RANK + i];
        s.dims[i] = !name                                   ? v->dims[i].size
                    : sizes[name_find(&m->dims, name)] >= 0 ? sizes[name_find(&m->dims, name)]
                                                            : symbol_of(m, name);
    }
    return s;
}

static double value_at(const rlxvk_model_value *v, size_t i)
{
    switch (v->dtype) {
    case RLXVK_F32:
        return ((const float *)v->data)[i];
    case RLXVK_F64:
        return ((const double *)v->data)[i];
    case RLXVK_BOOL:
        return ((const uint8_t *)v->data)[i] != 0;
    default:
        return (double)((const int64_t *)v->data)[i];
    }
}

/* The shape that a value has: the input's, as far as that is known. */
static rlxvk_status value_shape(const rlxvk_model_value *v, const onnx_value_info *info,
                                rlxvk_shape *shape)
{
    uint64_t count;
    rlxvk_status status = RLXVK_OK;
    if (!info->has_shape || (shape->rank == 1 && shape->dims[0] < 0))
        *shape = RLXVK_SHAPE((int64_t)v->length);
    TRY(rlxvk_shape_elements(*shape, &count));
    if (count != v->length)
        return status_fail(RLXVK_E_LENGTH,
                           "input '%.80s' has %llu elements, but %zu values are given", v->name,
                           (unsigned long long)count, v->length);
error:
    return status;
}

static rlxvk_status make_value(const rlxvk_model_value *v, const onnx_value_info *info,
                               rlxvk_shape shape, arena *a, const host_array **out)
{
    bool integers = v->dtype == RLXVK_I64 || v->dtype == RLXVK_BOOL;
    rlxvk_dtype dtype;
    host_array *h;
    rlxvk_status status;
    if (!integers && v->dtype != RLXVK_F32 && v->dtype != RLXVK_F64)
        return status_fail(RLXVK_E_DTYPE,
                           "the value of '%.80s' is %s; I64, F32, F64 and BOOL are taken", v->name,
                           rlxvk_dtype_name(v->dtype));
    if (info->kind != ONNX_TENSOR || !onnx_value_dtype(info->type, &dtype))
        return status_fail(RLXVK_E_UNSUPPORTED, "input '%.80s' is of a type that has no values",
                           v->name);
    TRY(status_require_items(v->data, v->length, "model_graph", "values[].data"));
    TRY(value_shape(v, info, &shape));
    h = onnx_make_host(a, info->type, shape);
    if (!h)
        return status_fail_memory("value of an input");
    for (size_t i = 0; i < v->length; i++)
        if (h->reals)
            h->reals[i] = onnx_round_to(info->type, value_at(v, i));
        else if (v->dtype == RLXVK_I64)
            h->integers[i] = ((const int64_t *)v->data)[i];
        else
            h->integers[i] = (int64_t)value_at(v, i);
    *out = h;
error:
    return status;
}

static size_t find_input(const onnx_graph *g, const char *name)
{
    size_t i = 0;
    while (i < g->input_count && strcmp(g->inputs[i].name, name) != 0)
        i++;
    return i;
}

static rlxvk_status take_values(const rlxvk_model *m, const rlxvk_model_graph_options *o, arena *a,
                                onnx_import_input *inputs)
{
    const onnx_graph *g = &m->onnx.graph;
    sized_array items;
    rlxvk_status status;
    TRY(status_require_items(o->values, o->value_count, "model_graph", "values"));
    TRY(sized_array_of(SIZED(rlxvk_model_value), o->values, o->value_count, &items));
    for (size_t i = 0; i < o->value_count; i++) {
        rlxvk_model_value room;
        const rlxvk_model_value *v = sized_item(SIZED(rlxvk_model_value), &items, i, &room);
        size_t input;
        TRY(status_require(v->name, "model_graph", "values[].name"));
        input = find_input(g, v->name);
        if (input == g->input_count || g->inputs[input].is_weight)
            return status_fail(RLXVK_E_UNKNOWN_NAME, "the model has no input '%.80s'", v->name);
        TRY(make_value(v, &g->inputs[input], inputs[input].shape, a, &inputs[input].value));
    }
error:
    return status;
}

static rlxvk_status read_inputs(const rlxvk_model *m, const rlxvk_model_graph_options *o, arena *a,
                                onnx_import_input *inputs)
{
    int64_t *sizes = arena_allocate(a, (m->dims.count + 1) * sizeof *sizes);
    rlxvk_status status;
    if (!sizes)
        return status_fail_memory("options of a model");
    TRY(bind_dims(m, o, sizes));
    for (size_t i = 0; i < m->onnx.graph.input_count; i++)
        inputs[i].shape = bound_shape(m, i, sizes);
    TRY(take_values(m, o, a, inputs));
error:
    return status;
}

/* ---- Graphs ---- */

static rlxvk_status list_outputs(const rlxvk_model *m, const rlxvk_model_graph_options *o, arena *a,
                                 const char *const **out, size_t *out_count)
{
    const onnx_graph *g = &m->onnx.graph;
    const char **names;
    rlxvk_status status = RLXVK_OK;
    *out = o->outputs;
    *out_count = o->output_count;
    for (size_t i = 0; o->outputs && i < o->output_count; i++)
        TRY(status_require(o->outputs[i], "model_graph", "outputs[]"));
    if (o->outputs)
        return RLXVK_OK;
    names = arena_allocate(a, (g->output_count + 1) * sizeof *names);
    if (!names)
        return status_fail_memory("outputs of a model");
    for (size_t i = 0; i < g->output_count; i++)
        names[i] = g->outputs[i].name;
    *out = names;
    *out_count = g->output_count;
error:
    return status;
}

/* The first problem as an error, with how many there are. */
static rlxvk_status fail_with(const rlxvk_model_problem *p, size_t count)
{
    char more[64] = "";
    text t = {more, sizeof more, 0};
    if (count > 1)
        text_append(&t, " (and %zu more: rlxvk_model_problems)", count - 1);
    return status_fail(p->status, "%s%s'%.120s'%s%.60s: %.500s%s", p->op, *p->op ? " " : "",
                       p->node, *p->attribute ? ", attribute " : "", p->attribute, p->text, more);
}

/* Keeps the problems: their texts are in the import's arena. */
static void keep_problems(rlxvk_model *m, onnx_import *import)
{
    VECTOR_FREE(&m->problems);
    arena_destroy(&m->problem_arena);
    m->problem_arena = import->a;
    m->problems.items = import->problems.items;
    m->problems.count = import->problems.count;
    m->problems.capacity = import->problems.capacity;
    import->a = (arena){0};
    import->problems.items = NULL;
    VECTOR_FREE(&m->spans);
    m->spans.items = import->spans.items;
    m->spans.count = import->spans.count;
    m->spans.capacity = import->spans.capacity;
    import->spans.items = NULL;
}

static rlxvk_status build(rlxvk_model *m, const rlxvk_model_graph_options *options,
                          onnx_import *import)
{
    const onnx_graph *g = &m->onnx.graph;
    rlxvk_model_graph_options own;
    onnx_import_input *inputs;
    const char *const *outputs;
    size_t output_count;
    rlxvk_status status;
    *import = (onnx_import){.model = &m->onnx, .folder = m->folder, .needs_value = m->needs_value};
    import->host_limit = HOST_ELEMENTS + m->size;
    memset(m->needs_value, 0, g->input_count);
    memset(m->counts, 0, g->output_count * sizeof *m->counts);
    TRY(sized_read(SIZED(rlxvk_model_graph_options), options, &own));
    inputs = arena_allocate(&import->a, (g->input_count + 1) * sizeof *inputs);
    if (!inputs)
        return status_fail_memory("inputs of a model");
    TRY(read_inputs(m, &own, &import->a, inputs));
    TRY(list_outputs(m, &own, &import->a, &outputs, &output_count));
    TRY(rlxvk_graph_create(&import->graph));
    TRY(onnx_import_model(import, inputs, outputs, output_count));
    if (!own.outputs && output_count)
        memcpy(m->counts, import->counts, output_count * sizeof *m->counts);
    if (import->problems.count)
        status = fail_with(&import->problems.items[0], import->problems.count);
error:
    return status;
}

static void end_import(rlxvk_model *m, onnx_import *import)
{
    keep_problems(m, import);
    name_destroy(&import->param_names);
    name_destroy(&import->functions);
    VECTOR_FREE(&import->params);
    rlxvk_graph_destroy(import->graph);
}

rlxvk_status rlxvk_model_graph(rlxvk_model *model, const rlxvk_model_graph_options *options,
                               rlxvk_graph **out_graph)
{
    onnx_import import = {0};
    rlxvk_status status;
    TRY(status_require(out_graph, "model_graph", "out_graph"));
    *out_graph = NULL;
    TRY(status_require(model, "model_graph", "model"));
    status = build(model, options, &import);
    if (status == RLXVK_OK) {
        *out_graph = import.graph;
        import.graph = NULL;
    }
    end_import(model, &import);
error:
    return status;
}

/* ---- Executables ---- */

/* Sets a param from floats of 8 or 4 bits. */
static rlxvk_status upload_widened(rlxvk_executable *e, const import_param *p, wire_span bytes)
{
    uint64_t count = p->initializer->numel;
    float *words = memory_allocate((size_t)MAX(count, 1) * sizeof *words);
    rlxvk_status status;
    if (!words)
        return status_fail_memory("params of a model");
    onnx_widen(p->initializer->type, bytes, count, words);
    status = rlxvk_set_param(e, p->name, words, (size_t)count);
    memory_free(words);
    return status;
}

/* Sets a param that is made from several tensors. */
static rlxvk_status upload_made(const rlxvk_model *m, rlxvk_executable *e, const import_param *p)
{
    const import_files files = {.folder = m->folder, .file = m->onnx.file};
    void *bytes = memory_zeroed((size_t)MAX(p->size, 1), 1);
    rlxvk_status status;
    if (!bytes)
        return status_fail_memory("params of a model");
    TRY(p->write(&files, p->user, bytes));
    status = p->dtype == RLXVK_F32
                 ? rlxvk_set_param(e, p->name, bytes, (size_t)p->size / sizeof(float))
                 : rlxvk_set_param_bytes(e, p->name, bytes, (size_t)p->size);
error:
    memory_free(bytes);
    return status;
}

/* Sets a param from the file, unless another executable's is used. */
static rlxvk_status upload(const rlxvk_model *m, rlxvk_executable *e, const import_param *p)
{
    onnx_data data;
    rlxvk_status status;
    if (p->write)
        return upload_made(m, e, p);
    TRY(onnx_data_read(p->initializer, m->folder, m->onnx.file, &data));
    if (onnx_find_float8(p->initializer->type))
        status = upload_widened(e, p, data.bytes);
    else
        status = rlxvk_set_param_typed(e, p->name, data.bytes.bytes, data.bytes.size, p->dtype);
    onnx_data_free(&data);
error:
    return status;
}

static rlxvk_status upload_all(const rlxvk_model *m, rlxvk_executable *e, const onnx_import *import)
{
    rlxvk_tensor_info *infos = NULL;
    size_t count;
    rlxvk_status status;
    TRY(rlxvk_executable_params(e, NULL, 0, &count));
    infos = memory_zeroed(MAX(count, 1), sizeof *infos);
    if (!infos)
        return status_fail_memory("params of a model");
    TRY(rlxvk_executable_params(e, infos, count, &count));
    for (size_t i = 0; i < count; i++) {
        uint32_t at = name_find(&import->param_names, infos[i].name);
        if (at != NAME_NONE && infos[i].live && !(infos[i].shared && infos[i].written))
            TRY(upload(m, e, &import->params.items[at]));
    }
error:
    memory_free(infos);
    return status;
}

rlxvk_status rlxvk_model_executable(rlxvk_model *model, rlxvk_context *context,
                                    const rlxvk_model_graph_options *options,
                                    const rlxvk_compile_options *compile_options,
                                    rlxvk_executable **out_executable)
{
    onnx_import import = {0};
    rlxvk_executable *e = NULL;
    rlxvk_status status;
    TRY(status_require(out_executable, "model_executable", "out_executable"));
    *out_executable = NULL;
    TRY(status_require(model, "model_executable", "model"));
    TRY(status_require(context, "model_executable", "context"));
    status = build(model, options, &import);
    if (status == RLXVK_OK)
        status = rlxvk_compile(context, import.graph, compile_options, &e);
    if (status == RLXVK_OK)
        status = upload_all(model, e, &import);
    end_import(model, &import);
    if (status != RLXVK_OK)
        rlxvk_executable_destroy(e);
    else
        *out_executable = e;
error:
    return status;
}
