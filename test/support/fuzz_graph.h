/*
 * Builds a graph from the bytes of a fuzz input: a sequence of public builder calls over every op.
 * Operands mostly fit, and attributes range from sensible to absurd. The graph's contract is
 * checked after every call.
 *
 * C does not fix the order in which the arguments of a call are evaluated, and each may take bytes.
 * So rerun an input that failed with a program of the same compiler.
 */
#ifndef RLXVK_FUZZ_GRAPH_H
#define RLXVK_FUZZ_GRAPH_H

#include "support/fuzz_input.h"

#include <rlxvk_ops.h>

enum { FUZZ_POOL = 64, FUZZ_TAKEN = 8 };

typedef struct fuzz_maker {
    rlxvk_graph *g;
    fuzz_input *in;
    rlxvk_tensor pool[FUZZ_POOL];   /* tensors that calls can take: leaves and results so far */
    rlxvk_tensor taken[FUZZ_TAKEN]; /* the last operands; later calls often take them again */
    uint32_t count, leaves, takes;
    uint32_t depth;      /* nesting of bodies; a body never contains another */
    uint32_t numbers;    /* how many numbers were chosen so far: dims, axes and attributes */
    uint32_t extreme_at; /* replace the number with this index (from 1) by `extreme`; 0: none */
    uint32_t zero_at;    /* replace the number with this index by 0; 0: none */
    int64_t extreme;
} fuzz_maker;

/* One builder: its name without the prefix, and the function in the union's member for its
 * signature. */
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

/* How often each builder was called and how often it gave a tensor; one entry for each builder. */
typedef struct fuzz_count {
    uint64_t calls, results;
} fuzz_count;
extern fuzz_count fuzz_counts[];

/* Registers the custom ops that the builders use. */
void fuzz_register(void);

/* Appends up to `calls` calls or patterns of several calls. If a call fails, checks that it left a
 * sticky error and nothing else. Then it clears the error, because the rest of the bytes would
 * otherwise do nothing. */
void fuzz_build(fuzz_maker *m, uint32_t calls);
/* One call of this builder. Nothing is checked, and the result is not kept. */
rlxvk_tensor fuzz_call(fuzz_maker *m, const fuzz_builder *b);
/* Marks outputs and names tensors as the bits say. The last tensor is always an output. */
void fuzz_finish(fuzz_maker *m, uint64_t bits);

/* ---- Helpers that choose operands and attributes ---- */

/* Adds a tensor to the pool, unless it is RLXVK_NONE. */
void fuzz_keep(fuzz_maker *m, rlxvk_tensor t);
/* A number, mostly 0 to 4, seldom anything. */
int64_t fuzz_number(fuzz_maker *m);
/* Half of the time, gives a pool's options their struct_size and later members. */
void fuzz_later_windows(fuzz_maker *m, rlxvk_pool_options *o, uint32_t spatial);
/* A dim: mostly 1 to 4, sometimes up to 40, 0 or absurd. */
int64_t fuzz_dim(fuzz_maker *m);
/* One of `count` numbers from `low` on. */
int64_t fuzz_from(fuzz_maker *m, int64_t low, uint32_t count);
/* An axis, mostly below `rank`; it may also count from the end. */
int32_t fuzz_axis(fuzz_maker *m, uint32_t rank);
float fuzz_real(fuzz_maker *m);
rlxvk_shape fuzz_shape(fuzz_maker *m, uint32_t rank);
/* A new input, param or constant. */
rlxvk_tensor fuzz_leaf(fuzz_maker *m, rlxvk_dtype dtype, rlxvk_shape shape);
/* Any tensor, often one of the last operands. Seldom none, or one that is not in the graph. */
rlxvk_tensor fuzz_any(fuzz_maker *m);
/* A tensor of this dtype and shape (fuzz_ranked: this rank): an existing one or a new leaf. Seldom
 * a tensor that does not fit. */
rlxvk_tensor fuzz_fit(fuzz_maker *m, rlxvk_dtype dtype, rlxvk_shape shape);
rlxvk_tensor fuzz_ranked(fuzz_maker *m, rlxvk_dtype dtype, uint32_t rank);
/* An F32 tensor by fuzz_fit, or none half of the time. */
rlxvk_tensor fuzz_maybe(fuzz_maker *m, rlxvk_shape shape);

#endif
