/* See onnx_writer.h. */
#include "support/onnx_writer.h"
#include "support/harness.h"

#include <rlxvk_model.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void append(onnx_message *m, const void *bytes, size_t size)
{
    if (m->size + size > m->capacity) {
        m->capacity = (m->size + size) * 2;
        m->bytes = realloc(m->bytes, m->capacity);
        if (!m->bytes)
            abort();
    }
    if (size)
        memcpy(m->bytes + m->size, bytes, size);
    m->size += size;
}

static void append_number(onnx_message *m, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        append(m, &(uint8_t){(uint8_t)(value | 0x80)}, 1);
    append(m, &(uint8_t){(uint8_t)value}, 1);
}

void message_number(onnx_message *m, uint32_t field, uint64_t value)
{
    append_number(m, (uint64_t)field << 3);
    append_number(m, value);
}

void message_bytes(onnx_message *m, uint32_t field, const void *bytes, size_t size)
{
    append_number(m, (uint64_t)field << 3 | 2);
    append_number(m, size);
    append(m, bytes, size);
}

void message_text(onnx_message *m, uint32_t field, const char *text)
{
    message_bytes(m, field, text, strlen(text));
}

void message_inner(onnx_message *m, uint32_t field, onnx_message *inner)
{
    message_bytes(m, field, inner->bytes, inner->size);
    message_free(inner);
}

void message_free(onnx_message *m)
{
    free(m->bytes);
    *m = (onnx_message){0};
}

onnx_message onnx_write_node(const char *op, const char *const *inputs, size_t input_count,
                             const char *const *outputs, size_t output_count)
{
    onnx_message node = {0};
    for (size_t i = 0; i < input_count; i++)
        message_text(&node, 1, inputs[i]);
    for (size_t i = 0; i < output_count; i++)
        message_text(&node, 2, outputs[i]);
    message_text(&node, 4, op);
    return node;
}

static onnx_message attribute(const char *name, int type)
{
    onnx_message a = {0};
    message_text(&a, 1, name);
    message_number(&a, 20, (uint64_t)type);
    return a;
}

void onnx_write_integer(onnx_message *node, const char *name, int64_t value)
{
    onnx_message a = attribute(name, 2);
    message_number(&a, 3, (uint64_t)value);
    message_inner(node, 5, &a);
}

void onnx_write_text(onnx_message *node, const char *name, const char *value)
{
    onnx_message a = attribute(name, 3);
    message_text(&a, 4, value);
    message_inner(node, 5, &a);
}

void onnx_write_integers(onnx_message *node, const char *name, const int64_t *values, size_t count)
{
    onnx_message a = attribute(name, 7), packed = {0};
    for (size_t i = 0; i < count; i++)
        append_number(&packed, (uint64_t)values[i]);
    message_inner(&a, 8, &packed);
    message_inner(node, 5, &a);
}

void onnx_write_graph(onnx_message *node, const char *name, onnx_message *graph)
{
    onnx_message a = attribute(name, 5);
    message_inner(&a, 6, graph);
    message_inner(node, 5, &a);
}

void onnx_write_value(onnx_message *graph, uint32_t field, const char *name, int32_t type,
                      const char *dims)
{
    onnx_message info = {0}, shape = {0}, tensor = {0}, kind = {0};
    for (const char *at = dims; *at;) {
        size_t length = strcspn(at, ",");
        onnx_message dim = {0};
        if (*at >= '0' && *at <= '9')
            message_number(&dim, 1, strtoull(at, NULL, 10));
        else
            message_bytes(&dim, 2, at, length);
        message_inner(&shape, 1, &dim);
        at += length + (at[length] == ',');
    }
    message_number(&tensor, 1, (uint64_t)type);
    message_inner(&tensor, 2, &shape);
    message_inner(&kind, 1, &tensor);
    message_text(&info, 1, name);
    message_inner(&info, 2, &kind);
    message_inner(graph, field, &info);
}

void onnx_write_tensor(onnx_message *graph, const char *name, int type, const int64_t *dims,
                       size_t rank, const void *bytes, size_t size)
{
    onnx_message t = {0};
    for (size_t i = 0; i < rank; i++)
        message_number(&t, 1, (uint64_t)dims[i]);
    message_number(&t, 2, (uint64_t)type);
    message_text(&t, 8, name);
    message_bytes(&t, 9, bytes, size);
    message_inner(graph, 5, &t);
}

void onnx_write_floats(onnx_message *graph, const char *name, const int64_t *dims, size_t rank,
                       const float *values, size_t count)
{
    onnx_write_tensor(graph, name, 1, dims, rank, values, count * sizeof *values);
}

void onnx_write_row(onnx_message *graph, const char *name, const int64_t *values, size_t count)
{
    int64_t dim = (int64_t)count;
    onnx_write_tensor(graph, name, 7, &dim, 1, values, count * sizeof *values);
}

onnx_message onnx_write_model(onnx_message *graph, int64_t opset)
{
    onnx_message model = {0}, version = {0};
    message_number(&model, 1, 8);
    message_number(&version, 2, (uint64_t)opset);
    message_inner(&model, 8, &version);
    message_inner(&model, 7, graph);
    return model;
}

void onnx_write_op(onnx_message *graph, const char *op, const char *const *inputs,
                   size_t input_count, const char *const *outputs, size_t output_count)
{
    onnx_message node = onnx_write_node(op, inputs, input_count, outputs, output_count);
    message_inner(graph, 1, &node);
}

rlxvk_executable *onnx_make_executable(onnx_message *graph, int64_t opset)
{
    onnx_message bytes = onnx_write_model(graph, opset);
    rlxvk_model *m = NULL;
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_model_open_bytes(bytes.bytes, bytes.size, NULL, &m));
    expect_ok(rlxvk_model_executable(m, shared_context, NULL, NULL, &e));
    rlxvk_model_destroy(m);
    message_free(&bytes);
    return e;
}
