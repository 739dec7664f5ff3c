/* The files of system.h. A temporary file belongs to the process that locks it. If none does, it is
 * stale. */
#define _DEFAULT_SOURCE /* flock */
#include "base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENDING   ".rlxvk-new"
#define ATTEMPTS 16

FILE *system_stream_open(const char *path, const char *mode)
{
    char closing[8];
    snprintf(closing, sizeof closing, "%se", mode);
    return fopen(path, closing);
}

/* ---- Reading by offsets ---- */

void system_file_close(system_file *file)
{
    if (file->handle >= 0)
        close((int)file->handle);
    file->handle = -1;
}

int system_file_open(const char *path, system_file *out, uint64_t *out_length)
{
    struct stat info;
    int error = 0, descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *out = (system_file){.handle = descriptor};
    if (descriptor < 0)
        return errno;
    if (fstat(descriptor, &info) != 0)
        error = errno;
    else if (!S_ISREG(info.st_mode))
        error = SYSTEM_NOT_REGULAR;
    if (error)
        system_file_close(out);
    else
        *out_length = (uint64_t)info.st_size;
    return error;
}

int system_file_read(const system_file *file, uint64_t offset, void *out, uint64_t size,
                     size_t *out_got)
{
    _Static_assert(sizeof(off_t) == 8, "files may have more than 2 GiB, also with 32 bits");
    ssize_t got;
    do
        got = pread((int)file->handle, out, (size_t)MIN(size, SIZE_MAX / 2), (off_t)offset);
    while (got < 0 && errno == EINTR);
    *out_got = got > 0 ? (size_t)got : 0;
    return got < 0 ? errno : 0;
}

/* ---- Writing whole lines ---- */

int system_output_open(const char *path, bool appends, system_output *out)
{
    int mode = appends ? O_RDWR | O_APPEND : O_WRONLY | O_TRUNC;
    out->handle = open(path, mode | O_CREAT | O_CLOEXEC, 0666);
    return out->handle < 0 ? errno : 0;
}

int system_output_write(const system_output *file, const void *bytes, size_t size)
{
    for (const char *at = bytes; size;) {
        ssize_t written = write((int)file->handle, at, size);
        if (written < 0 && errno != EINTR)
            return errno;
        at += written > 0 ? written : 0;
        size -= written > 0 ? (size_t)written : 0;
    }
    return 0;
}

int system_output_lock(const system_output *file)
{
    if (flock((int)file->handle, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return errno == EWOULDBLOCK ? EBUSY : errno;
}

int system_output_cut(const system_output *file, uint64_t length)
{
    return ftruncate((int)file->handle, (off_t)length) == 0 ? 0 : errno;
}

int system_output_keep(const system_output *file)
{
    return fsync((int)file->handle) == 0 ? 0 : errno;
}

int system_output_close(system_output *file)
{
    int error = close((int)file->handle) == 0 ? 0 : errno;
    file->handle = -1;
    return error;
}

/* ---- Paths ---- */

/* /dev and /proc also name open files of a process. If such a name were replaced, for example
 * /dev/stdout, the stream would lose its file. */
int system_look(const char *path, system_entry *out)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return errno;
    bool open_file = strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0;
    out->kind = S_ISDIR(info.st_mode)                 ? SYSTEM_FOLDER
                : S_ISREG(info.st_mode) && !open_file ? SYSTEM_FILE
                                                      : SYSTEM_OTHER;
    out->mode = info.st_mode & 07777;
    return 0;
}

int system_may_write(const char *path)
{
    return access(path, W_OK) == 0 ? 0 : errno;
}

int system_may_read(const char *path)
{
    return access(path, R_OK) == 0 ? 0 : errno;
}

int system_path_resolve(const char *path, char **out)
{
    char *found = realpath(path, NULL);
    int error = found ? 0 : errno;
    *out = memory_copy_string(found);
    free(found);
    return error ? error : *out ? 0 : ENOMEM;
}

void system_make_folders(const char *path)
{
    char partial[4096];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(partial, sizeof(partial), "%.*s", (int)(slash - path), path);
        mkdir(partial, 0700);
    }
}

const char system_cache_variables[] = "XDG_CACHE_HOME or HOME";

/* A relative XDG_CACHE_HOME is invalid by its specification. A home that does not exist is not
 * created, because daemons often have one. */
bool system_cache_folder(char *out, size_t size)
{
    const char *cache = system_environment("XDG_CACHE_HOME"), *home = system_environment("HOME");
    system_entry entry;
    int length = 0;
    if (cache && *cache == '/')
        length = snprintf(out, size, "%s", cache);
    else if (home && *home && system_look(home, &entry) == 0 && entry.kind == SYSTEM_FOLDER)
        length = snprintf(out, size, "%s/.cache", home);
    return length > 0 && (size_t)length < size;
}

/* ---- Replacements ---- */

/* If the file system has no locks, this succeeds: then users must keep to one writer at a time. */
static bool lock(int descriptor)
{
    return flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

/* Whether the name still belongs to this file. Another writer may have renamed or removed it. */
static bool is_named(int descriptor, const char *path)
{
    struct stat opened, named;
    return !fstat(descriptor, &opened) && !lstat(path, &named) && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

/* Removes the temporary file of a killed process. Returns 0, or an errno. */
static int remove_stale(const char *path)
{
    struct stat info;
    int error = 0;
    int descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0)
        return errno == ENOENT ? 0 : errno;
    if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode))
        error = EEXIST;
    else if (!lock(descriptor))
        error = EBUSY;
    else if (is_named(descriptor, path) && unlink(path) != 0)
        error = errno;
    close(descriptor);
    return error;
}

/* Creates a new file with that name and locks it. It tries again if another writer took the file
 * for a stale one before it was locked. */
static int create_locked(const char *path, unsigned mode, int *out)
{
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        int descriptor =
            open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, (mode_t)mode);
        if (descriptor >= 0 && lock(descriptor) && is_named(descriptor, path)) {
            *out = descriptor;
            return 0;
        }
        int error = descriptor >= 0 ? 0 : errno;
        if (descriptor >= 0)
            close(descriptor);
        else if (error == EEXIST)
            error = remove_stale(path);
        if (error)
            return error;
    }
    return EBUSY;
}

int system_replacement_begin(const char *path, system_audience audience, system_replacement *out)
{
    int descriptor = -1, error;
    unsigned mode = audience == SYSTEM_FOR_USER ? 0600 : 0666;
    size_t size = strlen(path) + sizeof ENDING;
    system_replacement r = {.path = memory_copy_string(path), .temporary = memory_allocate(size)};
    *out = (system_replacement){0};
    error = r.path && r.temporary ? 0 : ENOMEM;
    if (!error) {
        snprintf(r.temporary, size, "%s" ENDING, path);
        error = create_locked(r.temporary, mode, &descriptor);
    }
    if (!error && !(r.stream = fdopen(descriptor, "wb"))) {
        error = errno;
        unlink(r.temporary);
        close(descriptor);
    }
    if (!error) {
        *out = r;
        return 0;
    }
    memory_free(r.path);
    memory_free(r.temporary);
    return error;
}

int system_replacement_permit(system_replacement *r, const system_entry *old)
{
    return fchmod(fileno(r->stream), (mode_t)old->mode) == 0 ? 0 : errno;
}

/* Only EIO is an error. Others (EINVAL, EROFS, ENOTSUP) mean that the file system cannot sync this
 * descriptor and need not. */
static int keep(int descriptor)
{
    return fsync(descriptor) == 0 || errno != EIO ? 0 : EIO;
}

/* Syncs the entry in the folder of `path`. `path` is changed during the call and then restored. */
static int keep_name(char *path)
{
    char *slash = strrchr(path, '/');
    const char *folder = !slash ? "." : slash == path ? "/" : path;
    if (slash)
        *slash = 0;
    int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (slash)
        *slash = '/';
    int error = descriptor < 0 ? 0 : keep(descriptor); /* it may be writable but not readable */
    if (descriptor >= 0)
        close(descriptor);
    return error;
}

static void release(system_replacement *r)
{
    if (r->stream)
        fclose(r->stream); /* also releases the lock, which survives the rename */
    memory_free(r->path);
    memory_free(r->temporary);
    *r = (system_replacement){0};
}

int system_replacement_finish(system_replacement *r)
{
    int error = ferror(r->stream) ? -1 : 0;
    if (!error && fflush(r->stream) != 0)
        error = errno;
    if (!error)
        error = keep(fileno(r->stream));
    if (!error && rename(r->temporary, r->path) != 0)
        error = errno;
    if (error) {
        system_replacement_discard(r);
        return error;
    }
    error = keep_name(r->path);
    release(r);
    return error;
}

void system_replacement_discard(system_replacement *r)
{
    if (r->temporary)
        unlink(r->temporary);
    release(r);
}
