/* What a compile prints when asked to. */
#ifndef RLXVK_DUMP_H
#define RLXVK_DUMP_H

#include "exec/state.h"

void dump_graph(const rlxvk_executable *e, const rlxvk_graph *g, const char *title);
rlxvk_status dump_rewrite(const rlxvk_executable *e);
void dump_plan(const rlxvk_executable *e);
void dump_barriers(const rlxvk_executable *e);
void dump_summary(const rlxvk_executable *e);

#endif
