/*
 * What is asked of the operating system: the environment, and files that take the place of others.
 */
#ifndef RLXVK_SYSTEM_H
#define RLXVK_SYSTEM_H

#include "base/base.h"

#include <stdio.h>

/* The value of an environment variable, or NULL. It is always NULL in a program that has more
 * rights than its caller (set-user-ID, set-group-ID, file capabilities), because whoever starts
 * such a program chooses its environment. */
const char *system_environment(const char *name);
/* All variables, "NAME=value", and NULL behind the last; no list in such a program. */
char **system_environment_list(void);

/* How often this process is a fork of one that had called it before: threads and devices stay with
 * the parent. */
unsigned system_forks(void);

/*
 * A file that takes its name only when it is complete. It is written beside its place, under the
 * name <path>.rlxvk-new, so that the old file survives every failure. Its writer holds a lock on
 * it: if a process is killed while it writes, the next one removes what it left behind.
 */
typedef struct system_replacement {
    FILE *stream; /* to write to */
    char *path, *temporary;
} system_replacement;

/* Zero, or why not, as errno has it. EBUSY: another writer is at it now. `mode` is that of a new
 * file, before the umask. On failure *out is zeroed. */
RLXVK_MUST_CHECK int system_replacement_begin(const char *path, unsigned mode,
                                              system_replacement *out);
/* Puts the file in its place, and asks the disk to keep first its content and then its name, so
 * that after a crash either the old file or the new one stands there, whole. On failure the old
 * one stays. Zero, or errno, or -1 if an earlier write failed, whose errno is gone. */
RLXVK_MUST_CHECK int system_replacement_finish(system_replacement *r);
void system_replacement_discard(system_replacement *r);

#endif
