/*
 * Floats of 8 and 4 bits. Tensors of these types hold the values as F32, which is exact. A cast to
 * such a type rounds (onnx_cast.c).
 */
#ifndef RLXVK_ONNX_FLOAT8_H
#define RLXVK_ONNX_FLOAT8_H

#include "model/onnx.h"

typedef struct onnx_float8 {
    int fraction, bias; /* bits behind the leading one; bias of the exponent */
    double largest;     /* finite */
    bool has_infinity;
    uint32_t nan; /* its code, without a sign if the type has NaNs of both signs; 0: none */
} onnx_float8;

/* NULL: the type is none of these. FLOAT8E8M0, which has only powers of two, has fraction 0. */
const onnx_float8 *onnx_find_float8(int32_t type);
/* The value of a code. */
double onnx_float8_value(int32_t type, uint32_t code);
/* Element i of packed elements of fewer than 8 bits, the first one lowest; or of one byte each. */
uint32_t onnx_packed_code(const uint8_t *bytes, uint64_t i, uint32_t bits);

#endif
