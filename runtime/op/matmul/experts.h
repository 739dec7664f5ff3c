/*
 * Ops whose rows of x each name an expert, by an index held as f32 (floor(v + 1/2); NaN and numbers
 * outside name none). Few rows are multiplied one by one; many are first sorted by expert on the
 * device (glsl/matmul/experts.glsl describes the plan), then multiplied in blocks of one expert
 * each.
 */
#ifndef RLXVK_EXPERTS_H
#define RLXVK_EXPERTS_H

#include "args/matmul.h"
#include "op/bucket.h"

typedef struct experts_class {
    choice_row row;
    bool sorted;
    uint64_t least_rows;
} experts_class;

/* Whether `rows` rows should be sorted. */
const experts_class *experts_select(lowering *l, uint64_t rows);

typedef struct expert_blocks {
    uint32_t rows;  /* of a block, at most */
    uint64_t count; /* of blocks, at most */
} expert_blocks;
/* Emits the sort of `rows` rows into blocks and puts its plan, for reading, in the place of the
 * indices. blocks->rows is the least height of a block; it is doubled, up to `highest`, while
 * experts have more rows than that on average. */
rlxvk_status experts_sort(lowering *l, uint32_t id, uint64_t rows, uint64_t experts,
                          uint32_t highest, operand *index, expert_blocks *blocks);

/* The product with experts of floats: operands x, w, indices, y; batch_count is the number of
 * experts. d has its node and the constants MATMUL_TRANSPOSE_B and the storages. In
 * grouped_matmul.c. */
rlxvk_status grouped_matmul_emit(lowering *l, dispatch *d, struct matmul_args *args,
                                 operand operands[4]);

/* The expert an index names; `experts` where it names none. */
uint64_t experts_host_index(float v, uint64_t experts);
/* As `bucket` of a family whose operands 0 and 2 are x and the indices. */
uint64_t experts_bucket(bucket_call *c);
/* E_SHAPE unless operand `operand` has one index for each of `rows` rows. */
rlxvk_status experts_check_index(const rlxvk_graph *g, const node *n, uint32_t operand,
                                 uint64_t rows);

#endif
