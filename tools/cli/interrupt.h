/* Ctrl-C for commands that finish their current work and report their results so far. */
#ifndef RLXVK_INTERRUPT_H
#define RLXVK_INTERRUPT_H

#include <stdbool.h>

/* From this call on, the first SIGINT is only noted, also in processes that are forked later. A
 * second one ends the process. */
void interrupt_watch(void);
bool interrupted(void);
/* From this call on, SIGINT ends the process again. interrupted() keeps its answer. */
void interrupt_end(void);

#endif
