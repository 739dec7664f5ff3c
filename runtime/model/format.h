/*
 * The formats of model files. rlxvk_model.h is the same for all of them (model.c); what depends on
 * the format is here.
 */
#ifndef RLXVK_MODEL_FORMAT_H
#define RLXVK_MODEL_FORMAT_H

#include "model/name_map.h"

#include <rlxvk_model.h>

/* Where a file is: it has a path, or its bytes are in memory. */
typedef struct model_place {
    const char *path;     /* NULL: bytes */
    const uint8_t *bytes; /* as long as the model */
    size_t size;
    const char *folder; /* of files beside it, as long as the model; NULL: there are none */
} model_place;

/* Nodes of a graph from `first` on are made for this node of the file, up to the next span. */
typedef struct model_span {
    uint32_t first;
    const char *name, *op;
} model_span;

/* A graph of a model, and what the model tells of it later. */
typedef struct model_build {
    rlxvk_graph *graph; /* NULL after an error, or if there are problems */
    arena a;            /* of strings, and of what `params` points to */
    VECTOR(rlxvk_model_problem) problems;
    VECTOR(model_span) spans; /* in order */
    void *params;             /* what `upload` needs; NULL: nothing */
} model_build;

/* Its members get what `open` made. */
typedef struct model_format {
    RLXVK_MUST_CHECK rlxvk_status (*open)(const model_place *place, void **out_file);
    void (*close)(void *file); /* accepts NULL */
    size_t (*count)(const void *file, bool inputs);
    /* An input or output. */
    rlxvk_model_info (*describe)(const void *file, bool inputs, size_t i);
    /* Builds a graph. Problems do not make it fail, but then there is no graph. *out is zeroed
     * before. */
    RLXVK_MUST_CHECK rlxvk_status (*build)(void *file, const rlxvk_model_graph_options *options,
                                           model_build *out);
    /* Sets those params of an executable that are wanted. */
    RLXVK_MUST_CHECK rlxvk_status (*upload)(const void *file, const model_build *build,
                                            rlxvk_executable *e, const name_map *wanted);
    void (*end_params)(void *params); /* NULL: `build` never sets any */
} model_format;

extern const model_format onnx_format, language_format;

/* Reads the bindings of the options: the size of each dim, or -1 if it is not bound. */
RLXVK_MUST_CHECK rlxvk_status model_bind_dims(const rlxvk_model_graph_options *options,
                                              const name_map *dims, int64_t *out_sizes);
/* The code of a dim that stays a symbol. */
int64_t model_symbol(const name_map *dims, const char *name);

#endif
