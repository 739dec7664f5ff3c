/* Reads whole files. */
#ifndef RLXVK_FILE_H
#define RLXVK_FILE_H

#include "base/input.h"

typedef struct file_content {
    uint8_t *data;
    uint64_t length;
} file_content;

/* E_FILE: as input_open. */
RLXVK_MUST_CHECK rlxvk_status file_read(const char *path, file_content *out);
void file_free(file_content *content); /* leaves it zeroed */

#endif
