/* See import.h: problems, and values as tensors and as arrays. */
#include "model/import.h"

#include <rlxvk_ops.h>

#include <stdio.h>
#include <string.h>

enum { MOST_PROBLEMS = 10000, PARAM_NAME = 255 };

void import_end(onnx_import *import, rlxvk_status status)
{
    if (import->status == RLXVK_OK)
        import->status = status;
}

void import_add_problem(onnx_import *import, rlxvk_status status, const char *node, const char *op,
                        const char *attribute, const char *text)
{
    rlxvk_model_problem p = {
        .status = status,
        .node = arena_copy_string(&import->a, node),
        .op = arena_copy_string(&import->a, op),
        .attribute = arena_copy_string(&import->a, attribute ? attribute : ""),
        .text = arena_copy_string(&import->a, text),
    };
    if (status == RLXVK_E_OUT_OF_HOST_MEMORY || import->problems.count >= MOST_PROBLEMS)
        import_end(import, status);
    else if (!p.node || !p.op || !p.attribute || !p.text || !VECTOR_PUSH(&import->problems, p))
        import_end(import, status_fail_memory("problems of a model"));
}

onnx_value *import_make_value(onnx_import *import)
{
    onnx_value *v = arena_allocate(&import->a, sizeof *v);
    if (!v) {
        import_end(import, status_fail_memory("values of a model"));
        return NULL;
    }
    v->input = UINT32_MAX;
    return v;
}

/* ---- Initializers ---- */

static rlxvk_shape shape_of(const onnx_tensor *t)
{
    rlxvk_shape s = {.rank = t->rank};
    memcpy(s.dims, t->dims, sizeof s.dims);
    return s;
}

static rlxvk_status read_initializer(onnx_import *import, const onnx_tensor *t, host_array **out)
{
    onnx_data data;
    rlxvk_status status;
    TRY(onnx_data_read(t, import->folder, import->model->file, &data));
    status = onnx_decode(&import->a, t->type, shape_of(t), data.bytes, out);
    onnx_data_free(&data);
error:
    return status;
}

/* The param's name: that in the file if it may be one and is free. */
static const char *param_name(onnx_import *import, const onnx_tensor *t)
{
    char name[PARAM_NAME + 1];
    size_t length = strlen(t->name);
    bool valid = length > 0 && length <= PARAM_NAME && strncmp(t->name, "rlxvk.", 6) != 0;
    if (valid && name_find(&import->param_names, t->name) == NAME_NONE)
        return t->name;
    for (size_t i = import->params.count;; i++) {
        snprintf(name, sizeof name, "%.200s#%zu", valid ? t->name : "param", i);
        if (name_find(&import->param_names, name) == NAME_NONE)
            return arena_copy_string(&import->a, name);
    }
}

static rlxvk_status add_param(onnx_import *import, import_param p, rlxvk_shape shape,
                              rlxvk_tensor *out)
{
    rlxvk_status status = RLXVK_OK;
    p.name = param_name(import, p.initializer);
    if (!p.name || !VECTOR_PUSH(&import->params, p))
        return status_fail_memory("params of a model");
    TRY(name_put(&import->param_names, p.name, (uint32_t)import->params.count - 1));
    *out = rlxvk_param(import->graph, p.name, p.dtype, shape);
error:
    return status;
}

rlxvk_status import_made_param(onnx_import *import, const onnx_tensor *like, rlxvk_dtype dtype,
                               rlxvk_shape shape, import_write *write, const void *user,
                               rlxvk_tensor *out)
{
    import_param p = {.initializer = like, .write = write, .user = user, .dtype = dtype};
    rlxvk_status status;
    TRY(rlxvk_shape_elements(shape, &p.size));
    p.size *= rlxvk_dtype_size(dtype);
    TRY(add_param(import, p, shape, out));
error:
    return status;
}

rlxvk_status import_host(onnx_import *import, onnx_value *v, const host_array **out)
{
    host_array *h;
    rlxvk_status status = RLXVK_OK;
    if (!v->host && v->initializer) {
        TRY(read_initializer(import, v->initializer, &h));
        v->host = h;
    }
    *out = v->host;
error:
    return status;
}

bool import_is_param(const onnx_value *v)
{
    const onnx_tensor *t = v->initializer;
    return t && onnx_is_real(v->type) && t->rank > 0 && t->numel != 1;
}

rlxvk_status import_tensor(onnx_import *import, onnx_value *v, rlxvk_tensor *out)
{
    const host_array *h;
    rlxvk_dtype dtype;
    rlxvk_status status = RLXVK_OK;
    if (v->sequence || v->is_empty)
        return status_fail(RLXVK_E_UNSUPPORTED,
                           v->is_empty ? "an optional that is empty is no tensor"
                                       : "a sequence is no tensor; sequences can only be split, "
                                         "changed and joined inside the model");
    if (!v->has_tensor) {
        const onnx_tensor *t = v->initializer;
        if (!onnx_value_dtype(v->type, &dtype))
            return status_fail(RLXVK_E_UNSUPPORTED, "there are no tensors of type %s",
                               onnx_type_name(v->type));
        if (import_is_param(v) && import->loops == 0) { /* bodies of loops have constants */
            TRY(add_param(import, (import_param){.initializer = t, .dtype = dtype}, shape_of(t),
                          &v->tensor));
        } else {
            TRY(import_host(import, v, &h));
            if (!h)
                return status_fail(RLXVK_E_UNSUPPORTED, "the operand has no value");
            TRY(onnx_add_constant(import->graph, h, &v->tensor));
        }
        v->has_tensor = true;
    }
    *out = v->tensor;
error:
    return status;
}

/* ---- Loops ---- */

/* Inputs of bytes would be raw; so these cross the border as wider integers. */
rlxvk_tensor import_loop_input(onnx_import *import, import_loop *loop, rlxvk_tensor outer)
{
    rlxvk_dtype dtype = rlxvk_tensor_dtype(loop->outer, outer);
    bool is_byte = dtype == RLXVK_U8 || dtype == RLXVK_I8;
    char name[32];
    rlxvk_tensor t;
    if (is_byte)
        outer = rlxvk_cast(loop->outer, outer, RLXVK_I16);
    snprintf(name, sizeof name, "%zu", loop->inputs.count);
    t = rlxvk_input(loop->inner, name, is_byte ? RLXVK_I16 : dtype,
                    rlxvk_tensor_shape(loop->outer, outer));
    if (!VECTOR_PUSH(&loop->inputs, t) || !VECTOR_PUSH(&loop->given, outer))
        import_end(import, status_fail_memory("loop of a model"));
    return is_byte ? rlxvk_cast(loop->inner, t, dtype) : t;
}
