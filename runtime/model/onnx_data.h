/* The elements of a tensor of the file. They lie in the model's bytes, in typed fields, or in a
 * file beside the model's. */
#ifndef RLXVK_ONNX_DATA_H
#define RLXVK_ONNX_DATA_H

#include "model/onnx.h"

typedef struct onnx_data {
    wire_span bytes; /* little-endian; elements below 8 bits are packed, the first one lowest */
    void *owned;     /* NULL if the bytes are those of the model, in memory */
} onnx_data;

/* E_FILE: the data are too short or too long. Or a file beside the model cannot be read, or does
 * not lie in its folder. E_UNSUPPORTED: text. `folder` is the model's; NULL: it has none. */
RLXVK_MUST_CHECK rlxvk_status onnx_data_read(const onnx_tensor *t, const char *folder,
                                             const uint8_t *file, onnx_data *out);
void onnx_data_free(onnx_data *data);

#endif
