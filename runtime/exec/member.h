/* Chooses the current member of the cached bindings. */
#ifndef RLXVK_EXEC_MEMBER_H
#define RLXVK_EXEC_MEMBER_H

#include "exec/executable.h"

/* Call it before a run. If the inputs do not fit the current member, it computes the sizes from
 * their lengths and switches members. It does nothing for an executable without symbols. */
rlxvk_status member_bind_run(rlxvk_executable *e, const char *call, const sized_array *inputs);
/* Binds the symbols of an executable with nothing bound to their example sizes, so that it has
 * memory to share. `sharing` says whose memory it uses itself; it may be NULL. */
rlxvk_status member_bind_examples(rlxvk_executable *e, const rlxvk_compile_options *sharing);

#endif
