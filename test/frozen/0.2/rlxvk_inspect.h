#ifndef RLXVK_INSPECT_H
#define RLXVK_INSPECT_H
#include <rlxvk.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef enum rlxvk_node_kind {
    RLXVK_NODE_OP = 0,
    RLXVK_NODE_INPUT = 1,
    RLXVK_NODE_PARAM = 2,
    RLXVK_NODE_CONSTANT = 3,
    RLXVK_NODE_STATE = 4
} rlxvk_node_kind;
typedef struct rlxvk_node_info {
    rlxvk_tensor tensor;
    uint32_t node;
    rlxvk_node_kind kind;
    const char *op;
    const char *name;
    rlxvk_dtype dtype;
    rlxvk_shape shape;
    char shape_text[128];
    char attributes[256];
    size_t operand_count;
    bool output;
    size_t struct_size;
} rlxvk_node_info;
size_t rlxvk_graph_node_count(const rlxvk_graph *graph);
RLXVK_MUST_CHECK rlxvk_status rlxvk_graph_node(const rlxvk_graph *graph, uint32_t node,
                                               rlxvk_node_info *out_info);
RLXVK_MUST_CHECK rlxvk_status rlxvk_graph_operands(const rlxvk_graph *graph, uint32_t node,
                                                   uint32_t *nodes, size_t capacity,
                                                   size_t *out_count);
RLXVK_MUST_CHECK rlxvk_status rlxvk_tensor_node(const rlxvk_graph *graph, rlxvk_tensor tensor,
                                                uint32_t *out_node);
RLXVK_MUST_CHECK rlxvk_status rlxvk_graph_inputs(const rlxvk_graph *graph, rlxvk_node_info *infos,
                                                 size_t capacity, size_t *out_count);
RLXVK_MUST_CHECK rlxvk_status rlxvk_graph_params(const rlxvk_graph *graph, rlxvk_node_info *infos,
                                                 size_t capacity, size_t *out_count);
RLXVK_MUST_CHECK rlxvk_status rlxvk_graph_outputs(const rlxvk_graph *graph, rlxvk_node_info *infos,
                                                  size_t capacity, size_t *out_count);
RLXVK_MUST_CHECK rlxvk_status rlxvk_graph_dot(const rlxvk_graph *graph, char *buffer, size_t size,
                                              size_t *out_length);
RLXVK_MUST_CHECK rlxvk_status rlxvk_executable_dot(const rlxvk_executable *executable, char *buffer,
                                                   size_t size, size_t *out_length);
typedef struct rlxvk_values_options {
    uint64_t threshold;
    uint32_t edge_items;
    uint32_t line_width;
    uint32_t precision;
    size_t struct_size;
} rlxvk_values_options;
RLXVK_MUST_CHECK rlxvk_status rlxvk_values_text(const void *data, rlxvk_dtype dtype,
                                                rlxvk_shape shape,
                                                const rlxvk_values_options *options, char *buffer,
                                                size_t size, size_t *out_length);
#ifdef __cplusplus
}
#endif
#endif
