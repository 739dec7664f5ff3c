#ifndef RLXVK_OPS_REGION_H
#define RLXVK_OPS_REGION_H
#include <rlxvk_ops.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef enum rlxvk_region_kind {
    RLXVK_REGION_ACTIVATION,
    RLXVK_REGION_CAST,
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
#define RLXVK_REGION_INPUT(i) ((uint32_t)(i))
#define RLXVK_REGION_STEP(i)  (0x80000000u | (uint32_t)(i))
typedef struct rlxvk_region_step {
    uint32_t kind;
    uint32_t op;
    uint32_t first, second;
} rlxvk_region_step;
typedef enum rlxvk_region_prologue {
    RLXVK_REGION_PROLOGUE_NONE,
    RLXVK_REGION_PROLOGUE_NEAREST_2X
} rlxvk_region_prologue;
#define RLXVK_REGION_MAX_STEPS  32
#define RLXVK_REGION_MAX_INPUTS 16
typedef struct rlxvk_region {
    rlxvk_shape shape;
    const rlxvk_region_step *steps;
    size_t step_count;
    uint32_t scalar_mask;
    uint32_t modulus[RLXVK_REGION_MAX_INPUTS];
    rlxvk_region_prologue prologue;
    uint32_t prologue_input;
    size_t struct_size;
} rlxvk_region;
rlxvk_tensor rlxvk_elementwise_region(rlxvk_graph *g, const rlxvk_tensor *inputs, size_t count,
                                      const rlxvk_region *region);
rlxvk_tensor rlxvk_batch_elementwise_region(rlxvk_graph *g, const rlxvk_tensor *inputs,
                                            size_t count, const rlxvk_region *region);
#ifdef __cplusplus
}
#endif
#endif
