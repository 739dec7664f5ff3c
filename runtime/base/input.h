/*
 * Reading files piece by piece at given places. Nothing is mapped: a file that another program cuts
 * short while it is read is then an error, where a mapping ends the process.
 */
#ifndef RLXVK_INPUT_H
#define RLXVK_INPUT_H

#include "base/base.h"

/* E_FILE, from each, names the path and the reason. Only regular files: anything else has no length
 * to check offsets against. */

typedef struct input_file {
    char *path;
    int descriptor;
    uint64_t length; /* when it was opened */
} input_file;

RLXVK_MUST_CHECK rlxvk_status input_open(const char *path, input_file **out);
void input_close(input_file *file); /* takes NULL */
/* `size` bytes from `offset` on. May be called by many threads. */
RLXVK_MUST_CHECK rlxvk_status input_read(const input_file *file, uint64_t offset, uint64_t size,
                                         void *out);

#endif
