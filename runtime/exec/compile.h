/* Graph -> program -> executable. */
#ifndef RLXVK_EXEC_COMPILE_H
#define RLXVK_EXEC_COMPILE_H

#include "exec/state.h"

/* `sharing`: where to read what memory is shared (share_with, shared_inputs); NULL: none is. */
rlxvk_status compile_graph(rlxvk_context *context, const rlxvk_graph *graph,
                           const exec_options *options, const rlxvk_compile_options *sharing,
                           rlxvk_executable **out);

#endif
