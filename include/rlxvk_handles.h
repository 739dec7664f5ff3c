/*
 * rlxvk: inputs whose value stays on the device between runs, and what is copied into them there.
 * rlxvk.h includes this header.
 */
#ifndef RLXVK_HANDLES_H
#define RLXVK_HANDLES_H

#include <rlxvk.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of the calls below: a name that is no input is E_UNKNOWN_NAME, a length that is not the input's
 * E_LENGTH, data of another dtype E_DTYPE, an index that is no output's E_INDEX; nothing has
 * changed then. They wait for all tickets, hence also E_DEVICE_LOST and E_TIMEOUT. Those that end
 * in _as take and give `length` values of type `dtype`, the tensor's own; the others f32 values. */

/* Writes `length` values into input `name` and keeps a copy that every later run restores, until a
 * feed, a kernel that writes the input in place, or an executable that shares its memory has
 * written it: then the device's content is the authority. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_bind_handle(rlxvk_executable *executable, const char *name,
                                                const float *values, size_t length);
RLXVK_MUST_CHECK rlxvk_status rlxvk_bind_handle_as(rlxvk_executable *executable, const char *name,
                                                   const void *data, size_t length,
                                                   rlxvk_dtype dtype);
/* The handle becomes a plain input again; its content is kept. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_unbind_handle(rlxvk_executable *executable, const char *name);
/* Whether the input is a handle, bound or resident; false for a name that is no input. */
bool rlxvk_has_handle(const rlxvk_executable *executable, const char *name);
/* The handle's present value. E_UNBOUND_HANDLE for a plain input; E_UNKNOWN_NAME for one that no
 * output depends on. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_read_handle(rlxvk_executable *executable, const char *name,
                                                float *values, size_t length);
RLXVK_MUST_CHECK rlxvk_status rlxvk_read_handle_as(rlxvk_executable *executable, const char *name,
                                                   void *data, size_t length, rlxvk_dtype dtype);
/* The whole output that feeds the handle, as the last run left it. E_UNBOUND_HANDLE: no feed. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_read_fed_output(rlxvk_executable *executable, const char *name,
                                                    float *values, size_t length);
RLXVK_MUST_CHECK rlxvk_status rlxvk_read_fed_output_as(rlxvk_executable *executable,
                                                       const char *name, void *data, size_t length,
                                                       rlxvk_dtype dtype);

/* After every run, output `index` is copied into input `name` on the device. They must have the
 * same number of elements (E_LENGTH); set_handle_feed_prefix takes any two, and copies the leading
 * elements that both have, fewer under an active extent. All feeds of a run read before any writes;
 * the run's outputs, read then or later, are what they were before its feeds, also where they are
 * views of the input. A second call replaces the first. E_DTYPE where the two are held differently
 * (real, complex, raw bytes).
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_set_handle_feed(rlxvk_executable *executable, const char *name,
                                                    size_t index);
RLXVK_MUST_CHECK rlxvk_status rlxvk_set_handle_feed_prefix(rlxvk_executable *executable,
                                                           const char *name, size_t index);
/* Takes both the feed and the row feed of the input away; its content stays. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_clear_handle_feed(rlxvk_executable *executable,
                                                      const char *name);
/* Declares that rlxvk_feed_rows copies a row of output `index` into input `name`. E_DTYPE unless
 * both are held as f32 words and some output depends on the input. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_register_row_feed(rlxvk_executable *executable,
                                                      const char *name, size_t index);
/* For every registered row feed: row `source_row` of the output to row `target_row` of the input,
 * rows being `row_elements` elements long. E_RANGE when any of them does not fit, E_UNBOUND_HANDLE
 * when no row feed is registered; nothing is copied then. Rows are read before any is written. The
 * copy is queued on the device and rides in the next submission; into or from memory that
 * executables share it is done at once. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_feed_rows(rlxvk_executable *executable, size_t source_row,
                                              size_t target_row, size_t row_elements);
/* Elements [row * row_elements, + row_elements) of output `index` after a run. E_RANGE: they are
 * not all in the output. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_read_output_row(rlxvk_executable *executable, size_t index,
                                                    size_t row, size_t row_elements, float *values);
RLXVK_MUST_CHECK rlxvk_status rlxvk_read_output_row_as(rlxvk_executable *executable, size_t index,
                                                       size_t row, size_t row_elements, void *data,
                                                       rlxvk_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif
