/* Creating an executable: the state of a program, ready to run. */
#ifndef RLXVK_EXEC_CREATE_H
#define RLXVK_EXEC_CREATE_H

#include "exec/executable.h"

/* Compiles nothing. Both executables may be NULL:
 *   share_with   shared leaves lie in its memory; if NULL, they get memory of the new executable
 *   copy_of      its memory is copied */
rlxvk_status create_executable(program *p, const rlxvk_executable *share_with,
                               const rlxvk_executable *copy_of, rlxvk_executable **out);
/* Compiles the graph. Only some members of `given` are read: share_with and shared_inputs, and
 * bucket_axes, whose axes must not be negative. If `given` is NULL, nothing is shared and there are
 * no bucket axes. */
rlxvk_status create_compiled(rlxvk_context *context, const rlxvk_graph *graph,
                             const program_options *options, const rlxvk_compile_options *given,
                             rlxvk_executable **out);

#endif
