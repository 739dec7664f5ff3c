/* Elementwise kernels: the codes of their functions, and their operands. */
#ifndef RLXVK_ARGS_ELEMENTWISE_H
#define RLXVK_ARGS_ELEMENTWISE_H

#include "args/types.h"

/* ---- unary, binary, compare, where, fma, cast ---- */

/* Codes of activations: args/activation.def. */
#define UNARY_NONE 0xFFu /* an epilogue without an activation */

#define BINARY_ADD 0
#define BINARY_SUB 1
#define BINARY_MUL 2
#define BINARY_DIV 3
#define BINARY_MAX 4
#define BINARY_MIN 5
#define BINARY_POW 6
/* For gradients: 0 if the first operand is 0, even if the other is infinite, NaN or a zero
 * divisor. */
#define BINARY_PRODUCT  7
#define BINARY_QUOTIENT 8

#define INTEGRAL_MOD   0
#define INTEGRAL_FMOD  1
#define INTEGRAL_AND   2
#define INTEGRAL_OR    3
#define INTEGRAL_XOR   4
#define INTEGRAL_LEFT  5
#define INTEGRAL_RIGHT 6

#define COMPARE_EQ 0
#define COMPARE_NE 1
#define COMPARE_LT 2
#define COMPARE_LE 3
#define COMPARE_GT 4
#define COMPARE_GE 5

struct unary_args {
    u32 numel, x_offset, y_offset;
};

struct activation_backward_args {
    u32 numel, x_offset, dy_offset, dx_offset;
};

/* How binary, compare, where and fma address their operands: one axis (every operand is dense or a
 * single element), two axes, or a loop over `rank` axes. */
#define ELEMENTWISE_LINE 1
#define ELEMENTWISE_ROWS 2
#define ELEMENTWISE_LOOP 0
#define ELEMENTWISE_AXES 6

/* Axes are innermost first; dims[rank - 1] is the remaining one. strides[o * ELEMENTWISE_AXES +
 * axis] is the stride of operand o, 0 if it is broadcast. Offsets and strides count elements; a
 * pair is one element. */
struct elementwise_args {
    u32 numel, rank, target_offset;
    u32 offsets[3];
    u32 dims[5];
    u32 strides[18];
};

/* cast: from a word, byte or pair to a dtype. The numbers equal those of rlxvk_dtype. */
#define CAST_FROM_WORD 0
#define CAST_FROM_U8   1
#define CAST_FROM_I8   2
#define CAST_FROM_PAIR 3

#define DTYPE_F32  0
#define DTYPE_F16  1
#define DTYPE_BF16 2
#define DTYPE_F64  3
#define DTYPE_I8   4
#define DTYPE_I16  5
#define DTYPE_I32  6
#define DTYPE_I64  7
#define DTYPE_U8   8
#define DTYPE_U32  9
#define DTYPE_BOOL 10
#define DTYPE_C64  11

struct cast_args {
    u32 numel, x_offset, y_offset;
};

/* ---- region_* ---- */

#define REGION_ACTIVATION 0
#define REGION_CAST       1
#define REGION_BINARY     2
#define REGION_COMPARE    3
#define REGION_WHERE      4
/* Kinds that only the kernels know: costly activations (activation.def). The kernels of REGION_ROOT
 * and REGION_ANGLE also run a binary op. */
#define REGION_CURVE       5
#define REGION_ROOT        6  /* and div */
#define REGION_ANGLE       7  /* and pow */
#define REGION_OP_BINARY   62 /* the div or pow of the two kinds above */
#define REGION_OP_QUOTIENT 63 /* with REGION_ROOT */

/* A step is one specialization constant. It holds the kind, the op and the indices of its operands.
 * Inputs have the indices from 0 on, results of steps those from REGION_VALUES_OF_STEPS on. */
#define REGION_STEPS           32
#define REGION_INPUTS          16
#define REGION_VALUES_OF_STEPS 16
#define REGION_OP_SHIFT        3
#define REGION_OP_MASK         63u
#define REGION_FIRST_SHIFT     9
#define REGION_SECOND_SHIFT    16
#define REGION_THIRD_SHIFT     23
#define REGION_OPERAND_MASK    127u

/*
 * The ops that a kernel knows:
 *   LIGHT   arithmetic, comparisons, selections, relu, neg, abs and casts that keep the word
 *   COMMON  all except REGION_ANGLE
 *   ALL     all
 */
#define REGION_LIGHT  0
#define REGION_COMMON 1
#define REGION_ALL    2

/* Constant 1: the number of steps, plus this bit if an invocation takes 4 consecutive elements. */
#define REGION_WIDE 256u

/* offsets: two of 16 bits in each word. */
struct region_args {
    u32 numel, target_offset;
    u32 columns; /* of the output, if an input is read at half its resolution */
    u32 offsets[8];
    u32 modulus[REGION_INPUTS];
};

/* ---- region_batch_* ---- */

#define REGION_BATCH_INPUTS 64

/* How all inputs are read, unless one to one: as a single element; repeated every `modulus`
 * elements; at half the output's resolution. */
#define REGION_SINGLE  1u
#define REGION_REPEATS 2u
#define REGION_HALVED  4u

/* offsets: four of 8 bits in each word. 8 bits suffice because bindings start at multiples of 256
 * bytes. */
struct region_batch_args {
    u32 numel, target_offset;
    u32 columns; /* in the output */
    u32 slice;   /* elements of the output that come from each input */
    u32 modulus;
    u32 offsets[REGION_BATCH_INPUTS / 4];
};

struct copy_args {
    u32 words, x_offset, y_offset;
};

struct swiglu_args {
    u32 numel, columns, x_row, up_offset, gate_offset, y_offset;
};

/* ---- complex_map ---- */

#define COMPLEX_NEG          0
#define COMPLEX_EXP          1
#define COMPLEX_LOG          2
#define COMPLEX_SQRT         3
#define COMPLEX_CONJUGATE    4
#define COMPLEX_NORM_SQ      5 /* y is real */
#define COMPLEX_NORM_SQ_BACK 6 /* z times the real g */

struct complex_map_args {
    u32 numel, z_offset, g_offset, y_offset;
};

/* ---- fma_peak, which measures the peak rate of a device ---- */

#define FMA_PEAK_CHAINS 12 /* independent sums of an invocation, one fma each in a round */

struct fma_peak_args {
    u32 rounds;
    f32 scale, shift;
};

#endif
