/* Graph -> program -> executable. */
#ifndef RLXVK_EXEC_COMPILE_H
#define RLXVK_EXEC_COMPILE_H

#include "exec/state.h"

/* `given`: where to read what memory is shared (share_with, shared_inputs), and bucket_axes, by
 * axes that are not negative; NULL: none is, and there are none. */
rlxvk_status compile_graph(rlxvk_context *context, const rlxvk_graph *graph,
                           const exec_options *options, const rlxvk_compile_options *given,
                           rlxvk_executable **out);

#endif
