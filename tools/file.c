/* Read-only file mapping. Only regular files: anything else has no length to check offsets against.
 */
#define _POSIX_C_SOURCE 200809L
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static rlxvk_status map_descriptor(const char *path, int descriptor, file_view *out)
{
    struct stat info;
    if (fstat(descriptor, &info) != 0)
        return fail(RLXVK_E_FILE, "'%s': cannot be read: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return fail(RLXVK_E_FILE, "'%s': not a regular file", path);
    if (info.st_size == 0) {
        out->data = (const uint8_t *)"";
        return RLXVK_OK;
    }
    void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (data == MAP_FAILED)
        return fail(RLXVK_E_FILE, "'%s': cannot be mapped (%lld bytes): %s", path,
                    (long long)info.st_size, strerror(errno));
    *out = (file_view){data, (uint64_t)info.st_size, true};
    return RLXVK_OK;
}

rlxvk_status file_map(const char *path, file_view *out)
{
    *out = (file_view){0};
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return fail(RLXVK_E_FILE, "'%s': cannot be opened: %s", path, strerror(errno));
    rlxvk_status status = map_descriptor(path, descriptor, out);
    close(descriptor);
    return status;
}

void file_unmap(file_view *view)
{
    if (view->mapped)
        munmap((void *)(uintptr_t)view->data, (size_t)view->length);
    *view = (file_view){0};
}
