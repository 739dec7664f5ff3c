/* What lowerings of nodes with graphs inside share. */
#ifndef RLXVK_ONNX_INNER_H
#define RLXVK_ONNX_INNER_H

#include "model/call.h"

/* A graph of an attribute, which is required. */
const onnx_graph *onnx_inner_graph(call *c, const char *name);
/* Room for the values that a graph gives or takes; NULL after a problem. */
onnx_value **onnx_inner_values(call *c, size_t count);
/* The results of a graph; NULL after a problem. With a loop, it is built as the loop's body. */
onnx_value **onnx_inner_run(call *c, const onnx_graph *g, import_loop *loop,
                            onnx_value *const *inputs);

#endif
