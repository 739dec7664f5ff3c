/* Ctrl-C, for commands that end after what they are at and say what they have. */
#ifndef RLXVK_INTERRUPT_H
#define RLXVK_INTERRUPT_H

#include <stdbool.h>

/* From here on the first SIGINT is noted only, also in processes forked later. A second one ends
 * the process. */
void interrupt_watch(void);
bool interrupted(void);
/* From here on SIGINT ends the process again; interrupted() keeps its answer. */
void interrupt_end(void);

#endif
