/* What lowerings share of conversions between types. */
#ifndef RLXVK_ONNX_CAST_H
#define RLXVK_ONNX_CAST_H

#include "model/call.h"

/* How FLOAT8E8M0 is rounded: the other types round to the nearest value, ties to even. */
enum { ONNX_ROUND_UP, ONNX_ROUND_DOWN, ONNX_ROUND_NEAREST };

/* Rounds to a float of 8 or 4 bits (onnx_find_float8). Values beyond the largest one become it, or
 * without `saturate` an infinity or NaN. */
rlxvk_tensor onnx_round_float8(call *c, rlxvk_tensor x, int32_t type, bool saturate, int mode);

#endif
