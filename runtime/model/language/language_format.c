/*
 * GGUF files of language models as a format of models. The graph runs whole sequences: tokens
 * [batch, length] to logits [batch, length, vocabulary]. Matrices stay packed. For text generation
 * over caches, see llama.h.
 */
#include "model/format.h"
#include "model/language/llama_internal.h"
#include "model/model.h"

#include <string.h>

struct language_file {
    gguf_file *gguf;
    llama_net net; /* its matrices are not joined, so that params have the names of the file */
    arena a;
    name_map dims;
};

static const char *const dim_names[] = {"batch", "length"};

static void close_file(void *file)
{
    language_file *f = file;
    if (!f)
        return;
    name_destroy(&f->dims);
    gguf_close(f->gguf);
    arena_destroy(&f->a);
    memory_free(f);
}

static rlxvk_status read_net(language_file *f)
{
    llama_net *net = &f->net;
    rlxvk_status status;
    TRY(llama_read_config(f->gguf, &net->config));
    TRY(llama_find_weights(f->gguf, &net->config, 0, &f->a, &net->weights));
    net->capacity = net->config.context;
    for (uint64_t i = 0; i < f->gguf->tensor_count; i++)
        net->file_bytes += f->gguf->tensors[i].size;
    for (uint32_t i = 0; i < ARRAY_COUNT(dim_names); i++)
        TRY(name_put(&f->dims, dim_names[i], i));
error:
    return status;
}

static rlxvk_status open_file(const model_place *place, void **out)
{
    language_file *f = memory_zeroed(1, sizeof *f);
    rlxvk_status status;
    if (!f)
        return status_fail_memory("model");
    TRY(gguf_result(place->path ? gguf_open(place->path, &f->gguf)
                                : gguf_parse(place->bytes, place->size, NULL, &f->gguf)));
    TRY(read_net(f));
    *out = f;
    return RLXVK_OK;
error:
    close_file(f);
    return status;
}

gguf_file *language_file_contents(const language_file *file)
{
    return file->gguf;
}

static size_t count(const void *file, bool inputs)
{
    (void)file, (void)inputs;
    return 1;
}

static rlxvk_model_info describe(const void *file, bool inputs, size_t i)
{
    const language_file *f = file;
    rlxvk_model_info info = {.name = inputs ? "tokens" : "logits",
                             .type = inputs ? "I32" : "F32",
                             .dtype = inputs ? RLXVK_I32 : RLXVK_F32,
                             .has_shape = true};
    (void)i;
    info.shape.rank = inputs ? 2 : 3;
    for (uint32_t axis = 0; axis < ARRAY_COUNT(dim_names); axis++) {
        info.dim_names[axis] = dim_names[axis];
        info.shape.dims[axis] = inputs ? model_symbol(&f->dims, dim_names[axis]) : -1;
    }
    if (!inputs)
        info.shape.dims[2] = f->net.config.vocabulary;
    return info;
}

/* The only output is the logits, and no input decides a size. */
static rlxvk_status check_names(const rlxvk_model_graph_options *o)
{
    if (o->value_count)
        return status_fail(RLXVK_E_UNKNOWN_NAME,
                           "a language model has no inputs whose values decide sizes");
    for (size_t i = 0; o->outputs && i < o->output_count; i++)
        if (!o->outputs[i] || strcmp(o->outputs[i], "logits") != 0)
            return status_fail(o->outputs[i] ? RLXVK_E_UNKNOWN_NAME : RLXVK_E_NULL,
                               "a language model has the output 'logits' alone, not '%.80s'",
                               o->outputs[i] ? o->outputs[i] : "NULL");
    return RLXVK_OK;
}

static rlxvk_status build(void *file, const rlxvk_model_graph_options *options, model_build *out)
{
    const language_file *f = file;
    int64_t sizes[ARRAY_COUNT(dim_names)];
    rlxvk_status status;
    TRY(check_names(options));
    TRY(model_bind_dims(options, &f->dims, sizes));
    for (size_t i = 0; i < ARRAY_COUNT(dim_names); i++)
        if (sizes[i] < 0)
            sizes[i] = model_symbol(&f->dims, dim_names[i]);
    if (sizes[1] > f->net.capacity)
        return status_fail(RLXVK_E_RANGE, "length: %lld tokens exceed the model's context of %lld",
                           (long long)sizes[1], (long long)f->net.capacity);
    TRY(llama_build_whole_graph(&f->net, sizes[0], sizes[1], &out->graph));
error:
    return status;
}

static rlxvk_status upload(const void *file, const model_build *built, rlxvk_executable *e,
                           const name_map *wanted)
{
    const language_file *f = file;
    (void)built;
    return llama_upload(&f->net, e, wanted, NULL);
}

const model_format language_format = {.open = open_file,
                                      .close = close_file,
                                      .count = count,
                                      .describe = describe,
                                      .build = build,
                                      .upload = upload};
