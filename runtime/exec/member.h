/* Which member of a family is current. */
#ifndef RLXVK_EXEC_MEMBER_H
#define RLXVK_EXEC_MEMBER_H

#include "exec/state.h"

/* Before a run: the member that the inputs fit, found by their lengths where it is another than the
 * current one. OK for an executable without a family. */
rlxvk_status member_bind_run(rlxvk_executable *e, const char *call, const sized_array *inputs);
/* Of an executable with nothing bound: binds its symbols to their examples, so that it has memory
 * to share. `sharing`: whose memory it is to use itself; may be NULL. */
rlxvk_status member_bind_examples(rlxvk_executable *e, const rlxvk_compile_options *sharing);

#endif
