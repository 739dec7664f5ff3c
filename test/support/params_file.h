/* Files of params, written and read by the library and by Python (params_file.py), and the params
 * of an executable as text. */
#ifndef RLXVK_TEST_PARAMS_FILE_H
#define RLXVK_TEST_PARAMS_FILE_H

#include "base/base.h"
#include "support/harness.h"

enum { PARAMS_ROOM = 1 << 16, PARAMS_FORMATS = 2 };
extern const char *const params_extensions[PARAMS_FORMATS];

/* Group set-up and tear-down: they make and remove a folder, and open and close the shared
 * context. */
int params_set_up(void **state);
int params_tear_down(void **state);

/* "<folder>/<name>.<extension>". The text is valid until the fourth call after this one. */
const char *params_path(const char *name, const char *extension);
/* Reads or writes at most PARAMS_ROOM bytes. */
size_t params_read_file(const char *path, uint8_t *out);
void params_write_file(const char *path, const void *bytes, size_t size);
/* The arrays of a file as Python reads or writes them, one line for each. `out` has PARAMS_ROOM
 * bytes. */
void params_python_reads(const char *path, char *out);
void params_python_writes(const char *path, const char *lines, const char *option);

/* Sets all params to values that every dtype holds exactly; another seed gives other values. If
 * shapes have symbols, the only one may be BATCH, and it must be 3. */
void params_fill(rlxvk_executable *e, int seed);
/* All live params as text, in the format of params_python_reads. */
void params_describe(rlxvk_executable *e, char *out);

#endif
