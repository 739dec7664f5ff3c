/*
 * Elementwise regions: several elementwise ops in one dispatch. Programs seldom need these calls,
 * because rlxvk_compile fuses elementwise ops by itself. rlxvk_ops.h includes this header.
 */
#ifndef RLXVK_OPS_REGION_H
#define RLXVK_OPS_REGION_H

#include <rlxvk_ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The kind of a step; the step's member `op` selects an op of this kind. */
typedef enum rlxvk_region_kind {
    RLXVK_REGION_ACTIVATION,
    RLXVK_REGION_CAST, /* rlxvk_cast; the value stays an f32 word */
    RLXVK_REGION_BINARY,
    RLXVK_REGION_COMPARE,
    RLXVK_REGION_WHERE
} rlxvk_region_kind;

typedef enum rlxvk_binary_op {
    RLXVK_BINARY_ADD,
    RLXVK_BINARY_SUB,
    RLXVK_BINARY_MUL,
    RLXVK_BINARY_DIV,
    RLXVK_BINARY_MAX,
    RLXVK_BINARY_MIN,
    RLXVK_BINARY_POW,
    /* first * second and first / second, but 0 if first is 0, even if second is infinite or NaN, or
     * the divisor is 0 (rlxvk_gradient_product in rlxvk_train.h) */
    RLXVK_BINARY_GRADIENT_PRODUCT,
    RLXVK_BINARY_GRADIENT_QUOTIENT
} rlxvk_binary_op;

typedef enum rlxvk_compare_op {
    RLXVK_COMPARE_EQ,
    RLXVK_COMPARE_NE,
    RLXVK_COMPARE_LT,
    RLXVK_COMPARE_LE,
    RLXVK_COMPARE_GT,
    RLXVK_COMPARE_GE
} rlxvk_compare_op;

/* Operands of a step: input i of the region, or the value of an earlier step i. */
#define RLXVK_REGION_INPUT(i) ((uint32_t)(i))
#define RLXVK_REGION_STEP(i)  (0x80000000u | (uint32_t)(i))

typedef struct rlxvk_region_step {
    uint32_t kind;          /* rlxvk_region_kind */
    uint32_t op;            /* by kind: rlxvk_activation - 1, rlxvk_dtype (not C64),
                               rlxvk_binary_op, rlxvk_compare_op, or the condition (WHERE) */
    uint32_t first, second; /* operands; WHERE: the values if true, if false */
} rlxvk_region_step;

/* A special way to read one of the inputs; NONE reads all of them as usual. */
typedef enum rlxvk_region_prologue {
    RLXVK_REGION_PROLOGUE_NONE,
    RLXVK_REGION_PROLOGUE_NEAREST_2X
} rlxvk_region_prologue;

#define RLXVK_REGION_MAX_STEPS  32
#define RLXVK_REGION_MAX_INPUTS 16

typedef struct rlxvk_region {
    rlxvk_shape shape; /* of the result */
    const rlxvk_region_step *steps;
    size_t step_count;
    uint32_t scalar_mask; /* bit i is set if input i has one element */
    /* 0 if input i has as many elements as the result. Else its dims, without 1s in front, must be
     * the last dims of the result; it is repeated, and this is its number of elements. For example,
     * it is 64 for [64] or [1, 64] in a result [8, 64]; [8, 1] is E_ATTR. */
    uint32_t modulus[RLXVK_REGION_MAX_INPUTS];
    /* NEAREST_2X: input `prologue_input` is [N, C, H/2, W/2] and the result [N, C, H, W]. Each
     * element is read four times, as rlxvk_resize_nearest2x repeats it. */
    rlxvk_region_prologue prologue;
    uint32_t prologue_input;
    size_t struct_size;
} rlxvk_region;

/* Runs the steps on each element of the shape; the result is the value of the last step. Each step
 * rounds to f32, so it gives the same value and dtype as its op would: a COMPARE step gives BOOL, a
 * CAST step its dtype, an ACTIVATION step that of its operand. BINARY and WHERE promote the dtypes
 * of their two values. rlxvk_compile makes such nodes from chains of elementwise ops (compile
 * option `regions`). E_ATTR: there are no steps or more than 32, or there are more than 16 inputs.
 *   E_ATTR: an input, an operand, an op or the prologue breaks a rule above.
 *   E_SHAPE: the shape has more than 8 axes.
 *   E_UNSUPPORTED, by rlxvk_compile: the device has too few storage buffers a stage. Any region
 *     needs 8. Up to 17 are needed for more than 7 inputs, and for more than 8 steps of some ops.
 */
rlxvk_tensor rlxvk_elementwise_region(rlxvk_graph *g, const rlxvk_tensor *inputs, size_t count,
                                      const rlxvk_region *region);

/* Runs the same steps on each of `count` tensors of one shape, and concatenates the results along
 * axis 0. `region->shape` is the shape of the whole result, so its axis 0 is a multiple of count.
 * The steps read only input 0, which stands for each tensor in turn. scalar_mask, modulus and
 * prologue say how a tensor is read for its slice of the result. rlxvk_compile makes such nodes
 * from small concats (compile option `regions`). Errors are those of rlxvk_elementwise_region, but
 * more than 16 inputs are allowed, and:
 *   E_ATTR, not E_SHAPE: the shape has more than 8 axes.
 *   E_ATTR: count does not divide axis 0 of the shape; or the shape is a scalar and count is not 1.
 *   E_SHAPE: the tensors' shapes differ.
 *   E_DTYPE: the dtypes of the slices differ. */
rlxvk_tensor rlxvk_batch_elementwise_region(rlxvk_graph *g, const rlxvk_tensor *inputs,
                                            size_t count, const rlxvk_region *region);

#ifdef __cplusplus
}
#endif

#endif
