/* Parts of the reader that onnx_read.c shares with other files: strings, tensors, types. */
#ifndef RLXVK_ONNX_MESSAGE_H
#define RLXVK_ONNX_MESSAGE_H

#include "model/onnx.h"

/* E_FILE: the field is no text, or has a 0 inside. */
RLXVK_MUST_CHECK rlxvk_status onnx_read_string(arena *a, const wire_field *f, const uint8_t *file,
                                               const char **out);
/* The domain's name, but "" for "ai.onnx". */
const char *onnx_domain(const char *name);
RLXVK_MUST_CHECK rlxvk_status onnx_read_tensor(arena *a, wire_span span, const uint8_t *file,
                                               onnx_tensor *out);
RLXVK_MUST_CHECK rlxvk_status onnx_read_value_info(arena *a, wire_span span, const uint8_t *file,
                                                   onnx_value_info *out);

#endif
