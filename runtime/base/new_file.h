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

/* E_FILE, from each call, names the path and the reason. It is also an error if another process is
 * writing the path. */
RLXVK_MUST_CHECK rlxvk_status new_file_open(const char *path, new_file *out);
/* Puts the file in its place if all of it was written; discards it otherwise. */
RLXVK_MUST_CHECK rlxvk_status new_file_close(new_file *file);
void new_file_discard(new_file *file);
/* Checks whether a file could be written there, and changes nothing. Call it before long work whose
 * result goes there. */
RLXVK_MUST_CHECK rlxvk_status new_file_check(const char *path);

#endif
