/*
 * The graph: an append-only list of nodes and an ordered list of outputs.
 *
 * Invariant: every operand id is smaller than its reader's id, so insertion order is execution
 * order. Nodes, attributes and names live in the graph's arena and die with it. Node id i is the
 * public tensor id i + 1.
 */
#ifndef RLXVK_GRAPH_H
#define RLXVK_GRAPH_H

#include "base/base.h"

#define NODE_NONE UINT32_MAX

typedef struct node {
    uint16_t op; /* enum op_kind, op/op.h */
    uint8_t dtype;
    uint32_t input_count;
    const uint32_t
        *inputs; /* node ids; NODE_NONE never stands here: optional operands are left out */
    rlxvk_shape shape;
    const void *attributes; /* the family's struct; NULL when it has none */
    size_t attribute_size;
    const char
        *name; /* Input and Param: the name they are set by; others: debug name; may be NULL */
    const void *data; /* Constant: host bytes, never NULL; others: NULL */
    size_t data_size;
    bool prepare; /* made by a rewrite to be computed when the params it reads are set, if it reads
                   * nothing else (plan/prepare.c) */
    bool begins_as_zeros; /* Param: no need to set it */
    bool joins_params; /* its operands are params that lie in its memory; nobody else reads them */
    /* Of a node that a rewrite made or kept: the node that it stands for in the graph as it was
     * built, whose number, less 1, and op these are. 0: the graph is as it was built. */
    uint32_t origin;
    uint16_t origin_op;
    uint32_t gradient_of; /* 1 + the number of the node whose gradient needs it; 0: none does */
    /* While it is being built: the graph whose next node it would be, for errors. Then NULL. */
    const struct rlxvk_graph *building;
} node;

/* Ids of inputs and params by op and name; NODE_NONE: a free place. */
typedef struct name_index {
    uint32_t *ids;
    size_t count, capacity; /* a power of two, or 0 */
} name_index;

/* A graph that attributes of nodes point to; held by every graph with such nodes (graph_keep). */
typedef struct kept_graph kept_graph;
/* What a graph with symbolic dims knows of them (symbol.h). */
typedef struct symbol_table symbol_table;

struct rlxvk_graph {
    uint32_t serial;     /* what its tensors carry; never 0, never that of another graph */
    uint32_t bound_from; /* of the graph of which this one is a binding, node by node; 0: none */
    arena memory;
    VECTOR(node) nodes;
    name_index names;
    uint32_t origin, gradient_of; /* of nodes that are appended from now on; see node */
    uint16_t origin_op;
    VECTOR(uint32_t) outputs;
    VECTOR(uint32_t) checkpoints; /* nodes, ascending: rlxvk_checkpoint */
    uint64_t recomputed_bytes;    /* of values that gradients compute again */
    VECTOR(kept_graph *) kept;
    symbol_table *symbols; /* NULL: all dims are numbers */
    uint64_t
        instances; /* bodies inlined so far, those inside them included: numbers random streams */
    uint64_t inlined;      /* nodes that those bodies had: bounded, since nesting multiplies them */
    uint64_t unroll_nodes; /* rlxvk_graph_set_unroll_limit; 0: the default */
    uint64_t replayed; /* random ops that the steps of loops stand for, beyond those in the list */
    uint64_t random_ops; /* among the first random_counted nodes (op/random/random_state.c) */
    uint32_t random_counted;
    rlxvk_status status; /* sticky */
    char error[512];
};

/* ---- Shapes ---- */

/* Product of the dims, not negative; 0 with a zero dim. False when it does not fit 2^31 - 1
 * elements, or when the dims beside a zero do not multiply to an int64_t, as strides must. */
bool shape_numel_checked(const rlxvk_shape *s, uint64_t *out);
uint64_t shape_numel(const rlxvk_shape *s); /* of a shape already verified */
bool shape_equal(const rlxvk_shape *a, const rlxvk_shape *b);
/* Product of dims[first, last). */
uint64_t shape_product(const rlxvk_shape *s, uint32_t first, uint32_t last);
/* Row-major strides in elements. */
void shape_strides(const rlxvk_shape *s, int64_t strides[RLXVK_MAX_RANK]);
/* numpy broadcast of two shapes; false when they do not agree. */
bool shape_broadcast(const rlxvk_shape *a, const rlxvk_shape *b, rlxvk_shape *out);
/* Strides of `s` read at coordinates of `target` (right-aligned; 0 on broadcast axes). */
void shape_broadcast_strides(const rlxvk_shape *s, const rlxvk_shape *target,
                             int64_t strides[RLXVK_MAX_RANK]);
/* "2x8x64", "scalar"; symbols by their names. Returns `buffer`. */
#define SHAPE_TEXT 128
const char *shape_text(const rlxvk_shape *s, char buffer[SHAPE_TEXT]);

/* ---- Storage: how a dtype is held in its slot (core data model) ---- */

typedef enum storage { STORAGE_WORD, STORAGE_PAIR, STORAGE_RAW, STORAGE_HALF } storage;

uint32_t dtype_storage_element_bytes(storage s);
uint64_t dtype_storage_bytes(storage s, uint64_t numel); /* unaligned; at least 4 */
rlxvk_dtype dtype_promote(rlxvk_dtype a, rlxvk_dtype b);
bool dtype_is_integer(rlxvk_dtype t);    /* I8..I64, U8, U32; not BOOL */
bool dtype_is_continuous(rlxvk_dtype t); /* stands for real or complex numbers */

/* Host bytes of `from` -> words of a WORD or PAIR slot, and back (core 1.2, 1.3). `count` elements.
 */
void dtype_widen(rlxvk_dtype from, const void *bytes, uint64_t count, float *words);
void dtype_narrow(rlxvk_dtype to, const float *words, uint64_t count, void *bytes);
/* Rounds words to what a tensor of F16 or BF16 can hold; other dtypes are left alone. */
void dtype_round(rlxvk_dtype to, float *words, uint64_t count);

/* ---- Building ---- */

/* Makes `status` and the thread's last error the graph's sticky error, unless it has one; a NULL
 * graph keeps nothing. Returns `status`. */
rlxvk_status graph_fail(rlxvk_graph *g, rlxvk_status status);
/* Whether a builder may go on: not on a NULL graph (E_NULL is the thread's last error then), nor
 * after the graph's sticky error. */
bool graph_ready(const rlxvk_graph *g, const char *call);
/* Whether `t` is a tensor of the graph, and if not, why: E_ARITY for RLXVK_NONE, E_DANGLING for one
 * of another graph. "<call>: <role> <index> is ...". */
rlxvk_status graph_take(const rlxvk_graph *g, rlxvk_tensor t, const char *call, const char *role,
                        size_t index);

/* Appends a node that has been checked already; everything pointed to is copied. NODE_NONE after a
 * failure, which sticks. */
uint32_t graph_append(rlxvk_graph *g, const node *n);
/* A copy of the graph's nodes and outputs that owns its memory (constants included). */
rlxvk_status graph_clone(const rlxvk_graph *g, rlxvk_graph **out);

/* A copy of `other` that lives as long as a graph that holds it; NULL after a failure, which
 * sticks.
 */
const rlxvk_graph *graph_keep(rlxvk_graph *g, const rlxvk_graph *other);
/* Holds what `from` holds, too: before nodes of it are copied. */
rlxvk_status graph_keep_all(rlxvk_graph *g, const rlxvk_graph *from);

/* ---- Names of inputs and params ---- */

/* The input or param, as `op` says, with this name; NODE_NONE when there is none. */
uint32_t graph_find(const rlxvk_graph *g, uint16_t op, const char *name);
/* Whether it is an input or param, whose name is its own. */
bool graph_is_named(const node *n);
/* Takes the last node into the index; all nodes, after they were numbered anew. */
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
