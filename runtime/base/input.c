/* See input.h. The file of an input_file is open as long as the object lives. */
#include "base/input.h"
#include "base/atomic.h"

#include <string.h>

static rlxvk_status open_file(input_file *file)
{
    int error = system_file_open(file->path, &file->file, &file->length);
    if (error == SYSTEM_NOT_REGULAR)
        return status_fail(RLXVK_E_FILE, "'%s': not a regular file", file->path);
    if (error)
        return status_fail(RLXVK_E_FILE, "'%s': cannot be opened: %s", file->path, strerror(error));
    return RLXVK_OK;
}

rlxvk_status input_open(const char *path, input_file **out)
{
    input_file *file = memory_zeroed(1, sizeof *file);
    rlxvk_status status;
    *out = NULL;
    if (!file)
        return status_fail_memory("file");
    file->file.handle = -1;
    file->path = memory_copy_string(path);
    if (!file->path)
        TRY(status_fail_memory("path"));
    TRY(open_file(file));
    *out = file;
    return RLXVK_OK;
error:
    input_close(file);
    return status;
}

static bool has_part(const char *name, const char *wanted)
{
    size_t length = strlen(wanted);
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, wanted, length) == 0 && (part[length] == '/' || part[length] == 0))
            return true;
    }
    return false;
}

/* Where a path leads, without links. */
static rlxvk_status resolve(const char *path, char **out)
{
    int error = system_path_resolve(path, out);
    return error == 0
               ? RLXVK_OK
               : status_fail(RLXVK_E_FILE, "'%s': cannot be opened: %s", path, strerror(error));
}

rlxvk_status input_open_beside(const char *folder, const char *name, input_file **out)
{
    char *inside = NULL, *outside = NULL,
         *path = memory_allocate(strlen(folder) + strlen(name) + 2);
    size_t length;
    rlxvk_status status = RLXVK_OK;
    *out = NULL;
    if (!path)
        return status_fail_memory("path");
    memcpy(path, folder, strlen(folder));
    path[strlen(folder)] = '/';
    memcpy(path + strlen(folder) + 1, name, strlen(name) + 1);
    if (*name == 0 || *name == '/' || has_part(name, ".."))
        TRY(status_fail(RLXVK_E_FILE, "'%s' names no file inside of its folder", name));
    TRY(resolve(folder, &outside));
    TRY(resolve(path, &inside));
    length = strcmp(outside, "/") ? strlen(outside) : 0;
    if (strncmp(inside, outside, length) != 0 || inside[length] != '/')
        TRY(status_fail(RLXVK_E_FILE, "'%s' is a link to '%s', outside of its folder", path,
                        inside));
    TRY(input_open(inside, out));
error:
    memory_free(inside);
    memory_free(outside);
    memory_free(path);
    return status;
}

void input_close(input_file *file)
{
    if (!file)
        return;
    system_file_close(&file->file);
    memory_free(file->path);
    memory_free(file);
}

static rlxvk_status read_range(const input_file *file, uint64_t offset, uint64_t size, void *out)
{
    uint8_t *to = out;
    for (uint64_t done = 0; done < size;) {
        size_t got;
        int error = system_file_read(&file->file, offset + done, to + done, size - done, &got);
        if (error)
            return status_fail(RLXVK_E_FILE, "'%s': cannot be read: %s", file->path,
                               strerror(error));
        if (got == 0)
            return status_fail(
                RLXVK_E_FILE,
                "'%s': ends at byte %llu, where %llu bytes from %llu on were expected; it "
                "had %llu bytes when it was opened: is it being written?",
                file->path, (unsigned long long)(offset + done), (unsigned long long)size,
                (unsigned long long)offset, (unsigned long long)file->length);
        done += got;
    }
    return RLXVK_OK;
}

typedef struct reading {
    const input_file *file;
    uint64_t offset, size;
    uint8_t *to;
    atomic_bool failed;
} reading;

static void read_part(void *argument, size_t part)
{
    reading *r = argument;
    uint64_t at = part * SPREAD_BYTES;
    if (read_range(r->file, r->offset + at, MIN(r->size - at, SPREAD_BYTES), r->to + at) !=
        RLXVK_OK)
        r->failed = true;
}

/* Large ranges are read by several threads. If a part fails, this thread reads the range again, so
 * that it gets the error. */
rlxvk_status input_read(const input_file *file, uint64_t offset, uint64_t size, void *out)
{
    reading r = {file, offset, size, out, size <= SPREAD_BYTES};
    if (!r.failed)
        spread_over_threads((size_t)divide_up(size, SPREAD_BYTES), SIZE_MAX, read_part, &r);
    return r.failed ? read_range(file, offset, size, out) : RLXVK_OK;
}
