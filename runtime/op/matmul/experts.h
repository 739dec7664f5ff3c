/*
 * Products in which each row of x names an expert by an index held as f32. The expert is floor(v +
 * 1/2). If v is NaN or the expert does not exist, the row has no expert.
 *
 * If there are few rows, they are multiplied one by one. Many rows are first sorted by expert on
 * the device, and then multiplied in blocks of one expert each. glsl/matmul/experts.glsl describes
 * the plan that the sort makes.
 */
#ifndef RLXVK_EXPERTS_H
#define RLXVK_EXPERTS_H

#include "args/matmul.h"
#include "op/bucket.h"
#include "op/matmul/matmul.h"

/* The experts of a node that reads a part of a weight (rewrite/split_experts.c). Its first expert
 * is number `first` of `total`, and its indices are less `first`. Rows that name experts of other
 * parts are zeros. If total is 0, the weight is whole. */
typedef struct experts_part {
    int64_t first, total;
} experts_part;

typedef struct grouped_attributes { /* grouped_matmul */
    matmul_attributes product;
    experts_part part;
} grouped_attributes;

typedef struct experts_class {
    choice_row row;
    bool sorted;
    bool split; /* lanes share the K of an element, by shared memory; only for weights as floats */
    uint64_t least_rows;
} experts_class;

/* Chooses whether `rows` rows are sorted. `packed`: the weights are not floats. */
const experts_class *experts_choose(lowering *l, uint64_t rows, bool packed);

typedef struct expert_blocks {
    uint32_t rows;  /* in a block, at most */
    uint64_t count; /* number of blocks, at most */
} expert_blocks;
/* Emits the sort of `rows` rows into blocks. *index has the indices; the call replaces it by the
 * plan, for reading. blocks->rows is the least height of a block. It is doubled, up to `highest`,
 * while the average expert has at least that many rows. */
rlxvk_status experts_sort(lowering *l, uint32_t id, uint64_t rows, uint64_t experts,
                          uint32_t highest, operand *index, expert_blocks *blocks);

/* Emits the product with experts whose weights are floats. Operands are x, w, the indices, and y;
 * batch_count is the number of experts. d already has its node, MATMUL_TRANSPOSE_B and the storage
 * constants. In grouped_matmul.c. */
rlxvk_status grouped_matmul_emit(lowering *l, dispatch *d, struct matmul_args *args,
                                 operand operands[4]);

/* The expert that an index names, or `experts` if it names none. */
uint64_t experts_host_index(float v, uint64_t experts);
/* The limits of the indices, operand 2, of a node with `experts` experts. */
index_limits experts_indices(int64_t experts, experts_part part);
void experts_describe_part(experts_part part, text *out);
/* The `bucket` of families whose operands 0 and 2 are x and the indices. */
uint64_t experts_bucket(bucket_call *c);
/* Fails with E_SHAPE if operand `operand` does not have one index for each of `rows` rows. */
rlxvk_status experts_check_index(const rlxvk_graph *g, const node *n, uint32_t operand,
                                 uint64_t rows);

#endif
