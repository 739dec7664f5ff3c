/* Writes ONNX files for tests: messages of protocol buffers, field by field. */
#ifndef RLXVK_ONNX_WRITER_H
#define RLXVK_ONNX_WRITER_H

#include "base/base.h"

/* A message that is being written. An error aborts the test. */
typedef struct onnx_message {
    uint8_t *bytes;
    size_t size, capacity;
} onnx_message;

void message_number(onnx_message *m, uint32_t field, uint64_t value);
void message_bytes(onnx_message *m, uint32_t field, const void *bytes, size_t size);
void message_text(onnx_message *m, uint32_t field, const char *text);
/* Appends a message as a field of another one, and frees it. */
void message_inner(onnx_message *m, uint32_t field, onnx_message *inner);
void message_free(onnx_message *m);

/* Parts of a model. A name of a dim, such as "N", stands for a dim that is no number. */
onnx_message onnx_write_node(const char *op, const char *const *inputs, size_t input_count,
                             const char *const *outputs, size_t output_count);
void onnx_write_integer(onnx_message *node, const char *name, int64_t value);
void onnx_write_text(onnx_message *node, const char *name, const char *value);
void onnx_write_integers(onnx_message *node, const char *name, const int64_t *values, size_t count);
void onnx_write_graph(onnx_message *node, const char *name, onnx_message *graph);
/* An input (11), an output (12) of a graph: element type, and dims such as "N,3,4". */
void onnx_write_value(onnx_message *graph, uint32_t field, const char *name, int32_t type,
                      const char *dims);
/* An initializer with raw bytes. */
void onnx_write_tensor(onnx_message *graph, const char *name, int type, const int64_t *dims,
                       size_t rank, const void *bytes, size_t size);
/* An initializer of floats or 64-bit integers. */
void onnx_write_floats(onnx_message *graph, const char *name, const int64_t *dims, size_t rank,
                       const float *values, size_t count);
void onnx_write_row(onnx_message *graph, const char *name, const int64_t *values, size_t count);
/* The model of a graph, which it frees. */
onnx_message onnx_write_model(onnx_message *graph, int64_t opset);

/* The executable of a model of a graph, which it frees, on the shared context (harness.h). */
rlxvk_executable *onnx_make_executable(onnx_message *graph, int64_t opset);

#define ONNX_NAMES(...)                                                                            \
    (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)
/* onnx_write_op(&graph, "Add", ONNX_NAMES("a", "b"), ONNX_NAMES("c")) appends a plain node. */
void onnx_write_op(onnx_message *graph, const char *op, const char *const *inputs,
                   size_t input_count, const char *const *outputs, size_t output_count);

#endif
