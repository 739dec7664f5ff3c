/* The stages of compiling that make plain data. */
#ifndef RLXVK_EXEC_STAGE_H
#define RLXVK_EXEC_STAGE_H

#include "exec/state.h"

rlxvk_status stage_rewrite(rlxvk_executable *e, const rlxvk_graph *graph);
rlxvk_status stage_plan(rlxvk_executable *e);

#endif
