/*
 * RLXVK_CHECK=canary: nobody's bytes before and behind every slot hold a pattern; a run that
 * changed it fails. Descriptors reach to the end of the block then, so that a store past an
 * operand's end lands there instead of being dropped by the driver.
 *
 * The pattern is another behind each slot, so that a kernel which copies it from behind one operand
 * to behind another is seen. As f32 it is NaN in every second run, the first included, so that what
 * is read past the end shows in the results; in the others it is a large number, because a kernel
 * that adds to NaN leaves it as it was.
 *
 * The lengths of arrays that a custom kernel asks for reach as far as the descriptors. The
 * validation layer's synchronization check takes the whole of a descriptor as used: not to be
 * combined with it.
 */
#ifndef RLXVK_EXEC_CANARY_H
#define RLXVK_EXEC_CANARY_H

#include "exec/state.h"

/* What scratch holds before the first run. */
#define CANARY_SCRATCH 0x7fc0deadu

/* Makes the list of nobody's bytes and fills them. Nothing to do where the option is off. */
rlxvk_status canary_prepare(rlxvk_executable *e);
/* E_RANGE with the value before the first word that changed, and the kernels that write it. Fills
 * all again, for the next run. */
rlxvk_status canary_check(rlxvk_executable *e);

#endif
