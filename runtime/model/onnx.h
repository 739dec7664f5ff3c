/*
 * An ONNX file as plain structs. They point into the file's bytes and into an arena. They take
 * memory in proportion to the file: nothing is allocated by what a number in the file claims.
 */
#ifndef RLXVK_ONNX_H
#define RLXVK_ONNX_H

#include "base/input.h"
#include "model/wire.h"

/* The element types of the format, with its numbers. */
enum onnx_type {
    ONNX_UNDEFINED = 0,
    ONNX_FLOAT = 1,
    ONNX_UINT8 = 2,
    ONNX_INT8 = 3,
    ONNX_UINT16 = 4,
    ONNX_INT16 = 5,
    ONNX_INT32 = 6,
    ONNX_INT64 = 7,
    ONNX_STRING = 8,
    ONNX_BOOL = 9,
    ONNX_FLOAT16 = 10,
    ONNX_DOUBLE = 11,
    ONNX_UINT32 = 12,
    ONNX_UINT64 = 13,
    ONNX_COMPLEX64 = 14,
    ONNX_COMPLEX128 = 15,
    ONNX_BFLOAT16 = 16,
    ONNX_FLOAT8E4M3FN = 17,
    ONNX_FLOAT8E4M3FNUZ = 18,
    ONNX_FLOAT8E5M2 = 19,
    ONNX_FLOAT8E5M2FNUZ = 20,
    ONNX_UINT4 = 21,
    ONNX_INT4 = 22,
    ONNX_FLOAT4E2M1 = 23,
    ONNX_FLOAT8E8M0 = 24,
    ONNX_UINT2 = 25,
    ONNX_INT2 = 26,
    ONNX_TYPE_COUNT
};

enum onnx_attribute_type {
    ONNX_ATTRIBUTE_FLOAT = 1,
    ONNX_ATTRIBUTE_INT = 2,
    ONNX_ATTRIBUTE_STRING = 3,
    ONNX_ATTRIBUTE_TENSOR = 4,
    ONNX_ATTRIBUTE_GRAPH = 5,
    ONNX_ATTRIBUTE_FLOATS = 6,
    ONNX_ATTRIBUTE_INTS = 7,
    ONNX_ATTRIBUTE_STRINGS = 8,
    ONNX_ATTRIBUTE_TENSORS = 9,
    ONNX_ATTRIBUTE_GRAPHS = 10,
    ONNX_ATTRIBUTE_OTHER = 11 /* sparse tensors and types */
};

/* Graphs inside attributes of nodes of graphs, at most so deep. */
enum { ONNX_NESTING_LIMIT = 64 };

typedef struct onnx_tensor {
    const char *name;
    int32_t type;
    uint32_t rank;  /* at most RLXVK_MAX_RANK */
    uint64_t numel; /* the product of the dims */
    int64_t dims[RLXVK_MAX_RANK];
    wire_span raw;   /* the elements, little-endian; or: */
    wire_span whole; /* the message, whose typed fields have them */
    bool has_raw;
    const input_file *source; /* where `raw` is, from `offset` on, if it is not in memory */
    const char *location;     /* of external data: a file beside the model's; else NULL */
    uint64_t offset, length;  /* in that file */
    bool has_length;
} onnx_tensor;

struct onnx_graph;

typedef struct onnx_attribute {
    const char *name, *reference; /* the function's attribute that it stands for; or NULL */
    int32_t type;
    float real;
    int64_t integer;
    const char *string;
    const onnx_tensor *tensor;
    struct onnx_graph *graph;
    const float *reals;
    const int64_t *integers;
    const char *const *strings;
    size_t count; /* of the last three */
} onnx_attribute;

typedef struct onnx_node {
    const char *name, *op, *domain; /* "" where there is none; "ai.onnx" is "" */
    const char *const *inputs, *const *outputs;
    size_t input_count, output_count;
    const onnx_attribute *attributes;
    size_t attribute_count;
} onnx_node;

typedef struct onnx_dim {
    int64_t size;     /* -1: not a number */
    const char *name; /* of such a dim; NULL: it has none */
} onnx_dim;

enum onnx_value_kind { ONNX_UNTYPED, ONNX_TENSOR, ONNX_SEQUENCE, ONNX_MAP, ONNX_OPTIONAL };

typedef struct onnx_value_info {
    const char *name;
    enum onnx_value_kind kind;
    int32_t type;
    bool has_shape;
    bool is_weight; /* of an input, after onnx_check: an initializer has its name */
    uint32_t rank;  /* may be above RLXVK_MAX_RANK; then `dims` has no more */
    onnx_dim dims[RLXVK_MAX_RANK];
} onnx_value_info;

typedef struct onnx_graph {
    const char *name;
    onnx_node *nodes; /* in an order of execution, after onnx_check */
    onnx_tensor *initializers;
    onnx_value_info *inputs, *outputs;
    size_t node_count, initializer_count, input_count, output_count;
    size_t sparse_count; /* sparse initializers, which are not read */
} onnx_graph;

typedef struct onnx_opset {
    const char *domain;
    int64_t version;
} onnx_opset;

typedef struct onnx_function {
    const char *name, *domain, *overload;
    const char *const *inputs, *const *outputs, *const *attributes;
    size_t input_count, output_count, attribute_count;
    const onnx_attribute *defaults;
    size_t default_count;
    const onnx_opset *opsets;
    size_t opset_count;
    onnx_graph body; /* has only nodes */
} onnx_function;

typedef struct onnx_model {
    const uint8_t *file; /* for offsets in errors */
    int64_t ir_version;
    const char *producer;
    const onnx_opset *opsets;
    size_t opset_count;
    onnx_function *functions;
    size_t function_count;
    onnx_graph graph;
} onnx_model;

/* Reads a file's bytes, which must stay. E_FILE: it is damaged or no such file. E_UNSUPPORTED: it
 * is nested too deep, or a tensor has more than RLXVK_MAX_RANK axes. E_OUT_OF_HOST_MEMORY. */
RLXVK_MUST_CHECK rlxvk_status onnx_read(wire_span bytes, arena *a, onnx_model *out);

/* Checks names and sorts nodes, so that each one stands behind those that it reads.
 * E_DUP_NAME, E_UNKNOWN_NAME, E_ORDER: two values have one name, a name is of no value, or nodes
 * need each other in a circle. */
RLXVK_MUST_CHECK rlxvk_status onnx_check(onnx_model *model, arena *a);

/* "FLOAT", "INT64", ...; "?" if there is no such type. */
const char *onnx_type_name(int32_t type);
/* Bits of an element; 0 if the type has no fixed size, or is unknown. */
uint32_t onnx_type_bits(int32_t type);

#endif
