/* A whole import: from a model and options to a graph. */
#ifndef RLXVK_ONNX_IMPORT_H
#define RLXVK_ONNX_IMPORT_H

#include "model/import.h"

/* For each input of the model: its value, or NULL, and its shape with codes. */
typedef struct onnx_import_input {
    const host_array *value;
    rlxvk_shape shape;
} onnx_import_input;

/* Builds import->graph. If it returns OK, there may be problems; then the graph is useless. */
RLXVK_MUST_CHECK rlxvk_status onnx_import_model(onnx_import *import,
                                                const onnx_import_input *inputs,
                                                const char *const *outputs, size_t output_count);

#endif
