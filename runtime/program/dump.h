/* Prints the stages of a compile, if it is asked to. */
#ifndef RLXVK_DUMP_H
#define RLXVK_DUMP_H

#include "program/program.h"

void dump_graph(const program *p, const rlxvk_graph *g, const char *title);
rlxvk_status dump_rewrite(const program *p);
void dump_plan(const program *p);
void dump_barriers(const program *p);
void dump_summary(const program *p);

#endif
