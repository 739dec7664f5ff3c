/* Feeds of an executable as a whole. */
#ifndef RLXVK_EXEC_FEED_H
#define RLXVK_EXEC_FEED_H

#include "exec/state.h"

/* Makes the commands for the feeds of all inputs as they are now; on failure the old ones stay. */
rlxvk_status feed_record(rlxvk_executable *e);
/* E_EXTENT where a prefix feed's output has not upper + 1 rows; upper 0: anything goes. */
rlxvk_status feed_check_rows(const rlxvk_executable *e, const input_state *in, int64_t upper);

#endif
