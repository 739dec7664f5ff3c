/* The table of ops: onnx_ops.def. */
#ifndef RLXVK_ONNX_OPS_H
#define RLXVK_ONNX_OPS_H

#include "model/call.h"

/* The newest opset of the standard's own domain whose ops the table knows. */
enum { ONNX_NEWEST_OPSET = 28 };

typedef void onnx_lowering(call *c);

typedef struct onnx_op {
    const char *domain, *name;
    int64_t first, last; /* opsets; last 0: no end */
    size_t operands;     /* so many at least */
    onnx_lowering *lower;
} onnx_op;

/* The row of an op; NULL if there is none for this opset. */
const onnx_op *onnx_find_op(const char *domain, const char *name, int64_t opset);
/* Why there is none. */
void onnx_explain_missing(const char *domain, const char *name, int64_t opset, text *out);
/* Row `i` of the table; NULL behind the last one. */
const onnx_op *onnx_op_at(size_t i);

#define OP(domain, name, first, last, operands, function) onnx_lowering onnx_##function;
#include "model/onnx_ops.def"
#undef OP

#endif
