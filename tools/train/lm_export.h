/* A trained net as a GGUF file that rlxvk generate runs: its parameters, and a tokenizer whose
 * tokens are the bytes. */
#ifndef RLXVK_LM_EXPORT_H
#define RLXVK_LM_EXPORT_H

#include "train/lm_net.h"

/* Matrices as f16, or f32; vectors are f32. Reads the executable's params. E_FILE,
 * E_OUT_OF_HOST_MEMORY, or as rlxvk_read_param. */
RLXVK_MUST_CHECK rlxvk_status lm_export(rlxvk_executable *executable, const lm_shape *shape,
                                        bool f16, const char *path);

#endif
