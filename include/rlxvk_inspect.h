/*
 * rlxvk: looking at graphs and values. This header lists the nodes of a graph before it is
 * compiled, draws a graph as built or as compiled, and prints arrays as text. The inputs, outputs
 * and memory of an executable are in rlxvk_report.h (rlxvk_executable_inputs).
 *
 * Calls that give text write as much as fits into `size` bytes, the terminator included.
 * *out_length is the length of the whole text, without the terminator. To learn how much room it
 * needs, call with a NULL buffer and size 0. None of these calls changes anything. A graph is used
 * by one thread at a time, and so is an executable.
 */
#ifndef RLXVK_INSPECT_H
#define RLXVK_INSPECT_H

#include <rlxvk.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Nodes ---- */

typedef enum rlxvk_node_kind {
    RLXVK_NODE_OP = 0,
    RLXVK_NODE_INPUT = 1,
    RLXVK_NODE_PARAM = 2,
    RLXVK_NODE_CONSTANT = 3,
    RLXVK_NODE_STATE = 4 /* the library's own input: the state of random numbers */
} rlxvk_node_kind;

/* One node of a graph. `op` and `name` live as long as the graph. If a text is too long for its
 * array, it is cut. */
typedef struct rlxvk_node_info {
    rlxvk_tensor tensor; /* its result, to be passed to builders */
    uint32_t node;       /* its number, from 0, in the order of building; reports and errors use
                            the same number: "(node 12)"; dumps: "%12" */
    rlxvk_node_kind kind;
    const char *op;   /* "matmul", as in include/OPS.md; a leaf: "input", "param", ... */
    const char *name; /* "" if it has none */
    rlxvk_dtype dtype;
    rlxvk_shape shape;    /* if the graph has symbols: with their codes */
    char shape_text[128]; /* "BATCHx64", "scalar" */
    char attributes[256]; /* "axis=1 keep_dim=0", as in dumps; "" if there are none */
    size_t operand_count;
    bool output; /* it is one of the graph's outputs */
    size_t struct_size;
} rlxvk_node_info;

/* How many nodes the graph has; 0 for NULL. */
size_t rlxvk_graph_node_count(const rlxvk_graph *graph);

/* Describes node `node`. An operand's number is smaller than its reader's. So if you count up, you
 * visit nodes in an order in which they can be computed. If a builder call failed, the nodes before
 * it are still there. E_INDEX: there is no such node. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_graph_node(const rlxvk_graph *graph, uint32_t node,
                                               rlxvk_node_info *out_info);

/* Lists the numbers of the nodes that node `node` reads, in the order of its operands. Optional
 * operands that were left out are skipped. Writes at most `capacity` (`nodes` may be NULL if it is
 * 0); *out_count is how many there are. E_INDEX: there is no such node. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_graph_operands(const rlxvk_graph *graph, uint32_t node,
                                                   uint32_t *nodes, size_t capacity,
                                                   size_t *out_count);

/* Finds the number of the node whose result a tensor is.
 *   E_ARITY      the tensor is RLXVK_NONE
 *   E_DANGLING   it is not a tensor of the graph */
RLXVK_MUST_CHECK rlxvk_status rlxvk_tensor_node(const rlxvk_graph *graph, rlxvk_tensor tensor,
                                                uint32_t *out_node);

/* Lists the inputs or the params in the order of building, or the outputs by index. The library's
 * own input (RLXVK_NODE_STATE) is not listed as an input. If a tensor is an output twice, it is
 * listed twice. Writes at most `capacity` (`infos` may be NULL if it is 0); *out_count is how many
 * there are. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_graph_inputs(const rlxvk_graph *graph, rlxvk_node_info *infos,
                                                 size_t capacity, size_t *out_count);
RLXVK_MUST_CHECK rlxvk_status rlxvk_graph_params(const rlxvk_graph *graph, rlxvk_node_info *infos,
                                                 size_t capacity, size_t *out_count);
RLXVK_MUST_CHECK rlxvk_status rlxvk_graph_outputs(const rlxvk_graph *graph, rlxvk_node_info *infos,
                                                  size_t capacity, size_t *out_count);

/* ---- Pictures ---- */

/*
 * Prints a graph in the DOT language of Graphviz, in UTF-8. To draw it, use
 * `dot -Tsvg graph.dot >graph.svg`. Every node is named n<number>, output i out<i>. A node's label
 * has its op, name, dtype, shape and attributes. Inputs are blue ellipses, params yellow boxes,
 * constants grey ones, outputs green double octagons. An edge goes from an operand to its reader.
 * If there are several operands, it has the operand's index. If the reader writes the operand in
 * place, the edge has arrows at both ends.
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_graph_dot(const rlxvk_graph *graph, char *buffer, size_t size,
                                              size_t *out_length);

/*
 * Prints the graph as the executable runs it: constants folded, equal nodes shared, patterns fused,
 * dead nodes dropped. Nodes are numbered anew, as in RLXVK_DUMP=rewrite.
 *   - The title lists the ops whose number of nodes changed: "add: 3 -> 0".
 *   - A thick border: there are more nodes of this op than were built, because others were fused.
 *     A node on the host or a view never has it.
 *   - The last lines of a label tell how the node is computed: by kernels and their variants, "on
 *     the host" (red), "view" (dashed), or "one step with" another node.
 *
 * If the executable has symbols, this is the graph of the present binding.
 *   E_UNBOUND_SYMBOL   nothing is bound yet
 *   E_OUT_OF_HOST_MEMORY
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_executable_dot(const rlxvk_executable *executable, char *buffer,
                                                   size_t size, size_t *out_length);

/* ---- Values ---- */

typedef struct rlxvk_values_options {
    uint64_t threshold;  /* an array of more elements is summarized; 0: 1000; UINT64_MAX: none is */
    uint32_t edge_items; /* elements that a summary shows at both ends of an axis; 0: 3 */
    uint32_t line_width; /* longer lines are wrapped, in characters; 0: 75 */
    uint32_t precision;  /* most digits after the decimal point; 0: 8; at most 40 (E_ATTR) */
    size_t struct_size;
} rlxvk_values_options;

/*
 * Prints an array as numpy.array2string does: nested brackets, elements of one width, and "..." in
 * place of elements that a summary leaves out. Either all floats are in e notation or none is. They
 * are if the largest magnitude is 1e8 or more, the smallest below 1e-4, or the largest more than
 * 1000 times the smallest. For this, zeros, NaN, infinities and elements that are left out do not
 * count, and the real and imaginary parts of C64 are looked at separately. An array without
 * elements is "[]", whatever its shape. BF16, which NumPy lacks, is written like F16: with the
 * fewest digits that tell a value from its neighbours.
 *
 *   [[ 0.    1.5 ]
 *    [-2.    0.25]]
 *
 * `data` are elements of `dtype` in its host encoding, row-major. They need not be aligned. `data`
 * may be NULL if the shape has no elements. Allocates no memory. Any thread may call it.
 *   E_DTYPE                there is no such dtype
 *   E_SHAPE, E_TOO_LARGE   as rlxvk_shape_elements: for example, a dim is below 0
 *   E_NULL                 `data` is NULL, and the shape has elements
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_values_text(const void *data, rlxvk_dtype dtype,
                                                rlxvk_shape shape,
                                                const rlxvk_values_options *options, char *buffer,
                                                size_t size, size_t *out_length);

#ifdef __cplusplus
}
#endif

#endif
