/*
 * How the rows of a bucket go through a graph (rlxvk_set_active_extent). A graph is compiled for
 * inputs with a fixed number of rows, the bucket. Later only the first rows may be active. A family
 * says which elements of a node's result depend only on active rows.
 *
 * One number describes a tensor: its span, the elements in which a whole bucket lies together.
 * Element e is active if e % span is in the active part of the span. Axes outside the rows repeat
 * the span. So a view of the same elements has the same span, whatever its shape. If the span is
 * the whole tensor, the active elements are the first ones.
 */
#ifndef RLXVK_BUCKET_H
#define RLXVK_BUCKET_H

#include "op/op.h"

#define BUCKET_FIXED 0          /* it does not depend on any row */
#define BUCKET_NONE  UINT64_MAX /* its rows cannot be told apart */

/* An input with rows of the bucket. */
struct bucket_input {
    uint32_t node;
    int32_t axis; /* not negative */
    bool indices; /* instead: its values are indices of active rows */
};

struct bucket_call {
    const rlxvk_graph *graph;
    const node *node;
    const uint64_t *spans;     /* of the nodes before; none is BUCKET_NONE */
    const bool *indices;       /* of inputs: their values are indices of active rows */
    uint64_t unit;             /* every bucketed axis has a multiple of it. If it is 1, all of a
                                * result is active or nothing is; families see 1 only for nodes that
                                * write in place */
    rlxvk_precision precision; /* for matrix products */
    const char *why;           /* set with BUCKET_NONE: the reason, "it ..." */
};

/* A walk through the nodes of a graph, in order. */
typedef struct bucket_walk {
    const rlxvk_graph *graph;
    uint64_t *spans; /* per node */
    bool *indices;   /* per node */
    uint64_t unit;   /* 0: no input has rows */
    rlxvk_precision precision;
} bucket_walk;

/* Begins at these inputs. If one has rows along several axes, `why` says so; it may be NULL. End
 * the walk also if this fails. */
rlxvk_status bucket_walk_begin(const rlxvk_graph *g, const bucket_input *inputs, size_t count,
                               rlxvk_precision precision, text *why, bucket_walk *out);
/* Sets the span of the next node, by its family's rule. Returns the call that was made to it. */
bucket_call bucket_walk_node(bucket_walk *w, uint32_t id, bool on_host);
void bucket_walk_end(bucket_walk *w);

/* Appends "<node>: <reason>" if the text is empty, so it keeps the first reason. */
void bucket_explain(const rlxvk_graph *g, uint32_t id, const char *why, text *out);

/* Sets the reason and returns BUCKET_NONE. */
uint64_t bucket_refuse(bucket_call *c, const char *why);
/* The span of operand i. */
static inline uint64_t bucket_span(const bucket_call *c, uint32_t i)
{
    return c->spans[c->node->inputs[i]];
}
/* The axis that has the rows of a tensor of this shape and span. -1 if it has no rows, or if they
 * are not along one axis, for example because a view spread them over several. */
int32_t bucket_axis_of(const rlxvk_shape *s, uint64_t span, uint64_t unit);
/* The same for operand i. */
int32_t bucket_axis(const bucket_call *c, uint32_t i);
/* The place of rows: along an axis, `count` of them in a span. They are the whole axis, or the axis
 * repeats spans, for example if a view merged a batch [B, S] into one axis. */
typedef struct row_place {
    int32_t axis; /* -1: they are not along one axis */
    int64_t dim;  /* the size of the axis */
    uint64_t count;
} row_place;

row_place bucket_place(const bucket_call *c, uint32_t i);
/* The span of the result if it has these rows along this axis. BUCKET_NONE if the axis does not fit
 * them. */
uint64_t bucket_at(bucket_call *c, row_place place, int64_t axis);
/* The span of the result if its rows are along this axis. BUCKET_NONE if it has no such axis of
 * whole buckets. */
uint64_t bucket_along(bucket_call *c, int64_t axis);
/* Whether any operand outside the mask depends on the rows. */
bool bucket_others(const bucket_call *c, uint32_t mask);

/* For `bucket` of a family: the elements of operand 0 one to one, in their order. No other operand
 * may depend on the rows. */
uint64_t bucket_same(bucket_call *c);
/* The same for families that read only operand 0. */
uint64_t bucket_first(bucket_call *c);
/* All operands element by element, broadcast as in numpy. An operand without bucket rows may still
 * differ from row to row, because it does so in a full run, too. */
uint64_t bucket_broadcast(bucket_call *c);

/* Axes stay where they are, and the op combines elements only along the axes of the mask `used`.
 * Only operand 0 and the operands of the mask `like`, which have its shape, may depend on the rows.
 */
uint64_t bucket_rows(bucket_call *c, uint32_t used, uint32_t like);
/* The same for a result that has several tensors of operand 0's shape, one behind the other. */
uint64_t bucket_parts(bucket_call *c, uint32_t used, uint32_t like);
/* The axes of `used` are reduced: to 1 if keep_dim is true, else they are removed. */
uint64_t bucket_reduced(bucket_call *c, uint32_t used, bool keep_dim);
/* bucket_rows for families that combine elements along all axes but the first (the batch), or only
 * along the last. */
uint64_t bucket_batch(bucket_call *c);
uint64_t bucket_vectors(bucket_call *c);

#endif
