/*
 * The stages of compiling, in this order: graph -> rewritten graph -> schedule -> plan ->
 * pipelines. All but the last make plain data.
 */
#ifndef RLXVK_EXEC_STAGE_H
#define RLXVK_EXEC_STAGE_H

#include "exec/program.h"

/* The graph, verified, as p->source and p->graph. */
rlxvk_status stage_source(program *p, const rlxvk_graph *graph);
/* p->graph. `sharer`: whose params it shares; may be NULL. */
rlxvk_status stage_rewrite(program *p, const program *sharer);
/* Every node is lowered here, once. */
rlxvk_status stage_lower(program *p);
/* `shared`: per node whether its memory comes from another executable; NULL: none does. */
rlxvk_status stage_plan(program *p, const bool *shared);
rlxvk_status stage_pipelines(program *p);

#endif
