/*
 * How the rows of a bucket go through a graph (rlxvk_set_active_extent). A graph is compiled for
 * inputs of so many rows, the bucket, of which later only the first matter; a family says what of a
 * node's result those rows alone decide.
 *
 * One number describes a tensor: its span, the elements of a whole bucket that lie together.
 * Element e is active where e % span is in the active part of the span; what varies slower than the
 * rows repeats spans. So a view of the same elements has the same span, whatever its shape. Where
 * span is all of a tensor, its active elements are the first ones.
 */
#ifndef RLXVK_BUCKET_H
#define RLXVK_BUCKET_H

#include "op/op.h"

#define BUCKET_FIXED 0          /* depends on no row */
#define BUCKET_NONE  UINT64_MAX /* its rows cannot be told apart */

/* An input with rows of the bucket. */
struct bucket_input {
    uint32_t node;
    int32_t axis; /* not negative */
    bool indices; /* instead: its values are numbers of active rows */
};

struct bucket_call {
    const rlxvk_graph *graph;
    const node *node;
    const uint64_t *spans;     /* of the nodes before, none of them BUCKET_NONE */
    const bool *indices;       /* of inputs: their values are numbers of active rows */
    uint64_t unit;             /* rows of a bucketed axis are a multiple of it; more than 1, but
                                * where the node writes in place: then all of it matters, or
                                * nothing */
    rlxvk_precision precision; /* of matrix products */
    const char *why;           /* set with BUCKET_NONE: "it ..." */
};

/* Sets the spans and indices of these inputs, and returns the unit: 0 where no input has rows.
 * *out_wrong: NODE_NONE, or an input with rows along several axes. */
uint64_t bucket_begin(const rlxvk_graph *g, const bucket_input *inputs, size_t count,
                      uint64_t *spans, bool *indices, uint32_t *out_wrong);
/* The span of the node that the call is of, by its family's rule. */
uint64_t bucket_of_node(bucket_call *c, bool on_host);

/* BUCKET_NONE, and why. */
uint64_t bucket_refuse(bucket_call *c, const char *why);
/* Of operand i. */
static inline uint64_t bucket_span(const bucket_call *c, uint32_t i)
{
    return c->spans[c->node->inputs[i]];
}
/* The axis along which the rows of a tensor of this shape and span lie; -1: it is fixed, or along
 * no one of them, as where a view spread them over several. */
int32_t bucket_axis_of(const rlxvk_shape *s, uint64_t span, uint64_t unit);
/* The axis of operand i along which its rows lie; -1: it is fixed, or along no one of them. */
int32_t bucket_axis(const bucket_call *c, uint32_t i);
/* Where rows lie: along an axis, `count` of them in a span. They are all of the axis, or the axis
 * repeats spans, for example if a view merged a batch [B, S] into one axis. */
typedef struct row_place {
    int32_t axis; /* -1: along no one axis */
    int64_t dim;  /* of the axis */
    uint64_t count;
} row_place;

row_place bucket_place(const bucket_call *c, uint32_t i);
/* The span of the result if it has these rows along this axis; BUCKET_NONE if the axis is another.
 */
uint64_t bucket_at(bucket_call *c, row_place place, int64_t axis);
/* The span of the result where its rows lie along this axis; BUCKET_NONE where it has none such. */
uint64_t bucket_along(bucket_call *c, int64_t axis);
/* Whether an operand other than those of the mask is not fixed. */
bool bucket_others(const bucket_call *c, uint32_t mask);

/* As `bucket` of a family: the elements of operand 0 one to one, in their order. */
uint64_t bucket_same(bucket_call *c);
/* The same of a family that reads only operand 0. */
uint64_t bucket_first(bucket_call *c);
/* All operands element by element, numpy broadcast. A fixed one may differ from row to row: in the
 * full run it does so, too. */
uint64_t bucket_broadcast(bucket_call *c);

/* Axes stay where they are, and elements meet along those of the mask `used` alone. Operand 0 may
 * be bucketed, and those of the mask `like`, which have its shape. */
uint64_t bucket_rows(bucket_call *c, uint32_t used, uint32_t like);
/* The same of a result that has several tensors of operand 0's shape, one behind the other. */
uint64_t bucket_parts(bucket_call *c, uint32_t used, uint32_t like);
/* The axes of `used` are reduced to 1 where they are kept, or are gone. */
uint64_t bucket_reduced(bucket_call *c, uint32_t used, bool keep_dim);
/* The axes of operand 0 but the first (batch), or the last, as `used`. */
uint64_t bucket_batch(bucket_call *c);
uint64_t bucket_vectors(bucket_call *c);

#endif
