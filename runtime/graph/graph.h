/*
 * The graph: a list of nodes, to which nodes are only appended, and an ordered list of outputs.
 *
 * Invariant: every operand has a smaller id than its reader, so insertion order is execution order.
 * Nodes, attributes and names live in the graph's arena and die with it. Node id i is the public
 * tensor id i + 1.
 */
#ifndef RLXVK_GRAPH_H
#define RLXVK_GRAPH_H

#include "base/base.h"

#define NODE_NONE UINT32_MAX

typedef struct node {
    uint16_t op; /* enum op_kind, op/op.h */
    uint8_t dtype;
    uint32_t input_count;
    const uint32_t *inputs; /* node ids, never NODE_NONE, because optional operands are left out */
    rlxvk_shape shape;
    const void *attributes; /* the family's struct; NULL if it has none */
    size_t attribute_size;
    const char
        *name; /* input, param: the name by which it is set; others: a debug name; may be NULL */
    const void *data; /* constant: host bytes, never NULL; others: NULL */
    size_t data_size;
    bool prepare; /* a rewrite made it to be computed when params are set, if it reads nothing
                   * else (plan/prepare.c) */
    bool begins_as_zeros; /* param: need not be set */
    bool joins_params;    /* its operands are params that lie in its memory; no other node reads
                           * them */
    /* The node of the built graph that this node stands for: 1 + its number, and its op. 0 if no
     * rewrite has run yet. */
    uint32_t origin;
    uint16_t origin_op;
    uint32_t gradient_of; /* 1 + the number of the node whose gradient needs it; 0: none */
    /* While the node is being built: the graph that it will join, for error sentences. Then
     * NULL. */
    const struct rlxvk_graph *building;
} node;

/* A hash table of the ids of inputs and params, by op and name. NODE_NONE: a free place. */
typedef struct name_index {
    uint32_t *ids;
    size_t count, capacity; /* a power of two, or 0 */
} name_index;

/* A graph to which attributes of nodes point. Every graph with such nodes holds it (graph_keep). */
typedef struct kept_graph kept_graph;
/* Symbolic dims of a graph (symbol.h). */
typedef struct symbol_table symbol_table;

struct rlxvk_graph {
    uint32_t serial;     /* its tensors carry it; never 0, and never that of another graph */
    uint32_t bound_from; /* serial of the graph of which this one is a binding, node by node; 0:
                          * none */
    arena memory;
    VECTOR(node) nodes;
    name_index names;
    uint32_t origin, gradient_of; /* for nodes appended from now on; see node */
    uint16_t origin_op;
    VECTOR(uint32_t) outputs;
    VECTOR(uint32_t) checkpoints; /* nodes, ascending: rlxvk_checkpoint */
    uint64_t recomputed_bytes;    /* of values that gradients compute again */
    VECTOR(kept_graph *) kept;
    symbol_table *symbols; /* NULL: all dims are numbers */
    uint64_t instances;    /* bodies inlined so far, nested ones included; numbers random streams */
    uint64_t inlined;      /* nodes of those bodies; limited, because nesting multiplies them */
    uint64_t unroll_nodes; /* rlxvk_graph_set_unroll_limit; 0: the default */
    uint64_t replayed;     /* random ops that loops repeat, beyond those in the list */
    uint64_t random_ops;   /* among the first random_counted nodes (op/random/random_stream.c) */
    uint32_t random_counted;
    rlxvk_status status; /* sticky */
    char error[512];
};

/* ---- Shapes ---- */

/* The product of the dims, not negative; 0 if a dim is 0. False if it exceeds 2^31 - 1 elements.
 * Also false if a dim is 0 and the product of the other dims overflows an int64_t, because strides
 * need it. */
bool shape_numel_checked(const rlxvk_shape *s, uint64_t *out);
uint64_t shape_numel(const rlxvk_shape *s); /* for a verified shape */
bool shape_equal(const rlxvk_shape *a, const rlxvk_shape *b);
/* The product of dims[first, last). */
uint64_t shape_product(const rlxvk_shape *s, uint32_t first, uint32_t last);
/* Row-major strides in elements. */
void shape_strides(const rlxvk_shape *s, int64_t strides[RLXVK_MAX_RANK]);
/* Broadcasts two shapes as NumPy does; false if they do not agree. */
bool shape_broadcast(const rlxvk_shape *a, const rlxvk_shape *b, rlxvk_shape *out);
/* The strides with which `s` is read at coordinates of `target`: right-aligned, and 0 on broadcast
 * axes. */
void shape_broadcast_strides(const rlxvk_shape *s, const rlxvk_shape *target,
                             int64_t strides[RLXVK_MAX_RANK]);
/* "2x8x64", "scalar"; symbols by their names. Returns `buffer`. */
#define SHAPE_TEXT 128
const char *shape_text(const rlxvk_shape *s, char buffer[SHAPE_TEXT]);
/* Appends the coordinates of element `at`, for example " = [1, 0, 2]". Appends nothing to a scalar,
 * or if the shape has no such element. */
void shape_append_place(const rlxvk_shape *s, uint64_t at, text *out);

/* ---- Storage: how a slot holds the elements of a dtype ---- */

typedef enum storage { STORAGE_WORD, STORAGE_PAIR, STORAGE_RAW, STORAGE_HALF } storage;

uint32_t dtype_storage_element_bytes(storage s);
uint64_t dtype_storage_bytes(storage s, uint64_t numel); /* unaligned; at least 4 */
rlxvk_dtype dtype_promote(rlxvk_dtype a, rlxvk_dtype b);
bool dtype_is_integer(rlxvk_dtype t);    /* I8..I64, U8, U32; not BOOL */
bool dtype_is_continuous(rlxvk_dtype t); /* stands for real or complex numbers */

/* Converts `count` elements from host bytes to words of a WORD or PAIR slot, and back. */
void dtype_widen(rlxvk_dtype from, const void *bytes, uint64_t count, float *words);
void dtype_narrow(rlxvk_dtype to, const float *words, uint64_t count, void *bytes);
/* Rounds words to values that a tensor of F16 or BF16 can hold. Other dtypes do not change. */
void dtype_round(rlxvk_dtype to, float *words, uint64_t count);

/* ---- Building ---- */

/* Makes `status` and the thread's last error the graph's sticky error, if it has none yet. Does
 * nothing if the graph is NULL. Returns `status`. */
rlxvk_status graph_fail(rlxvk_graph *g, rlxvk_status status);
/* Whether a builder may go on. It may not if the graph is NULL (then the last error is E_NULL), or
 * if the graph has a sticky error. */
bool graph_ready(const rlxvk_graph *g, const char *call);
/* Checks that `t` is a tensor of the graph. The error begins with "<call>: <role> <index> is ...":
 *   E_ARITY      it is RLXVK_NONE
 *   E_DANGLING   it belongs to another graph */
rlxvk_status graph_take(const rlxvk_graph *g, rlxvk_tensor t, const char *call, const char *role,
                        size_t index);

/* Appends a node that was checked already. Everything it points to is copied. After a failure,
 * which sticks, returns NODE_NONE. */
uint32_t graph_append(rlxvk_graph *g, const node *n);
/* Makes a graph with the same nodes and outputs that owns its memory (also constants). */
rlxvk_status graph_clone(const rlxvk_graph *g, rlxvk_graph **out);

/* Copies `other` for as long as some graph holds the copy. After a failure, which sticks, returns
 * NULL. */
const rlxvk_graph *graph_keep(rlxvk_graph *g, const rlxvk_graph *other);
/* Also holds every graph that `from` holds. Call it before nodes of `from` are copied. */
rlxvk_status graph_keep_all(rlxvk_graph *g, const rlxvk_graph *from);

/* ---- Names of inputs and params ---- */

/* The input or param, as `op` says, with this name; NODE_NONE if there is none. */
uint32_t graph_find(const rlxvk_graph *g, uint16_t op, const char *name);
/* Whether the node is an input or a param, which is set by its name. */
bool graph_is_named(const node *n);
/* Adds the last node to the index, or all nodes after they were renumbered. */
rlxvk_status graph_note_name(rlxvk_graph *g, uint32_t id);
rlxvk_status graph_index_names(rlxvk_graph *g);

static inline const node *graph_node(const rlxvk_graph *g, uint32_t id)
{
    return &g->nodes.items[id];
}
static inline rlxvk_tensor tensor_of(const rlxvk_graph *g, uint32_t id)
{
    return id == NODE_NONE ? RLXVK_NONE : (rlxvk_tensor){.id = id + 1, .graph = g->serial};
}

#endif
