/* Graph -> program -> executable. */
#ifndef RLXVK_EXEC_COMPILE_H
#define RLXVK_EXEC_COMPILE_H

#include "exec/state.h"

rlxvk_status compile_graph(rlxvk_context *context, const rlxvk_graph *graph,
                           const rlxvk_compile_options *options, rlxvk_executable **out);

#endif
