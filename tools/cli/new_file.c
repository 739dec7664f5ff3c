/* Temporary names are the file's own with the process number behind it, in the same folder, since a
 * rename does not cross file systems. */
#include "cli/new_file.h"
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static rlxvk_status fail_file(const char *path)
{
    return status_fail(RLXVK_E_FILE, "'%s': cannot be written: %s", path, write_error_text(errno));
}

/* The open files of a process have names too: replacing what stands behind /dev/stdout would leave
 * the stream without its file. */
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
    return f->stream ? RLXVK_OK : fail_file(path);
}

/* `old` is NULL when nothing stands there yet. */
static rlxvk_status open_beside(const char *path, const struct stat *old, new_file *f)
{
    char *real = old ? realpath(path, NULL) : NULL;
    const char *place = real ? real : path;
    size_t size = strlen(place) + 32;
    f->path = memory_copy_string(place);
    f->temporary = memory_zeroed(size, 1);
    free(real);
    if (!f->path || !f->temporary)
        return status_fail_memory("path");
    snprintf(f->temporary, size, "%s.%ld.new", f->path, (long)getpid());
    int descriptor = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0) {
        rlxvk_status status = fail_file(f->temporary);
        memory_free(f->temporary); /* nothing to remove */
        f->temporary = NULL;
        return status;
    }
    f->stream = fdopen(descriptor, "w");
    if (!f->stream) {
        close(descriptor);
        return fail_file(path);
    }
    return old && fchmod(descriptor, old->st_mode & 07777) != 0 ? fail_file(path) : RLXVK_OK;
}

rlxvk_status new_file_open(const char *path, new_file *out)
{
    struct stat info;
    rlxvk_status status;
    *out = (new_file){0};
    bool exists = stat(path, &info) == 0;
    if (!exists && (errno != ENOENT || !*path))
        return fail_file(path);
    if (exists && access(path, W_OK) != 0)
        return fail_file(path);
    TRY(exists && is_direct(path, &info) ? open_direct(path, out)
                                         : open_beside(path, exists ? &info : NULL, out));
    return RLXVK_OK;
error:
    new_file_discard(out);
    return status;
}

void new_file_discard(new_file *f)
{
    if (f->stream)
        fclose(f->stream);
    if (f->temporary)
        unlink(f->temporary);
    memory_free(f->path);
    memory_free(f->temporary);
    *f = (new_file){0};
}

rlxvk_status new_file_close(new_file *f)
{
    rlxvk_status status = RLXVK_OK;
    errno = 0;
    bool good = !ferror(f->stream), closed = fclose(f->stream) == 0;
    f->stream = NULL;
    if (!good || !closed)
        status = fail_file(f->path);
    else if (f->temporary && rename(f->temporary, f->path) != 0)
        status = fail_file(f->path);
    else {
        memory_free(f->temporary); /* it has its name */
        f->temporary = NULL;
    }
    new_file_discard(f);
    return status;
}

rlxvk_status new_file_check(const char *path)
{
    struct stat info;
    new_file file;
    if (stat(path, &info) == 0 && is_direct(path, &info) && !S_ISDIR(info.st_mode))
        return access(path, W_OK) == 0 ? RLXVK_OK
                                       : fail_file(path); /* opening may wait for a reader */
    rlxvk_status status = new_file_open(path, &file);
    if (status == RLXVK_OK)
        new_file_discard(&file);
    return status;
}
