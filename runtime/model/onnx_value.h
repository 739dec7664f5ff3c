/*
 * What a name stands for while a graph is built from a model: a tensor of the graph, or an array on
 * the host. Shapes and what is computed from them stay on the host, exactly. A host array becomes a
 * constant of the graph only if an op needs it as a tensor. An initializer is neither until it is
 * used: then it becomes a param, a constant or a host array.
 */
#ifndef RLXVK_ONNX_VALUE_H
#define RLXVK_ONNX_VALUE_H

#include "model/onnx_data.h"

#include <rlxvk_symbols.h>

/* Integers and BOOL are int64, floats are double: both are exact. If `symbolic` is set, elements
 * may be codes of dims. */
typedef struct host_array {
    int32_t type;
    rlxvk_shape shape; /* of numbers */
    uint64_t numel;
    bool symbolic;
    int64_t *integers;
    double *reals;
} host_array;

struct onnx_value;

/* Sequences exist only while the graph is built. */
typedef struct onnx_sequence {
    size_t count;
    const struct onnx_value **items;
} onnx_sequence;

typedef struct onnx_value {
    int32_t type;                  /* of a sequence: that of its elements */
    const onnx_sequence *sequence; /* or NULL: it is a tensor */
    bool is_empty;                 /* an optional without a value */
    /* If data of a run decides a size: the tensor has the most that it can be, `count` says how
     * many indices of axis `counted` matter, and the rest is unspecified. Else RLXVK_NONE. */
    rlxvk_tensor count;
    uint32_t counted;
    bool failed; /* a problem was told; readers are not built */
    bool has_tensor;
    rlxvk_tensor tensor;
    const host_array *host;         /* or NULL */
    const onnx_tensor *initializer; /* or NULL */
    uint32_t input;                 /* index of the model's input that it is; else UINT32_MAX */
    uint64_t depends; /* the model's inputs, of the first 64, from which it is computed */
} onnx_value;

/* The dtype that a tensor of this type has in a graph. Some types have that of a wider one: UINT16
 * is U32, UINT64 is I64, integers of 4 and 2 bits are I8 or U8, floats of 8 and 4 bits are F32.
 * False if there is none. */
bool onnx_value_dtype(int32_t type, rlxvk_dtype *out);
bool onnx_is_integer(int32_t type); /* not BOOL */
bool onnx_is_narrow(int32_t type);  /* an integer below 32 bits */
bool onnx_is_signed(int32_t type);  /* a signed integer */
bool onnx_is_real(int32_t type);    /* floats */

/* Whether an element of a symbolic array is the code of a dim. */
bool onnx_is_code(const host_array *h, int64_t element);

/* A zeroed array. NULL: out of memory, or too many elements. */
host_array *onnx_make_host(arena *a, int32_t type, rlxvk_shape shape);
/* Reads an array from the bytes of a tensor of the file. E_UNSUPPORTED: the type has no numbers
 * that the host computes with. */
RLXVK_MUST_CHECK rlxvk_status onnx_decode(arena *a, int32_t type, rlxvk_shape shape,
                                          wire_span bytes, host_array **out);
/* Writes `count` floats of any type. */
void onnx_widen(int32_t type, wire_span bytes, uint64_t count, float *out);
/* Rounds a double to the type, which is a float of 16 bits or more. */
double onnx_round_to(int32_t type, double value);
/* Adds a constant. E_RANGE: an integer is beyond 2^24 in magnitude. E_UNSUPPORTED: an element
 * depends on symbols. */
RLXVK_MUST_CHECK rlxvk_status onnx_add_constant(rlxvk_graph *g, const host_array *h,
                                                rlxvk_tensor *out);

#endif
