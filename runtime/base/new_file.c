/* See new_file.h. */
#include "base/new_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* `error` is errno, or -1 if an earlier write has failed. */
static rlxvk_status fail_file(const char *path, int error)
{
    return status_fail(RLXVK_E_FILE, "'%s': cannot be written: %s", path,
                       error == EBUSY ? "another process is writing it"
                       : error > 0    ? strerror(error)
                                      : "an earlier write failed; is the device full?");
}

/* /dev and /proc also name open files of a process. If such a name were replaced, for example
 * /dev/stdout, the stream would lose its file. */
static bool is_direct(const char *path, const struct stat *info)
{
    return !S_ISREG(info->st_mode) || strncmp(path, "/dev/", 5) == 0 ||
           strncmp(path, "/proc/", 6) == 0;
}

static rlxvk_status open_direct(const char *path, new_file *f)
{
    f->path = memory_copy_string(path);
    if (!f->path)
        return status_fail_memory("path");
    f->stream = fopen(path, "a");
    return f->stream ? RLXVK_OK : fail_file(path, errno);
}

/* `old` is NULL if there is no file yet. */
static rlxvk_status open_beside(const char *path, const struct stat *old, new_file *f)
{
    char *real = old ? realpath(path, NULL) : NULL;
    f->path = memory_copy_string(real ? real : path);
    free(real);
    if (!f->path)
        return status_fail_memory("path");
    int error = system_replacement_begin(f->path, 0666, &f->replacement);
    if (error)
        return fail_file(path, error);
    f->stream = f->replacement.stream;
    if (old && fchmod(fileno(f->stream), old->st_mode & 07777) != 0)
        return fail_file(path, errno);
    return RLXVK_OK;
}

rlxvk_status new_file_open(const char *path, new_file *out)
{
    struct stat info;
    rlxvk_status status;
    *out = (new_file){0};
    bool exists = stat(path, &info) == 0;
    if (!exists && (errno != ENOENT || !*path))
        return fail_file(path, errno);
    if (exists && access(path, W_OK) != 0)
        return fail_file(path, errno);
    TRY(exists && is_direct(path, &info) ? open_direct(path, out)
                                         : open_beside(path, exists ? &info : NULL, out));
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
    struct stat info;
    new_file file;
    if (stat(path, &info) == 0 && is_direct(path, &info) && !S_ISDIR(info.st_mode))
        return access(path, W_OK) == 0 ? RLXVK_OK
                                       : fail_file(path, errno); /* opening may wait for a reader */
    rlxvk_status status = new_file_open(path, &file);
    if (status == RLXVK_OK)
        new_file_discard(&file);
    return status;
}
