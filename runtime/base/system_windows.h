/* What the files of the room share on Windows: texts in UTF-16, and errors. */
#ifndef RLXVK_SYSTEM_WINDOWS_H
#define RLXVK_SYSTEM_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <wchar.h>

enum { SYSTEM_PATH_SIZE = 4096 };

/* Writes a path as Windows takes it: UTF-16, '\', and if it is long the prefix without which it
 * would be refused. False: it is no UTF-8, or too long. */
bool system_wide_path(const char *path, wchar_t out[SYSTEM_PATH_SIZE]);
/* UTF-8 of a text; false if it does not fit. */
bool system_narrow(const wchar_t *wide, char *out, size_t size);
/* The same of a path, with '/'. */
bool system_narrow_path(const wchar_t *wide, char *out, size_t size);
/* The errno of the last call of Windows that failed. */
int system_last_errno(void);

#endif
