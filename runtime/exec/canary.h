/*
 * RLXVK_CHECK=canary finds writes outside operands. Guard bytes, which belong to no value, lie
 * before and behind every slot and hold a pattern. If a run changes it, the run fails. Descriptors
 * then reach to the end of the block, because otherwise a driver may drop a store past an operand's
 * end.
 *
 * Every slot has a different pattern behind it. So the check finds even a kernel that copies the
 * guard bytes behind one operand to those behind another. As f32, the pattern is NaN in the first
 * run and in every second run after it. So reads past the end show in the results. In the other
 * runs it is a large number, because a kernel that adds to NaN does not change it.
 *
 * If a custom kernel asks for the length of an array, it gets that of the descriptor, which is too
 * large. Do not combine this check with the synchronization check of the validation layer, because
 * that takes the whole descriptor as used.
 */
#ifndef RLXVK_EXEC_CANARY_H
#define RLXVK_EXEC_CANARY_H

#include "exec/executable.h"

/* The word that scratch memory holds before the first run. */
#define CANARY_SCRATCH 0x7fc0deadu

/* Lists the guard bytes and fills them. Does nothing if the option is off. */
rlxvk_status canary_prepare(rlxvk_executable *e);
/* E_RANGE if guard bytes changed; the sentence names the value before them and the kernels that
 * write it. Then fills all guard bytes again for the next run. */
rlxvk_status canary_check(rlxvk_executable *e);

#endif
