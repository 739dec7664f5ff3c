/*
 * The operating system: clock and calendar, the environment, forks, locks and threads, libraries,
 * and files. No other file of the library includes a header of the operating system. Paths and
 * texts are UTF-8 everywhere, and paths may have '/' everywhere. An error is an errno.
 */
#ifndef RLXVK_SYSTEM_H
#define RLXVK_SYSTEM_H

#include "base/base.h"

#include <stdio.h>
#ifndef _WIN32
#include <pthread.h>
#endif

/* ---- Time ---- */

/* Nanoseconds since some time in the past. They never go back. */
uint64_t system_nanoseconds(void);
/* Seconds of processor time of the calling thread, and of all threads of the process. */
double system_thread_seconds(void);
double system_process_seconds(void);

/* The day of the local calendar; months and days begin at 1. */
typedef struct system_day {
    int year, month, day;
} system_day;
/* False: the system does not know it. */
bool system_today(system_day *out);

/* ---- Environment ---- */

/* The value of an environment variable, or NULL. It is always NULL in a program that has more
 * rights than its caller (set-user-ID, set-group-ID, file capabilities). That is because the caller
 * controls the environment. */
const char *system_environment(const char *name);
/* The variable of this index, as "NAME=value"; NULL behind the last. All are NULL in a program with
 * more rights than its caller. */
const char *system_environment_entry(size_t index);
/* Sets a variable of this process and of those that it starts. False if out of memory. */
bool system_environment_set(const char *name, const char *value);

/* Whether the PCI device at this address ("0000:65:00.0") has no connector for a display, as far as
 * the system tells: its class is that of a 3D controller, not of a display controller. */
bool system_lacks_display(const char *pci_address);

/* ---- Processes and threads ---- */

/* How often this process was forked from one that had already called this function. Threads and
 * devices stay with the parent, so a change tells that they are gone. */
unsigned system_forks(void);

size_t system_processor_count(void);

/* A lock that only one thread has. It is not recursive. */
#ifdef _WIN32
typedef struct system_lock {
    void *word; /* an SRWLOCK */
} system_lock;
#define SYSTEM_LOCK_INITIALIZER                                                                    \
    {                                                                                              \
        0                                                                                          \
    }
#else
typedef pthread_mutex_t system_lock;
#define SYSTEM_LOCK_INITIALIZER PTHREAD_MUTEX_INITIALIZER
#endif
RLXVK_MUST_CHECK bool system_lock_create(system_lock *lock);
void system_lock_destroy(system_lock *lock);
void system_lock_take(system_lock *lock);
void system_lock_release(system_lock *lock);

/* A thread that calls work(argument). The object must stay where it is until system_thread_join. */
typedef void system_thread_work(void *argument);
typedef struct system_thread {
    system_thread_work *work;
    void *argument;
    uintptr_t handle;
} system_thread;
/* False: the system has no more threads. */
RLXVK_MUST_CHECK bool system_thread_start(system_thread *out, system_thread_work *work,
                                          void *argument);
void system_thread_join(system_thread *thread);
/* A number of the calling thread. No other thread that runs has it. */
uintptr_t system_thread_self(void);

/* ---- Libraries ---- */

typedef void (*system_function)(void);
/* NULL: it cannot be opened. */
void *system_library_open(const char *name);
/* NULL: there is no such function. */
system_function system_library_function(void *library, const char *name);
void system_library_close(void *library);

/* The names of the Vulkan loader, to be tried in this order, and what to do if there is none. */
extern const char *const system_vulkan_names[]; /* ends with NULL */
extern const char system_vulkan_advice[];

/* ---- Texts ---- */

/* Between the two calls, this thread writes and reads numbers as the C locale does. */
typedef struct system_locale {
    void *own, *before;
} system_locale;
system_locale system_c_locale_enter(void);
void system_c_locale_leave(system_locale locale);

/* ---- Files ---- */

/* Like fopen. The processes that this one starts do not get the file. */
FILE *system_stream_open(const char *path, const char *mode);

/* A regular file that is read by offsets. Many threads may read it at once. */
typedef struct system_file {
    intptr_t handle;
} system_file;
#define SYSTEM_NOT_REGULAR (-2)
/* Returns 0, an errno, or SYSTEM_NOT_REGULAR. Does not wait, whatever is there. *out_length is the
 * length now. */
RLXVK_MUST_CHECK int system_file_open(const char *path, system_file *out, uint64_t *out_length);
/* Reads up to `size` bytes; *out_got is 0 at the end of the file. */
RLXVK_MUST_CHECK int system_file_read(const system_file *file, uint64_t offset, void *out,
                                      uint64_t size, size_t *out_got);
void system_file_close(system_file *file);

/* A file to which whole lines are written at once, so that a killed process leaves no half line. */
typedef struct system_output {
    intptr_t handle;
} system_output;
/* Creates the file if there is none. `appends`: keeps what is there, and each write goes to the
 * end, also if other processes write. Otherwise the file becomes empty. */
RLXVK_MUST_CHECK int system_output_open(const char *path, bool appends, system_output *out);
RLXVK_MUST_CHECK int system_output_write(const system_output *file, const void *bytes, size_t size);
/* Takes the file for this process and those that share it. EBUSY: another has it. */
RLXVK_MUST_CHECK int system_output_lock(const system_output *file);
/* Cuts the file to this length. */
RLXVK_MUST_CHECK int system_output_cut(const system_output *file, uint64_t length);
/* Asks the disk to keep what was written. */
RLXVK_MUST_CHECK int system_output_keep(const system_output *file);
RLXVK_MUST_CHECK int system_output_close(system_output *file);

/* What is at a path. Links are followed. */
typedef enum system_kind {
    SYSTEM_FILE,
    SYSTEM_FOLDER,
    SYSTEM_OTHER /* a pipe, a device, or a name for an open file of a process */
} system_kind;
typedef struct system_entry {
    system_kind kind;
    unsigned mode; /* its permissions, for system_replacement_permit */
} system_entry;
/* ENOENT: nothing is there. */
RLXVK_MUST_CHECK int system_look(const char *path, system_entry *out);
/* Whether this process may write, or read, what is at the path. Returns 0, or an errno. */
RLXVK_MUST_CHECK int system_may_write(const char *path);
RLXVK_MUST_CHECK int system_may_read(const char *path);
/* Where the path leads, without links, with '/' between names. The caller frees it with
 * memory_free. */
RLXVK_MUST_CHECK int system_path_resolve(const char *path, char **out);
/* Creates every folder above the file, for this user alone. A failure shows when the file is
 * opened. */
void system_make_folders(const char *path);
/* The folder for this user's caches; false if there is none. */
bool system_cache_folder(char *out, size_t size);
/* What a user without such a folder is to set. */
extern const char system_cache_variables[];

/*
 * A file that takes its name only when it is complete. It is written beside its place, under the
 * name <path>.rlxvk-new, so that the old file survives every failure. Its writer holds a lock on
 * it. If a process is killed while it writes, the next writer removes the leftover.
 */
typedef struct system_replacement {
    FILE *stream; /* to write to */
    char *path, *temporary;
} system_replacement;

/* Who may read a new file: those whom the folder and the umask allow, or its user alone. */
typedef enum system_audience { SYSTEM_FOR_ALL, SYSTEM_FOR_USER } system_audience;

/* Returns 0, or an errno. EBUSY: another writer is active. On failure *out is zeroed. */
RLXVK_MUST_CHECK int system_replacement_begin(const char *path, system_audience audience,
                                              system_replacement *out);
/* Gives the new file the permissions of the one that it will replace. */
RLXVK_MUST_CHECK int system_replacement_permit(system_replacement *r, const system_entry *old);
/* Puts the file in its place. It asks the disk to keep first the content and then the name. So
 * after a crash the path has either the old file or the new one, complete. If writing or renaming
 * fails, the old file stays. Returns 0, or an errno, or -1 if an earlier write failed, because its
 * errno is lost. */
RLXVK_MUST_CHECK int system_replacement_finish(system_replacement *r);
void system_replacement_discard(system_replacement *r);

#endif
