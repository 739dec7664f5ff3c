/*
 * The options of a compile, with every default filled in. If the call does not give an option, it
 * comes from the context's switches, or else from the defaults. Nothing here points to the caller's
 * memory.
 */
#ifndef RLXVK_PROGRAM_OPTIONS_H
#define RLXVK_PROGRAM_OPTIONS_H

#include "op/op.h"
#include "program/context.h"

/* With canary: how many guard bytes lie before and behind every slot. They are more than one
 * workgroup stores at a time. */
#define CANARY_BYTES (32u << 10)

typedef struct program_options {
    bool on_host[OP_COUNT]; /* ops that must run on the host */
    bool forbid_host, allow_unset, keep_all;
    bool fusion, regions, strided, reorder, reuse_memory; /* what compiling may do */
    bool cached, full_barrier, no_barrier;                /* how segments are recorded */
    bool profiled, timed;
    bool force_upload;
    bool check_plan, check_index, check_packed, check_results, canary, marks;
    bool shorter;              /* extent_promise */
    unsigned dump;             /* bits of rlxvk_dump */
    uint64_t prepared_bytes;   /* most memory for weights laid out anew */
    uint64_t device_bytes;     /* most device memory; 0: what is free */
    uint64_t host_bytes;       /* most bytes of weights that may lie on the host */
    uint64_t aimed_bytes;      /* of device memory, after an allocation failed; 0: none did */
    rlxvk_precision precision; /* of matrix products: the option, or RLXVK_PRECISION */
    rlxvk_weight_storage weight_storage;
    variant_set variants;   /* the caller's choice of kernel variants */
    uint32_t max_in_flight; /* the option, and one more for rlxvk_run */
    uint64_t timeout_ns;
    uint64_t submission_ns; /* most time of one submission; 0: no bound */
    bool sliced;            /* every dispatch is cut (exec/bounded.h) */
    rlxvk_rng_options rng;
} program_options;

rlxvk_status options_resolve(const rlxvk_context *context, const rlxvk_compile_options *given,
                             program_options *out);
/* Changes options so that every node keeps its own memory, nothing is printed, and leaves may be
 * unset. */
program_options options_for_nodes(const program_options *o);

/* Reads the random options of a caller (NULL: the defaults). E_ATTR if there is no such backend. */
rlxvk_status options_read_rng(const rlxvk_rng_options *given, rlxvk_rng_options *o);

#endif
