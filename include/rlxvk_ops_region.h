/*
 * rlxvk: elementwise regions, several elementwise ops in one pass. Compiling makes them by itself.
 * rlxvk_ops.h includes this header.
 */
#ifndef RLXVK_OPS_REGION_H
#define RLXVK_OPS_REGION_H

#include <rlxvk_ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a step of a region computes; `op` of the step says which of the kind. */
typedef enum rlxvk_region_kind {
    RLXVK_REGION_ACTIVATION,
    RLXVK_REGION_CAST, /* as rlxvk_cast, the value staying an f32 word */
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
    RLXVK_BINARY_GRADIENT_PRODUCT, /* of rlxvk_train.h */
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

/* Operands of a step: an input of the region, or the value of a step before it. */
#define RLXVK_REGION_INPUT(i) ((uint32_t)(i))
#define RLXVK_REGION_STEP(i)  (0x80000000u | (uint32_t)(i))

typedef struct rlxvk_region_step {
    uint32_t kind;          /* rlxvk_region_kind */
    uint32_t op;            /* rlxvk_activation less 1, rlxvk_dtype (not C64), rlxvk_binary_op or
                               rlxvk_compare_op; where: the condition operand */
    uint32_t first, second; /* operands; where: the values if true and if false */
} rlxvk_region_step;

/* How one of the inputs is read, where not element by element. */
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
    uint32_t scalar_mask; /* bit i: input i has one element */
    /* 0: input i has the result's dims; its number of elements: it is a suffix of them, repeated */
    uint32_t modulus[RLXVK_REGION_MAX_INPUTS];
    /* NEAREST_2X: prologue_input is [N, C, H/2, W/2] for a result [N, C, H, W], every element read
     * four times as rlxvk_resize_nearest2x would repeat it. */
    rlxvk_region_prologue prologue;
    uint32_t prologue_input;
    size_t struct_size;
} rlxvk_region;

/* The last step's value, for every element of the shape. Each step rounds to f32 and gives what the
 * op of its own would give. Compiling makes such nodes from chains of elementwise ops by itself
 * (compile option `regions`). 1 to 32 steps, 1 to 16 inputs, at most one less than the device's
 * storage buffers a stage. Errors: E_ATTR for every rule above. */
rlxvk_tensor rlxvk_elementwise_region(rlxvk_graph *g, const rlxvk_tensor *inputs, size_t count,
                                      const rlxvk_region *region);

/* The same program over each of `count` tensors of one shape, the results one after the other along
 * axis 0: a concat of regions of one input each. The region's steps read input 0 alone, which
 * stands for each in turn; scalar_mask, modulus and prologue say how it is read for its slice of
 * `shape`, of which axis 0 is a multiple of count. Compiling makes such nodes of small concats by
 * itself (compile option `regions`). Errors: as above; E_SHAPE: inputs that differ; E_DTYPE: slices
 * that do. */
rlxvk_tensor rlxvk_batch_elementwise_region(rlxvk_graph *g, const rlxvk_tensor *inputs,
                                            size_t count, const rlxvk_region *region);

#ifdef __cplusplus
}
#endif

#endif
