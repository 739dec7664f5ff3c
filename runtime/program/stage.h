/*
 * The stages of compiling, in this order: graph -> rewritten graph -> schedule -> plan ->
 * pipelines. All but the last make plain data.
 */
#ifndef RLXVK_PROGRAM_STAGE_H
#define RLXVK_PROGRAM_STAGE_H

#include "program/program.h"

/* Verifies the graph and copies it to p->source and p->graph. */
rlxvk_status stage_source(program *p, const rlxvk_graph *graph);
/* Rewrites p->graph. `sharer` is the program whose params it shares; it may be NULL. */
rlxvk_status stage_rewrite(program *p, const program *sharer);
/* Lowers every node. A program is lowered only here, once. */
rlxvk_status stage_lower(program *p);
/* Whether a dispatch has more storage buffers than the device takes, and its op can run on the host
 * instead. */
bool stage_finds_excess(const program *p, op_kind *out_op);
/* `shared` tells for each node whether its memory comes from another executable. If it is NULL,
 * none does. */
rlxvk_status stage_plan(program *p, const bool *shared);
rlxvk_status stage_pipelines(program *p);

#endif
