/* ONNX files as a format of models: reading, lists, options of a graph, and upload. */
#include "base/input.h"
#include "base/sized.h"
#include "model/format.h"
#include "model/model.h"
#include "model/onnx_float8.h"
#include "model/onnx_import.h"
#include "model/skim.h"

#include <rlxvk_ops.h>

#include <string.h>

/* Arrays on the host may have so many elements, and one more for each byte of the file. */
enum { HOST_ELEMENTS = 1 << 16 };

struct onnx_file {
    size_t size;        /* of the file */
    uint8_t *owned;     /* its bytes, if they were read from a path; without large weights */
    input_file *source; /* which has those; or NULL */
    const char *folder; /* of external data; NULL: none */
    arena a;            /* of the structs */
    onnx_model onnx;
    size_t *inputs; /* those of the graph that are no weights */
    size_t input_count;
    name_map dims;          /* names of dims; the index is that of the symbol */
    const char **dim_names; /* for each input and axis; NULL: a number */
    bool *needs_value;
    import_count *counts; /* of the outputs of the last graph that has all of them */
};

/* ---- Opening ---- */

static void close_file(void *file)
{
    onnx_file *m = file;
    if (!m)
        return;
    name_destroy(&m->dims);
    arena_destroy(&m->a);
    memory_free(m->owned);
    input_close(m->source);
    memory_free(m);
}

static rlxvk_status name_dim(onnx_file *m, size_t input, uint32_t axis)
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

static rlxvk_status name_dims(onnx_file *m)
{
    const onnx_graph *g = &m->onnx.graph;
    rlxvk_status status = RLXVK_OK;
    m->dim_names =
        arena_allocate(&m->a, (g->input_count + 1) * RLXVK_MAX_RANK * sizeof *m->dim_names);
    m->needs_value = arena_allocate(&m->a, g->input_count + 1);
    m->counts = arena_allocate(&m->a, (g->output_count + 1) * sizeof *m->counts);
    m->inputs = arena_allocate(&m->a, (g->input_count + 1) * sizeof *m->inputs);
    if (!m->dim_names || !m->needs_value || !m->counts || !m->inputs)
        return status_fail_memory("inputs of a model");
    for (size_t i = 0; i < g->input_count; i++) {
        if (!g->inputs[i].is_weight)
            m->inputs[m->input_count++] = i;
        for (uint32_t axis = 0; axis < MIN(g->inputs[i].rank, RLXVK_MAX_RANK); axis++)
            TRY(name_dim(m, i, axis));
    }
error:
    return status;
}

static rlxvk_status read_file(onnx_file *m, const char *path)
{
    rlxvk_status status;
    TRY(input_open(path, &m->source));
    if (m->source->length >= SIZE_MAX)
        return status_fail(RLXVK_E_TOO_LARGE, "'%s' is too large for this machine", path);
    m->size = (size_t)m->source->length;
    m->owned = memory_zeroed(MAX(m->size, 1), 1); /* pages that nobody writes take no memory */
    if (!m->owned)
        return status_fail_memory("model");
    TRY(skim_file(m->source, m->owned));
error:
    return status;
}

static rlxvk_status parse(onnx_file *m, wire_span bytes)
{
    rlxvk_status status;
    m->size = bytes.size;
    TRY(onnx_read(bytes, &m->a, &m->onnx));
    TRY(onnx_check(&m->onnx, &m->a));
    TRY(name_dims(m));
error:
    return status;
}

static rlxvk_status open_file(const model_place *place, void **out)
{
    onnx_file *m = memory_zeroed(1, sizeof *m);
    rlxvk_status status = RLXVK_OK;
    if (!m)
        return status_fail_memory("model");
    m->folder = place->folder;
    if (place->path)
        TRY(read_file(m, place->path));
    status = parse(m, place->path ? (wire_span){m->owned, m->size}
                                  : (wire_span){place->bytes, place->size});
    if (status != RLXVK_OK && place->path)
        status = status_fail_within(status, "'%s'", place->path);
    TRY(status);
    if (place->path)
        skim_mark(m->source, &m->onnx);
    *out = m;
    return RLXVK_OK;
error:
    close_file(m);
    return status;
}

/* ---- Lists ---- */

static size_t count(const void *file, bool inputs)
{
    const onnx_file *m = file;
    return inputs ? m->input_count : m->onnx.graph.output_count;
}

static rlxvk_model_info describe(const void *file, bool input, size_t i)
{
    const onnx_file *m = file;
    size_t index = input ? m->inputs[i] : i;
    const onnx_graph *g = &m->onnx.graph;
    const onnx_value_info *v = input ? &g->inputs[index] : &g->outputs[index];
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
        info.shape.dims[i] = name && input ? model_symbol(&m->dims, name) : v->dims[i].size;
    }
    info.needs_value = input && m->needs_value[index];
    info.count_output = input ? 0 : m->counts[index].output;
    info.count_axis = input ? 0 : m->counts[index].axis;
    return info;
}

/* ---- Options of a graph ---- */

static rlxvk_shape bound_shape(const onnx_file *m, size_t input, const int64_t *sizes)
{
    const onnx_value_info *v = &m->onnx.graph.inputs[input];
    rlxvk_shape s = {.rank = MIN(v->rank, RLXVK_MAX_RANK)};
    for (uint32_t i = 0; i < s.rank; i++) {
        const char *name = m->dim_names[input * RLXVK_MAX_RANK + i];
        s.dims[i] = !name                                   ? v->dims[i].size
                    : sizes[name_find(&m->dims, name)] >= 0 ? sizes[name_find(&m->dims, name)]
                                                            : model_symbol(&m->dims, name);
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

static rlxvk_status take_values(const onnx_file *m, const rlxvk_model_graph_options *o, arena *a,
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

static rlxvk_status read_inputs(const onnx_file *m, const rlxvk_model_graph_options *o, arena *a,
                                onnx_import_input *inputs)
{
    int64_t *sizes = arena_allocate(a, (m->dims.count + 1) * sizeof *sizes);
    rlxvk_status status;
    if (!sizes)
        return status_fail_memory("options of a model");
    TRY(model_bind_dims(o, &m->dims, sizes));
    for (size_t i = 0; i < m->onnx.graph.input_count; i++)
        inputs[i].shape = bound_shape(m, i, sizes);
    TRY(take_values(m, o, a, inputs));
error:
    return status;
}

/* ---- Graphs ---- */

static rlxvk_status list_outputs(const onnx_file *m, const rlxvk_model_graph_options *o, arena *a,
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

/* What is left of an import when its graph is built: params. */
static void end_params(void *params)
{
    onnx_import *import = params;
    name_destroy(&import->param_names);
    name_destroy(&import->functions);
    VECTOR_FREE(&import->params);
    rlxvk_graph_destroy(import->graph); /* of a build that failed */
    memory_free(import);
}

static rlxvk_status import_graph(onnx_file *m, const rlxvk_model_graph_options *o,
                                 onnx_import *import)
{
    const onnx_graph *g = &m->onnx.graph;
    onnx_import_input *inputs = arena_allocate(&import->a, (g->input_count + 1) * sizeof *inputs);
    const char *const *outputs;
    size_t output_count;
    rlxvk_status status;
    memset(m->needs_value, 0, g->input_count);
    memset(m->counts, 0, g->output_count * sizeof *m->counts);
    if (!inputs)
        return status_fail_memory("inputs of a model");
    TRY(read_inputs(m, o, &import->a, inputs));
    TRY(list_outputs(m, o, &import->a, &outputs, &output_count));
    TRY(rlxvk_graph_create(&import->graph));
    TRY(onnx_import_model(import, inputs, outputs, output_count));
    if (!o->outputs && output_count)
        memcpy(m->counts, import->counts, output_count * sizeof *m->counts);
error:
    return status;
}

static rlxvk_status build(void *file, const rlxvk_model_graph_options *options, model_build *out)
{
    onnx_file *m = file;
    onnx_import *import = memory_zeroed(1, sizeof *import);
    rlxvk_status status;
    if (!import)
        return status_fail_memory("model");
    import->model = &m->onnx;
    import->folder = m->folder;
    import->needs_value = m->needs_value;
    import->host_limit = HOST_ELEMENTS + m->size;
    status = import_graph(m, options, import);
    VECTOR_MOVE(&out->problems, &import->problems);
    VECTOR_MOVE(&out->spans, &import->spans);
    if (status == RLXVK_OK && out->problems.count == 0) {
        out->graph = import->graph;
        import->graph = NULL;
    }
    out->a = import->a; /* it has the texts of problems and names of params */
    import->a = (arena){0};
    out->params = import;
    return status;
}

/* ---- Upload ---- */

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
static rlxvk_status upload_made(const onnx_file *m, rlxvk_executable *e, const import_param *p)
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

/* Sets a param from the file. */
static rlxvk_status upload_param(const onnx_file *m, rlxvk_executable *e, const import_param *p)
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

static rlxvk_status upload(const void *file, const model_build *built, rlxvk_executable *e,
                           const name_map *wanted)
{
    const onnx_import *import = built->params;
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < import->params.count; i++)
        if (name_find(wanted, import->params.items[i].name) != NAME_NONE)
            TRY(upload_param(file, e, &import->params.items[i]));
error:
    return status;
}

const onnx_model *onnx_file_contents(const onnx_file *file)
{
    return &file->onnx;
}

const model_format onnx_format = {.open = open_file,
                                  .close = close_file,
                                  .count = count,
                                  .describe = describe,
                                  .build = build,
                                  .upload = upload,
                                  .end_params = end_params};
