/*
 * Reads parts of files at given offsets. Files are not mapped: if another program truncates a file,
 * reading it is an error, but reading a mapping would end the process.
 */
#ifndef RLXVK_INPUT_H
#define RLXVK_INPUT_H

#include "base/system.h"

/* E_FILE, from each call, names the path and the reason. Only regular files are allowed, because
 * others have no length against which offsets can be checked. */

typedef struct input_file {
    char *path;
    system_file file;
    uint64_t length; /* when it was opened */
} input_file;

RLXVK_MUST_CHECK rlxvk_status input_open(const char *path, input_file **out);
/* Opens a file of a folder by a relative name. It may lie in a folder below, but not outside: also
 * not through "..", an absolute name, or a link. */
RLXVK_MUST_CHECK rlxvk_status input_open_beside(const char *folder, const char *name,
                                                input_file **out);
void input_close(input_file *file); /* may be NULL */
/* Reads `size` bytes from `offset` on. Many threads may call it at once. */
RLXVK_MUST_CHECK rlxvk_status input_read(const input_file *file, uint64_t offset, uint64_t size,
                                         void *out);

#endif
