/* Shared by the files fuzz_calls*.c: fuzz_call_<builder> for each CALL row, and small helpers. */
#ifndef RLXVK_FUZZ_CALLS_H
#define RLXVK_FUZZ_CALLS_H

#include "support/fuzz_graph.h"

#include <rlxvk_train.h>

#define CALL(row) rlxvk_tensor fuzz_call_##row(fuzz_maker *m);
#define UNARY(row)
#define BINARY(row)
#define TERNARY(row)
#define REDUCE(row)
#define ALONG(row)
#define ALONG_WITH(row)
#define POOLED(row)
#include "support/fuzz_builders.def"
#undef CALL
#undef UNARY
#undef BINARY
#undef TERNARY
#undef REDUCE
#undef ALONG
#undef ALONG_WITH
#undef POOLED

static inline rlxvk_shape shape_of(const fuzz_maker *m, rlxvk_tensor t)
{
    return rlxvk_tensor_shape(m->g, t);
}

/* Dim `i` from the end. It is 1 if the rank is too small. */
static inline int64_t last(rlxvk_shape s, uint32_t i)
{
    return s.rank > i ? s.dims[s.rank - 1 - i] : 1;
}

static inline rlxvk_tensor f32(fuzz_maker *m, rlxvk_shape s)
{
    return fuzz_fit(m, RLXVK_F32, s);
}

/* x's shape with another length along one axis. The axis is chosen here, too. */
static inline rlxvk_shape other_along(fuzz_maker *m, rlxvk_tensor x, int32_t *out_axis)
{
    rlxvk_shape s = shape_of(m, x);
    *out_axis = fuzz_axis(m, s.rank);
    uint32_t at = (uint32_t)(*out_axis < 0 ? *out_axis + (int32_t)s.rank : *out_axis);
    if (at < s.rank)
        s.dims[at] = fuzz_dim(m);
    return s;
}

static inline rlxvk_dtype any_dtype(fuzz_maker *m)
{
    return (rlxvk_dtype)fuzz_below(m->in, RLXVK_DTYPE_COUNT + 1);
}

/* A value of an enum with `count` enumerators, seldom one past the last. */
static inline int any_of(fuzz_maker *m, int count)
{
    uint32_t byte = fuzz_byte(m->in);
    return byte >= 252 ? (int)fuzz_number(m) : (int)(byte % (uint32_t)count);
}

/* A product of dims. If it overflows, another number. */
static inline int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

#endif
