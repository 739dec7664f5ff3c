/*
 * Bad calls of every builder in rlxvk_ops.h. Each must set the right status and a message with the
 * op and the bad values, and must append no node. Also tests optional operands that are left out,
 * and shapes whose element counts overflow. No device.
 */
#include "op/elementwise/complex.h"
#include "op/op.h"
#include "support/harness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* Operands for the bad calls. The letters give the dtype or role, the digits the shape. */
typedef struct leaves {
    rlxvk_graph *g;
    rlxvk_tensor s, v4, m23, m34, t234, t1; /* F32: scalar, [4], [2,3], [3,4], [2,3,4], [1] */
    rlxvk_tensor raw, c64, packed;          /* U8 [4], C64 [4], U8 [34] (a block of Q8_0) */
    rlxvk_tensor empty, huge, wide, cache;  /* [0,4], [2^30], [1,2^24+1], [2,8,4] */
    rlxvk_tensor tall, column, row, t341;   /* [2^30,1], [4,1], [1,4], [3,4,1] */
    rlxvk_tensor narrow;                    /* [2,3,0] */
    rlxvk_tensor computed;                  /* [2,8,4], not a leaf */
} leaves;

static leaves make_leaves(void)
{
    leaves l = {0};
    expect_ok(rlxvk_graph_create(&l.g));
    l.s = rlxvk_input(l.g, "s", RLXVK_F32, RLXVK_SCALAR);
    l.v4 = rlxvk_input(l.g, "v4", RLXVK_F32, RLXVK_SHAPE(4));
    l.m23 = rlxvk_input(l.g, "m23", RLXVK_F32, RLXVK_SHAPE(2, 3));
    l.m34 = rlxvk_input(l.g, "m34", RLXVK_F32, RLXVK_SHAPE(3, 4));
    l.t234 = rlxvk_input(l.g, "t234", RLXVK_F32, RLXVK_SHAPE(2, 3, 4));
    l.t1 = rlxvk_input(l.g, "t1", RLXVK_F32, RLXVK_SHAPE(1));
    l.raw = rlxvk_input(l.g, "raw", RLXVK_U8, RLXVK_SHAPE(4));
    l.c64 = rlxvk_input(l.g, "c64", RLXVK_C64, RLXVK_SHAPE(4));
    l.packed = rlxvk_input(l.g, "packed", RLXVK_U8, RLXVK_SHAPE(34));
    l.empty = rlxvk_input(l.g, "empty", RLXVK_F32, RLXVK_SHAPE(0, 4));
    l.huge = rlxvk_input(l.g, "huge", RLXVK_F32, RLXVK_SHAPE(1 << 30));
    l.wide = rlxvk_input(l.g, "wide", RLXVK_F32, RLXVK_SHAPE(1, (1 << 24) + 1));
    l.cache = rlxvk_input(l.g, "cache", RLXVK_F32, RLXVK_SHAPE(2, 8, 4));
    l.tall = rlxvk_input(l.g, "tall", RLXVK_F32, RLXVK_SHAPE(1 << 30, 1));
    l.column = rlxvk_input(l.g, "column", RLXVK_F32, RLXVK_SHAPE(4, 1));
    l.row = rlxvk_input(l.g, "row", RLXVK_F32, RLXVK_SHAPE(1, 4));
    l.t341 = rlxvk_input(l.g, "t341", RLXVK_F32, RLXVK_SHAPE(3, 4, 1));
    l.narrow = rlxvk_input(l.g, "narrow", RLXVK_F32, RLXVK_SHAPE(2, 3, 0));
    l.computed = rlxvk_neg(l.g, l.cache);
    expect_ok(rlxvk_graph_status(l.g));
    return l;
}

/* One bad call. It is an expression in g and l. */
#define BAD(status, part, call)                                                                    \
    do {                                                                                           \
        leaves l = make_leaves();                                                                  \
        rlxvk_graph *g = l.g;                                                                      \
        size_t count = g->nodes.count;                                                             \
        rlxvk_tensor result = (call);                                                              \
        check_bad(g, result, count, status, part, #call);                                          \
    } while (0)

static void check_bad(rlxvk_graph *g, rlxvk_tensor result, size_t count, rlxvk_status status,
                      const char *part, const char *call)
{
    char row[64] = "";
    const char *sentence = rlxvk_graph_error(g);
    sscanf(call, "rlxvk_%63[a-z0-9_]", row);
    char *with = strstr(row, "_with"); /* matmul_with, attention_with_lse */
    if (with)
        *with = 0;
    bool fine = rlxvk_graph_status(g) == status && strstr(sentence, part) &&
                strncmp(sentence, row, strlen(row)) == 0 && result.id == 0 &&
                g->nodes.count == count && strcmp(sentence, rlxvk_last_error()) == 0;
    if (!fine)
        print_error("%s\n  gave %s '%s'\n  wanted %s with '%s'\n", call,
                    rlxvk_status_name(rlxvk_graph_status(g)), sentence, rlxvk_status_name(status),
                    part);
    rlxvk_graph_destroy(g);
    assert_true(fine);
}

#define AXES(...) (int32_t[]){__VA_ARGS__}, sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)

static void leaf_errors(void **state)
{
    static const float data[4];
    (void)state;
    BAD(RLXVK_E_DUP_NAME, "'v4': node 1", rlxvk_input(g, "v4", RLXVK_F32, RLXVK_SHAPE(2)));
    BAD(RLXVK_E_ATTR, "0 bytes", rlxvk_input(g, "", RLXVK_F32, RLXVK_SHAPE(2)));
    BAD(RLXVK_E_SHAPE, "dim 1 is -3", rlxvk_input(g, "n", RLXVK_F32, RLXVK_SHAPE(2, -3)));
    BAD(RLXVK_E_SHAPE, "rank 4000000000",
        rlxvk_param(g, "n", RLXVK_F32, (rlxvk_shape){4000000000u}));
    BAD(RLXVK_E_DTYPE, "rlxvk_dtype", rlxvk_param(g, "n", (rlxvk_dtype)99, RLXVK_SHAPE(2)));
    BAD(RLXVK_E_TOO_LARGE, "65536x65536",
        rlxvk_param(g, "n", RLXVK_F32, RLXVK_SHAPE(65536, 65536)));
    BAD(RLXVK_E_CONST_SIZE, "12 bytes given; F32 of shape 4 takes 16",
        rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(4), data, 12));
    BAD(RLXVK_E_NULL, "bytes is NULL", rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(4), NULL, 16));
    BAD(RLXVK_E_TOO_LARGE, "2147483648",
        rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE((int64_t)1 << 31), data, 16));
}

static void view_errors(void **state)
{
    (void)state;
    BAD(RLXVK_E_SHAPE, "2x3 cannot become 7", rlxvk_reshape(g, l.m23, RLXVK_SHAPE(7)));
    BAD(RLXVK_E_SHAPE, "6 elements of 2x3", rlxvk_reshape(g, l.m23, RLXVK_SHAPE(4, -1)));
    BAD(RLXVK_E_ATTR, "dim 1", rlxvk_reshape(g, l.m23, RLXVK_SHAPE(-1, -1)));
    BAD(RLXVK_E_ATTR, "-2", rlxvk_reshape(g, l.m23, RLXVK_SHAPE(-2, 3)));
    BAD(RLXVK_E_ATTR, "beside a dim of 0", rlxvk_reshape(g, l.empty, RLXVK_SHAPE(0, -1)));
    BAD(RLXVK_E_SHAPE, "rank 9", rlxvk_reshape(g, l.m23, (rlxvk_shape){.rank = 9}));
    BAD(RLXVK_E_TOO_LARGE, "2^31", rlxvk_reshape(g, l.m23, RLXVK_SHAPE(INT64_MAX, INT64_MAX, -1)));
    BAD(RLXVK_E_SHAPE, "cannot become", rlxvk_reshape(g, l.m23, RLXVK_SHAPE(INT64_MAX, INT64_MAX)));
    BAD(RLXVK_E_ATTR, "dtype 12", rlxvk_cast(g, l.m23, RLXVK_DTYPE_COUNT));
    BAD(RLXVK_E_ATTR, "dtype -1", rlxvk_cast(g, l.m23, (rlxvk_dtype)-1));
    BAD(RLXVK_E_ARITY, "operand 0 is RLXVK_NONE", rlxvk_copy(g, RLXVK_NONE));
    BAD(RLXVK_E_DANGLING, "it has id 99", rlxvk_copy(g, tensor_of(g, 98)));
    BAD(RLXVK_E_ARITY, "operand 0", rlxvk_stop_gradient(g, RLXVK_NONE));
    BAD(RLXVK_E_DANGLING, "it has id 99", rlxvk_stop_gradient(g, tensor_of(g, 98)));
}

static void unary_errors(void **state)
{
    (void)state;
    uint32_t complex;
#define ACTIVATION(code, NAME, row, ...)                                                           \
    BAD(RLXVK_E_DTYPE, "operand 0 is raw U8 bytes; insert a cast", rlxvk_##row(g, l.raw));         \
    BAD(RLXVK_E_ARITY, "operand 0 is RLXVK_NONE", rlxvk_##row(g, RLXVK_NONE));                     \
    BAD(RLXVK_E_DANGLING, "it has id 1234", rlxvk_##row(g, tensor_of(g, 1233)));                   \
    if (!complex_code_of(code, &complex))                                                          \
        BAD(RLXVK_E_DTYPE, "operand 0 is complex", rlxvk_##row(g, l.c64));
#include "args/activation.def"
}

#define BAD_BINARY(row)                                                                            \
    BAD(RLXVK_E_SHAPE, "3x4 does not broadcast with 2x3", rlxvk_##row(g, l.m23, l.m34));           \
    BAD(RLXVK_E_DTYPE, "operand 1 is raw", rlxvk_##row(g, l.v4, l.raw));                           \
    BAD(RLXVK_E_ARITY, "operand 1 is RLXVK_NONE", rlxvk_##row(g, l.v4, RLXVK_NONE));               \
    BAD(RLXVK_E_ARITY, "operand 0 is RLXVK_NONE", rlxvk_##row(g, RLXVK_NONE, l.v4));               \
    BAD(RLXVK_E_DANGLING, "operand 1", rlxvk_##row(g, l.v4, tensor_of(g, 1233)));                  \
    BAD(RLXVK_E_TOO_LARGE, "4x1073741824", rlxvk_##row(g, l.column, l.huge))

static void binary_errors(void **state)
{
    (void)state;
    BAD_BINARY(add);
    BAD_BINARY(sub);
    BAD_BINARY(mul);
    BAD_BINARY(div);
    BAD_BINARY(max);
    BAD_BINARY(min);
    BAD_BINARY(pow);
    BAD_BINARY(eq);
    BAD_BINARY(ne);
    BAD_BINARY(lt);
    BAD_BINARY(le);
    BAD_BINARY(gt);
    BAD_BINARY(ge);
    BAD(RLXVK_E_DTYPE, "add, sub, mul and div", rlxvk_pow(g, l.c64, l.v4));
    BAD(RLXVK_E_DTYPE, "add, sub, mul and div", rlxvk_max(g, l.v4, l.c64));
    BAD(RLXVK_E_DTYPE, "eq and ne", rlxvk_lt(g, l.c64, l.c64));
}

static void ternary_errors(void **state)
{
    (void)state;
    BAD(RLXVK_E_SHAPE, "operand 2 of shape 4", rlxvk_fma(g, l.m23, l.s, l.v4));
    BAD(RLXVK_E_DTYPE, "operand 1 is complex", rlxvk_fma(g, l.v4, l.c64, l.v4));
    BAD(RLXVK_E_ARITY, "operand 2 is RLXVK_NONE", rlxvk_fma(g, l.v4, l.v4, RLXVK_NONE));
    BAD(RLXVK_E_SHAPE, "operand 1 of shape 3x4", rlxvk_where(g, l.m23, l.m34, l.s));
    BAD(RLXVK_E_DTYPE, "condition is complex", rlxvk_where(g, l.c64, l.v4, l.v4));
    BAD(RLXVK_E_ARITY, "operand 0 is RLXVK_NONE", rlxvk_where(g, RLXVK_NONE, l.v4, l.v4));
}

static void matmul_errors(void **state)
{
    const rlxvk_matmul_options both = {true, true};
    (void)state;
    BAD(RLXVK_E_SHAPE, "K is 4 in 3x4 and 2 in 2x3", rlxvk_matmul(g, l.m34, l.m23));
    BAD(RLXVK_E_SHAPE, "and 3x4; both need rank 2", rlxvk_matmul(g, l.s, l.m34));
    BAD(RLXVK_E_SHAPE, "K is 4 in 1x4 and 3 in 3x4", rlxvk_matmul(g, l.v4, l.m34));
    BAD(RLXVK_E_DTYPE, "complex", rlxvk_matmul(g, l.c64, l.m34));
    BAD(RLXVK_E_ARITY, "operand 1", rlxvk_matmul(g, l.m23, RLXVK_NONE));
    BAD(RLXVK_E_SHAPE, "(transposed)", rlxvk_matmul_with(g, l.m23, l.m23, &both));
    BAD(RLXVK_E_SHAPE, "leading dims of 2x3x4 and 3x4x1",
        rlxvk_matmul_with(g, l.t234, l.t341, NULL));
    BAD(RLXVK_E_TOO_LARGE, "1073741824x4", rlxvk_matmul(g, l.tall, l.row));
    BAD(RLXVK_E_SHAPE, "bias is 4; w has 3 columns",
        rlxvk_fused_matmul_bias_act(g, l.m34, l.m34, l.v4, RLXVK_ACTIVATION_NONE, true));
    BAD(RLXVK_E_SHAPE, "w is 2x3x4; it must have rank 2",
        rlxvk_fused_matmul_bias_act(g, l.m34, l.t234, l.v4, RLXVK_ACTIVATION_NONE, false));
    BAD(RLXVK_E_ATTR, "activation 99",
        rlxvk_fused_matmul_bias_act(g, l.m23, l.m34, l.v4, (rlxvk_activation)99, false));
    BAD(RLXVK_E_SHAPE, "x is a scalar",
        rlxvk_fused_matmul_bias_act(g, l.s, l.m34, l.v4, RLXVK_ACTIVATION_NONE, false));
    BAD(RLXVK_E_ARITY, "operand 2 is RLXVK_NONE",
        rlxvk_fused_matmul_bias_act(g, l.m23, l.m34, RLXVK_NONE, RLXVK_ACTIVATION_NONE, false));
}

static void dequant_errors(void **state)
{
    (void)state;
    BAD(RLXVK_E_SHAPE, "rows of 4 elements; a block of Q8_0 has 32",
        rlxvk_dequant_matmul(g, l.v4, l.packed, RLXVK_Q8_0));
    BAD(RLXVK_E_UNSUPPORTED, "format 99 (unknown)",
        rlxvk_dequant_matmul(g, l.v4, l.packed, (rlxvk_quant_format)99));
    BAD(RLXVK_E_DTYPE, "operand 1 is a F32 tensor",
        rlxvk_dequant_matmul(g, l.v4, l.v4, RLXVK_Q8_0));
    BAD(RLXVK_E_SHAPE, "operand 0 is a scalar", rlxvk_dequant_matmul(g, l.s, l.packed, RLXVK_Q8_0));
    BAD(RLXVK_E_ARITY, "operand 1", rlxvk_dequant_matmul(g, l.v4, RLXVK_NONE, RLXVK_Q8_0));
    BAD(RLXVK_E_LENGTH, "4 bytes; a row of 32 Q8_0 elements takes 34",
        rlxvk_dequant_gather(g, l.raw, l.v4, RLXVK_Q8_0, 32));
    BAD(RLXVK_E_ATTR, "k is -32", rlxvk_dequant_gather(g, l.packed, l.v4, RLXVK_Q8_0, -32));
    BAD(RLXVK_E_ATTR, "k is 9223372036854775807",
        rlxvk_dequant_gather(g, l.packed, l.v4, RLXVK_Q8_0, INT64_MAX));
    BAD(RLXVK_E_SHAPE, "rows of 33", rlxvk_dequant_gather(g, l.packed, l.v4, RLXVK_Q8_0, 33));
    BAD(RLXVK_E_TOO_LARGE, "1073741824x32",
        rlxvk_dequant_gather(g, l.packed, l.huge, RLXVK_Q8_0, 32));
}

#define BAD_REDUCE(row)                                                                            \
    BAD(RLXVK_E_AXIS, "axis 2 outside rank 2", rlxvk_##row(g, l.m23, AXES(2), false));             \
    BAD(RLXVK_E_AXIS, "axis -3 outside rank 2", rlxvk_##row(g, l.m23, AXES(0, -3), true));         \
    BAD(RLXVK_E_AXIS, "named twice", rlxvk_##row(g, l.m23, AXES(1, -1), false));                   \
    BAD(RLXVK_E_AXIS, "9 axes", rlxvk_##row(g, l.m23, AXES(0, 0, 0, 0, 0, 0, 0, 0, 0), false));    \
    BAD(RLXVK_E_NULL, "axes is NULL with a count of 1", rlxvk_##row(g, l.m23, NULL, 1, false));    \
    BAD(RLXVK_E_DTYPE, "raw", rlxvk_##row(g, l.raw, AXES(0), false));                              \
    BAD(RLXVK_E_ARITY, "operand 0", rlxvk_##row(g, RLXVK_NONE, AXES(0), false))

static void reduction_errors(void **state)
{
    (void)state;
    BAD_REDUCE(reduce_sum);
    BAD_REDUCE(reduce_mean);
    BAD_REDUCE(reduce_max);
    BAD_REDUCE(reduce_min);
    BAD_REDUCE(reduce_prod);
    BAD(RLXVK_E_AXIS, "axis 4 outside rank 3", rlxvk_softmax(g, l.t234, 4));
    BAD(RLXVK_E_AXIS, "axis 1 outside rank 0", rlxvk_softmax(g, l.s, 1));
    BAD(RLXVK_E_DTYPE, "complex", rlxvk_softmax(g, l.c64, 0));
    BAD(RLXVK_E_AXIS, "axis -2147483648", rlxvk_cumsum(g, l.m23, INT32_MIN, true));
    BAD(RLXVK_E_DTYPE, "raw", rlxvk_cumsum(g, l.raw, 0, false));
    BAD(RLXVK_E_AXIS, "axis 2147483647", rlxvk_argmax(g, l.m23, INT32_MAX, false));
    BAD(RLXVK_E_RANGE, "axis 0 has no elements", rlxvk_argmax(g, l.empty, 0, false));
    BAD(RLXVK_E_INDEX_RANGE, "16777217", rlxvk_argmax(g, l.wide, 1, false));
    BAD(RLXVK_E_RANGE, "axis 0 has no elements", rlxvk_argmin(g, l.empty, -2, true));
    BAD(RLXVK_E_DTYPE, "complex", rlxvk_argmin(g, l.c64, 0, false));
}

#define NONE RLXVK_NONE

static void norm_errors(void **state)
{
    (void)state;
    BAD(RLXVK_E_AXIS, "axis 2 outside rank 2", rlxvk_layer_norm(g, l.m34, l.v4, l.v4, 2, 0));
    BAD(RLXVK_E_SHAPE, "gamma has shape 4; needs 3", rlxvk_layer_norm(g, l.m23, l.v4, NONE, -1, 0));
    BAD(RLXVK_E_ATTR, "eps is -1", rlxvk_layer_norm(g, l.m34, l.v4, NONE, -1, -1));
    BAD(RLXVK_E_ATTR, "eps is nan", rlxvk_layer_norm(g, l.m34, l.v4, NONE, -1, NAN));
    BAD(RLXVK_E_SHAPE, "scalar", rlxvk_layer_norm(g, l.s, NONE, NONE, 0, 0));
    BAD(RLXVK_E_ARITY, "operand 0", rlxvk_layer_norm(g, NONE, l.v4, l.v4, -1, 0));
    BAD(RLXVK_E_SHAPE, "beta has shape 4; needs 3", rlxvk_rms_norm(g, l.m34, NONE, l.v4, 0, 0));
    BAD(RLXVK_E_ATTR, "eps is inf", rlxvk_rms_norm(g, l.m34, NONE, NONE, 1, INFINITY));
    BAD(RLXVK_E_ARITY, "operand 0", rlxvk_rms_norm(g, NONE, NONE, NONE, 1, 0));
    BAD(RLXVK_E_SHAPE, "x is 2x3 and the residual 3x4",
        rlxvk_fused_residual_ln(g, l.m23, l.m34, NONE, NONE, NONE, 0));
    BAD(RLXVK_E_SHAPE, "bias has shape 2x3; needs 4",
        rlxvk_fused_residual_ln(g, l.m34, l.m34, l.m23, l.v4, NONE, 0));
    BAD(RLXVK_E_ARITY, "operand 1 is RLXVK_NONE",
        rlxvk_fused_residual_ln(g, l.m34, NONE, l.v4, l.v4, l.v4, 0));
    BAD(RLXVK_E_SHAPE, "gamma has shape 1; needs 4",
        rlxvk_fused_residual_rms_norm(g, l.m34, l.m34, NONE, l.t1, NONE, 0));
    BAD(RLXVK_E_DTYPE, "operand 2 is raw U8 bytes",
        rlxvk_fused_residual_rms_norm(g, l.m34, l.m34, NONE, l.raw, NONE, 0));
    BAD(RLXVK_E_ARITY, "operand 0 is RLXVK_NONE",
        rlxvk_fused_residual_rms_norm(g, NONE, l.m34, l.v4, l.v4, l.v4, 0));
}

static rlxvk_rope_options rope(int64_t head_dim, int64_t n_rot, int style, int table)
{
    return (rlxvk_rope_options){head_dim, n_rot, (rlxvk_rope_style)style, (rlxvk_rope_table)table};
}

static void swiglu_and_rope_errors(void **state)
{
    rlxvk_rope_options o;
    (void)state;
    BAD(RLXVK_E_SHAPE, "2x3; the last dim must be even", rlxvk_fused_swiglu(g, l.m23, false));
    BAD(RLXVK_E_SHAPE, "scalar", rlxvk_fused_swiglu(g, l.s, true));
    BAD(RLXVK_E_DTYPE, "raw", rlxvk_fused_swiglu(g, l.raw, false));
    o = rope(3, 2, 0, 0);
    BAD(RLXVK_E_ATTR, "head_dim 3", rlxvk_rope(g, l.t234, l.m34, l.m34, &o));
    BAD(RLXVK_E_ATTR, "head_dim 0", rlxvk_rope(g, l.t234, l.m34, l.m34, NULL));
    o = rope(INT64_MAX - 1, 2, 0, 0);
    BAD(RLXVK_E_ATTR, "head_dim 9223372036854775806", rlxvk_rope(g, l.t234, l.m34, l.m34, &o));
    o = rope(4, 6, 0, 0);
    BAD(RLXVK_E_ATTR, "n_rot 6", rlxvk_rope(g, l.t234, l.m34, l.m34, &o));
    o = rope(4, 4, 7, 0);
    BAD(RLXVK_E_ATTR, "style 7", rlxvk_rope(g, l.t234, l.m34, l.m34, &o));
    o = rope(8, 4, 0, 0);
    BAD(RLXVK_E_SHAPE, "2x3x4 are not a multiple of head_dim 8",
        rlxvk_rope(g, l.t234, l.m34, l.m34, &o));
    o = rope(4, 4, 0, 0);
    BAD(RLXVK_E_SHAPE, "2x3 have 2 rows", rlxvk_rope(g, l.t234, l.m23, l.m23, &o));
    BAD(RLXVK_E_SHAPE, "cos 3x4 and sin 2x3 differ", rlxvk_rope(g, l.t234, l.m34, l.m23, &o));
    BAD(RLXVK_E_SHAPE, "x 4; needs a sequence", rlxvk_rope(g, l.v4, l.m34, l.m34, &o));
    o = rope(4, 4, 0, RLXVK_ROPE_TABLE_PER_TOKEN);
    BAD(RLXVK_E_SHAPE, "needs 6, one per token", rlxvk_rope(g, l.t234, l.m34, l.m34, &o));
    BAD(RLXVK_E_ARITY, "operand 1", rlxvk_rope(g, l.t234, NONE, l.m34, &o));
}

static void attention_errors(void **state)
{
    rlxvk_attention_options o = {.num_heads = 2};
    rlxvk_tensor lse;
    (void)state;
    BAD(RLXVK_E_ATTR, "does not show num_heads",
        rlxvk_attention(g, l.t234, l.t234, l.t234, NONE, NULL));
    BAD(RLXVK_E_SHAPE, "do not agree", rlxvk_attention(g, l.t234, l.cache, l.t234, NONE, &o));
    BAD(RLXVK_E_SHAPE, "k rank 2", rlxvk_attention(g, l.t234, l.m34, l.t234, NONE, &o));
    BAD(RLXVK_E_ARITY, "mask kind none takes no mask tensor; pass RLXVK_NONE",
        rlxvk_attention(g, l.t234, l.t234, l.t234, l.v4, &o));
    BAD(RLXVK_E_ARITY, "operand", rlxvk_attention(g, NONE, l.t234, l.t234, l.t234, &o));
    BAD(RLXVK_E_ARITY, "operand", rlxvk_attention(g, l.t234, l.t234, NONE, l.t234, &o));
    o = (rlxvk_attention_options){.num_heads = INT64_MAX};
    BAD(RLXVK_E_ATTR, "num_heads 9223372036854775807",
        rlxvk_attention(g, l.t234, l.t234, l.t234, NONE, &o));
    o = (rlxvk_attention_options){.num_heads = 2};
    BAD(RLXVK_E_SHAPE, "heads of width 0, which have no scores",
        rlxvk_attention_with_lse(g, l.narrow, l.narrow, l.narrow, NONE, &o, NULL));
    o = (rlxvk_attention_options){.num_heads = 3};
    BAD(RLXVK_E_SHAPE,
        "2x3x4 fits no layout with num_heads 3 and head_dim 0 (0: any); takes [B,H,S,D]",
        rlxvk_attention(g, l.t234, l.t234, l.t234, NONE, &o));
    o = (rlxvk_attention_options){.num_heads = 2, .mask = RLXVK_MASK_CUSTOM};
    BAD(RLXVK_E_ARITY, "needs", rlxvk_attention(g, l.t234, l.t234, l.t234, NONE, &o));
    BAD(RLXVK_E_SHAPE, "mask 4; takes", rlxvk_attention(g, l.t234, l.t234, l.t234, l.v4, &o));
    o = (rlxvk_attention_options){.num_heads = 2, .mask = RLXVK_MASK_SLIDING};
    BAD(RLXVK_E_ATTR, "window 0", rlxvk_attention(g, l.t234, l.t234, l.t234, NONE, &o));
    o = (rlxvk_attention_options){.num_heads = 2, .softcap = -1};
    BAD(RLXVK_E_ATTR, "softcap -1",
        rlxvk_attention_with_lse(g, l.t234, l.t234, l.t234, NONE, &o, &lse));
    o = (rlxvk_attention_options){.num_heads = 2, .layout = RLXVK_LAYOUT_BHSD};
    BAD(RLXVK_E_SHAPE, "rank 3; layout bhsd",
        rlxvk_attention_with_lse(g, l.t234, l.t234, l.t234, NONE, &o, &lse));
    o = (rlxvk_attention_options){.num_heads = 1};
    BAD(RLXVK_E_UNSUPPORTED, "head_dim 16777217; at most 512",
        rlxvk_attention(g, l.wide, l.wide, l.wide, NONE, &o));
}

static void layout_errors(void **state)
{
    (void)state;
    BAD(RLXVK_E_ATTR, "perm has 1 entries for rank 2", rlxvk_transpose(g, l.m23, AXES(0)));
    BAD(RLXVK_E_ATTR, "perm entry 1 is 0", rlxvk_transpose(g, l.m23, AXES(0, 0)));
    BAD(RLXVK_E_ATTR, "perm entry 0 is -1", rlxvk_transpose(g, l.m23, AXES(-1, 0)));
    BAD(RLXVK_E_ATTR, "perm entry 0 is 77", rlxvk_transpose(g, l.m23, AXES(77, 0)));
    BAD(RLXVK_E_NULL, "perm is NULL with a count of 2", rlxvk_transpose(g, l.m23, NULL, 2));
    BAD(RLXVK_E_RANGE, "start 2, length 2 on axis 1 of 2x3; both are >= 0 and their sum at most 3",
        rlxvk_narrow(g, l.m23, 1, 2, 2));
    BAD(RLXVK_E_RANGE, "start -1", rlxvk_narrow(g, l.m23, 1, -1, 1));
    BAD(RLXVK_E_RANGE, "length 9223372036854775807", rlxvk_narrow(g, l.m23, 1, 1, INT64_MAX));
    BAD(RLXVK_E_AXIS, "axis 2", rlxvk_narrow(g, l.m23, 2, 0, 1));
    BAD(RLXVK_E_AXIS, "scalar", rlxvk_narrow(g, l.s, 0, 0, 1));
    BAD(RLXVK_E_DTYPE, "multiple of 4", rlxvk_narrow(g, l.raw, 0, 1, 2));
    BAD(RLXVK_E_SHAPE, "part 1 is 3x4, part 0 is 2x3",
        rlxvk_concat(g, (rlxvk_tensor[]){l.m23, l.m34}, 2, 0));
    BAD(RLXVK_E_DTYPE, "part 1 is C64, part 0 is F32",
        rlxvk_concat(g, (rlxvk_tensor[]){l.v4, l.c64}, 2, 0));
    BAD(RLXVK_E_AXIS, "scalars", rlxvk_concat(g, (rlxvk_tensor[]){l.s, l.s}, 2, 0));
    BAD(RLXVK_E_DANGLING, "part 1 of 2", rlxvk_concat(g, (rlxvk_tensor[]){l.v4, NONE}, 2, 0));
    BAD(RLXVK_E_ARITY, "0 operands", rlxvk_concat(g, NULL, 0, 0));
    BAD(RLXVK_E_TOO_LARGE, "shape 2147483648",
        rlxvk_concat(g, (rlxvk_tensor[]){l.huge, l.huge}, 2, 0));
    BAD(RLXVK_E_SHAPE, "2x3 does not expand to 2x4", rlxvk_expand(g, l.m23, RLXVK_SHAPE(2, 4)));
    BAD(RLXVK_E_SHAPE, "target rank 1", rlxvk_expand(g, l.m23, RLXVK_SHAPE(3)));
    BAD(RLXVK_E_ATTR, "target dim 0 is -1", rlxvk_expand(g, l.m23, RLXVK_SHAPE(-1, 2, 3)));
    BAD(RLXVK_E_TOO_LARGE, "65536x32768", rlxvk_expand(g, l.s, RLXVK_SHAPE(65536, 32768)));
    BAD(RLXVK_E_TOO_LARGE, "9223372036854775807",
        rlxvk_expand(g, l.s, RLXVK_SHAPE(INT64_MAX, INT64_MAX)));
    BAD(RLXVK_E_SHAPE, "target rank 9", rlxvk_expand(g, l.s, (rlxvk_shape){.rank = 9}));
    BAD(RLXVK_E_AXIS, "axis 2 outside rank 2", rlxvk_reverse(g, l.m23, AXES(2)));
    BAD(RLXVK_E_AXIS, "axis 1 is named twice", rlxvk_reverse(g, l.m23, AXES(1, -1)));
    BAD(RLXVK_E_ATTR, "9 axes", rlxvk_reverse(g, l.m23, AXES(0, 1, 2, 3, 4, 5, 6, 7, 8)));
}

static void indexing_errors(void **state)
{
    (void)state;
    BAD(RLXVK_E_AXIS, "axis 2 outside rank 2", rlxvk_gather(g, l.m23, l.v4, 2));
    BAD(RLXVK_E_AXIS, "scalar data", rlxvk_gather(g, l.s, l.v4, 0));
    BAD(RLXVK_E_RANGE, "axis 0 of 0x4 is empty", rlxvk_gather(g, l.empty, l.v4, 0));
    BAD(RLXVK_E_INDEX_RANGE, "longer than 2^24", rlxvk_gather(g, l.wide, l.v4, 1));
    BAD(RLXVK_E_DTYPE, "complex indices", rlxvk_gather(g, l.m23, l.c64, 0));
    BAD(RLXVK_E_TOO_LARGE, "1073741824x3", rlxvk_gather(g, l.m23, l.huge, 0));
    BAD(RLXVK_E_ARITY, "operand 1", rlxvk_gather(g, l.m23, NONE, 0));
    BAD(RLXVK_E_SHAPE, "data 2x3 by indices 4", rlxvk_take_along_axis(g, l.m23, l.v4, 0));
    BAD(RLXVK_E_SHAPE, "data 2x3 by indices 3x4", rlxvk_take_along_axis(g, l.m23, l.m34, 0));
    BAD(RLXVK_E_AXIS, "axis -3", rlxvk_take_along_axis(g, l.m23, l.m23, -3));
    BAD(RLXVK_E_ATTR, "the cache is a neg; it must be an input or a param",
        rlxvk_write_rows(g, l.computed, l.t234, l.t1));
    BAD(RLXVK_E_SHAPE, "cache 2x8x4, rows 3x4", rlxvk_write_rows(g, l.cache, l.m34, l.t1));
    BAD(RLXVK_E_ATTR, "operand 1 is the cache", rlxvk_write_rows(g, l.cache, l.cache, l.t1));
    BAD(RLXVK_E_SHAPE, "position 4", rlxvk_write_rows(g, l.cache, l.t234, l.v4));
    BAD(RLXVK_E_ARITY, "operand 2 is RLXVK_NONE", rlxvk_write_rows(g, l.cache, l.t234, NONE));
    rlxvk_attention_step_options step = {.heads = 2, .head_dim = 2};
    BAD(RLXVK_E_ATTR, "heads 0, kv_heads 0",
        rlxvk_attention_step(g, l.t234, l.t234, l.t234, l.cache, l.cache, l.t1, NONE, NONE, NULL));
    BAD(RLXVK_E_SHAPE, "k 3x4 beside q 2x3x4; takes [B,n,4]",
        rlxvk_attention_step(g, l.t234, l.m34, l.t234, l.cache, l.cache, l.t1, NONE, NONE, &step));
    BAD(RLXVK_E_SHAPE, "each is [2,2,R,2]",
        rlxvk_attention_step(g, l.t234, l.t234, l.t234, l.cache, l.cache, l.t1, NONE, NONE, &step));
    BAD(RLXVK_E_SHAPE, "k 2x3x4 beside q 2x3x4; takes [B,n,8]",
        rlxvk_attention_step(g, l.t234, l.t234, NONE, l.cache, l.cache, l.t1, NONE, NONE, &step));
    BAD(RLXVK_E_ARITY, "operand 3 is RLXVK_NONE",
        rlxvk_attention_step(g, l.t234, NONE, NONE, NONE, l.cache, l.t1, NONE, NONE, &step));
}

/* After an error, builder calls do nothing and set no further error, whatever their arguments are.
 */
static void later_calls_pass_quietly(void **state)
{
    leaves l = make_leaves();
    rlxvk_graph *g = l.g;
    rlxvk_tensor lse = {7};
    (void)state;
    assert_int_equal(rlxvk_softmax(g, l.v4, 9).id, 0);
    size_t count = g->nodes.count;
    const rlxvk_tensor results[] = {
        rlxvk_add(g, NONE, NONE),
        rlxvk_relu(g, NONE),
        rlxvk_where(g, NONE, NONE, NONE),
        rlxvk_matmul(g, NONE, NONE),
        rlxvk_fused_matmul_bias_act(g, NONE, NONE, NONE, (rlxvk_activation)99, true),
        rlxvk_dequant_matmul(g, NONE, NONE, RLXVK_Q4_K),
        rlxvk_dequant_gather(g, NONE, NONE, RLXVK_Q4_K, -1),
        rlxvk_reduce_sum(g, NONE, NULL, 99, false),
        rlxvk_argmax(g, NONE, 0, false),
        rlxvk_layer_norm(g, NONE, NONE, NONE, 9, -1),
        rlxvk_fused_residual_ln(g, NONE, NONE, NONE, NONE, NONE, -1),
        rlxvk_fused_swiglu(g, NONE, false),
        rlxvk_rope(g, NONE, NONE, NONE, NULL),
        rlxvk_attention(g, NONE, NONE, NONE, NONE, NULL),
        rlxvk_attention_with_lse(g, NONE, NONE, NONE, NONE, NULL, &lse),
        rlxvk_transpose(g, NONE, NULL, 99),
        rlxvk_narrow(g, NONE, 0, -1, -1),
        rlxvk_concat(g, NULL, 0, 0),
        rlxvk_expand(g, NONE, (rlxvk_shape){.rank = 99}),
        rlxvk_reverse(g, NONE, NULL, 99),
        rlxvk_gather(g, NONE, NONE, 0),
        rlxvk_take_along_axis(g, NONE, NONE, 0),
        rlxvk_write_rows(g, NONE, NONE, NONE),
        rlxvk_input(g, NULL, RLXVK_F32, RLXVK_SCALAR),
        rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(4), NULL, 99),
    };
    for (size_t i = 0; i < ARRAY_COUNT(results); i++)
        assert_int_equal(results[i].id, 0);
    assert_int_equal(lse.id, 0);
    assert_int_equal(g->nodes.count, count);
    assert_int_equal(rlxvk_graph_status(g), RLXVK_E_AXIS);
    assert_non_null(strstr(rlxvk_graph_error(g), "): axis 9"));
    rlxvk_graph_destroy(g);
}

/* Legal shapes at the limit: if one dim is 0, only the range of strides bounds the others. */
static void empty_giants_are_fine(void **state)
{
    rlxvk_graph *g;
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE((int64_t)1 << 40, 0, 1 << 20));
    rlxvk_tensor q = rlxvk_input(g, "q", RLXVK_F32, RLXVK_SHAPE(1 << 15, 1 << 15, 0)), lse;
    rlxvk_attention_options o = {.num_heads = INT32_MAX, .layout = RLXVK_LAYOUT_PACKED};
    rlxvk_neg(g, rlxvk_transpose(g, x, (int32_t[]){2, 1, 0}, 3));
    rlxvk_reduce_sum(g, x, (int32_t[]){0}, 1, true);
    rlxvk_softmax(g, rlxvk_add(g, x, x), 0);
    rlxvk_attention(g, q, q, q, RLXVK_NONE, &o);
    expect_ok(rlxvk_graph_status(g));
    assert_int_equal(rlxvk_attention_with_lse(g, q, q, q, RLXVK_NONE, &o, &lse).id, 0);
    assert_int_equal(rlxvk_graph_status(g), RLXVK_E_TOO_LARGE);
    rlxvk_graph_destroy(g);
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE((int64_t)1 << 40, 0, (int64_t)1 << 40));
    assert_int_equal(rlxvk_graph_status(g), RLXVK_E_TOO_LARGE);
    rlxvk_graph_destroy(g);
}

/* If a mistake is typical for users of other libraries, the message names the remedy. Other
 * mistakes get no such hint. */
static void errors_know_other_conventions(void **state)
{
    const rlxvk_matmul_options turned = {.transpose_b = true};
    (void)state;
    BAD(RLXVK_E_SHAPE, "rlxvk_symbol stands for a size",
        rlxvk_input(g, "batch", RLXVK_F32, RLXVK_SHAPE(-1, 4)));
    BAD(RLXVK_E_SHAPE, "with transpose_b, for weights stored [N, K]",
        rlxvk_matmul(g, l.t234, l.row));
    BAD(RLXVK_E_SHAPE, "without transpose_b they are", rlxvk_matmul_with(g, l.m23, l.m34, &turned));
    BAD(RLXVK_E_SHAPE, "they must be equal", rlxvk_matmul(g, l.m23, l.m23));
    BAD(RLXVK_E_DANGLING, "it has id 77, and the graph's are 1 to",
        rlxvk_neg(g, (rlxvk_tensor){77, l.s.graph}));
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1, 9, 8, 3));
    rlxvk_tensor w = rlxvk_input(g, "w", RLXVK_F32, RLXVK_SHAPE(6, 3, 3, 3));
    rlxvk_conv(g, x, w, RLXVK_NONE, NULL);
    expect_error(rlxvk_graph_status(g), RLXVK_E_SHAPE, "x is [N, C, ...], channels first");
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaf_errors),           cmocka_unit_test(view_errors),
        cmocka_unit_test(unary_errors),          cmocka_unit_test(binary_errors),
        cmocka_unit_test(ternary_errors),        cmocka_unit_test(matmul_errors),
        cmocka_unit_test(dequant_errors),        cmocka_unit_test(reduction_errors),
        cmocka_unit_test(norm_errors),           cmocka_unit_test(swiglu_and_rope_errors),
        cmocka_unit_test(attention_errors),      cmocka_unit_test(layout_errors),
        cmocka_unit_test(indexing_errors),       cmocka_unit_test(later_calls_pass_quietly),
        cmocka_unit_test(empty_giants_are_fine), cmocka_unit_test(errors_know_other_conventions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
