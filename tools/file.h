/* A whole file as a read-only byte range. */
#ifndef RLXVK_FILE_H
#define RLXVK_FILE_H

#include "base/base.h"

typedef struct file_view {
    const uint8_t *data;
    uint64_t length;
    bool mapped; /* an empty file is a view without a mapping */
} file_view;

/* E_FILE names the path and the reason. The file must not shrink while it is mapped. */
RLXVK_MUST_CHECK rlxvk_status file_map(const char *path, file_view *out);
void file_unmap(file_view *view); /* leaves it zeroed */

#endif
