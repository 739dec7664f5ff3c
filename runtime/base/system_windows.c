/* See system.h. system_files_windows.c has the files. */
#define WIN32_LEAN_AND_MEAN
#include "base/system.h"
#include "base/system_windows.h"

#include <windows.h>

#include <locale.h>
#include <process.h>
#include <stdlib.h>
#include <string.h>

/* A thread's stack is as large as elsewhere. */
#define STACK_BYTES (8u << 20)

/* ---- Texts ---- */

bool system_narrow(const wchar_t *wide, char *out, size_t size)
{
    return WideCharToMultiByte(CP_UTF8, 0, wide, -1, out, (int)size, NULL, NULL) > 0;
}

/* Without this, each thread would change the locale of all. */
system_locale system_c_locale_enter(void)
{
    system_locale l = {0};
    if (strcmp(localeconv()->decimal_point, ".") == 0)
        return l;
    l.before = (void *)(intptr_t)_configthreadlocale(_ENABLE_PER_THREAD_LOCALE);
    l.own = _strdup(setlocale(LC_NUMERIC, NULL));
    setlocale(LC_NUMERIC, "C");
    return l;
}

void system_c_locale_leave(system_locale locale)
{
    if (!locale.before)
        return;
    if (locale.own)
        setlocale(LC_NUMERIC, locale.own);
    free(locale.own);
    _configthreadlocale((int)(intptr_t)locale.before);
}

/* ---- Time ---- */

uint64_t system_nanoseconds(void)
{
    LARGE_INTEGER now, frequency;
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&frequency);
    uint64_t ticks = (uint64_t)now.QuadPart, second = (uint64_t)frequency.QuadPart;
    return ticks / second * 1000000000u + ticks % second * 1000000000u / second;
}

/* FILETIME counts 100 ns. */
static double sum_of(FILETIME kernel, FILETIME user)
{
    uint64_t a = (uint64_t)kernel.dwHighDateTime << 32 | kernel.dwLowDateTime;
    uint64_t b = (uint64_t)user.dwHighDateTime << 32 | user.dwLowDateTime;
    return 1e-7 * (double)(a + b);
}

double system_thread_seconds(void)
{
    FILETIME created, ended, kernel, user;
    bool known = GetThreadTimes(GetCurrentThread(), &created, &ended, &kernel, &user);
    return known ? sum_of(kernel, user) : 0;
}

double system_process_seconds(void)
{
    FILETIME created, ended, kernel, user;
    bool known = GetProcessTimes(GetCurrentProcess(), &created, &ended, &kernel, &user);
    return known ? sum_of(kernel, user) : 0;
}

bool system_today(system_day *out)
{
    SYSTEMTIME now;
    GetLocalTime(&now);
    *out = (system_day){now.wYear, now.wMonth, now.wDay};
    return true;
}

/* ---- Environment ---- */

/* Values in UTF-8. They stay until the process ends, because callers keep them. */
typedef struct remembered {
    struct remembered *next;
    char text[];
} remembered;

static const char *remember(const wchar_t *wide)
{
    static system_lock lock = SYSTEM_LOCK_INITIALIZER;
    static remembered *all;
    int size = WideCharToMultiByte(CP_UTF8, 0, wide, -1, NULL, 0, NULL, NULL);
    remembered *made = size > 0 ? malloc(sizeof *made + (size_t)size) : NULL, *found;
    if (!made)
        return NULL;
    system_narrow(wide, made->text, (size_t)size);
    system_lock_take(&lock);
    for (found = all; found && strcmp(found->text, made->text) != 0;)
        found = found->next;
    if (!found) {
        made->next = all;
        all = made;
    }
    system_lock_release(&lock);
    if (found)
        free(made);
    return found ? found->text : made->text;
}

const char *system_environment(const char *name)
{
    wchar_t wide[256];
    const wchar_t *value = NULL;
    if (MultiByteToWideChar(CP_UTF8, 0, name, -1, wide, ARRAY_COUNT(wide)) > 0)
        value = _wgetenv(wide);
    return value ? remember(value) : NULL;
}

const char *system_environment_entry(size_t index)
{
    _wgetenv(L"PATH"); /* makes _wenviron */
    return _wenviron && _wenviron[index] ? remember(_wenviron[index]) : NULL;
}

bool system_environment_set(const char *name, const char *value)
{
    wchar_t wide_name[256], wide_value[SYSTEM_PATH_SIZE];
    return MultiByteToWideChar(CP_UTF8, 0, name, -1, wide_name, ARRAY_COUNT(wide_name)) > 0 &&
           MultiByteToWideChar(CP_UTF8, 0, value, -1, wide_value, ARRAY_COUNT(wide_value)) > 0 &&
           _wputenv_s(wide_name, wide_value) == 0;
}

/* Windows tells whether an adapter drives a display, but not whether it could. */
bool system_lacks_display(const char *pci_address)
{
    (void)pci_address;
    return false;
}

/* ---- Processes and threads ---- */

/* Processes of Windows do not fork. */
unsigned system_forks(void)
{
    return 0;
}

size_t system_processor_count(void)
{
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return info.dwNumberOfProcessors > 1 ? info.dwNumberOfProcessors : 1;
}

bool system_lock_create(system_lock *lock)
{
    *lock = (system_lock)SYSTEM_LOCK_INITIALIZER;
    return true;
}

void system_lock_destroy(system_lock *lock)
{
    lock->word = NULL; /* it holds nothing of the system */
}

void system_lock_take(system_lock *lock)
{
    AcquireSRWLockExclusive((SRWLOCK *)&lock->word);
}

void system_lock_release(system_lock *lock)
{
    ReleaseSRWLockExclusive((SRWLOCK *)&lock->word);
}

static unsigned __stdcall enter_thread(void *argument)
{
    system_thread *thread = argument;
    thread->work(thread->argument);
    return 0;
}

bool system_thread_start(system_thread *out, system_thread_work *work, void *argument)
{
    *out = (system_thread){work, argument, 0};
    out->handle = _beginthreadex(NULL, STACK_BYTES, enter_thread, out,
                                 STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
    return out->handle != 0;
}

void system_thread_join(system_thread *thread)
{
    WaitForSingleObject((HANDLE)thread->handle, INFINITE);
    CloseHandle((HANDLE)thread->handle);
}

uintptr_t system_thread_self(void)
{
    return GetCurrentThreadId();
}

/* ---- Libraries ---- */

const char *const system_vulkan_names[] = {"vulkan-1.dll", NULL};
const char system_vulkan_advice[] = "install the device's driver, which brings it";

/* Not from the folder in which the program happens to run. */
void *system_library_open(const char *name)
{
    wchar_t wide[SYSTEM_PATH_SIZE];
    return system_wide_path(name, wide)
               ? LoadLibraryExW(wide, NULL, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS)
               : NULL;
}

system_function system_library_function(void *library, const char *name)
{
    return (system_function)(void *)GetProcAddress(library, name);
}

void system_library_close(void *library)
{
    FreeLibrary(library);
}
