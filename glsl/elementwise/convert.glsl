/*
 * Converts a word to a value that a tensor of another real dtype may hold: convert(DTYPE_.., v).
 * Halves are rounded on the bits and stay widened to f32. Integers are truncated toward zero, and
 * saturate at the nearest f32 of their limits. Pass a specialization constant as the dtype, so that
 * only one branch remains.
 */
#ifndef RLXVK_CONVERT_GLSL
#define RLXVK_CONVERT_GLSL
#include "args/elementwise.h"
#include "lib/narrow.glsl"

float to_integer(float v, float lowest, float highest)
{
    if (is_nan(v))
        return 0.0;
    if (v <= lowest)
        return lowest;
    if (v >= highest)
        return highest;
    return abs(v) < 8388608.0 ? float(int(v)) : v;
}

float convert(uint dtype, float v)
{
    if (dtype == DTYPE_F16)
        return to_f16(v);
    if (dtype == DTYPE_BF16)
        return to_bf16(v);
    if (dtype == DTYPE_I8)
        return to_integer(v, -128.0, 127.0);
    if (dtype == DTYPE_I16)
        return to_integer(v, -32768.0, 32767.0);
    if (dtype == DTYPE_I32)
        return to_integer(v, -2147483648.0, 2147483648.0);
    if (dtype == DTYPE_I64)
        return to_integer(v, -9223372036854775808.0, 9223372036854775808.0);
    if (dtype == DTYPE_U8)
        return to_integer(v, 0.0, 255.0);
    if (dtype == DTYPE_U32)
        return to_integer(v, 0.0, 4294967296.0);
    if (dtype == DTYPE_BOOL)
        return (floatBitsToUint(v) & 0x7fffffffu) != 0u ? 1.0 : 0.0;
    return v;
}

#endif
