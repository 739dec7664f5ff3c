/* See onnx_inner.h. */
#include "model/onnx_inner.h"

const onnx_graph *onnx_inner_graph(call *c, const char *name)
{
    const onnx_attribute *a = call_attribute(c, name, ONNX_ATTRIBUTE_GRAPH);
    if (!a && !c->failed)
        call_refuse(c, name, "it is required");
    return a ? a->graph : NULL;
}

onnx_value **onnx_inner_values(call *c, size_t count)
{
    onnx_value **values = arena_allocate(c->a, MAX(count, 1) * sizeof *values);
    if (!values)
        import_end(c->import, status_fail_memory("graph inside a node"));
    return values;
}

onnx_value **onnx_inner_run(call *c, const onnx_graph *g, import_loop *loop,
                            onnx_value *const *inputs)
{
    onnx_value **outputs = onnx_inner_values(c, g->output_count);
    if (!outputs)
        return NULL;
    c->import->inline_graph(c->import, c, g, loop, inputs, outputs);
    return c->failed || c->import->status != RLXVK_OK ? NULL : outputs;
}
