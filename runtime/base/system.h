/*
 * Calls to the operating system: clock and calendar, the environment, forks, and files that replace
 * others.
 */
#ifndef RLXVK_SYSTEM_H
#define RLXVK_SYSTEM_H

#include "base/base.h"

#include <stdio.h>

/* Nanoseconds since some time in the past. They never go back. */
uint64_t system_nanoseconds(void);

/* The day of the local calendar; months and days begin at 1. */
typedef struct system_day {
    int year, month, day;
} system_day;
/* False: the system does not know it. */
bool system_today(system_day *out);

/* The value of an environment variable, or NULL. It is always NULL in a program that has more
 * rights than its caller (set-user-ID, set-group-ID, file capabilities). That is because the caller
 * controls the environment. */
const char *system_environment(const char *name);
/* All variables as "NAME=value", with NULL behind the last. The list itself is NULL in a program
 * with more rights than its caller. */
char **system_environment_list(void);

/* Whether the PCI device at this address ("0000:65:00.0") has no connector for a display, as far as
 * the system tells: its class is that of a 3D controller, not of a display controller. */
bool system_lacks_display(const char *pci_address);

/* How often this process was forked from one that had already called this function. Threads and
 * devices stay with the parent, so a change tells that they are gone. */
unsigned system_forks(void);

/*
 * A file that takes its name only when it is complete. It is written beside its place, under the
 * name <path>.rlxvk-new, so that the old file survives every failure. Its writer holds a lock on
 * it. If a process is killed while it writes, the next writer removes the leftover.
 */
typedef struct system_replacement {
    FILE *stream; /* to write to */
    char *path, *temporary;
} system_replacement;

/* Returns 0, or an errno. EBUSY: another writer is active. `mode` is the mode of a new file, before
 * the umask. On failure *out is zeroed. */
RLXVK_MUST_CHECK int system_replacement_begin(const char *path, unsigned mode,
                                              system_replacement *out);
/* Puts the file in its place. It asks the disk to keep first the content and then the name. So
 * after a crash the path has either the old file or the new one, complete. If writing or renaming
 * fails, the old file stays. Returns 0, or an errno, or -1 if an earlier write failed, because its
 * errno is lost. */
RLXVK_MUST_CHECK int system_replacement_finish(system_replacement *r);
void system_replacement_discard(system_replacement *r);

#endif
