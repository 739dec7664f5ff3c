/* Writes a trained net as a GGUF file for rlxvk generate: its parameters, and a tokenizer whose
 * tokens are bytes. */
#ifndef RLXVK_LM_EXPORT_H
#define RLXVK_LM_EXPORT_H

#include "train/lm_net.h"

/* Reads the executable's params and writes the file. Matrices are f16 or f32; vectors are f32.
 *   E_FILE, E_OUT_OF_HOST_MEMORY
 *   and the errors of rlxvk_read_param. */
RLXVK_MUST_CHECK rlxvk_status lm_export(rlxvk_executable *executable, const lm_shape *shape,
                                        bool f16, const char *path);

#endif
