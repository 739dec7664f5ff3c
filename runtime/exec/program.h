/*
 * The program: all that compiling makes, from the graph as built to the pipelines. It holds no
 * memory of the device and no state of a run.
 *
 * Invariant: nothing in it changes once it is made, but the count of its holders, which is under
 * the context's lock. So executables on several threads may share it, and making another one of it
 * lowers, plans and looks up nothing.
 */
#ifndef RLXVK_EXEC_PROGRAM_H
#define RLXVK_EXEC_PROGRAM_H

#include "exec/options.h"
#include "plan/extent.h"
#include "plan/plan.h"
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
    exec_options options;
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
    VkPipeline *pipelines;                  /* per dispatch; the device's */
    uint32_t sets[KERNEL_MAX_BINDINGS + 1]; /* descriptor sets, by how many bindings they have */
} program;

/* For one holder, with nothing in it yet. */
rlxvk_status program_create(rlxvk_context *context, program **out);
program *program_retain(program *p);
/* Takes NULL; the last holder frees it. */
void program_release(program *p);

/* Fills the tables of leaves and results, once the graph is rewritten. */
rlxvk_status program_list(program *p);
/* The input of a graph as built, by a name that the caller may use, which the library's own inputs
 * have not; NODE_NONE: there is none. */
uint32_t program_input_of(const rlxvk_graph *source, const char *name);
/* Which of the inputs, or of the params, a leaf of the graph as built is; NULL when it has none of
 * this name. */
const program_leaf *program_find_input(const program *p, const char *name);
const program_leaf *program_find_param(const program *p, const char *name);

/* Command buffers of one submission, where loops replay them. */
#define QUEUE_BATCH_LOOPS 32

/* The segments before this one, one or none, are prepared: done when params that they read were
 * set. */
static inline uint32_t program_first_segment(const program *p)
{
    return p->schedule.prepared != 0;
}
/* How often a run submits at most: before each host step that follows dispatches, when loops have
 * filled a batch, and at the end. */
uint32_t program_submissions(const program *p);
/* Dispatches of a run, with every round of its loops. */
uint64_t program_executed(const program *p);
/* How often a run executes a segment: the rounds of all loops it is in; 0 for what is prepared. */
uint64_t program_times(const program *p, uint32_t segment);

/* How a node of the rewritten graph is held, packed halves included. */
static inline storage program_held(const program *p, uint32_t id)
{
    return (storage)p->schedule.values.items[id].storage;
}
/* As what dtype its elements lie in memory. */
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
