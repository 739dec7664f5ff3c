/* What an open model has beyond rlxvk_model.h, by its format. */
#ifndef RLXVK_MODEL_CONTENTS_H
#define RLXVK_MODEL_CONTENTS_H

#include "model/language/gguf.h"
#include "model/onnx.h"

#include <rlxvk_model.h>

typedef struct onnx_file onnx_file;
typedef struct language_file language_file;

/* An ONNX file as structs, which live as long as the model. NULL if it has another format. */
const onnx_model *model_contents(const rlxvk_model *model);
const onnx_model *onnx_file_contents(const onnx_file *file);
/* A GGUF file, which lives as long as the model. NULL if it has another format. */
gguf_file *model_language(const rlxvk_model *model);
gguf_file *language_file_contents(const language_file *file);

#endif
