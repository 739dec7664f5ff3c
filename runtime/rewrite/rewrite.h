/*
 * Rewriting: graph -> graph, value-preserving within each op's tolerance. A rewritten graph shares
 * its arena with the graph it was made from: names, constants and attributes are not copied.
 */
#ifndef RLXVK_REWRITE_H
#define RLXVK_REWRITE_H

#include "graph/pair.h"
#include "op/op.h"

typedef struct rewrite_options {
    bool fusion;                   /* the pattern fusions; legalizing passes always run */
    bool regions;                  /* elementwise regions; needs the profile */
    const device_profile *profile; /* what regions may grow to; may be NULL */
    const bool *on_host;           /* OP_COUNT flags: rows that regions leave alone; may be NULL */
    rlxvk_precision precision;     /* that products will have */
    uint64_t prepared_bytes;       /* most memory for copies of params that are joined */
    /* Whether these params may lie in one piece of memory in this order, as far as it is shared;
     * NULL: any may. */
    bool (*may_join)(const void *sharer, const char *const *names, uint32_t count);
    const void *sharer;
    bool names_matvec; /* the caller named a row of the kernel family matvec */
    bool may_halve;    /* rewrite_hold_weights may make halves of F32 params afterwards */
} rewrite_options;

/* What rewrite_hold_weights is told. */
typedef struct holding_options {
    rlxvk_weight_storage storage;
    /* How a param is to be held, which would be held as `otherwise` if it were not shared. NULL: as
     * `storage` says. */
    rlxvk_dtype (*held_as)(const void *sharer, const node *param, rlxvk_dtype otherwise);
    const void *sharer;
    /* As the graph will be lowered (op/value.h). */
    bool keep_all, strided;
    const bool *on_host;
} holding_options;

/* What rewrite_shorten is told of a graph. */
typedef struct shorten_inputs {
    const bucket_input *items; /* op/bucket.h */
    size_t count;
    rlxvk_precision precision;
    const bool *on_host; /* OP_COUNT flags; may be NULL */
} shorten_inputs;
#define SHORTEN_MOST_ROWS (1u << 24) /* a count of rows is an f32 number */

/* Makes the gradients that a graph with symbols has as nodes, in place, now that it has numbers. */
rlxvk_status rewrite_make_gradients(rlxvk_graph *g);
/* Adds the input that has the count of active rows; behind all nodes, where it is not there yet. */
rlxvk_status rewrite_add_count(rlxvk_graph *g);
/* Ends rows of a bucket at the extent where a node computes across them, in place: the graph gives
 * what it would compiled for the rows that are active. E_UNSUPPORTED: a node that cannot end them.
 * The graph has the count of active rows, an input. */
rlxvk_status rewrite_shorten(rlxvk_graph *g, const shorten_inputs *inputs);
/* Packs rows of a bucket that lie apart, for the products that read them, in place. The graph has
 * been shortened; `inputs` are of the graph as it is now. */
rlxvk_status rewrite_pack_rows(rlxvk_graph *g, const shorten_inputs *inputs);

/* All passes, in place: detach overwritten views, fold constants, share what is computed twice,
 * fuse patterns, join elementwise nodes, drop dead ones. Verifies the result. */
rlxvk_status rewrite_graph(rlxvk_graph *g, const rewrite_options *options);

/* Gives F32 params that are only read, each by ops that take packed halves, the dtype F16 or BF16,
 * and the views of them. So kernels, memory and conversions follow. *out_any: whether there are
 * some. The last rewriting: what reads them keeps its dtype, which `infer` would not give it. */
rlxvk_status rewrite_hold_weights(rlxvk_graph *g, const holding_options *options, bool *out_any);

/* Sum-and-norm pairs to be lowered as one step (the sum has other readers). Appends to *pairs. */
rlxvk_status rewrite_find_norm_pairs(const rlxvk_graph *g, pair_list *pairs);

/* Reports the patterns of a rewritten graph that were not replaced, each with the node it ends in
 * and the reason. `profile`: of the device it was rewritten for; patterns that only some devices
 * have kernels for are passed over where it is NULL. */
typedef void (*miss_report)(void *user, uint32_t id, const char *pattern, const char *reason);
rlxvk_status rewrite_find_misses(const rlxvk_graph *g, const pair_list *pairs,
                                 const device_profile *profile, miss_report report, void *user);
/* The same for copies of parts and transposes that some reader could take where they lie, or that
 * an operand could be made as (op/strided.h). `strided`: whether any may. */
rlxvk_status rewrite_find_copies(const rlxvk_graph *g, const bool *on_host, bool strided,
                                 miss_report report, void *user);

#endif
