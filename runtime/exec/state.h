/*
 * * The executable: an immutable plan (rewritten graph, schedule, slots, recorded command buffers)
 * and mutable state (device memory, handle table, tickets).
 *
 * Invariant: every submission waits for timeline value `submitted` and signals the next one, so
 * submissions execute in order; the host may touch device memory only when nothing is in flight
 * (ticket_complete_all).
 */
#ifndef RLXVK_EXEC_STATE_H
#define RLXVK_EXEC_STATE_H

#include "exec/pool.h"
#include "plan/plan.h"
#include "rewrite/rewrite.h"

/* ---- Leaves and outputs by name and index ---- */

typedef struct param_state {
    const char *name;
    uint32_t node;   /* NODE_NONE: dropped as dead */
    uint32_t source; /* node of the graph as built */
    bool set;
} param_state;

/* Copies recorded once for each of the tickets in flight. */
typedef struct staged_copy {
    VkCommandBuffer *commands; /* max_in_flight of them; NULL: not staged */
    uint64_t *offsets;         /* into the staging block */
} staged_copy;

typedef struct input_state {
    const char *name;
    uint32_t node, source;
    bool written;            /* has content */
    bool in_place;           /* a kernel writes it */
    bool bound, resident;    /* the handle's state: UNBOUND, BOUND, or RESIDENT where `resident` */
    void *mirror;            /* slot bytes of a bound handle */
    uint64_t fingerprint[2]; /* of the last upload; see fingerprint_valid */
    bool fingerprint_valid;
    bool shared;            /* another executable may write it too */
    int64_t feed, row_feed; /* output index; -1: none */
    bool in_row_feeds;      /* row feeds read or write its memory */
    staged_copy upload;
} input_state;

typedef struct output_state {
    uint32_t node;
    rlxvk_shape shape;
    rlxvk_dtype dtype;
    memory_pool *copy; /* where the output is kept when a feed overwrites it; NULL: in place */
    staged_copy readback;
    uint64_t last_read; /* the launch that read it last */
} output_state;

/* What feeds do on the device (feed.c). NULL buffers: nothing to do. */
typedef struct feed_commands {
    VkCommandBuffer copies; /* after every run */
    VkCommandBuffer rows;   /* for rlxvk_feed_rows; reads row_arguments */
    memory_block scratch, row_arguments;
    VkDescriptorPool row_descriptors;
} feed_commands;

/* ---- Tickets ---- */

typedef struct ticket_state {
    rlxvk_ticket id; /* 0: free */
    uint64_t value;  /* timeline value that completes it */
    const rlxvk_run_output *outputs;
    size_t output_count;
    bool direct_reads;   /* something is read from the arena itself, before the next run */
    bool diagnosed;      /* the run's own report is in `status` */
    bool completed;      /* waited for, outputs delivered; what is left is to say `status` */
    double submitted_at; /* trace time; 0 when not tracing */
    rlxvk_status status;
    char sentence[512]; /* of `status` */
} ticket_state;

/* One host step's buffers, allocated at compile. */
typedef struct host_step {
    uint32_t step; /* host steps are in the order of the schedule */
    host_tensor *inputs;
    void **buffers; /* per input */
    double *result;
    float *words;
} host_step;

struct rlxvk_executable {
    rlxvk_context *context;
    device *device;
    rlxvk_compile_options options; /* strings and arrays copied or resolved; see compile.c */
    rlxvk_graph *source;           /* as built; node ids of reports refer to it when keep_all */
    rlxvk_graph *graph;            /* rewritten */
    pair_list pairs;
    schedule schedule;
    plan plan;
    uint32_t max_in_flight; /* the option, and one more for rlxvk_run */
    uint64_t timeout_ns;
    rlxvk_precision precision; /* of matrix products: the option, or what RLXVK_MATMUL asks for */
    bool cached, full_barrier, profiled, timed, keep_all, force_upload, check_index, check_packed;
    bool diagnosed; /* runs are looked at afterwards: diagnose_run */

    memory_pool *pools[CLASS_COUNT];
    VECTOR(memory_pool *) borrowed;
    location *locations;  /* per value */
    memory_block staging; /* inputs and outputs, one share a ticket */
    memory_block read_staging;
    memory_block chunk_up, chunk_down; /* blocking transfers */

    param_state *params;
    input_state *inputs;
    output_state *outputs;
    size_t param_count, input_count, output_count;
    uint32_t *leaf_index; /* per node of `source`: which of the params or inputs it is */
    host_step *host_steps;
    size_t host_step_count;

    VkCommandPool pool;
    VkDescriptorPool descriptors;
    VkDescriptorSet *sets;     /* per dispatch */
    VkPipeline *pipelines;     /* per dispatch */
    VkCommandBuffer *segments; /* per plan segment; NULL for host ones */
    VkCommandBuffer transfer;
    feed_commands feeds;
    bool row_feeds_pending;
    VkQueryPool queries;
    VkSemaphore timeline;
    uint64_t submitted; /* last timeline value signalled or to be signalled */
    uint64_t submissions, runs;
    uint64_t launches; /* runs, those that failed before submission included */
    rlxvk_ticket next_ticket;
    ticket_state *tickets;  /* max_in_flight */
    VkCommandBuffer *batch; /* command buffers of one submission */
    uint32_t batch_count;
    const rlxvk_run_input **given; /* per input, during submit: its data */
    rlxvk_rng_options rng;
    input_state *rng_input; /* NULL: no random ops */
    bool lost;
};

#define CHUNK_BYTES        (4u << 20)
#define STAGED_LIMIT_BYTES (64u << 20)
#define ALL_DEVICE         (SCOPE_COMPUTE | SCOPE_TRANSFER)

storage state_held(const rlxvk_executable *e, uint32_t id); /* HALF included */
/* The location of a node, its view offset included; bytes = the view's. */
location state_location(const rlxvk_executable *e, uint32_t id);
uint64_t state_slot_bytes(const rlxvk_executable *e, uint32_t id);
/* Where an output is read after a run. */
location state_output_location(const rlxvk_executable *e, const output_state *out);

rlxvk_status state_make_tables(rlxvk_executable *e);
void state_free_feeds(rlxvk_executable *e, feed_commands *f);
/* Frees all there is, half built or whole; nothing of it may be in flight. */
void state_destroy(rlxvk_executable *e);

#endif
