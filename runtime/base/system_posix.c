/* See system.h. A temporary file belongs to the process that locks it. If none does, it is
 * stale. */
#define _DEFAULT_SOURCE /* flock */
#include "base/system.h"

#include <pthread.h>
#include <stdatomic.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif

#define ENDING   ".rlxvk-new"
#define ATTEMPTS 16

extern char **environ;

/* ---- Environment ---- */

static bool is_privileged(void)
{
#ifdef __linux__
    return getauxval(AT_SECURE) != 0;
#else
    return issetugid() != 0;
#endif
}

uint64_t system_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool system_today(system_day *out)
{
    time_t now = time(NULL);
    struct tm day;
    if (now == (time_t)-1 || !localtime_r(&now, &day))
        return false;
    *out = (system_day){day.tm_year + 1900, day.tm_mon + 1, day.tm_mday};
    return true;
}

const char *system_environment(const char *name)
{
    return is_privileged() ? NULL : getenv(name);
}

char **system_environment_list(void)
{
    return is_privileged() ? NULL : environ;
}

/* ---- Devices ---- */

bool system_lacks_display(const char *pci_address)
{
    char path[64], class[16] = "";
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/class", pci_address);
    FILE *file = *pci_address ? fopen(path, "re") : NULL;
    bool read = file && fgets(class, sizeof class, file);
    if (file)
        fclose(file);
    return read && strncmp(class, "0x0302", 6) == 0;
}

/* ---- Forks ---- */

static atomic_uint forks;

static void count_fork(void)
{
    atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, count_fork);
}

unsigned system_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_forks);
    return atomic_load_explicit(&forks, memory_order_relaxed);
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

int system_replacement_begin(const char *path, unsigned mode, system_replacement *out)
{
    int descriptor = -1, error;
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
