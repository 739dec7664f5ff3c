/*
 * Ops whose rows of x each name an expert, by an index held as f32 (floor(v + 1/2); NaN and numbers
 * outside name none). Few rows are multiplied one by one; many are first sorted by expert on the
 * device (glsl/experts.glsl describes the plan), then multiplied in blocks of one expert each.
 */
#ifndef RLXVK_EXPERTS_H
#define RLXVK_EXPERTS_H

#include "op/op.h"

/* Whether `rows` rows should be sorted; RLXVK_MATMUL decides where it is set. */
bool experts_sorted(const lowering *l, uint64_t rows);
/* Emits the sort of `rows` indices into blocks of at most `tile` rows; *out_plan is then for
 * reading. */
rlxvk_status experts_sort(lowering *l, uint32_t id, const operand *index, uint64_t rows,
                          uint64_t experts, uint32_t tile, operand *out_plan);
/* As many blocks as that can give. */
uint64_t experts_blocks(uint64_t rows, uint64_t experts, uint32_t tile);

/* The expert an index names; `experts` where it names none. */
uint64_t experts_host_index(float v, uint64_t experts);
/* E_SHAPE unless operand `operand` has one index for each of `rows` rows. */
rlxvk_status experts_check_index(const rlxvk_graph *g, const node *n, uint32_t operand,
                                 uint64_t rows);

#endif
