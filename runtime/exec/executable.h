/*
 * The executable: an immutable plan (rewritten graph, schedule, slots, recorded command buffers)
 * and mutable state (device memory, handle table, tickets).
 *
 * Invariant: every submission waits for timeline value `submitted` and signals the next one, so
 * submissions execute in order; the host may touch device memory only when nothing is in flight
 * (executable_idle).
 */
#ifndef RLXVK_EXECUTABLE_H
#define RLXVK_EXECUTABLE_H

#include "exec/context.h"
#include "plan/plan.h"
#include "rewrite/rewrite.h"

/* ---- Memory (exec/memory.c) ---- */

/* Blocks that several executables may share. */
typedef struct memory_pool {
    device *device;
    memory_block *blocks;
    uint32_t count;
    uint32_t references; /* under the context's lock */
} memory_pool;

/* Where a value lives. `pool` keeps it alive. */
typedef struct location {
    memory_pool *pool;
    uint32_t block;
    uint64_t offset, bytes;
} location;

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
    rlxvk_precision precision; /* of matrix products: the option, or RLXVK_PRECISION */
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

/* ---- memory.c ---- */

/* Blocks of device memory, for one holder. */
rlxvk_status pool_create(rlxvk_executable *e, const uint64_t *sizes, uint32_t count,
                         memory_pool **out);
void pool_release(rlxvk_context *c, memory_pool *pool);
rlxvk_status executable_allocate(rlxvk_executable *e);
void executable_release_memory(rlxvk_executable *e);
static inline const memory_block *location_block(const location *l)
{
    return &l->pool->blocks[l->block];
}
/* The location of a node, its view offset included; bytes = the view's. */
location node_location(const rlxvk_executable *e, uint32_t id);
bool locations_overlap(const location *a, const location *b);
/* Blocking transfers between host and device memory; the executable must be idle. */
rlxvk_status location_write(rlxvk_executable *e, const location *to, const void *bytes,
                            uint64_t size);
rlxvk_status location_read(rlxvk_executable *e, const location *from, void *bytes, uint64_t size);
rlxvk_status location_copy(rlxvk_executable *e, const location *to, const location *from);

/* Bytes of a slot as words, host bytes and back (encode.c). */
storage node_held(const rlxvk_executable *e, uint32_t id); /* HALF included */
/* Length that `encoding` asks for node `id`; E_DTYPE where it does not apply. */
rlxvk_status encoded_length(const node *n, storage held, rlxvk_encoding encoding, uint64_t *out);
/* What a caller's data or buffer of `given` units is to be: `length` of them, and there. */
static inline bool buffer_fits(uint64_t length, size_t given, const void *data)
{
    return given == length && (data || length == 0);
}
/* Why it does not: E_LENGTH, or E_NULL. "<format> 12 values, given 13": the format says what needs
 * or has that many. */
rlxvk_status fail_buffer(uint64_t length, const char *unit, size_t given, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static inline const char *encoding_unit(rlxvk_encoding encoding)
{
    return encoding == RLXVK_AS_BYTES ? "bytes" : "values";
}
/* Caller's data -> slot bytes at `to`; slot bytes -> caller's data. */
void encode_slot(const node *n, storage held, rlxvk_encoding encoding, const void *data, void *to);
void decode_slot(const node *n, storage held, rlxvk_encoding encoding, const void *from,
                 void *data);

/* ---- record.c ---- */

rlxvk_status record_all(rlxvk_executable *e);
rlxvk_status record_segment(rlxvk_executable *e, uint32_t index);
rlxvk_status record_readback(rlxvk_executable *e, output_state *out);
/* The timestamps of a segment's begin and end; those of its steps' ends lie between. */
uint32_t first_query(const rlxvk_executable *e, uint32_t segment);
uint32_t last_query(const rlxvk_executable *e, uint32_t segment);
uint64_t node_slot_bytes(const rlxvk_executable *e, uint32_t id);

/* ---- feed.c ---- */

/* Makes the commands for the feeds of all inputs as they are now; on failure the old ones stay. */
rlxvk_status record_feeds(rlxvk_executable *e);
void feed_commands_destroy(rlxvk_executable *e, feed_commands *f);
/* Gives an output a copy of its own, as for one that a feed overwrites. */
rlxvk_status keep_output(rlxvk_executable *e, output_state *out);
/* Where an output is read after a run. */
location output_location(const rlxvk_executable *e, const output_state *out);

/* ---- handle.c ---- */

rlxvk_status live_input(rlxvk_executable *e, const char *call, const char *name, input_state **out);
/* E_RANGE unless row `row` of `row_elements` lies in the node. */
rlxvk_status check_node_row(const rlxvk_executable *e, const char *call, uint32_t id, uint64_t row,
                            uint64_t row_elements);

/* ---- run.c ---- */

/* Completes every ticket; the first failure is returned. */
rlxvk_status executable_idle(rlxvk_executable *e);
/* Submits command buffers in order; submit_batch those in e->batch, which it empties. */
rlxvk_status submit_commands(rlxvk_executable *e, const VkCommandBuffer *buffers, uint32_t count);
rlxvk_status submit_batch(rlxvk_executable *e);
rlxvk_status wait_submitted(rlxvk_executable *e);
/* By name; NULL when the graph as built has none of it, or the name is NULL. */
input_state *find_input(rlxvk_executable *e, const char *name);
param_state *find_param(rlxvk_executable *e, const char *name); /* param.c */
/* E_UNKNOWN_NAME naming the inputs (OP_input) or params (OP_param) there are, or E_NULL for no name
 * at all. */
rlxvk_status unknown_name(const rlxvk_executable *e, const char *call, op_kind op,
                          const char *name);
/* Submits pending row feeds when there are any; then idle. */
rlxvk_status flush_row_feeds(rlxvk_executable *e);

/* Brings `item` into its input's slot: in place, staged for this ticket, or blocking. */
rlxvk_status upload_input(rlxvk_executable *e, input_state *in, uint32_t ticket,
                          const rlxvk_run_input *item);

/* ---- rng.c ---- */

rlxvk_status rng_prepare(rlxvk_executable *e);
rlxvk_status rng_upload(rlxvk_executable *e, uint32_t ticket);

/* ---- host_step.c ---- */

rlxvk_status host_steps_prepare(rlxvk_executable *e);
rlxvk_status host_step_run(rlxvk_executable *e, const host_step *h);
void host_steps_release(rlxvk_executable *e);

/* ---- dump.c, diagnose.c ---- */

void dump_graph(const rlxvk_executable *e, const rlxvk_graph *g, const char *title);
rlxvk_status dump_rewrite(const rlxvk_executable *e);
void dump_plan(const rlxvk_executable *e);
void dump_barriers(const rlxvk_executable *e);
void dump_summary(const rlxvk_executable *e);
/* Adds the last run's GPU spans to the trace, aligned so that the first step begins when it was
 * submitted (report.c). */
rlxvk_status trace_steps(rlxvk_executable *e, double submitted_at);
/* Singular matrices, RLXVK_CHECK=index, NAN_TRACE and DUMP_NODES after a run; whether there is any
 * of that to do. */
rlxvk_status diagnose_run(rlxvk_executable *e);
bool needs_diagnosis(const rlxvk_executable *e);

/* Copies params, inputs with the state of their handles, and the random state between executables
 * of one source graph. */
rlxvk_status executable_copy_content(rlxvk_executable *to, rlxvk_executable *from);

/* compile.c */
rlxvk_status compile_graph(rlxvk_context *context, const rlxvk_graph *graph,
                           const rlxvk_compile_options *options, rlxvk_executable **out);

/* Test hook: what scratch is filled with at creation (0). Process-wide. */
extern uint32_t executable_scratch_fill;

#endif
