/*
 * rlxvk: handles, which are inputs whose value stays on the device between runs, and feeds, which
 * copy outputs into inputs on the device. A KV cache and the state of a recurrent layer are
 * examples. A handle is in one of two states. If it is bound, every run restores the value that the
 * program gave. If it is resident, the value on the device is the current one, because a feed or a
 * kernel wrote it. rlxvk.h includes this header.
 */
#ifndef RLXVK_HANDLES_H
#define RLXVK_HANDLES_H

#include <rlxvk.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Common to the calls below. Those that end in _as take and give `length` values of type `dtype`,
 * which must be the tensor's own; the others take F32 values. Those that return a status first wait
 * for all tickets. You still call rlxvk_wait for each ticket: only that tells how its run ended,
 * and frees the ticket. If one of these errors comes, nothing has changed:
 *   E_UNKNOWN_NAME  the graph has no input `name`
 *   E_LENGTH        `length` is not the number of elements
 *   E_DTYPE         the data have another dtype than the tensor
 *   E_INDEX         there is no output `index`
 *   E_DEVICE_LOST, E_TIMEOUT  while they wait */

/* Writes `length` values into input `name` and keeps a copy of them, which every later run
 * restores. A run that lists the input uses the listed values instead; the next run that does not
 * list it restores the copy. Restoring ends if one of these writes the input: a feed, a kernel that
 * works in place, or an executable that shares its memory. The handle is resident from then on. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_bind_handle(rlxvk_executable *executable, const char *name,
                                                const float *values, size_t length);
RLXVK_MUST_CHECK rlxvk_status rlxvk_bind_handle_as(rlxvk_executable *executable, const char *name,
                                                   const void *data, size_t length,
                                                   rlxvk_dtype dtype);
/* The handle becomes a plain input again and keeps its content. If the input is no handle, nothing
 * changes. Its feed stays, too: if it has one, the next run makes it a handle again. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_unbind_handle(rlxvk_executable *executable, const char *name);
/* Whether the input is a handle, bound or resident; false if there is no such input. */
bool rlxvk_has_handle(const rlxvk_executable *executable, const char *name);
/* Reads the handle's present value.
 *   E_UNBOUND_HANDLE  it is a plain input
 *   E_UNKNOWN_NAME    there is no such input, or no output depends on it (then bind_handle and
 *                     unbind_handle succeed, but there is no value to read) */
RLXVK_MUST_CHECK rlxvk_status rlxvk_read_handle(rlxvk_executable *executable, const char *name,
                                                float *values, size_t length);
RLXVK_MUST_CHECK rlxvk_status rlxvk_read_handle_as(rlxvk_executable *executable, const char *name,
                                                   void *data, size_t length, rlxvk_dtype dtype);
/* Reads the whole output that feeds the handle, as the last run left it. E_UNBOUND_HANDLE: the
 * input has no feed. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_read_fed_output(rlxvk_executable *executable, const char *name,
                                                    float *values, size_t length);
RLXVK_MUST_CHECK rlxvk_status rlxvk_read_fed_output_as(rlxvk_executable *executable,
                                                       const char *name, void *data, size_t length,
                                                       rlxvk_dtype dtype);

/* Sets a feed: after every run, the device copies output `index` into input `name`. A second call
 * replaces the first. All feeds of a run read before any of them writes. The feeds of a run never
 * change its outputs, even if an output is a view of a fed input and is read later. Setting a feed
 * writes nothing: without allow_unset, a run fails with E_MISSING_INPUT if it does not list the
 * input and nothing wrote it before.
 *
 * set_handle_feed needs an output and an input of the same number of elements.
 * set_handle_feed_prefix takes any two. It copies the leading elements that both have, or fewer
 * under an active extent. The other elements of the input keep their values.
 *   E_LENGTH  set_handle_feed: the numbers of elements differ
 *   E_DTYPE   they are held in different ways (as f32 words, complex pairs or raw bytes)
 *   E_EXTENT  set_handle_feed_prefix: see rlxvk_set_active_extent
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_set_handle_feed(rlxvk_executable *executable, const char *name,
                                                    size_t index);
RLXVK_MUST_CHECK rlxvk_status rlxvk_set_handle_feed_prefix(rlxvk_executable *executable,
                                                           const char *name, size_t index);
/* Removes both the feed and the row feed of the input, which keeps its content. If it is a handle,
 * it stays one. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_clear_handle_feed(rlxvk_executable *executable,
                                                      const char *name);
/* Registers a row feed: from now on rlxvk_feed_rows copies a row of output `index` into input
 * `name`. E_DTYPE: the output or the input is not held as f32 words (U8 and I8 inputs and C64 are
 * not), or no output depends on the input. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_register_row_feed(rlxvk_executable *executable,
                                                      const char *name, size_t index);
/* Copies, for every registered row feed, row `source_row` of the output to row `target_row` of the
 * input. A row is `row_elements` elements. All rows are read before any is written. The inputs are
 * resident handles from then on. The copy is queued. It is done before the next run, and before any
 * call that reads or changes content: rlxvk_read_handle reads the new row. It is done at once if it
 * reads or writes memory that executables share. If one of these errors comes, nothing is copied:
 *   E_RANGE           a row is not inside its tensor
 *   E_UNBOUND_HANDLE  no row feed is registered */
RLXVK_MUST_CHECK rlxvk_status rlxvk_feed_rows(rlxvk_executable *executable, size_t source_row,
                                              size_t target_row, size_t row_elements);
/* Reads elements row * row_elements to (row + 1) * row_elements - 1 of output `index`, as the last
 * run left it. E_RANGE: some of them are outside the output. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_read_output_row(rlxvk_executable *executable, size_t index,
                                                    size_t row, size_t row_elements, float *values);
RLXVK_MUST_CHECK rlxvk_status rlxvk_read_output_row_as(rlxvk_executable *executable, size_t index,
                                                       size_t row, size_t row_elements, void *data,
                                                       rlxvk_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif
