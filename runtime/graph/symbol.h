/*
 * Symbolic dims. If a dim is not a number, it is a negative code. The code stands for a symbol, or
 * for a dim made of other dims in one graph. Ops never see codes. A graph with symbols has every
 * node at three examples, with a size for each symbol. It finds symbolic dims by comparing their
 * values at points: sets of sizes, of which the examples are the first. The whole graph fits the
 * examples. Single nodes are inferred at the other points, where they fit them.
 *
 * Invariant: all examples have the same nodes, and the first example is the graph itself. A made
 * dim comes after the dims it is made of. Values of made dims are those at the current examples.
 */
#ifndef RLXVK_SYMBOL_H
#define RLXVK_SYMBOL_H

#include <rlxvk_symbols.h>
#include "graph/graph.h"

#define SYMBOL_EXAMPLES 3
#define SYMBOL_POINTS   11

enum dim_form { DIM_SUM, DIM_PRODUCT, DIM_QUOTIENT, DIM_DIFFERENCE, DIM_UNKNOWN };

/* A dim made of others: left + right, left * right, floor(left / right) or left - right, of numbers
 * and codes. DIM_UNKNOWN is the dim of node `left` at axis `right`, of which nothing else is
 * known. */
typedef struct made_dim {
    uint8_t form;
    int64_t left, right;
    int64_t values[SYMBOL_POINTS];
} made_dim;

/* A node as its builder call gave it. */
typedef struct symbol_node {
    const void *attributes; /* not normalized, with codes */
    rlxvk_shape shape;      /* for a leaf as given, for others as recognized */
    bool told;              /* a caller knows the shape, so it must hold at every binding */
} symbol_node;

struct symbol_table {
    VECTOR(rlxvk_binding)
    sizes[SYMBOL_POINTS]; /* the symbols in use, in one order */
    VECTOR(made_dim) made;
    VECTOR(symbol_node) nodes;
    rlxvk_graph *examples[SYMBOL_EXAMPLES]; /* the first stays NULL */
};

/* Whether a dim is a code; whether it is the code of a symbol, whose id is stored. */
bool symbol_is_code(int64_t dim);
bool symbol_is_plain(int64_t dim, uint32_t *out_id);
bool symbol_in_shape(const rlxvk_shape *s);

/* Makes the graph's table if it has none. */
rlxvk_status symbol_begin(rlxvk_graph *g);
/* Frees the table, but not the examples. Takes NULL. */
void symbol_end(symbol_table *t);
/* The shape of a node, with codes. */
static inline rlxvk_shape symbol_shape(const rlxvk_graph *g, uint32_t id)
{
    return g->symbols && id < g->symbols->nodes.count ? g->symbols->nodes.items[id].shape
                                                      : graph_node(g, id)->shape;
}
/* The same. From now on a caller knows this shape. */
rlxvk_shape symbol_tell(const rlxvk_graph *g, uint32_t id);
/* Begins to use a symbol, with a size at each example. If it is in use already, it stays as it
 * is. */
rlxvk_status symbol_use(symbol_table *t, uint32_t id, int64_t size);
/* Begins to use all symbols of these dims. */
rlxvk_status symbol_use_all(rlxvk_graph *g, const int64_t *dims, uint32_t count);
/* Whether a symbol is in use, and at which index. */
bool symbol_find(const symbol_table *t, uint32_t id, size_t *out_index);
/* Sets ROWS to BATCH * SEQ at one example, if all three are in use. */
void symbol_relate(symbol_table *t, uint32_t example);
/* Computes the sizes at points from the examples, and the values of the made dims, again. */
void symbol_refresh(const rlxvk_graph *g);

/* The made dim of a code. NULL if `dim` is a number or a symbol, or is not in the table. */
const made_dim *symbol_made_dim(const symbol_table *t, int64_t dim);
/* Computes a form; false if it overflows or divides by 0. */
bool symbol_combine(uint8_t form, int64_t left, int64_t right, int64_t *out);
/* The code of made dim `index`. */
int64_t symbol_made(size_t index);
/* The value of a dim at a point. If it is not known there, it is too large for any shape. */
int64_t symbol_value(const symbol_table *t, uint32_t point, int64_t dim);
/* The value of a dim for these sizes. E_UNBOUND_SYMBOL if a symbol has none; E_TOO_LARGE. */
rlxvk_status symbol_bind(const symbol_table *t, const rlxvk_binding *sizes, size_t count,
                         int64_t dim, int64_t *out);
/* Whether all symbols of a dim have a size. */
bool symbol_is_bound(const symbol_table *t, const rlxvk_binding *sizes, size_t count, int64_t dim);
/* The size bound to a symbol; -1 if there is none. */
int64_t symbol_size(const rlxvk_binding *sizes, size_t count, uint32_t id);

/* Checks whether the codes of `dims` may be used as sizes in this graph:
 *   E_SHAPE         a code belongs to another graph
 *   E_UNSUPPORTED   it is not known how a dim depends on the symbols */
rlxvk_status symbol_check(const symbol_table *t, const char *row, const int64_t *dims,
                          uint32_t count);

/* "BATCHx(SEQ+PAST_SEQ)x64", or "scalar". Returns `buffer`. */
const char *symbol_shape_text(const rlxvk_graph *g, const rlxvk_shape *s, char buffer[SHAPE_TEXT]);
/* "BATCH=4, SEQ=16". */
void symbol_sizes_text(const rlxvk_binding *sizes, size_t count, text *out);
/* "SEQ", "S17". */
void symbol_name(uint32_t id, text *out);

/* ---- Dims of a graph: dim.c, recognize.c ---- */

/* The code of a made dim. If an equal one exists, it is reused; numbers are computed. On overflow,
 * or if a dim is not one of the graph, the error sticks to the graph. */
int64_t dim_make(rlxvk_graph *g, enum dim_form form, int64_t left, int64_t right);
/* What is known of one dim of a node's shape. */
typedef struct observed_dim {
    uint32_t id, axis;
    int64_t values[SYMBOL_POINTS]; /* -1 at points that the node does not fit */
    /* Its value at the first example, if all dims of operands that are `dim` were `value`; -1 if
     * that does not fit. */
    int64_t (*ask)(rlxvk_graph *g, const struct observed_dim *o, int64_t dim, int64_t value);
} observed_dim;

/* Finds the symbolic form of an observed dim (recognize.c). It is a number, a dim of an operand or
 * of the table, a dim made of those, or unknown. */
int64_t recognize_dim(rlxvk_graph *g, const observed_dim *o);

/* The product of the dims of a shape of this graph: a number or a code. */
int64_t dim_elements(rlxvk_graph *g, const rlxvk_shape *s);

#endif
