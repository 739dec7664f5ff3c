/* See file.h. */
#include "cli/file.h"

rlxvk_status file_read(const char *path, file_content *out)
{
    input_file *file = NULL;
    rlxvk_status status;
    *out = (file_content){0};
    TRY(input_open(path, &file));
    out->data = memory_allocate(MAX(file->length, 1));
    if (!out->data)
        TRY(status_fail_memory(path));
    out->length = file->length;
    TRY(input_read(file, 0, file->length, out->data));
error:
    input_close(file);
    if (status != RLXVK_OK)
        file_free(out);
    return status;
}

void file_free(file_content *content)
{
    memory_free(content->data);
    *content = (file_content){0};
}
