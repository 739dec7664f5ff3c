/*
 * Rewriting: graph -> graph. Values stay the same within each op's tolerance. The rewritten graph
 * shares its arena with the original, so names, constants and attributes are not copied.
 */
#ifndef RLXVK_REWRITE_H
#define RLXVK_REWRITE_H

#include "graph/pair.h"
#include "op/op.h"

typedef struct rewrite_options {
    bool fusion;                   /* pattern fusions; passes that make graphs legal always run */
    bool regions;                  /* elementwise regions; needs the profile */
    const device_profile *profile; /* limits the size of regions; may be NULL */
    const bool *on_host;       /* per row of op.def: on the host, so regions skip it; may be NULL */
    rlxvk_precision precision; /* of products */
    uint64_t prepared_bytes;   /* limit of memory for copies of joined params */
    /* Whether these params may lie in one piece of memory in this order, if they are shared. NULL:
     * any may. */
    bool (*may_join)(const void *sharer, const char *const *names, uint32_t count);
    const void *sharer;
    bool names_matvec; /* the caller asks for a variant of kernel kind matvec */
    bool may_halve;    /* rewrite_hold_weights may turn F32 params into halves later */
} rewrite_options;

/* Options of rewrite_hold_weights. */
typedef struct holding_options {
    rlxvk_weight_storage storage;
    /* How a param is held; `otherwise` is the answer for a param that is not shared. NULL: as
     * `storage` says. */
    rlxvk_dtype (*held_as)(const void *sharer, const node *param, rlxvk_dtype otherwise);
    const void *sharer;
    /* As the graph will be lowered (op/value.h). */
    bool keep_all, strided;
    const bool *on_host;
} holding_options;

/* Inputs with rows of a bucket, for rewrite_shorten and rewrite_pack_rows. */
typedef struct shorten_inputs {
    const bucket_input *items; /* op/bucket.h */
    size_t count;
    rlxvk_precision precision;
    const bool *on_host; /* OP_COUNT flags; may be NULL */
} shorten_inputs;
#define SHORTEN_MOST_ROWS (1u << 24) /* because the count of rows is an f32 number */

/* Replaces gradient nodes by their ops, in place. Graphs with symbols have such nodes, because
 * gradients need numbers. */
rlxvk_status rewrite_make_gradients(rlxvk_graph *g);
/* Adds the input for the count of active rows, behind all nodes, if the graph does not have it. */
rlxvk_status rewrite_add_count(rlxvk_graph *g);
/* If a node computes across rows of a bucket, ends its rows at the extent, in place. The result is
 * then as if the graph were compiled for only the active rows. Before, rewrite_add_count must add
 * the count of active rows.
 *   E_UNSUPPORTED   a node cannot end its rows */
rlxvk_status rewrite_shorten(rlxvk_graph *g, const shorten_inputs *inputs);
/* Packs rows of a bucket that lie apart, in place, for products that read them. Call it after
 * rewrite_shorten; `inputs` belong to the graph as it is now. */
rlxvk_status rewrite_pack_rows(rlxvk_graph *g, const shorten_inputs *inputs);

/* Runs the passes of rewrite.c, in place. They detach overwritten views, fold constants, share
 * equal nodes, move transposes, fuse patterns, make elementwise regions, and drop dead nodes.
 * Verifies the result. If a pass fails, the error names it. */
rlxvk_status rewrite_graph(rlxvk_graph *g, const rewrite_options *options);

/* Gives F32 params the dtype F16 or BF16, and their views, too, if they are only read, and only by
 * ops that take packed halves. Kernels, memory and conversions follow from the dtype. *out_any
 * tells whether there are such params. It must be the last rewrite, because readers keep a dtype
 * that `infer` would not give them. */
rlxvk_status rewrite_hold_weights(rlxvk_graph *g, const holding_options *options, bool *out_any);

/* Finds sum-and-norm pairs to lower as one step, if the sum has other readers. Appends to
 * *pairs. */
rlxvk_status rewrite_find_norm_pairs(const rlxvk_graph *g, pair_list *pairs);

/* Reports patterns of a rewritten graph that were not replaced, each with the node it ends in and
 * the reason. `profile` is that of the device for which the graph was rewritten. If it is NULL,
 * patterns with kernels for only some devices are skipped. */
typedef void (*miss_report)(void *user, uint32_t id, const char *pattern, const char *reason);
rlxvk_status rewrite_find_misses(const rlxvk_graph *g, const pair_list *pairs,
                                 const device_profile *profile, miss_report report, void *user);
/* Reports copies of parts and transposes that could be strided views (op/strided.h). Either a
 * reader takes strides, or the operand could be computed in that layout. `strided` tells whether
 * strided views are on. */
rlxvk_status rewrite_find_copies(const rlxvk_graph *g, const bool *on_host, bool strided,
                                 miss_report report, void *user);

#endif
