/* See program.h. */
#define WIN32_LEAN_AND_MEAN
#include "system/program.h"
#include "base/system_windows.h"

#include <windows.h>

#include <fcntl.h>
#include <io.h>
#include <shellapi.h>
#include <stdlib.h>
#include <string.h>

/* Arguments in UTF-8, which stay until the process ends; NULL if out of memory. */
static char **read_arguments(int *out_count)
{
    wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), out_count);
    char **all = wide ? calloc((size_t)*out_count + 1, sizeof *all) : NULL;
    for (int i = 0; all && i < *out_count; i++) {
        size_t size = 3 * wcslen(wide[i]) + 1;
        if (!(all[i] = malloc(size)) || !system_narrow(wide[i], all[i], size))
            return NULL;
    }
    LocalFree(wide);
    return all;
}

void program_begin(int *argc, char ***argv)
{
    int count = 0;
    char **arguments = read_arguments(&count);
    if (arguments) {
        *argc = count;
        *argv = arguments;
    }
    for (int descriptor = 0; descriptor <= 2; descriptor++)
        (void)_setmode(descriptor, _O_BINARY);
    setvbuf(stderr, NULL, _IONBF, 0);
    SetConsoleOutputCP(CP_UTF8);
}

bool program_path(char *out, size_t size)
{
    wchar_t wide[SYSTEM_PATH_SIZE];
    DWORD length = GetModuleFileNameW(NULL, wide, SYSTEM_PATH_SIZE);
    return length > 0 && length < SYSTEM_PATH_SIZE && system_narrow_path(wide, out, size);
}

bool program_has_terminal_input(void)
{
    DWORD mode;
    return GetConsoleMode(GetStdHandle(STD_INPUT_HANDLE), &mode);
}

/* Also makes the console understand the escapes that clear a line. */
int program_terminal_columns(void)
{
    HANDLE console = GetStdHandle(STD_ERROR_HANDLE);
    CONSOLE_SCREEN_BUFFER_INFO info;
    DWORD mode;
    if (!GetConsoleMode(console, &mode) ||
        !SetConsoleMode(console, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING))
        return 0;
    int columns = GetConsoleScreenBufferInfo(console, &info)
                      ? info.srWindow.Right - info.srWindow.Left + 1
                      : 80;
    return columns > 1 ? columns : 80;
}

void program_sleep(double seconds)
{
    Sleep((DWORD)(seconds * 1000 + 0.999));
}

/* ---- Ctrl-C ---- */

static volatile LONG noted, watching;

/* Windows calls this on a thread of its own. */
static BOOL WINAPI note(DWORD event)
{
    if (event != CTRL_C_EVENT || !watching)
        return FALSE; /* the next handler ends the process */
    return InterlockedExchange(&noted, 1) == 0;
}

void program_watch_interrupt(void)
{
    if (InterlockedExchange(&watching, 1) == 0)
        SetConsoleCtrlHandler(note, TRUE);
}

bool program_interrupted(void)
{
    return noted;
}

void program_end_interrupt(void)
{
    if (InterlockedExchange(&watching, 0))
        SetConsoleCtrlHandler(note, FALSE);
}

/* ---- Folders ---- */

bool program_make_temporary(char *out, size_t size)
{
    wchar_t wide[SYSTEM_PATH_SIZE];
    char base[SYSTEM_PATH_SIZE];
    DWORD length = GetTempPathW(SYSTEM_PATH_SIZE, wide);
    if (length == 0 || length >= SYSTEM_PATH_SIZE || !system_narrow_path(wide, base, sizeof base))
        return false;
    for (unsigned i = 0; i < 1000; i++) {
        int written = snprintf(out, size, "%srlxvk-%lu-%u", base, GetCurrentProcessId(), i);
        if (written <= 0 || (size_t)written >= size || !system_wide_path(out, wide))
            return false;
        if (CreateDirectoryW(wide, NULL))
            return true;
    }
    return false;
}

static void remove_path(const char *path, DWORD attributes)
{
    wchar_t wide[SYSTEM_PATH_SIZE];
    if (attributes & FILE_ATTRIBUTE_DIRECTORY && !(attributes & FILE_ATTRIBUTE_REPARSE_POINT))
        program_remove_folder(path);
    else if (system_wide_path(path, wide))
        (void)(attributes & FILE_ATTRIBUTE_DIRECTORY ? RemoveDirectoryW(wide) : DeleteFileW(wide));
}

void program_remove_folder(const char *path)
{
    wchar_t wide[SYSTEM_PATH_SIZE];
    char name[SYSTEM_PATH_SIZE], entry[SYSTEM_PATH_SIZE];
    WIN32_FIND_DATAW found;
    snprintf(entry, sizeof entry, "%.*s/*", SYSTEM_PATH_SIZE - 8, path);
    HANDLE search =
        system_wide_path(entry, wide) ? FindFirstFileW(wide, &found) : INVALID_HANDLE_VALUE;
    for (bool more = search != INVALID_HANDLE_VALUE; more; more = FindNextFileW(search, &found)) {
        if (!system_narrow(found.cFileName, name, sizeof name) || strcmp(name, ".") == 0 ||
            strcmp(name, "..") == 0)
            continue;
        int length = snprintf(entry, sizeof entry, "%s/%s", path, name);
        if (length > 0 && (size_t)length < sizeof entry)
            remove_path(entry, found.dwFileAttributes);
    }
    if (search != INVALID_HANDLE_VALUE)
        FindClose(search);
    if (system_wide_path(path, wide))
        RemoveDirectoryW(wide);
}
