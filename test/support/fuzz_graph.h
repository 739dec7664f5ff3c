/*
 * Graphs out of a fuzz target's bytes: a sequence of public builder calls over every op, with
 * operands that mostly fit and attributes from sensible to absurd. The graph's contract is checked
 * after every call. The compiler chooses in which order the arguments of a call take their bytes:
 * an input that failed is to be rerun by a program of the same compiler.
 */
#ifndef RLXVK_FUZZ_GRAPH_H
#define RLXVK_FUZZ_GRAPH_H

#include "support/fuzz_input.h"

#include <rlxvk_ops.h>

enum { FUZZ_POOL = 64, FUZZ_TAKEN = 8 };

typedef struct fuzz_maker {
    rlxvk_graph *g;
    fuzz_input *in;
    rlxvk_tensor pool[FUZZ_POOL];   /* what calls can take: leaves and results so far */
    rlxvk_tensor taken[FUZZ_TAKEN]; /* the last operands: later calls often take them again */
    uint32_t count, leaves, takes;
    uint32_t depth;      /* of bodies: no body inside a body */
    uint32_t numbers;    /* asked for: dims, axes and all else that is a number */
    uint32_t extreme_at; /* counted from 1, the one that is `extreme` instead; 0: none */
    uint32_t zero_at;    /* likewise, the one that is 0 */
    int64_t extreme;
} fuzz_maker;

/* One builder, by the name of its function without the prefix, in the member of its signature. */
typedef struct fuzz_builder {
    const char *name;
    rlxvk_tensor (*unary)(rlxvk_graph *, rlxvk_tensor);
    rlxvk_tensor (*binary)(rlxvk_graph *, rlxvk_tensor, rlxvk_tensor);
    rlxvk_tensor (*ternary)(rlxvk_graph *, rlxvk_tensor, rlxvk_tensor, rlxvk_tensor);
    rlxvk_tensor (*reduce)(rlxvk_graph *, rlxvk_tensor, const int32_t *, size_t, bool);
    rlxvk_tensor (*along)(rlxvk_graph *, rlxvk_tensor, int32_t);
    rlxvk_tensor (*along_with)(rlxvk_graph *, rlxvk_tensor, int32_t, bool);
    rlxvk_tensor (*pool)(rlxvk_graph *, rlxvk_tensor, const rlxvk_pool_options *);
    rlxvk_tensor (*call)(fuzz_maker *);
} fuzz_builder;

extern const fuzz_builder fuzz_builders[];
extern const size_t fuzz_builder_count;

/* How often each builder was called and gave a tensor; as many as there are builders. */
typedef struct fuzz_count {
    uint64_t calls, results;
} fuzz_count;
extern fuzz_count fuzz_counts[];

/* Registers the custom ops that the builders name. */
void fuzz_register(void);

/* Appends up to `calls` calls, or patterns of several. A call that fails is checked to leave a
 * sticky error and nothing else; then the error is taken back, so that the rest of the bytes is not
 * wasted. */
void fuzz_build(fuzz_maker *m, uint32_t calls);
/* One call of this builder, of which nothing is checked and nothing kept. */
rlxvk_tensor fuzz_call(fuzz_maker *m, const fuzz_builder *b);
/* Marks outputs and names tensors as the bits have it; the last tensor is always an output. */
void fuzz_finish(fuzz_maker *m, uint64_t bits);

/* ---- What the builders are called with ---- */

/* Adds a result to the pool, if it is one. */
void fuzz_keep(fuzz_maker *m, rlxvk_tensor t);
/* Mostly 0 to 4, seldom anything. */
int64_t fuzz_number(fuzz_maker *m);
/* A dim: mostly 1 to 4, at times up to 40, 0, or absurd. */
int64_t fuzz_dim(fuzz_maker *m);
/* From `low` on, `count` numbers. */
int64_t fuzz_from(fuzz_maker *m, int64_t low, uint32_t count);
/* Mostly below `rank`, also counted from the end. */
int32_t fuzz_axis(fuzz_maker *m, uint32_t rank);
float fuzz_real(fuzz_maker *m);
rlxvk_shape fuzz_shape(fuzz_maker *m, uint32_t rank);
/* An input, param or constant. */
rlxvk_tensor fuzz_leaf(fuzz_maker *m, rlxvk_dtype dtype, rlxvk_shape shape);
/* Anything there is, one of the last operands often; seldom none, or no tensor of the graph. */
rlxvk_tensor fuzz_any(fuzz_maker *m);
/* One of this dtype and shape, or of this rank: there already, or a leaf; seldom another. */
rlxvk_tensor fuzz_fit(fuzz_maker *m, rlxvk_dtype dtype, rlxvk_shape shape);
rlxvk_tensor fuzz_ranked(fuzz_maker *m, rlxvk_dtype dtype, uint32_t rank);
/* fuzz_fit of F32, or none half the time. */
rlxvk_tensor fuzz_maybe(fuzz_maker *m, rlxvk_shape shape);

#endif
