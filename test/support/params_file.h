/* Files of params: written and read here and by Python (params_file.py), and what an executable
 * has, as text. */
#ifndef RLXVK_TEST_PARAMS_FILE_H
#define RLXVK_TEST_PARAMS_FILE_H

#include "base/base.h"
#include "support/harness.h"

enum { PARAMS_ROOM = 1 << 16, PARAMS_FORMATS = 2 };
extern const char *const params_extensions[PARAMS_FORMATS];

/* Group set-up and tear-down: a folder, and the shared context. */
int params_set_up(void **state);
int params_tear_down(void **state);

/* "<folder>/<name>.<extension>"; lives until the fourth call from here. */
const char *params_path(const char *name, const char *extension);
/* Both of at most PARAMS_ROOM bytes. */
size_t params_read_file(const char *path, uint8_t *out);
void params_write_file(const char *path, const void *bytes, size_t size);
/* The arrays of a file, a line each, as Python reads and writes it; `out` has PARAMS_ROOM bytes. */
void params_python_reads(const char *path, char *out);
void params_python_writes(const char *path, const char *lines, const char *option);

/* Values that every type holds exactly, others by another seed. Of symbols, BATCH alone, at 3. */
void params_fill(rlxvk_executable *e, int seed);
/* All params that are live, as params_python_reads has a file. */
void params_describe(rlxvk_executable *e, char *out);

#endif
