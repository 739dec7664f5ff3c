/*
 * Arithmetic on host arrays, for shapes and what is computed from them. Integers are exact; floats
 * are computed in double precision and rounded to their type, which gives the rounded exact result
 * of each operation. Elements may be codes of dims, as far as the result is one, too.
 */
#ifndef RLXVK_HOST_H
#define RLXVK_HOST_H

#include "model/call.h"

enum host_binary {
    HOST_ADD,
    HOST_SUB,
    HOST_MUL,
    HOST_DIV,
    HOST_MOD,
    HOST_FMOD,
    HOST_MIN,
    HOST_MAX,
    HOST_EQUAL, /* from here on, the result is BOOL */
    HOST_LESS,
    HOST_LESS_EQUAL,
    HOST_GREATER,
    HOST_GREATER_EQUAL,
    HOST_AND,
    HOST_OR,
    HOST_XOR
};

enum host_unary {
    HOST_NEG,
    HOST_ABS,
    HOST_FLOOR,
    HOST_CEIL,
    HOST_SQRT,
    HOST_SIGN,
    HOST_ROUND,
    HOST_RECIPROCAL,
    HOST_RELU,
    HOST_NOT
};

/* Each gives NULL after a problem, or if an operand is NULL. */
host_array *host_binary(call *c, enum host_binary op, const host_array *a, const host_array *b);
host_array *host_unary(call *c, enum host_unary op, const host_array *x);
host_array *host_cast(call *c, const host_array *x, int32_t type);
host_array *host_where(call *c, const host_array *condition, const host_array *x,
                       const host_array *y);
/* Element [i, j, ..] of the result is element offset + i strides[0] + j strides[1] .. of x. */
host_array *host_view(call *c, const host_array *x, rlxvk_shape shape, int64_t offset,
                      const int64_t *strides);
/* The strides of a dense array. */
void host_strides(rlxvk_shape shape, int64_t *out);
host_array *host_concat(call *c, const host_array *const *parts, size_t count, uint32_t axis);
host_array *host_gather(call *c, const host_array *x, const host_array *indices, uint32_t axis);
/* The same elements in another shape. */
host_array *host_reshape(call *c, const host_array *x, rlxvk_shape shape);
host_array *host_expand(call *c, const host_array *x, rlxvk_shape shape);
/* A row of integers. */
host_array *host_row(call *c, const int64_t *values, uint32_t count);
/* Copies element j of x to element i. */
void host_copy(host_array *to, uint64_t i, const host_array *x, uint64_t j);
/* The common shape of two; the rank is above RLXVK_MAX_RANK if there is none. */
rlxvk_shape host_broadcast(rlxvk_shape a, rlxvk_shape b);
/* A shape from a row of sizes; after a problem its rank is 0. */
rlxvk_shape host_to_shape(call *c, const host_array *sizes);

#endif
