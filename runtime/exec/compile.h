/* Compiling: graph -> program -> executable. */
#ifndef RLXVK_EXEC_COMPILE_H
#define RLXVK_EXEC_COMPILE_H

#include "exec/state.h"

/* Only some members of `given` are read: share_with and shared_inputs, and bucket_axes, whose axes
 * must not be negative. If `given` is NULL, nothing is shared and there are no bucket axes. */
rlxvk_status compile_graph(rlxvk_context *context, const rlxvk_graph *graph,
                           const exec_options *options, const rlxvk_compile_options *given,
                           rlxvk_executable **out);

#endif
