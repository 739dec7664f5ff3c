/* What rlxvk's own tools read of an open model beyond rlxvk_model.h. */
#ifndef RLXVK_MODEL_CONTENTS_H
#define RLXVK_MODEL_CONTENTS_H

#include "model/onnx.h"

#include <rlxvk_model.h>

typedef struct onnx_file onnx_file;

/* An ONNX file as structs, which live as long as the model. NULL if it has another format. */
const onnx_model *model_contents(const rlxvk_model *model);
const onnx_model *onnx_file_contents(const onnx_file *file);

#endif
