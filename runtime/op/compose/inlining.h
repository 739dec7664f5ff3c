/* Copies the bodies of control flow into the graph that uses them. `what` names the body in errors.
 * A function that returns false has failed the graph. */
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
    rlxvk_tensor gate;  /* whether the body's result is used; RLXVK_NONE: it always is */
    bool otherwise;     /* used if `gate` is 0, rather than if it is not */
    rlxvk_tensor state; /* read by random ops; RLXVK_NONE: the graph's own */
    uint32_t *map; /* body node -> node; nodes that are the same in every round stay from the first
                    */
    /* For loops that replay: which nodes differ from step to step, and which are inlined now. */
    const bool *varies;
    enum inlining_part part;
} inlining;

/* Whether a body has no error and this many inputs and outputs. */
bool inlining_body_fits(rlxvk_graph *g, const rlxvk_graph *body, const char *what, size_t inputs,
                        size_t outputs);
/* A body whose result may be unused must not have other effects. */
bool inlining_writes_nothing(rlxvk_graph *g, const rlxvk_graph *body, const char *what);
bool inlining_tensors_given(rlxvk_graph *g, const rlxvk_tensor *tensors, size_t count,
                            const char *what);
/* Counts the nodes that will be inlined, together with those of earlier calls for this graph. `why`
 * is the end of the error's sentence. */
bool inlining_rounds_fit(rlxvk_graph *g, const char *what, uint64_t rounds, uint64_t nodes,
                         const char *why);
bool inlining_same_kind(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b, const char *what);

/* outputs = body(inputs). The body must fit; the call checks and counts. */
bool inlining_call(rlxvk_graph *g, const rlxvk_graph *body, const char *what,
                   const rlxvk_tensor *inputs, size_t count, rlxvk_tensor *outputs);

/* The caller frees its map, even if the call fails. */
bool inlining_create(inlining *in, rlxvk_graph *g, const rlxvk_graph *body, const char *what);
/* Appends the body's nodes, with its inputs replaced by `inputs`. `outputs` has as many tensors as
 * the body has outputs. */
bool inlining_round(inlining *in, const rlxvk_tensor *inputs, rlxvk_tensor *outputs);
/* The two halves of inlining_round. The first appends only the nodes of `part`. The caller sets
 * inputs and instance. */
bool inlining_nodes(inlining *in);
bool inlining_outputs(const inlining *in, rlxvk_tensor *outputs);
/* Gives random ops of an inlined body streams of their own. */
void inlining_shift_stream(const node *n, uint64_t instance, void *attributes);
/* Inlines a body in one round. */
bool inlining_once(rlxvk_graph *g, const rlxvk_graph *body, const char *what,
                   const rlxvk_tensor *inputs, rlxvk_tensor *outputs);
/* The same for a branch. It is taken if the predicate is not 0, or with `otherwise` if it is 0. */
bool inlining_branch(rlxvk_graph *g, const rlxvk_graph *body, const char *what,
                     rlxvk_tensor predicate, bool otherwise, const rlxvk_tensor *inputs,
                     rlxvk_tensor *output);

#endif
