/* See onnx_float8.h. */
#include "model/onnx_float8.h"

#include <math.h>

static const onnx_float8 types[ONNX_TYPE_COUNT] = {
    [ONNX_FLOAT8E4M3FN] = {3, 7, 448, false, 0x7f},
    [ONNX_FLOAT8E4M3FNUZ] = {3, 8, 240, false, 0x80},
    [ONNX_FLOAT8E5M2] = {2, 15, 57344, true, 0},
    [ONNX_FLOAT8E5M2FNUZ] = {2, 16, 57344, false, 0x80},
    [ONNX_FLOAT4E2M1] = {1, 1, 6, false, 0},
    [ONNX_FLOAT8E8M0] = {0, 127, 0x1p127, false, 0xff},
};

const onnx_float8 *onnx_find_float8(int32_t type)
{
    return type >= 0 && type < ONNX_TYPE_COUNT && types[type].largest > 0 ? &types[type] : NULL;
}

double onnx_float8_value(int32_t type, uint32_t code)
{
    const onnx_float8 *t = &types[type];
    uint32_t sign_bit = onnx_type_bits(type) == 4 ? 8 : 128, magnitude = code & (sign_bit - 1);
    int fraction = (int)(magnitude & ((1u << t->fraction) - 1));
    int exponent = (int)(magnitude >> t->fraction);
    double sign = code & sign_bit ? -1 : 1;
    if (t->nan && (code == t->nan || (t->nan < 128 && magnitude == t->nan)))
        return NAN;
    if (type == ONNX_FLOAT8E8M0)
        return ldexp(1, (int)code - t->bias);
    if (t->has_infinity && exponent == 31)
        return fraction ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - t->bias - t->fraction);
    return sign * ldexp(fraction + (1 << t->fraction), exponent - t->bias - t->fraction);
}

uint32_t onnx_packed_code(const uint8_t *bytes, uint64_t i, uint32_t bits)
{
    uint64_t each = 8 / bits;
    return bytes[i / each] >> (i % each * bits) & ((1u << bits) - 1);
}
