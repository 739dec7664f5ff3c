/*
 * Sizes that data of a run decides, as that of NonZero. Such a tensor has the most that it can be
 * as its size, and a count beside it (onnx_value.h). Ops that keep the indices of that axis apart
 * take such operands; all others refuse them.
 */
#ifndef RLXVK_ONNX_COUNTED_H
#define RLXVK_ONNX_COUNTED_H

#include "model/call.h"

/* Where the indices of an operand's counted axis go. */
typedef struct onnx_counts {
    rlxvk_tensor count; /* RLXVK_NONE: no operand is counted */
    int64_t axis;       /* of the results */
} onnx_counts;

/* Before the lowering of an op: refuses the node if the op does not take a counted operand. Ops
 * that pass values on, such as Identity, are not to be asked. */
void onnx_counts_begin(call *c, onnx_counts *out);
/* After it: the results are counted, too. */
void onnx_counts_end(call *c, const onnx_counts *counts);
/* Gives a result of which only the first `count` indices of the axis matter. The rest becomes 0. */
void onnx_give_counted(call *c, size_t i, rlxvk_tensor t, rlxvk_tensor count, uint32_t axis,
                       int32_t type);

#endif
