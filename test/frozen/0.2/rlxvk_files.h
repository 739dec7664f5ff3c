#ifndef RLXVK_FILES_H
#define RLXVK_FILES_H
#include <rlxvk.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef struct rlxvk_save_options {
    const char *const *names;
    size_t name_count;
    size_t struct_size;
} rlxvk_save_options;
RLXVK_MUST_CHECK rlxvk_status rlxvk_save_params(rlxvk_executable *executable, const char *path,
                                                const rlxvk_save_options *options);
typedef struct rlxvk_load_options {
    rlxvk_toggle allow_missing;
    rlxvk_toggle allow_unknown;
    rlxvk_toggle convert;
    size_t struct_size;
} rlxvk_load_options;
RLXVK_MUST_CHECK rlxvk_status rlxvk_load_params(rlxvk_executable *executable, const char *path,
                                                const rlxvk_load_options *options);
#ifdef __cplusplus
}
#endif
#endif
