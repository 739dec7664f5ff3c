/*
 * Reads a model's file without its large weights, which are read when they are needed. So opening
 * takes little time and memory, and no more than one weight is in host memory at a time.
 */
#ifndef RLXVK_SKIM_H
#define RLXVK_SKIM_H

#include "base/input.h"
#include "model/onnx.h"

/* Raw elements of initializers of so many bytes are left out. */
enum { SKIM_BYTES = 1 << 20 };

/* Reads into `bytes`, which has the file's length and holds zeros. What is left out stays zero. A
 * damaged file is read too, so that onnx_read tells where it is damaged. E_FILE: it cannot be read.
 */
RLXVK_MUST_CHECK rlxvk_status skim_file(const input_file *file, uint8_t *bytes);
/* Sets `source` of the initializers that skim_file may have left out. */
void skim_mark(const input_file *file, onnx_model *model);

#endif
