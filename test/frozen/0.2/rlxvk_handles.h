#ifndef RLXVK_HANDLES_H
#define RLXVK_HANDLES_H
#include <rlxvk.h>
#ifdef __cplusplus
extern "C" {
#endif
RLXVK_MUST_CHECK rlxvk_status rlxvk_bind_handle(rlxvk_executable *executable, const char *name,
                                                const float *values, size_t length);
RLXVK_MUST_CHECK rlxvk_status rlxvk_bind_handle_as(rlxvk_executable *executable, const char *name,
                                                   const void *data, size_t length,
                                                   rlxvk_dtype dtype);
RLXVK_MUST_CHECK rlxvk_status rlxvk_unbind_handle(rlxvk_executable *executable, const char *name);
bool rlxvk_has_handle(const rlxvk_executable *executable, const char *name);
RLXVK_MUST_CHECK rlxvk_status rlxvk_read_handle(rlxvk_executable *executable, const char *name,
                                                float *values, size_t length);
RLXVK_MUST_CHECK rlxvk_status rlxvk_read_handle_as(rlxvk_executable *executable, const char *name,
                                                   void *data, size_t length, rlxvk_dtype dtype);
RLXVK_MUST_CHECK rlxvk_status rlxvk_read_fed_output(rlxvk_executable *executable, const char *name,
                                                    float *values, size_t length);
RLXVK_MUST_CHECK rlxvk_status rlxvk_read_fed_output_as(rlxvk_executable *executable,
                                                       const char *name, void *data, size_t length,
                                                       rlxvk_dtype dtype);
RLXVK_MUST_CHECK rlxvk_status rlxvk_set_handle_feed(rlxvk_executable *executable, const char *name,
                                                    size_t index);
RLXVK_MUST_CHECK rlxvk_status rlxvk_set_handle_feed_prefix(rlxvk_executable *executable,
                                                           const char *name, size_t index);
RLXVK_MUST_CHECK rlxvk_status rlxvk_clear_handle_feed(rlxvk_executable *executable,
                                                      const char *name);
RLXVK_MUST_CHECK rlxvk_status rlxvk_register_row_feed(rlxvk_executable *executable,
                                                      const char *name, size_t index);
RLXVK_MUST_CHECK rlxvk_status rlxvk_feed_rows(rlxvk_executable *executable, size_t source_row,
                                              size_t target_row, size_t row_elements);
RLXVK_MUST_CHECK rlxvk_status rlxvk_read_output_row(rlxvk_executable *executable, size_t index,
                                                    size_t row, size_t row_elements, float *values);
RLXVK_MUST_CHECK rlxvk_status rlxvk_read_output_row_as(rlxvk_executable *executable, size_t index,
                                                       size_t row, size_t row_elements, void *data,
                                                       rlxvk_dtype dtype);
#ifdef __cplusplus
}
#endif
#endif
