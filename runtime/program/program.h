/*
 * The program: everything that compiling makes, from the graph as built to the pipelines. It has no
 * device memory and no state of runs.
 *
 * Invariant: a program never changes after it is made, except its reference count, which is under
 * the context's lock. So executables on several threads may share it. A second executable of a
 * program needs no lowering, planning or compiling of shaders.
 */
#ifndef RLXVK_PROGRAM_PROGRAM_H
#define RLXVK_PROGRAM_PROGRAM_H

#include "plan/extent.h"
#include "plan/plan.h"
#include "program/options.h"
#include "rewrite/rewrite.h"

/* A param or an input. */
typedef struct program_leaf {
    const char *name;
    uint32_t node;   /* of the rewritten graph; NODE_NONE: dropped as dead */
    uint32_t source; /* of the graph as built */
    bool in_place;   /* a kernel writes it */
    bool prepared;   /* prepared steps read it */
} program_leaf;

typedef struct program_result {
    uint32_t node;
    rlxvk_shape shape;
    rlxvk_dtype dtype;
} program_result;

typedef struct program {
    rlxvk_context *context;
    device *device;
    uint32_t references; /* under the context's lock */
    program_options options;
    rlxvk_graph *source; /* as built; node ids of reports refer to it when keep_all */
    rlxvk_graph *graph;  /* rewritten */
    bool halves;         /* params declared F32 are held as packed halves */
    pair_list pairs;
    schedule schedule;
    plan plan;
    extent extent; /* what an active extent does */
    program_leaf *params, *inputs;
    program_result *results;
    size_t param_count, input_count, result_count;
    uint32_t *leaf_index; /* per node of `source`: which of the params or inputs it is */
    size_t host_step_count;
    VkPipeline *pipelines;                  /* per dispatch; owned by the device */
    VkPipeline *ranges;                     /* those of which ranges of workgroups may be launched;
                                             * NULL: of none, or not of this dispatch */
    uint32_t sets[KERNEL_MAX_BINDINGS + 1]; /* descriptor sets, by their number of bindings */
} program;

/* Creates an empty program with one reference. */
rlxvk_status program_create(rlxvk_context *context, program **out);
program *program_retain(program *p);
/* The last holder frees it. Takes NULL. */
void program_release(program *p);

/* Fills the tables of leaves and results. The graph must be rewritten and lowered. */
rlxvk_status program_list(program *p);
/* Finds an input of a graph as built by a name that the caller may use. NODE_NONE if there is none,
 * or if it is one of the library's own inputs. */
uint32_t program_input_of(const rlxvk_graph *source, const char *name);
/* Find a leaf of the graph as built by name. NULL if there is none. */
const program_leaf *program_find_input(const program *p, const char *name);
const program_leaf *program_find_param(const program *p, const char *name);

/* If a plan has loops, a batch is submitted when it has so many command buffers. */
#define QUEUE_BATCH_LOOPS 32

/* The first segment of an ordinary run: 1 if segment 0 is prepared, else 0. The prepared segment
 * runs only after one of its params was set or written. */
static inline uint32_t program_first_segment(const program *p)
{
    return p->schedule.prepared != 0;
}
/* How many submissions a run makes at most:
 *   one before each host step that follows dispatches
 *   one each time that loops fill a batch or ask whether to stop
 *   one at the end */
uint32_t program_submissions(const program *p);
/* The dispatches of a run, with every round of its loops. */
uint64_t program_executed(const program *p);
/* How often a run executes a segment: the product of the rounds of all loops around it. 0 for the
 * prepared segment. */
uint64_t program_times(const program *p, uint32_t segment);

/* How a node of the rewritten graph is held, packed halves included. */
static inline storage program_held(const program *p, uint32_t id)
{
    return (storage)p->schedule.values.items[id].storage;
}
/* The dtype of the node's elements in memory. */
static inline rlxvk_dtype program_held_dtype(const program *p, uint32_t id)
{
    return program_held(p, id) == STORAGE_WORD ? RLXVK_F32
                                               : (rlxvk_dtype)graph_node(p->graph, id)->dtype;
}
/* Whether the memory of a value comes from another executable. */
static inline bool program_shares(const program *p, uint32_t value)
{
    uint32_t block = p->plan.slots[value].block;
    return block >= SLOT_SHARED && block != SLOT_NONE;
}

#endif
