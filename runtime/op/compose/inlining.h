/* Bodies of control flow become nodes of the graph they are given to. `what` names the body in
 * errors; false: the graph has failed. */
#ifndef RLXVK_INLINING_H
#define RLXVK_INLINING_H

#include "op/op.h"

#define INLINING_MOST_NODES 1000000u /* of all bodies inlined into a graph */

enum inlining_part { INLINING_ALL, INLINING_FIXED, INLINING_VARYING };

typedef struct inlining {
    rlxvk_graph *g;
    const rlxvk_graph *body;
    const char *what; /* "while body", for errors */
    const rlxvk_tensor *inputs;
    size_t next_input;
    uint64_t instance;
    rlxvk_tensor gate;  /* whether the body's result is chosen; RLXVK_NONE: it always is */
    bool otherwise;     /* chosen where `gate` is 0 */
    rlxvk_tensor state; /* what random ops read; RLXVK_NONE: the graph's own */
    uint32_t *map; /* body node -> node; what does not change with the round stays from the first */
    /* Of loops that replay: which nodes differ from step to step, and which are inlined now. */
    const bool *varies;
    enum inlining_part part;
} inlining;

/* Whether a body has no error and so many inputs and outputs. */
bool inlining_body_fits(rlxvk_graph *g, const rlxvk_graph *body, const char *what, size_t inputs,
                        size_t outputs);
/* Bodies whose result may be thrown away must not leave anything else behind. */
bool inlining_writes_nothing(rlxvk_graph *g, const rlxvk_graph *body, const char *what);
bool inlining_tensors_given(rlxvk_graph *g, const rlxvk_tensor *tensors, size_t count,
                            const char *what);
/* Counts what is about to be inlined, with all that earlier calls inlined into the graph. `why`:
 * the end of the error's sentence. */
bool inlining_rounds_fit(rlxvk_graph *g, const char *what, uint64_t rounds, uint64_t nodes,
                         const char *why);
bool inlining_same_kind(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b, const char *what);

/* outputs = body(inputs), of a body that fits, checked and counted. */
bool inlining_call(rlxvk_graph *g, const rlxvk_graph *body, const char *what,
                   const rlxvk_tensor *inputs, size_t count, rlxvk_tensor *outputs);

/* Its map is the caller's to free, whatever comes of it. */
bool inlining_create(inlining *in, rlxvk_graph *g, const rlxvk_graph *body, const char *what);
/* Appends the body's nodes, with `inputs` bound; outputs: as many as the body has. */
bool inlining_round(inlining *in, const rlxvk_tensor *inputs, rlxvk_tensor *outputs);
/* The two halves of that, of the nodes that are due; inputs and instance are the caller's. */
bool inlining_nodes(inlining *in);
bool inlining_outputs(const inlining *in, rlxvk_tensor *outputs);
/* Random ops of an inlined body draw from streams of their own. */
void inlining_shift_stream(const node *n, uint64_t instance, void *attributes);
/* A round of its own. */
bool inlining_once(rlxvk_graph *g, const rlxvk_graph *body, const char *what,
                   const rlxvk_tensor *inputs, rlxvk_tensor *outputs);
/* The same of a branch that is taken where the predicate is not 0, or (otherwise) where it is. */
bool inlining_branch(rlxvk_graph *g, const rlxvk_graph *body, const char *what,
                     rlxvk_tensor predicate, bool otherwise, const rlxvk_tensor *inputs,
                     rlxvk_tensor *output);

#endif
