/* Compiling: graph -> program. */
#ifndef RLXVK_PROGRAM_COMPILE_H
#define RLXVK_PROGRAM_COMPILE_H

#include "program/program.h"

/* Only some members of `given` are read: shared_inputs, and bucket_axes, whose axes must not be
 * negative. If `given` is NULL, there are neither. `sharer` is the program whose params and shared
 * inputs this program uses; it may be NULL. */
rlxvk_status compile_program(rlxvk_context *context, const rlxvk_graph *graph,
                             const program_options *options, const rlxvk_compile_options *given,
                             const program *sharer, program **out);

#endif
