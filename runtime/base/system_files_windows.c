/* The files of system.h, on Windows. While a file that replaces another is written, no other
 * process may open or remove it, so it needs no lock. */
#define WIN32_LEAN_AND_MEAN
#include "base/system.h"
#include "base/system_windows.h"

#include <windows.h>

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdlib.h>
#include <string.h>

#define ENDING   ".rlxvk-new"
#define ATTEMPTS 16
#define LONGEST  240 /* letters of a path from which on Windows wants the prefix */
#define SHARED   (FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE)

/* ---- Paths and errors ---- */

int system_last_errno(void)
{
    static const struct {
        DWORD code;
        int error;
    } table[] = {{ERROR_FILE_NOT_FOUND, ENOENT},
                 {ERROR_PATH_NOT_FOUND, ENOENT},
                 {ERROR_INVALID_NAME, ENOENT},
                 {ERROR_BAD_PATHNAME, ENOENT},
                 {ERROR_ACCESS_DENIED, EACCES},
                 {ERROR_SHARING_VIOLATION, EBUSY},
                 {ERROR_LOCK_VIOLATION, EBUSY},
                 {ERROR_FILE_EXISTS, EEXIST},
                 {ERROR_ALREADY_EXISTS, EEXIST},
                 {ERROR_DISK_FULL, ENOSPC},
                 {ERROR_HANDLE_DISK_FULL, ENOSPC},
                 {ERROR_TOO_MANY_OPEN_FILES, EMFILE},
                 {ERROR_NOT_ENOUGH_MEMORY, ENOMEM},
                 {ERROR_WRITE_PROTECT, EROFS},
                 {ERROR_DIRECTORY, ENOTDIR},
                 {ERROR_BROKEN_PIPE, EPIPE},
                 {ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG}};
    DWORD code = GetLastError();
    for (size_t i = 0; i < ARRAY_COUNT(table); i++)
        if (table[i].code == code)
            return table[i].error;
    return EIO;
}

bool system_wide_path(const char *path, wchar_t out[SYSTEM_PATH_SIZE])
{
    static const wchar_t prefix[] = L"\\\\?\\";
    wchar_t whole[SYSTEM_PATH_SIZE];
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, out, SYSTEM_PATH_SIZE) <= 0) {
        SetLastError(ERROR_INVALID_NAME);
        return false;
    }
    for (wchar_t *at = out; *at; at++)
        *at = *at == L'/' ? L'\\' : *at;
    if (wcslen(out) < LONGEST || wcsncmp(out, prefix, 4) == 0)
        return true;
    DWORD length = GetFullPathNameW(out, SYSTEM_PATH_SIZE - 4, whole, NULL);
    if (length == 0 || length >= SYSTEM_PATH_SIZE - 4) {
        SetLastError(ERROR_FILENAME_EXCED_RANGE);
        return false;
    }
    wcscpy(out, prefix);
    wcscpy(out + 4, whole);
    return true;
}

bool system_narrow_path(const wchar_t *wide, char *out, size_t size)
{
    if (!system_narrow(wide, out, size))
        return false;
    for (char *at = out; *at; at++)
        *at = *at == '\\' ? '/' : *at;
    return true;
}

/* Opens what is at the path. INVALID_HANDLE_VALUE: system_last_errno tells why. */
static HANDLE open_path(const char *path, DWORD access, DWORD share, DWORD how)
{
    wchar_t wide[SYSTEM_PATH_SIZE];
    if (!system_wide_path(path, wide))
        return INVALID_HANDLE_VALUE;
    return CreateFileW(wide, access, share, NULL, how, FILE_FLAG_BACKUP_SEMANTICS, NULL);
}

static system_kind kind_of(HANDLE handle)
{
    BY_HANDLE_FILE_INFORMATION info;
    if (GetFileType(handle) != FILE_TYPE_DISK || !GetFileInformationByHandle(handle, &info))
        return SYSTEM_OTHER;
    return info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY ? SYSTEM_FOLDER : SYSTEM_FILE;
}

FILE *system_stream_open(const char *path, const char *mode)
{
    wchar_t wide[SYSTEM_PATH_SIZE], wide_mode[8];
    swprintf(wide_mode, ARRAY_COUNT(wide_mode), L"%hsN", mode);
    if (system_wide_path(path, wide))
        return _wfopen(wide, wide_mode);
    errno = ENOENT;
    return NULL;
}

int system_look(const char *path, system_entry *out)
{
    HANDLE handle = open_path(path, 0, SHARED, OPEN_EXISTING);
    if (handle == INVALID_HANDLE_VALUE)
        return system_last_errno();
    *out = (system_entry){.kind = kind_of(handle)};
    CloseHandle(handle);
    return 0;
}

static int may(const char *path, DWORD access)
{
    HANDLE handle = open_path(path, access, SHARED, OPEN_EXISTING);
    if (handle == INVALID_HANDLE_VALUE)
        return system_last_errno();
    CloseHandle(handle);
    return 0;
}

int system_may_write(const char *path)
{
    return may(path, GENERIC_WRITE);
}

int system_may_read(const char *path)
{
    return may(path, GENERIC_READ);
}

int system_path_resolve(const char *path, char **out)
{
    wchar_t wide[SYSTEM_PATH_SIZE];
    char narrow[3 * SYSTEM_PATH_SIZE];
    *out = NULL;
    HANDLE handle = open_path(path, 0, SHARED, OPEN_EXISTING);
    if (handle == INVALID_HANDLE_VALUE)
        return system_last_errno();
    DWORD length = GetFinalPathNameByHandleW(handle, wide, SYSTEM_PATH_SIZE, VOLUME_NAME_DOS);
    CloseHandle(handle);
    if (length == 0 || length >= SYSTEM_PATH_SIZE)
        return ENAMETOOLONG;
    /* "\\?\C:\folder" or "\\?\UNC\server\share" */
    bool remote = wcsncmp(wide, L"\\\\?\\UNC\\", 8) == 0;
    if (remote)
        wide[6] = L'\\';
    if (!system_narrow_path(wide + (remote                              ? 6
                                    : wcsncmp(wide, L"\\\\?\\", 4) == 0 ? 4
                                                                        : 0),
                            narrow, sizeof narrow))
        return ENAMETOOLONG;
    *out = memory_copy_string(narrow);
    return *out ? 0 : ENOMEM;
}

/* A folder below the user's own is for this user alone, because it inherits its permissions. */
void system_make_folders(const char *path)
{
    char partial[SYSTEM_PATH_SIZE];
    wchar_t wide[SYSTEM_PATH_SIZE];
    for (const char *at = path + strcspn(path, "/\\"); *at; at += strcspn(at, "/\\")) {
        snprintf(partial, sizeof partial, "%.*s", (int)(at - path), path);
        if (at > path && system_wide_path(partial, wide))
            CreateDirectoryW(wide, NULL);
        at++;
    }
}

const char system_cache_variables[] = "LOCALAPPDATA";

bool system_cache_folder(char *out, size_t size)
{
    const char *folder = system_environment("LOCALAPPDATA");
    if (!folder || !*folder)
        return false;
    int length = snprintf(out, size, "%s", folder);
    for (char *at = out; *at; at++)
        *at = *at == '\\' ? '/' : *at;
    return length > 0 && (size_t)length < size;
}

/* ---- Reading by offsets ---- */

void system_file_close(system_file *file)
{
    if (file->handle != -1)
        CloseHandle((HANDLE)file->handle);
    file->handle = -1;
}

int system_file_open(const char *path, system_file *out, uint64_t *out_length)
{
    LARGE_INTEGER length;
    out->handle = (intptr_t)open_path(path, GENERIC_READ, SHARED, OPEN_EXISTING);
    if (out->handle == -1)
        return system_last_errno();
    int error = kind_of((HANDLE)out->handle) != SYSTEM_FILE    ? SYSTEM_NOT_REGULAR
                : !GetFileSizeEx((HANDLE)out->handle, &length) ? system_last_errno()
                                                               : 0;
    if (error)
        system_file_close(out);
    else
        *out_length = (uint64_t)length.QuadPart;
    return error;
}

/* The place of one read or write. */
static OVERLAPPED at_offset(uint64_t offset)
{
    return (OVERLAPPED){.Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32)};
}

int system_file_read(const system_file *file, uint64_t offset, void *out, uint64_t size,
                     size_t *out_got)
{
    OVERLAPPED place = at_offset(offset);
    DWORD got = 0;
    *out_got = 0;
    if (!ReadFile((HANDLE)file->handle, out, (DWORD)MIN(size, 1u << 30), &got, &place))
        return GetLastError() == ERROR_HANDLE_EOF ? 0 : system_last_errno();
    *out_got = got;
    return 0;
}

/* ---- Writing whole lines ---- */

int system_output_open(const char *path, bool appends, system_output *out)
{
    DWORD how = appends ? OPEN_ALWAYS : CREATE_ALWAYS;
    out->handle = (intptr_t)open_path(path, GENERIC_READ | GENERIC_WRITE, SHARED, how);
    return out->handle == -1 ? system_last_errno() : 0;
}

/* The last of all offsets is the end of the file. */
int system_output_write(const system_output *file, const void *bytes, size_t size)
{
    for (const char *at = bytes; size;) {
        OVERLAPPED end = at_offset(UINT64_MAX);
        DWORD written = 0;
        if (!WriteFile((HANDLE)file->handle, at, (DWORD)MIN(size, 1u << 30), &written, &end))
            return system_last_errno();
        at += written;
        size -= written;
    }
    return 0;
}

/* Windows would keep others from reading what is locked, so this locks a byte that no file has. */
int system_output_lock(const system_output *file)
{
    OVERLAPPED place = at_offset(UINT64_C(1) << 62);
    DWORD flags = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
    if (LockFileEx((HANDLE)file->handle, flags, 0, 1, 0, &place))
        return 0;
    return GetLastError() == ERROR_IO_PENDING ? EBUSY : system_last_errno();
}

int system_output_cut(const system_output *file, uint64_t length)
{
    LARGE_INTEGER place = {.QuadPart = (LONGLONG)length};
    bool cut = SetFilePointerEx((HANDLE)file->handle, place, NULL, FILE_BEGIN) &&
               SetEndOfFile((HANDLE)file->handle);
    return cut ? 0 : system_last_errno();
}

int system_output_keep(const system_output *file)
{
    return FlushFileBuffers((HANDLE)file->handle) ? 0 : system_last_errno();
}

int system_output_close(system_output *file)
{
    int error = CloseHandle((HANDLE)file->handle) ? 0 : system_last_errno();
    file->handle = -1;
    return error;
}

/* ---- Replacements ---- */

static bool remove_path(const char *path)
{
    wchar_t wide[SYSTEM_PATH_SIZE];
    return system_wide_path(path, wide) && DeleteFileW(wide);
}

/* A leftover of a killed process is removed, not written to: it may have other names. */
static int create_alone(const char *path, HANDLE *out)
{
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        *out = open_path(path, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ, CREATE_NEW);
        if (*out != INVALID_HANDLE_VALUE)
            return 0;
        int error = system_last_errno();
        if (error != EEXIST)
            return error;
        if (!remove_path(path) && (error = system_last_errno()) != ENOENT)
            return error == EACCES ? EEXIST : error; /* a folder */
    }
    return EBUSY;
}

int system_replacement_begin(const char *path, system_audience audience, system_replacement *out)
{
    size_t size = strlen(path) + sizeof ENDING;
    system_replacement r = {.path = memory_copy_string(path), .temporary = memory_allocate(size)};
    HANDLE handle = INVALID_HANDLE_VALUE;
    (void)audience; /* the folder decides */
    *out = (system_replacement){0};
    int error = r.path && r.temporary ? 0 : ENOMEM;
    if (!error) {
        snprintf(r.temporary, size, "%s" ENDING, path);
        error = create_alone(r.temporary, &handle);
    }
    if (!error) {
        int descriptor = _open_osfhandle((intptr_t)handle, _O_BINARY | _O_NOINHERIT);
        r.stream = descriptor >= 0 ? _fdopen(descriptor, "wb") : NULL;
        if (!r.stream) {
            error = EMFILE;
            CloseHandle(handle);
            remove_path(r.temporary);
        }
    }
    if (!error) {
        *out = r;
        return 0;
    }
    memory_free(r.path);
    memory_free(r.temporary);
    return error;
}

/* A new file has the permissions of its folder, and a file that cannot be written is not replaced.
 */
int system_replacement_permit(system_replacement *r, const system_entry *old)
{
    (void)r, (void)old;
    return 0;
}

/* Gives the file its name. While another process reads the old file, Windows refuses. */
static int take_name(const system_replacement *r)
{
    wchar_t from[SYSTEM_PATH_SIZE], to[SYSTEM_PATH_SIZE];
    int error = 0;
    if (!system_wide_path(r->temporary, from) || !system_wide_path(r->path, to))
        return ENOENT;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        if (MoveFileExW(from, to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH))
            return 0;
        error = system_last_errno();
        if (error != EACCES && error != EBUSY)
            break;
        Sleep(5);
    }
    return error;
}

static void release(system_replacement *r)
{
    if (r->stream)
        fclose(r->stream);
    memory_free(r->path);
    memory_free(r->temporary);
    *r = (system_replacement){0};
}

/* The file must be closed before it can get its name. */
int system_replacement_finish(system_replacement *r)
{
    int error = ferror(r->stream) ? -1 : 0;
    if (!error && fflush(r->stream) != 0)
        error = errno;
    if (!error && !FlushFileBuffers((HANDLE)_get_osfhandle(_fileno(r->stream))))
        error = system_last_errno();
    if (!error) {
        FILE *stream = r->stream;
        r->stream = NULL;
        error = fclose(stream) == 0 ? take_name(r) : errno;
    }
    if (error)
        system_replacement_discard(r);
    else
        release(r);
    return error;
}

void system_replacement_discard(system_replacement *r)
{
    if (r->stream)
        fclose(r->stream);
    r->stream = NULL;
    if (r->temporary)
        remove_path(r->temporary);
    release(r);
}
