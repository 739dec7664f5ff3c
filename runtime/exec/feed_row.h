/* Row feeds: dispatches that run only if rlxvk_feed_rows is called. */
#ifndef RLXVK_FEED_ROW_H
#define RLXVK_FEED_ROW_H

#include "exec/executable.h"

rlxvk_status feed_make_rows(rlxvk_executable *e, feed_commands *f);
/* Marks the inputs whose memory row feeds read or write. */
void feed_mark_rows(rlxvk_executable *e);

#endif
