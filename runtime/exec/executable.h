/*
 * The state of an executable: its memory, handles, recorded commands, tickets and counters. It
 * holds a reference to its program and never changes it.
 *
 * Invariant: every submission signals the next timeline value after `submitted`. Its commands begin
 * with a barrier against everything before them on the queue, so submissions execute in order. The
 * host may touch device memory only if nothing is in flight (ticket_complete_all).
 */
#ifndef RLXVK_EXEC_EXECUTABLE_H
#define RLXVK_EXEC_EXECUTABLE_H

#include "base/sized.h"
#include "exec/pool.h"
#include "program/program.h"

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
    bool bound, resident;   /* the state of the handle: see handle.c */
    void *mirror;           /* slot bytes of a bound handle */
    uint64_t seen;          /* content->writes when this executable last wrote it */
    int64_t feed, row_feed; /* output index; -1: none */
    bool feed_prefix;       /* the feed copies only what both have, or the active rows */
    bool in_row_feeds;      /* row feeds read or write its memory */
    staged_copy upload;
} input_state;

/* Call it after this executable has written the input's memory. */
static inline void input_note_write(input_state *in)
{
    in->content->written = true;
    in->seen = ++in->content->writes;
}

/* Whether every run restores the bound value. That ends if a feed, a kernel, or another executable
 * that shares the memory writes it. */
static inline bool input_is_restored(const input_state *in)
{
    return in->bound && !in->resident && in->seen == in->content->writes;
}

/* Gives `to` the state of the handle `from`, except the mirror. The content of both is the same. */
static inline void input_take_handle(input_state *to, const input_state *from)
{
    to->bound = from->bound;
    to->resident = from->resident || (from->bound && !input_is_restored(from));
    to->seen = to->content->writes;
}

typedef struct output_state {
    const program_result *result;
    staged_copy readback;
    memory_pool *copy;              /* holds the output if a feed overwrites it; NULL: in place */
    VkCommandBuffer *copy_readback; /* replaces readback.commands then */
    bool copy_settled;              /* the present feed commands fill the copy */
    uint64_t last_read;             /* the launch that read it last */
} output_state;

/* The commands of feeds. A buffer is NULL if there is nothing to do. */
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
    bool direct_reads;   /* the host reads the arena itself, before the next run */
    bool prepares;       /* the run does the prepared steps, too */
    bool diagnosed;      /* the run's own report is in `status` */
    bool completed;      /* waited for, outputs delivered; only `status` is still to be told */
    double submitted_at; /* trace time; 0 when not tracing */
    rlxvk_status status;
    char sentence[LAST_ERROR_SIZE]; /* of `status` */
} ticket_state;

/* The buffers of one host step, made with the executable. */
typedef struct host_step {
    uint32_t step; /* host steps are in the order of the schedule */
    host_tensor *inputs;
    void **buffers; /* two per input: its slot's bytes; if packed, its f32 words */
    uint32_t buffer_count;
    double *result;
    float *words;
} host_step;

/* Guard bytes, and the value before them; NODE_NONE if they begin a block (canary.h). */
typedef struct canary {
    uint32_t value;
    location at;
} canary;

/* Of an executable whose graph has symbols (cached_bindings.h). */
typedef struct cached_bindings cached_bindings;
/* What is measured to bound submissions (bounded.h). */
typedef struct bounded bounded;

struct rlxvk_executable {
    rlxvk_context *context;
    device *device;
    cached_bindings *bindings; /* NULL: compiled for numbers */
    program *program;          /* a reference; NULL: nothing is bound yet */

    memory_pool *pools[CLASS_COUNT];
    memory_pool *detached[2]; /* of shared leaves, if there is no executable to share with: on the
                               * device, on the host; NULL: none */
    pool_list borrowed;
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
    VkCommandBuffer *rests;    /* likewise: a loop's last rounds, fewer than a group; or NULL */
    VkCommandBuffer *stops;    /* per plan loop: copies the word that ends it; or NULL */
    VkCommandBuffer *stamps;   /* two per plan loop: timestamps of its begin and end; or NULL */
    memory_block stop_words;   /* one per plan loop */
    memory_block marks;        /* of dispatches (RLXVK_CHECK=loss), if the device needs memory */
    VkCommandBuffer transfer;
    feed_commands feeds;
    VkPipeline row_pipeline; /* of row feeds; NULL until the first is registered */
    bool row_feeds_pending;
    VkQueryPool queries;
    VkSemaphore timeline;
    uint64_t submitted; /* last timeline value signalled or to be signalled */
    uint64_t submissions, runs;
    uint64_t launches; /* runs, and those that failed before submission */
    rlxvk_ticket next_ticket;
    ticket_state *tickets;  /* max_in_flight */
    VkCommandBuffer *batch; /* command buffers of one submission */
    uint32_t batch_count;
    uint32_t last_batch_count; /* of the batch that was submitted last; it is still in `batch` */
    uint64_t batch_ns;         /* how long its measured commands take */
    bounded *bounded;          /* NULL: submissions are not bounded, or surely short */
    uint64_t run_submissions;  /* of the last run */
    uint64_t reached;          /* timeline value that was waited for */
    rlxvk_run_input *given;    /* per input, during submit; if it has no name, it is not given */
    rlxvk_rng_options rng;
    input_state *rng_input;   /* NULL: no random ops */
    input_state *count_input; /* of active rows; NULL: no node reads it */
    uint64_t *prepared;       /* per param: the version that the prepared steps read last */
    bool is_prepared;         /* they have run before */
    uint64_t preparations;
    int64_t extent_actual, extent_upper; /* active extent; upper 0: none */
    memory_pool *group_counts;           /* per dispatch, for scaled ones; NULL: none is scaled */
    canary *canaries;                    /* by place; NULL: the check is off */
    uint32_t canary_count, canary_fills;
    struct judge *judge; /* judges the next run (exec/judge.h); NULL: nobody asks */
    bool diagnosed;      /* runs are checked afterwards: diagnose_run */
    bool lost;
};

/* E_NULL if there is no executable, E_UNBOUND_SYMBOL if its symbols have no sizes yet. */
rlxvk_status executable_require(const rlxvk_executable *e, const char *call);
/* executable_is_own tells whether an input is the library's own. executable_own_input finds such an
 * input by name and marks it as written, because each run writes it. It returns NULL if there is
 * none. */
bool executable_is_own(const rlxvk_executable *e, size_t input);
input_state *executable_own_input(rlxvk_executable *e, const char *name);
/* The graph as built. It has symbols only if nothing is bound yet. */
const rlxvk_graph *executable_source(const rlxvk_executable *e);

#define ALL_DEVICE (SCOPE_COMPUTE | SCOPE_TRANSFER)

/* Command buffers of a batch beside those of inputs, outputs and steps. */
#define QUEUE_BATCH_ROOM (QUEUE_BATCH_LOOPS + 8)

/* The location of a node, with its offset and bytes as a view. */
location executable_location(const rlxvk_executable *e, uint32_t id);
uint64_t executable_slot_bytes(const rlxvk_executable *e, uint32_t id);
/* The offset of a dispatch in the block of group counts. */
static inline uint64_t state_group_counts(uint64_t dispatch)
{
    return dispatch * 3 * sizeof(uint32_t);
}
/* Where an output is read after a run. */
location executable_output_location(const rlxvk_executable *e, const output_state *out);
/* The commands that read it from there, one for each ticket; NULL if it is not staged. */
const VkCommandBuffer *executable_output_readback(const output_state *out);

/* Creates an executable that holds a reference to `p`. It has only tables, and nothing on the
 * device yet. */
rlxvk_status executable_begin(program *p, rlxvk_executable **out);
void executable_free_feeds(rlxvk_executable *e, feed_commands *f);
/* The output is read in place again. */
void executable_free_copy(rlxvk_executable *e, output_state *out);
/* Waits for what is in flight and frees everything but the cached bindings, even if it is half
 * built. Takes NULL, and an executable with nothing bound. */
void executable_end(rlxvk_executable *e);

#endif
