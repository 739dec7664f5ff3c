/* Which axes of inputs hold the rows of a bucket. */
#ifndef RLXVK_EXEC_AXES_H
#define RLXVK_EXEC_AXES_H

#include "exec/program.h"

typedef VECTOR(rlxvk_bucket_axis) axis_list;

/* Those of the option bucket_axes, and of the symbols that stand for rows where bucket_symbols asks
 * for them, each once; names are the graph's own, axes not negative. E_UNKNOWN_NAME, E_AXIS. */
rlxvk_status axes_resolve(const rlxvk_graph *graph, const rlxvk_compile_options *given,
                          axis_list *out);
/* Lets the program's graph end rows at the extent, so that it gives what it would compiled for
 * those that are active. E_UNSUPPORTED: some op stands in the way. */
rlxvk_status axes_shorten(program *p, const rlxvk_bucket_axis *axes, size_t count);
/* What an active extent does to a program that is lowered. E_UNSUPPORTED, where the source is
 * shortened: nothing, because of how it is lowered. */
rlxvk_status axes_analyze(program *p, const rlxvk_bucket_axis *axes, size_t count);

#endif
