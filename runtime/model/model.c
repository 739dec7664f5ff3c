/* See rlxvk_model.h: opening, lists, graphs and executables of models of any format. */
#include "base/input.h"
#include "base/sized.h"
#include "model/format.h"
#include "model/model.h"

#include <rlxvk_ops.h>

#include <string.h>

struct rlxvk_model {
    const model_format *format;
    void *file;        /* what the format has made */
    char *folder;      /* of files beside the model; NULL: none */
    model_build built; /* the last graph, which is not kept: problems and spans */
};

/* ---- Opening ---- */

/* Drops what only the making of an executable needs. Problems and spans stay. */
static void end_build(rlxvk_model *m)
{
    rlxvk_graph_destroy(m->built.graph);
    m->built.graph = NULL;
    if (m->built.params)
        m->format->end_params(m->built.params);
    m->built.params = NULL;
}

static void forget(rlxvk_model *m)
{
    end_build(m);
    VECTOR_FREE(&m->built.problems);
    VECTOR_FREE(&m->built.spans);
    arena_destroy(&m->built.a);
    m->built = (model_build){0};
}

void rlxvk_model_destroy(rlxvk_model *model)
{
    if (!model)
        return;
    forget(model);
    if (model->format)
        model->format->close(model->file);
    memory_free(model->folder);
    memory_free(model);
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

/* The format by the first bytes. An ONNX file has none that are fixed. */
static const model_format *find_format(const void *bytes, size_t size)
{
    return size >= 4 && memcmp(bytes, "GGUF", 4) == 0 ? &language_format : &onnx_format;
}

static rlxvk_status find_file_format(const char *path, const model_format **out)
{
    uint8_t start[4] = {0};
    input_file *file = NULL;
    rlxvk_status status;
    TRY(input_open(path, &file));
    TRY(input_read(file, 0, MIN(file->length, sizeof start), start));
    *out = find_format(start, sizeof start);
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
    TRY(find_file_format(path, &m->format));
    TRY(m->format->open(&(model_place){.path = path, .folder = m->folder}, &m->file));
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
    m->format = find_format(bytes, size);
    TRY(m->format->open(&(model_place){.bytes = bytes, .size = size, .folder = m->folder},
                        &m->file));
    *out_model = m;
    return RLXVK_OK;
error:
    rlxvk_model_destroy(m);
    return status;
}

/* ---- Lists ---- */

static rlxvk_status list(const rlxvk_model *model, bool inputs, rlxvk_model_info *infos,
                         size_t capacity, size_t *out_count)
{
    const char *where = inputs ? "model_inputs" : "model_outputs";
    sized_array room = sized_room(SIZED(rlxvk_model_info), infos, capacity);
    rlxvk_status status;
    TRY(status_require(model, where, "model"));
    TRY(status_require(out_count, where, "out_count"));
    TRY(status_require_items(infos, capacity, where, "infos"));
    *out_count = model->format->count(model->file, inputs);
    for (size_t i = 0; i < MIN(*out_count, capacity); i++) {
        rlxvk_model_info info = model->format->describe(model->file, inputs, i);
        sized_put(SIZED(rlxvk_model_info), &room, i, &info);
    }
error:
    return status;
}

rlxvk_status rlxvk_model_inputs(const rlxvk_model *model, rlxvk_model_info *infos, size_t capacity,
                                size_t *out_count)
{
    return list(model, true, infos, capacity, out_count);
}

rlxvk_status rlxvk_model_outputs(const rlxvk_model *model, rlxvk_model_info *infos, size_t capacity,
                                 size_t *out_count)
{
    return list(model, false, infos, capacity, out_count);
}

rlxvk_status rlxvk_model_problems(const rlxvk_model *model, rlxvk_model_problem *problems,
                                  size_t capacity, size_t *out_count)
{
    sized_array room = sized_room(SIZED(rlxvk_model_problem), problems, capacity);
    rlxvk_status status;
    TRY(status_require(model, "model_problems", "model"));
    TRY(status_require(out_count, "model_problems", "out_count"));
    TRY(status_require_items(problems, capacity, "model_problems", "problems"));
    for (size_t i = 0; i < MIN(model->built.problems.count, capacity); i++)
        sized_put(SIZED(rlxvk_model_problem), &room, i, &model->built.problems.items[i]);
    *out_count = model->built.problems.count;
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
    high = model->built.spans.count;
    while (low < high) { /* the last span that begins at the node, or before */
        size_t middle = (low + high) / 2;
        if (model->built.spans.items[middle].first <= node)
            low = middle + 1;
        else
            high = middle;
    }
    if (low > 0) {
        source.name = model->built.spans.items[low - 1].name;
        source.op = model->built.spans.items[low - 1].op;
    }
    sized_write(SIZED(rlxvk_model_source), &source, out);
error:
    return status;
}

const onnx_model *model_contents(const rlxvk_model *model)
{
    return model->format == &onnx_format ? onnx_file_contents(model->file) : NULL;
}

gguf_file *model_language(const rlxvk_model *model)
{
    return model->format == &language_format ? language_file_contents(model->file) : NULL;
}

/* ---- Graphs ---- */

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

/* Builds a graph. It stays the model's until the caller takes it. */
static rlxvk_status build(rlxvk_model *m, const rlxvk_model_graph_options *options)
{
    rlxvk_model_graph_options own;
    rlxvk_status status;
    forget(m);
    TRY(sized_read(SIZED(rlxvk_model_graph_options), options, &own));
    TRY(m->format->build(m->file, &own, &m->built));
    if (m->built.problems.count)
        status = fail_with(&m->built.problems.items[0], m->built.problems.count);
error:
    return status;
}

rlxvk_status rlxvk_model_graph(rlxvk_model *model, const rlxvk_model_graph_options *options,
                               rlxvk_graph **out_graph)
{
    rlxvk_status status;
    TRY(status_require(out_graph, "model_graph", "out_graph"));
    *out_graph = NULL;
    TRY(status_require(model, "model_graph", "model"));
    status = build(model, options);
    if (status == RLXVK_OK) {
        *out_graph = model->built.graph;
        model->built.graph = NULL;
    }
    end_build(model);
error:
    return status;
}

/* ---- Executables ---- */

/* Sets the params, unless another executable's are used, or nothing reads them. */
static rlxvk_status upload(const rlxvk_model *m, rlxvk_executable *e)
{
    rlxvk_tensor_info *infos = NULL;
    name_map wanted = {0};
    size_t count;
    rlxvk_status status;
    TRY(rlxvk_executable_params(e, NULL, 0, &count));
    infos = memory_zeroed(MAX(count, 1), sizeof *infos);
    if (!infos)
        TRY(status_fail_memory("params of a model"));
    TRY(rlxvk_executable_params(e, infos, count, &count));
    for (size_t i = 0; i < count; i++)
        if (infos[i].live && !(infos[i].shared && infos[i].written))
            TRY(name_put(&wanted, infos[i].name, (uint32_t)i));
    TRY(m->format->upload(m->file, &m->built, e, &wanted));
error:
    name_destroy(&wanted);
    memory_free(infos);
    return status;
}

rlxvk_status rlxvk_model_executable(rlxvk_model *model, rlxvk_context *context,
                                    const rlxvk_model_graph_options *options,
                                    const rlxvk_compile_options *compile_options,
                                    rlxvk_executable **out_executable)
{
    rlxvk_executable *e = NULL;
    rlxvk_status status;
    TRY(status_require(out_executable, "model_executable", "out_executable"));
    *out_executable = NULL;
    TRY(status_require(model, "model_executable", "model"));
    TRY(status_require(context, "model_executable", "context"));
    status = build(model, options);
    if (status == RLXVK_OK)
        status = rlxvk_compile(context, model->built.graph, compile_options, &e);
    if (status == RLXVK_OK)
        status = upload(model, e);
    end_build(model);
    if (status != RLXVK_OK)
        rlxvk_executable_destroy(e);
    else
        *out_executable = e;
error:
    return status;
}
