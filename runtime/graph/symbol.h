/*
 * Symbolic dims. A dim that is no number is a negative code: a symbol's own, or that of a dim made
 * of others in one graph. Nothing that computes with sizes knows of codes: a graph with symbols has
 * every node at a few examples, sizes for all symbols, and says from these what is symbolic.
 *
 * Invariant: all examples have the same nodes, the first being the graph itself; a made dim stands
 * behind those it is made of; values of made dims are those at the examples in force.
 */
#ifndef RLXVK_SYMBOL_H
#define RLXVK_SYMBOL_H

#include <rlxvk_symbols.h>
#include "graph/graph.h"

#define SYMBOL_EXAMPLES 3

enum dim_form { DIM_SUM, DIM_PRODUCT, DIM_QUOTIENT, DIM_DIFFERENCE, DIM_UNKNOWN };

/* left + right, left * right, floor(left / right) of numbers and codes; or a dim of a node, left,
 * at axis right, of which nothing else is known. */
typedef struct made_dim {
    uint8_t form;
    int64_t left, right;
    int64_t values[SYMBOL_EXAMPLES];
} made_dim;

/* A node as its builder call gave it. */
typedef struct symbol_node {
    const void *attributes; /* not normalized, with codes */
    rlxvk_shape shape;      /* a leaf's as given; others' as recognized */
    bool told;              /* a caller knows the shape: it must hold at every binding */
} symbol_node;

struct symbol_table {
    VECTOR(rlxvk_binding) sizes[SYMBOL_EXAMPLES]; /* the symbols in use, in one order */
    VECTOR(made_dim) made;
    VECTOR(symbol_node) nodes;
    rlxvk_graph *examples[SYMBOL_EXAMPLES]; /* the first stays NULL */
};

/* Whether a dim is a code; that of a symbol, whose id it then gives. */
bool symbol_is_code(int64_t dim);
bool symbol_is_plain(int64_t dim, uint32_t *out_id);
bool symbol_in_shape(const rlxvk_shape *s);

/* The graph's table, made when it has none. */
rlxvk_status symbol_begin(rlxvk_graph *g);
void symbol_end(symbol_table *t);
/* The shape of a node, with codes. */
static inline rlxvk_shape symbol_shape(const rlxvk_graph *g, uint32_t id)
{
    return g->symbols && id < g->symbols->nodes.count ? g->symbols->nodes.items[id].shape
                                                      : graph_node(g, id)->shape;
}
/* The same, which from now on is known to a caller. */
rlxvk_shape symbol_tell(const rlxvk_graph *g, uint32_t id);
/* Takes a symbol into use, with a size at each example; one in use already stays as it is. */
rlxvk_status symbol_use(symbol_table *t, uint32_t id, int64_t size);
/* The symbols of the dims that have none yet. */
rlxvk_status symbol_use_all(rlxvk_graph *g, const int64_t *dims, uint32_t count);
/* Whether it is in use, and which. */
bool symbol_find(const symbol_table *t, uint32_t id, size_t *out_index);
/* At one example ROWS is BATCH * SEQ where all three are in use. */
void symbol_relate(symbol_table *t, uint32_t example);
/* Computes the values of the made dims anew. */
void symbol_refresh(const rlxvk_graph *g);

/* The made dim that a code stands for; NULL: it is a number, a symbol, or of no dim of the table.
 */
const made_dim *symbol_made_dim(const symbol_table *t, int64_t dim);
/* What a form gives; false where it overflows or divides by 0. */
bool symbol_combine(uint8_t form, int64_t left, int64_t right, int64_t *out);
/* The code of made dim `index`. */
int64_t symbol_made(size_t index);
/* The value of a dim at an example. */
int64_t symbol_value(const symbol_table *t, uint32_t example, int64_t dim);
/* The value of a dim for these sizes. E_UNBOUND_SYMBOL where a symbol has none, E_TOO_LARGE. */
rlxvk_status symbol_bind(const symbol_table *t, const rlxvk_binding *sizes, size_t count,
                         int64_t dim, int64_t *out);
/* Whether all symbols of a dim have a size. */
bool symbol_is_bound(const symbol_table *t, const rlxvk_binding *sizes, size_t count, int64_t dim);
/* The size bound to a symbol; -1: none. */
int64_t symbol_size(const rlxvk_binding *sizes, size_t count, uint32_t id);

/* E_SHAPE unless every code of `dims` may be used as a size in this graph. */
rlxvk_status symbol_check(const symbol_table *t, const char *row, const int64_t *dims,
                          uint32_t count);

/* "BATCHx(SEQ+PAST_SEQ)x64", or "scalar". Returns `buffer`. */
const char *symbol_shape_text(const rlxvk_graph *g, const rlxvk_shape *s, char buffer[SHAPE_TEXT]);
/* " BATCH=4, SEQ=16". */
void symbol_sizes_text(const rlxvk_binding *sizes, size_t count, text *out);
/* "SEQ", "S17". */
void symbol_name(uint32_t id, text *out);

/* ---- Dims of a graph: dim.c, recognize.c ---- */

/* The code of a made dim, which is found where there is one alike; numbers are computed. The
 * graph's sticky error on overflow or for what is no dim of the graph. */
int64_t dim_make(rlxvk_graph *g, enum dim_form form, int64_t left, int64_t right);
/* What a dim of the last node is, by its values at the examples: a number, a dim of an operand or
 * of the table, one made of those, or unknown (recognize.c). */
int64_t recognize_dim(rlxvk_graph *g, uint32_t id, uint32_t axis);

/* The product of the dims of a shape that the graph knows: a number or a code. */
int64_t dim_elements(rlxvk_graph *g, const rlxvk_shape *s);

#endif
