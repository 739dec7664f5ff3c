/* See worker.h. A worker is this program, started again. Its environment says which number it has,
 * and which handles of its caller it got: its pipe, and the shared memory in the order in which the
 * caller made it. */
#define WIN32_LEAN_AND_MEAN
#include "system/worker.h"
#include "base/system_windows.h"
#include "system/program.h"

#include <windows.h>

#include <stdlib.h>
#include <string.h>

#define VARIABLE L"_RLXVK_WORKER" /* no switch begins so */
enum { MOST_SHARED = 8, LOOK_MS = 2, KILLED = 9, MOST_COMMAND = 32768 };

/* ---- Memory ---- */

typedef struct shared_memory {
    HANDLE mapping;
    void *address;
} shared_memory;

static shared_memory shared[MOST_SHARED];

/* What a worker got from its caller: numbers parted by spaces. */
typedef struct inheritance {
    bool restarted;
    size_t index;
    intptr_t out;
    HANDLE mappings[MOST_SHARED];
} inheritance;

static const inheritance *inherited(void)
{
    static inheritance own;
    static bool read;
    wchar_t value[512], *at = value;
    if (read)
        return &own;
    read = true;
    DWORD length = GetEnvironmentVariableW(VARIABLE, value, ARRAY_COUNT(value));
    own.restarted = length > 0 && length < ARRAY_COUNT(value);
    if (!own.restarted)
        return &own;
    own.index = (size_t)_wcstoui64(at, &at, 10);
    own.out = (intptr_t)_wcstoui64(at, &at, 10);
    for (size_t i = 0; i < MOST_SHARED && *at; i++)
        own.mappings[i] = (HANDLE)(uintptr_t)_wcstoui64(at, &at, 10);
    SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX); /* no window about a crash */
    return &own;
}

void *worker_memory(size_t bytes)
{
    SECURITY_ATTRIBUTES inherit = {sizeof inherit, NULL, TRUE};
    uint64_t size = bytes;
    size_t i = 0;
    while (i < MOST_SHARED && shared[i].address)
        i++;
    if (i == MOST_SHARED)
        return NULL;
    HANDLE mapping = inherited()->restarted
                         ? inherited()->mappings[i]
                         : CreateFileMappingW(INVALID_HANDLE_VALUE, &inherit, PAGE_READWRITE,
                                              (DWORD)(size >> 32), (DWORD)size, NULL);
    void *address = mapping ? MapViewOfFile(mapping, FILE_MAP_ALL_ACCESS, 0, 0, bytes) : NULL;
    if (address)
        shared[i] = (shared_memory){mapping, address};
    else if (mapping)
        CloseHandle(mapping);
    return address;
}

void worker_memory_free(void *memory, size_t bytes)
{
    (void)bytes;
    for (size_t i = 0; memory && i < MOST_SHARED; i++)
        if (shared[i].address == memory) {
            UnmapViewOfFile(memory);
            CloseHandle(shared[i].mapping);
            shared[i] = (shared_memory){0};
        }
}

/* ---- Starting processes ---- */

/* Appends an argument as CommandLineToArgvW reads it. False if the line is full. */
static bool append_argument(wchar_t *line, const char *argument)
{
    wchar_t wide[SYSTEM_PATH_SIZE];
    size_t at = wcslen(line), slashes = 0;
    if (MultiByteToWideChar(CP_UTF8, 0, argument, -1, wide, SYSTEM_PATH_SIZE) <= 0 ||
        at + 2 * wcslen(wide) + 4 >= MOST_COMMAND)
        return false;
    if (at)
        line[at++] = L' ';
    line[at++] = L'"';
    for (const wchar_t *c = wide; *c; c++) {
        slashes = *c == L'\\' ? slashes + 1 : 0;
        if (*c == L'"') {
            for (const wchar_t *before = c; before > wide && before[-1] == L'\\'; before--)
                line[at++] = L'\\';
            line[at++] = L'\\';
        }
        line[at++] = *c;
    }
    while (slashes--)
        line[at++] = L'\\';
    line[at++] = L'"';
    line[at] = 0;
    return true;
}

/* Starts a command whose standard input or output is `stream`. NULL: it cannot be started. */
static HANDLE start(const wchar_t *program, wchar_t *line, HANDLE input, HANDLE output)
{
    STARTUPINFOW how = {.cb = sizeof how, .dwFlags = STARTF_USESTDHANDLES};
    PROCESS_INFORMATION made;
    fflush(NULL);
    how.hStdInput = input ? input : GetStdHandle(STD_INPUT_HANDLE);
    how.hStdOutput = output ? output : GetStdHandle(STD_OUTPUT_HANDLE);
    how.hStdError = GetStdHandle(STD_ERROR_HANDLE);
    if (!CreateProcessW(program, line, NULL, NULL, TRUE, 0, NULL, NULL, &how, &made))
        return NULL;
    CloseHandle(made.hThread);
    return made.hProcess;
}

/* A pipe whose end of that kind is inherited. */
static bool make_pipe(HANDLE *read, HANDLE *write, bool inherit_read)
{
    SECURITY_ATTRIBUTES inherit = {sizeof inherit, NULL, TRUE};
    if (!CreatePipe(read, write, &inherit, 0))
        return false;
    SetHandleInformation(inherit_read ? *write : *read, HANDLE_FLAG_INHERIT, 0);
    return true;
}

/* ---- Workers ---- */

/* Processes of this job end when its last handle is closed, at the latest with the caller. */
static void end_with_caller(HANDLE process)
{
    static HANDLE job;
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {.BasicLimitInformation.LimitFlags =
                                                       JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE};
    if (!job && (job = CreateJobObjectW(NULL, NULL)))
        SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits);
    if (job)
        AssignProcessToJobObject(job, process);
}

bool worker_start(worker_work *work, void *argument, size_t index, worker_process *out)
{
    wchar_t path[SYSTEM_PATH_SIZE], value[512], *line = _wcsdup(GetCommandLineW());
    HANDLE read, write, process = NULL;
    (void)work, (void)argument; /* it comes to them by itself */
    if (!line || !GetModuleFileNameW(NULL, path, SYSTEM_PATH_SIZE) ||
        !make_pipe(&read, &write, false)) {
        free(line);
        return false;
    }
    int length = swprintf(value, ARRAY_COUNT(value), L"%llu %llu", (unsigned long long)index,
                          (unsigned long long)(uintptr_t)write);
    for (size_t i = 0; i < MOST_SHARED; i++)
        length += swprintf(value + length, ARRAY_COUNT(value) - (size_t)length, L" %llu",
                           (unsigned long long)(uintptr_t)shared[i].mapping);
    if (SetEnvironmentVariableW(VARIABLE, value))
        process = start(path, line, NULL, NULL);
    SetEnvironmentVariableW(VARIABLE, NULL);
    free(line);
    CloseHandle(write);
    if (!process) {
        CloseHandle(read);
        return false;
    }
    end_with_caller(process);
    *out = (worker_process){(intptr_t)process, (intptr_t)read};
    return true;
}

bool worker_is_restarted(void)
{
    return inherited()->restarted;
}

void worker_enter(worker_work *work, void *argument)
{
    if (!inherited()->restarted)
        return;
    work(argument, inherited()->index, inherited()->out);
    fflush(NULL);
    _Exit(EXIT_SUCCESS);
}

bool worker_tell(intptr_t out, size_t number)
{
    DWORD written;
    return WriteFile((HANDLE)out, &number, sizeof number, &written, NULL) &&
           written == sizeof number;
}

/* There is something to read, or the pipe has ended. */
static bool is_ready(const worker_process *worker)
{
    DWORD there = 0;
    return worker->process && (!PeekNamedPipe((HANDLE)worker->in, NULL, 0, NULL, &there, NULL) ||
                               there >= sizeof(size_t));
}

void worker_wait(const worker_process *workers, size_t count, unsigned milliseconds, bool *ready)
{
    uint64_t end = system_nanoseconds() + milliseconds * UINT64_C(1000000);
    for (bool some = false; !some; some = some || system_nanoseconds() >= end) {
        for (size_t i = 0; i < count; i++) {
            ready[i] = is_ready(&workers[i]);
            some = some || ready[i];
        }
        if (!some)
            Sleep(LOOK_MS);
    }
}

bool worker_hear(const worker_process *worker, size_t *out)
{
    DWORD got = 0;
    return ReadFile((HANDLE)worker->in, out, sizeof *out, &got, NULL) && got == sizeof *out;
}

void worker_kill(const worker_process *worker)
{
    TerminateProcess((HANDLE)worker->process, KILLED);
}

bool worker_join(const worker_process *worker, text *how)
{
    DWORD code = 1;
    WaitForSingleObject((HANDLE)worker->process, INFINITE);
    GetExitCodeProcess((HANDLE)worker->process, &code);
    if (code >= 0xc0000000u)
        text_append(how, "ended by exception 0x%08lx", (unsigned long)code);
    else
        text_append(how, "ended with exit status %lu", (unsigned long)code);
    return code != 0;
}

void worker_forget(worker_process *worker)
{
    CloseHandle((HANDLE)worker->in);
    CloseHandle((HANDLE)worker->process);
    *worker = (worker_process){0};
}

/* ---- Commands ---- */

/* Waits for the process. NULL: it was not started. */
static spawn_end end_of(HANDLE process)
{
    DWORD code = 1;
    if (!process)
        return SPAWN_FAILED;
    WaitForSingleObject(process, INFINITE);
    GetExitCodeProcess(process, &code);
    CloseHandle(process);
    return code == 0 ? SPAWN_DONE : SPAWN_FAILED;
}

/* The command line of the arguments; freed with free(). NULL if it is too long. */
static wchar_t *line_of(const char *const arguments[])
{
    wchar_t *line = calloc(MOST_COMMAND, sizeof *line);
    for (size_t i = 0; line && arguments[i]; i++)
        if (!append_argument(line, arguments[i])) {
            free(line);
            return NULL;
        }
    return line;
}

spawn_end spawn_command(const char *const arguments[], const char *input, size_t length)
{
    HANDLE read, write, process;
    wchar_t *line = line_of(arguments);
    if (!line || !make_pipe(&read, &write, true)) {
        free(line);
        return SPAWN_FAILED;
    }
    process = start(NULL, line, read, NULL);
    bool missing = !process && GetLastError() == ERROR_FILE_NOT_FOUND;
    free(line);
    CloseHandle(read);
    for (DWORD written; process && length; input += written, length -= written)
        if (!WriteFile(write, input, (DWORD)MIN(length, 1u << 20), &written, NULL))
            break;
    CloseHandle(write);
    return missing ? SPAWN_NOT_FOUND : end_of(process);
}

spawn_end spawn_self(const char *const arguments[], char *line, size_t size, uint64_t *out_first)
{
    wchar_t path[SYSTEM_PATH_SIZE], *command = line_of(arguments);
    HANDLE read, write, process = NULL;
    DWORD got = 0;
    char rest[256];
    if (!command || !make_pipe(&read, &write, false)) {
        free(command);
        return SPAWN_FAILED;
    }
    if (GetModuleFileNameW(NULL, path, SYSTEM_PATH_SIZE))
        process = start(path, command, NULL, write);
    free(command);
    CloseHandle(write);
    if (!process || !ReadFile(read, line, (DWORD)(size - 1), &got, NULL))
        got = 0;
    line[got] = 0;
    *out_first = system_nanoseconds();
    while (process && ReadFile(read, rest, sizeof rest, &got, NULL) && got)
        continue;
    CloseHandle(read);
    return end_of(process);
}
