/*
 * A file that takes its name only when it is complete (base/system.h), so that the old one survives
 * every failure. If the path is not a regular file (/dev/stdout, a pipe), it is written directly.
 */
#ifndef RLXVK_NEW_FILE_H
#define RLXVK_NEW_FILE_H

#include "base/system.h"

#include <stdio.h>

typedef struct new_file {
    FILE *stream;
    char *path;
    system_replacement replacement; /* no stream if the path is written directly */
} new_file;

/* E_FILE, from each, names the path and the reason: another process that writes it now, too. */
RLXVK_MUST_CHECK rlxvk_status new_file_open(const char *path, new_file *out);
/* Puts the file in its place when all of it was written, and discards it otherwise. */
RLXVK_MUST_CHECK rlxvk_status new_file_close(new_file *file);
void new_file_discard(new_file *file);
/* Whether a file could be written there, before the work that it will report; changes nothing. */
RLXVK_MUST_CHECK rlxvk_status new_file_check(const char *path);

#endif
