/* All feeds of an executable. */
#ifndef RLXVK_EXEC_FEED_H
#define RLXVK_EXEC_FEED_H

#include "exec/executable.h"

/* Records the commands for the present feeds of all inputs. If it fails, the old commands stay. */
rlxvk_status feed_record(rlxvk_executable *e);
/* E_EXTENT if the output of a prefix feed does not have upper + 1 rows. If upper is 0, every output
 * is accepted. */
rlxvk_status feed_check_rows(const rlxvk_executable *e, const input_state *in, int64_t upper);

#endif
