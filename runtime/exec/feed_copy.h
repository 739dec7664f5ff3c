/* Whole feeds: copies after every run. */
#ifndef RLXVK_FEED_COPY_H
#define RLXVK_FEED_COPY_H

#include "exec/executable.h"

/* Gives an output a copy of its own, as if a feed overwrote the output. */
rlxvk_status feed_keep_output(rlxvk_executable *e, output_state *out);
rlxvk_status feed_make_copies(rlxvk_executable *e, feed_commands *f);

#endif
