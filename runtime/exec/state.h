/*
 * The state: one executable's memory, handles, recorded commands, tickets and counters. What they
 * are the state of is its program, which it holds and never changes.
 *
 * Invariant: every submission signals the timeline value after `submitted`, and its commands begin
 * with a barrier against all that is before them on the queue, so submissions execute in order; the
 * host may touch device memory only when nothing is in flight (ticket_complete_all).
 */
#ifndef RLXVK_EXEC_STATE_H
#define RLXVK_EXEC_STATE_H

#include "base/sized.h"
#include "exec/pool.h"
#include "exec/program.h"

/* ---- Leaves and outputs, one for each of the program's ---- */

typedef struct param_state {
    const program_leaf *leaf;
    leaf_content *content; /* lives as long as its memory */
} param_state;

/* Copies recorded once for each of the tickets in flight. */
typedef struct staged_copy {
    VkCommandBuffer *commands; /* max_in_flight of them; NULL: not staged */
    uint64_t *offsets;         /* into the staging block */
} staged_copy;

typedef struct input_state {
    const program_leaf *leaf;
    leaf_content *content;
    bool bound, resident;   /* the handle's state: UNBOUND, BOUND, or RESIDENT where `resident` */
    void *mirror;           /* slot bytes of a bound handle */
    uint64_t seen;          /* content->writes when this executable last wrote it */
    int64_t feed, row_feed; /* output index; -1: none */
    bool feed_prefix;       /* the feed copies what both have, or the active rows */
    bool in_row_feeds;      /* row feeds read or write its memory */
    staged_copy upload;
} input_state;

/* After this executable has written the input's memory. */
static inline void input_note_write(input_state *in)
{
    in->content->written = true;
    in->seen = ++in->content->writes;
}

/* Whether every run restores what was bound: not once a feed, a kernel, or another executable that
 * shares the memory has written it. */
static inline bool input_is_restored(const input_state *in)
{
    return in->bound && !in->resident && in->seen == in->content->writes;
}

/* What `to` is of a handle that `from` has been, but for the mirror; both contents are alike. */
static inline void input_take_handle(input_state *to, const input_state *from)
{
    to->bound = from->bound;
    to->resident = from->resident || (from->bound && !input_is_restored(from));
    to->seen = to->content->writes;
}

typedef struct output_state {
    const program_result *result;
    staged_copy readback;
    memory_pool *copy; /* where the output is kept when a feed overwrites it; NULL: in place */
    VkCommandBuffer *copy_readback; /* what stands for readback.commands then */
    bool copy_settled;              /* the feeds in force fill the copy */
    uint64_t last_read;             /* the launch that read it last */
} output_state;

/* What feeds do on the device. NULL buffers: nothing to do. */
typedef struct feed_commands {
    VkCommandBuffer copies; /* after every run */
    VkCommandBuffer rows;   /* for rlxvk_feed_rows; reads row_arguments */
    memory_block scratch, row_arguments;
    VkDescriptorPool row_descriptors;
} feed_commands;

/* ---- Tickets ---- */

typedef struct ticket_state {
    rlxvk_ticket id;     /* 0: free */
    uint64_t value;      /* timeline value that completes it */
    sized_array outputs; /* rlxvk_run_output; of the caller */
    bool direct_reads;   /* something is read from the arena itself, before the next run */
    bool prepares;       /* the run does the prepared steps, too */
    bool diagnosed;      /* the run's own report is in `status` */
    bool completed;      /* waited for, outputs delivered; what is left is to say `status` */
    double submitted_at; /* trace time; 0 when not tracing */
    rlxvk_status status;
    char sentence[512]; /* of `status` */
} ticket_state;

/* One host step's buffers, made with the executable. */
typedef struct host_step {
    uint32_t step; /* host steps are in the order of the schedule */
    host_tensor *inputs;
    void **buffers; /* per input its slot's bytes, then the same widened where it is packed */
    uint32_t buffer_count;
    double *result;
    float *words;
} host_step;

/* Nobody's bytes, and the value that they are behind; NODE_NONE: the first of a block (canary.h).
 */
typedef struct canary {
    uint32_t value;
    location at;
} canary;

/* Of an executable whose graph has symbols (family.h). */
typedef struct family family;

struct rlxvk_executable {
    rlxvk_context *context;
    device *device;
    family *family;   /* NULL: compiled for numbers */
    program *program; /* held; NULL: of a family of which no member is current yet */

    memory_pool *pools[CLASS_COUNT];
    memory_pool *detached; /* for what the program shares, where there is nobody to share with */
    VECTOR(memory_pool *) borrowed;
    location *locations;  /* per value */
    memory_block staging; /* inputs and outputs, one share a ticket */
    memory_block read_staging;
    memory_block chunk_up, chunk_down; /* blocking transfers */

    param_state *params;
    input_state *inputs;
    output_state *outputs;
    host_step *host_steps;

    VkCommandPool pool;
    VkDescriptorPool descriptors;
    VkDescriptorSet *sets;     /* per dispatch */
    VkCommandBuffer *segments; /* per plan segment; NULL for host ones */
    VkCommandBuffer *rests;    /* likewise: the rounds that are left of a loop's groups; or NULL */
    VkCommandBuffer *stops;    /* per plan loop: copies the word that ends it; or NULL */
    VkCommandBuffer *stamps;   /* two per plan loop: timestamps of its begin and end; or NULL */
    memory_block stop_words;   /* one per plan loop */
    VkCommandBuffer transfer;
    feed_commands feeds;
    VkPipeline row_pipeline; /* of row feeds; NULL until the first is registered */
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
    uint64_t reached;       /* timeline value that was waited for */
    rlxvk_run_input *given; /* per input, during submit; without a name: it is not given */
    rlxvk_rng_options rng;
    input_state *rng_input;   /* NULL: no random ops */
    input_state *count_input; /* of active rows; NULL: no node asks for them */
    uint64_t *prepared;       /* per param: the version that the prepared steps read last */
    bool is_prepared;         /* they have read any */
    uint64_t preparations;
    int64_t extent_actual, extent_upper; /* active extent; upper 0: none */
    memory_pool *group_counts; /* per dispatch, read by those that are scaled; NULL: none is */
    canary *canaries;          /* by place; NULL: not looked after */
    uint32_t canary_count, canary_fills;
    bool diagnosed; /* runs are looked at afterwards: diagnose_run */
    bool lost;
};

/* E_NULL for none, E_UNBOUND_SYMBOL for one whose symbols have no sizes yet. */
rlxvk_status state_require(const rlxvk_executable *e, const char *call);
/* Whether an input is the library's own; the one of this name, which each run writes. NULL: there
 * is none. */
bool state_is_own(const rlxvk_executable *e, size_t input);
input_state *state_own_input(rlxvk_executable *e, const char *name);
/* The graph as built: of numbers, or, with nothing bound yet, of symbols. */
const rlxvk_graph *state_source(const rlxvk_executable *e);

#define ALL_DEVICE (SCOPE_COMPUTE | SCOPE_TRANSFER)

/* The room for what a run submits at a time, beside its inputs, outputs and steps. */
#define QUEUE_BATCH_ROOM (QUEUE_BATCH_LOOPS + 8)

/* The location of a node, its view offset included; bytes = the view's. */
location state_location(const rlxvk_executable *e, uint32_t id);
uint64_t state_slot_bytes(const rlxvk_executable *e, uint32_t id);
/* Where in the block of group counts those of a dispatch are. */
static inline uint64_t state_group_counts(uint64_t dispatch)
{
    return dispatch * 3 * sizeof(uint32_t);
}
/* Where an output is read after a run. */
location state_output_location(const rlxvk_executable *e, const output_state *out);
/* The commands that read it from there, one for each ticket; NULL: not staged. */
const VkCommandBuffer *state_output_readback(const output_state *out);

/* An executable of a program, which it takes hold of: tables and nothing of the device yet. */
rlxvk_status state_create(program *p, rlxvk_executable **out);
void state_free_feeds(rlxvk_executable *e, feed_commands *f);
/* The output is read in place again. */
void state_free_copy(rlxvk_executable *e, output_state *out);
/* Frees all there is, half built or whole; nothing of it may be in flight. Takes NULL. */
void state_destroy(rlxvk_executable *e);

#endif
