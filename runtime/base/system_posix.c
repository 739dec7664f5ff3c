/* See system.h. system_files_posix.c has the files. */
#include "base/system.h"
#include "base/atomic.h"

#include <dlfcn.h>
#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif

extern char **environ;

/* ---- Time ---- */

static double clock_read(clockid_t clock)
{
    struct timespec time = {0};
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

uint64_t system_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

double system_thread_seconds(void)
{
    return clock_read(CLOCK_THREAD_CPUTIME_ID);
}

double system_process_seconds(void)
{
    return clock_read(CLOCK_PROCESS_CPUTIME_ID);
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

/* ---- Environment ---- */

static bool is_privileged(void)
{
#ifdef __linux__
    return getauxval(AT_SECURE) != 0;
#else
    return issetugid() != 0;
#endif
}

const char *system_environment(const char *name)
{
    return is_privileged() ? NULL : getenv(name);
}

const char *system_environment_entry(size_t index)
{
    return is_privileged() || !environ ? NULL : environ[index];
}

bool system_environment_set(const char *name, const char *value)
{
    return setenv(name, value, 1) == 0;
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
    atomic_add_alone(&forks, 1);
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, count_fork);
}

unsigned system_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_forks);
    return atomic_read_alone(&forks);
}

/* ---- Locks and threads ---- */

size_t system_processor_count(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 1 ? (size_t)count : 1;
}

bool system_lock_create(system_lock *lock)
{
    return pthread_mutex_init(lock, NULL) == 0;
}

void system_lock_destroy(system_lock *lock)
{
    pthread_mutex_destroy(lock);
}

void system_lock_take(system_lock *lock)
{
    pthread_mutex_lock(lock);
}

void system_lock_release(system_lock *lock)
{
    pthread_mutex_unlock(lock);
}

static void *enter_thread(void *argument)
{
    system_thread *thread = argument;
    thread->work(thread->argument);
    return NULL;
}

/* pthread_t is a number or a pointer on every system that has Vulkan. */
bool system_thread_start(system_thread *out, system_thread_work *work, void *argument)
{
    pthread_t made;
    *out = (system_thread){work, argument, 0};
    if (pthread_create(&made, NULL, enter_thread, out) != 0)
        return false;
    out->handle = (uintptr_t)made;
    return true;
}

void system_thread_join(system_thread *thread)
{
    pthread_join((pthread_t)thread->handle, NULL);
}

uintptr_t system_thread_self(void)
{
    return (uintptr_t)pthread_self();
}

/* ---- Libraries ---- */

#ifdef __APPLE__
const char *const system_vulkan_names[] = {"libvulkan.1.dylib", "libvulkan.dylib",
                                           "libMoltenVK.dylib", NULL};
const char system_vulkan_advice[] = "install the Vulkan SDK or MoltenVK";
#elif defined __ANDROID__
const char *const system_vulkan_names[] = {"libvulkan.so", NULL};
const char system_vulkan_advice[] = "this device has none";
#else
const char *const system_vulkan_names[] = {"libvulkan.so.1", "libvulkan.so", NULL};
const char system_vulkan_advice[] =
    "install the distribution's package (libvulkan1, vulkan-loader) and a driver";
#endif

void *system_library_open(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

/* POSIX guarantees that a function pointer survives conversion to void *; ISO C has no cast for
 * it. */
system_function system_library_function(void *library, const char *name)
{
    system_function found;
    *(void **)&found = dlsym(library, name);
    return found;
}

void system_library_close(void *library)
{
    dlclose(library);
}

/* ---- Texts ---- */

system_locale system_c_locale_enter(void)
{
    locale_t own = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return (system_locale){.own = (void *)own, .before = (void *)uselocale(own)};
}

void system_c_locale_leave(system_locale locale)
{
    uselocale((locale_t)locale.before);
    if (locale.own)
        freelocale((locale_t)locale.own);
}
