/*
 * Builds a graph from a model. The walk goes through the nodes in order and calls the lowering of
 * each op (onnx_ops.h). Functions and graphs inside nodes are inlined.
 */
#ifndef RLXVK_IMPORT_H
#define RLXVK_IMPORT_H

#include "model/format.h"
#include "model/name_map.h"
#include "model/onnx_value.h"

#include <rlxvk_model.h>

struct onnx_import;

/* Where the files of a model are. */
typedef struct import_files {
    const char *folder; /* NULL: there is none */
    const uint8_t *file;
} import_files;

/* Writes the content of a param that is made from tensors of the file: `size` bytes of its dtype.
 */
typedef rlxvk_status import_write(const import_files *files, const void *user, void *out);

/* A param of the graph, and the initializer that has its content; or what makes it. */
typedef struct import_param {
    const char *name; /* in the graph */
    const onnx_tensor *initializer;
    import_write *write; /* or NULL */
    const void *user;    /* of `write`, in the import's arena */
    rlxvk_dtype dtype;   /* of what `write` makes: U8 or F32 */
    uint64_t size;
} import_param;

/* Of an output whose size data decides: which output has how many indices of an axis matter. */
typedef struct import_count {
    uint32_t output; /* 0: the output has a size of its own */
    uint32_t axis;
    uint32_t count; /* id of the count's tensor */
} import_count;

struct call;

/* A loop that runs on the device: its body is a graph of its own. Values of the graphs around it
 * that the body reads become inputs, too. */
typedef struct import_loop {
    rlxvk_graph *outer, *inner;
    VECTOR(rlxvk_tensor) inputs; /* of `inner` */
    VECTOR(rlxvk_tensor) given;  /* to each of them: a tensor of `outer` */
} import_loop;

/* Names of one graph; inner graphs see those of the graphs around them. */
typedef struct import_scope {
    struct import_scope *outer;
    import_loop *loop; /* whose body the graph is; or NULL */
    name_map names;
    VECTOR(onnx_value *) values;
} import_scope;

typedef struct onnx_import {
    const onnx_model *model;
    const char *folder;
    rlxvk_graph *graph;
    arena a;             /* of values, problems and names; lives as long as the import */
    rlxvk_status status; /* not OK: out of memory or such; the walk ends */
    VECTOR(rlxvk_model_problem) problems;
    VECTOR(import_param) params;
    VECTOR(model_span) spans; /* in order */
    name_map param_names;
    name_map functions;     /* the model's, by "domain:name" */
    import_count *counts;   /* for each output */
    bool *needs_value;      /* for each input of the model */
    bool stuck;             /* the graph has a sticky error: the rest is only checked for ops */
    uint64_t node_count;    /* that were walked, inlined ones and rounds of loops included */
    uint64_t host_elements; /* of all arrays that were computed on the host */
    uint64_t host_limit;
    uint32_t depth; /* of functions and graphs */
    /* The present function's opsets and attributes; NULL: the model's, none. */
    const onnx_function *function;
    struct call *caller;
    import_scope *scope;
    uint32_t loops; /* around the present graph: it is the body of one */
    /* Inlines a graph of an attribute: its inputs get these values, and its outputs are stored.
     * With a loop, the graph is built in loop->inner. */
    void (*inline_graph)(struct onnx_import *, struct call *, const onnx_graph *, import_loop *loop,
                         onnx_value *const *inputs, onnx_value **outputs);
} onnx_import;

/* Adds a problem; the strings are copied. */
void import_add_problem(onnx_import *import, rlxvk_status status, const char *node, const char *op,
                        const char *attribute, const char *text);
/* Ends the import with a status. */
void import_end(onnx_import *import, rlxvk_status status);
/* Makes the tensor of a value. The error is not added as a problem. */
RLXVK_MUST_CHECK rlxvk_status import_tensor(onnx_import *import, onnx_value *v, rlxvk_tensor *out);
/* Whether the tensor of a value is, or will be, a param. */
bool import_is_param(const onnx_value *v);
/* Adds a param that is made from tensors of the file. It has the name of `like` if that is free. */
RLXVK_MUST_CHECK rlxvk_status import_made_param(onnx_import *import, const onnx_tensor *like,
                                                rlxvk_dtype dtype, rlxvk_shape shape,
                                                import_write *write, const void *user,
                                                rlxvk_tensor *out);
/* Makes the host array of a value that is known. */
RLXVK_MUST_CHECK rlxvk_status import_host(onnx_import *import, onnx_value *v,
                                          const host_array **out);
onnx_value *import_make_value(onnx_import *import);
/* Adds an input to the loop's body that is given an outer tensor, whose dims must be numbers. */
rlxvk_tensor import_loop_input(onnx_import *import, import_loop *loop, rlxvk_tensor outer);

#endif
