/* See new_file.h. */
#include "base/new_file.h"

#include <errno.h>
#include <string.h>

/* `error` is errno, or -1 if an earlier write has failed. */
static rlxvk_status fail_file(const char *path, int error)
{
    return status_fail(RLXVK_E_FILE, "'%s': cannot be written: %s", path,
                       error == EBUSY ? "another process is writing it"
                       : error > 0    ? strerror(error)
                                      : "an earlier write failed; is the device full?");
}

static rlxvk_status open_direct(const char *path, new_file *f)
{
    f->path = memory_copy_string(path);
    if (!f->path)
        return status_fail_memory("path");
    f->stream = system_stream_open(path, "a");
    return f->stream ? RLXVK_OK : fail_file(path, errno);
}

/* `old` is NULL if there is no file yet. */
static rlxvk_status open_beside(const char *path, const system_entry *old, new_file *f)
{
    int error = old ? system_path_resolve(path, &f->path) : 0;
    if (error || !old)
        f->path = memory_copy_string(path);
    if (!f->path)
        return status_fail_memory("path");
    error = system_replacement_begin(f->path, SYSTEM_FOR_ALL, &f->replacement);
    if (error)
        return fail_file(path, error);
    f->stream = f->replacement.stream;
    if (old && (error = system_replacement_permit(&f->replacement, old)) != 0)
        return fail_file(path, error);
    return RLXVK_OK;
}

rlxvk_status new_file_open(const char *path, new_file *out)
{
    system_entry entry;
    rlxvk_status status;
    *out = (new_file){0};
    int error = system_look(path, &entry);
    bool exists = error == 0;
    if (!exists && (error != ENOENT || !*path))
        return fail_file(path, error);
    if (exists && (error = system_may_write(path)) != 0)
        return fail_file(path, error);
    TRY(exists && entry.kind != SYSTEM_FILE ? open_direct(path, out)
                                            : open_beside(path, exists ? &entry : NULL, out));
    return RLXVK_OK;
error:
    new_file_discard(out);
    return status;
}

void new_file_discard(new_file *f)
{
    if (f->replacement.stream)
        system_replacement_discard(&f->replacement);
    else if (f->stream)
        fclose(f->stream);
    memory_free(f->path);
    *f = (new_file){0};
}

static int close_direct(FILE *stream)
{
    errno = 0;
    bool good = !ferror(stream), closed = fclose(stream) == 0;
    return good && closed ? 0 : errno ? errno : -1;
}

rlxvk_status new_file_close(new_file *f)
{
    int error = f->replacement.stream ? system_replacement_finish(&f->replacement)
                                      : close_direct(f->stream);
    rlxvk_status status = error ? fail_file(f->path, error) : RLXVK_OK;
    f->stream = NULL;
    new_file_discard(f);
    return status;
}

rlxvk_status new_file_check(const char *path)
{
    system_entry entry;
    new_file file;
    if (system_look(path, &entry) == 0 && entry.kind == SYSTEM_OTHER) {
        int error = system_may_write(path); /* opening may wait for a reader */
        return error ? fail_file(path, error) : RLXVK_OK;
    }
    rlxvk_status status = new_file_open(path, &file);
    if (status == RLXVK_OK)
        new_file_discard(&file);
    return status;
}
