/* What lowerings on quantized integers share. */
#ifndef RLXVK_ONNX_QUANTIZED_H
#define RLXVK_ONNX_QUANTIZED_H

#include "model/call.h"

/* Operand i, a scale or zero point for x: a number, or one for each index of an axis. With blocks,
 * there is one for each block along the axis. */
rlxvk_tensor onnx_quantized_spread(call *c, size_t i, rlxvk_shape x, int32_t axis, int64_t block);
/* Operand i less its zero point: a number, or a row along `axis`. */
rlxvk_tensor onnx_quantized_centred(call *c, size_t i, size_t zero, int32_t axis);
/* x / scale as the nearest f32, then rounded to a whole number, halves to even. */
rlxvk_tensor onnx_quantized_quotient(call *c, rlxvk_tensor x, rlxvk_tensor scale);
/* Rounds, halves to even, adds the zero point, and limits the sum to the type's range. */
void onnx_quantized_give(call *c, size_t result, rlxvk_tensor x, rlxvk_tensor zero, int32_t type);
/* Codes of UINT8, as whole floats, with the scale of the range with 0 in 255 steps. */
rlxvk_tensor onnx_quantized_dynamic(call *c, rlxvk_tensor x, rlxvk_tensor *out_scale,
                                    rlxvk_tensor *out_zero);

#endif
