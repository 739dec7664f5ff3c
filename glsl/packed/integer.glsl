/*
 * Exact integer sums of 8-bit operands, and their conversion back to 8 bits.
 *
 * An operand is stored as signed bytes, or as one integral f32 word for each element. A word
 * outside -128..127 is clamped to it. A product of two numbers in -255..255 is at most 65025, so
 * INTEGER_SLICE terms fit an int. Longer sums and the bias are added in a uvec2 (low, high) in
 * two's complement, and stay below 2^47.
 */
#include "args/packed.h"

int signed_byte(uint word, uint index)
{
    return int(word << (24u - (index & 3u) * 8u)) >> 24;
}
int signed_word(uint word)
{
    return int(clamp(uintBitsToFloat(word), -128.0, 127.0));
}

/* Defines int NAME(uint index), which reads `buffer`. `storage` is a specialization constant. */
#define INTEGER_READER(name, buffer, storage)                                                      \
    int name(uint index)                                                                           \
    {                                                                                              \
        if (storage == INTEGER_BYTES)                                                              \
            return signed_byte(buffer[index >> 2], index);                                         \
        return signed_word(buffer[index]);                                                         \
    }

uvec2 wide_add(uvec2 sum, int v)
{
    uint low = sum.x + uint(v);
    return uvec2(low, sum.y + uint(v >> 31) + (low < sum.x ? 1u : 0u));
}

/* Converts to the nearest f32, ties to even. It uses integer arithmetic, because the rounding of a
 * float conversion is up to the device. */
float wide_to_float(uvec2 v)
{
    bool negative = int(v.y) < 0;
    if (negative)
        v = uvec2(~v.x + 1u, ~v.y + (v.x == 0u ? 1u : 0u));
    int top = v.y != 0u ? 32 + findMSB(v.y) : findMSB(v.x);
    float magnitude = float(v.x);
    if (top > 23) {
        uint shift = uint(top - 23), half_unit = 1u << (shift - 1u);
        uint kept = v.y << (32u - shift) | v.x >> shift;
        uint rest = v.x & ((1u << shift) - 1u);
        if (rest > half_unit || (rest == half_unit && (kept & 1u) != 0u))
            kept += 1u;
        magnitude = float(kept) * uintBitsToFloat((127u + shift) << 23);
    }
    return negative ? -magnitude : magnitude;
}

/* The i32 that a bias word stands for. Words beyond the range saturate; NaN is 0. */
int bias_integer(float v)
{
    if (is_nan(v))
        return 0;
    if (v >= 2147483648.0)
        return 0x7fffffff;
    return v <= -2147483648.0 ? -0x7fffffff - 1 : int(v);
}

/* Rounds to the nearest integer, ties away from zero, adds the zero point and saturates to 8 bits.
 * v is clamped first, because beyond 1024 the result saturates for any zero point. */
float saturate_integer(float v, int zero_point)
{
    if (is_nan(v))
        return float(zero_point);
    v = clamp(v, -1024.0, 1024.0);
    int whole = int(v);
    precise float rest = v - float(whole);
    if (abs(rest) >= 0.5)
        whole += v < 0.0 ? -1 : 1;
    return float(clamp(whole + zero_point, -128, 127));
}

float requantize(uvec2 sum, float multiplier, int zero_point)
{
    precise float scaled = wide_to_float(sum) * multiplier;
    return saturate_integer(scaled, zero_point);
}
