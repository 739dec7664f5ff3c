/* What rlxvk's own tools read of an open model beyond rlxvk_model.h. */
#ifndef RLXVK_MODEL_CONTENTS_H
#define RLXVK_MODEL_CONTENTS_H

#include "model/onnx.h"

#include <rlxvk_model.h>

/* The file as structs; they live as long as the model. */
const onnx_model *model_contents(const rlxvk_model *model);

#endif
